"""From logits to text: sampling, stop strings, grammars, speculation, beams."""

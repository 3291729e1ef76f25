"""Programs as source text, one file per language."""

"""Text and tokens: `tokenizer_of(model)` is the tokenizer of a model's file."""

from weft.llm.text.of_model import tokenizer_of

__all__ = ["tokenizer_of"]

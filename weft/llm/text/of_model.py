"""The tokenizer of a model, from what its file or its folder says."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from weft.ir.collector import CollectorPaused
from weft.llm.model.transformer import Model
from weft.llm.text.from_gguf import tokenizer_from_gguf
from weft.llm.text.from_json import tokenizer_from_json
from weft.llm.text.tokenizer import TextTokenizer
from weft.support.errors import FileFormatError


def tokenizer_of(model: Model) -> TextTokenizer:
    """The tokenizer that a model was trained with."""
    with CollectorPaused():
        return _read(model.tokenizer_data)


def _read(data: dict[str, Any]) -> TextTokenizer:
    if "tokenizer.json" in data:
        with TemporaryDirectory() as folder:
            for name, text in data.items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
            return tokenizer_from_json(folder)
    if "tokenizer.ggml.model" not in data:
        raise FileFormatError("model: there is no tokenizer beside its weights")
    return tokenizer_from_gguf(data)

"""Load a model from a path: a GGUF file, or a folder of Hugging Face files."""

from __future__ import annotations

from pathlib import Path

from weft.ir.collector import CollectorPaused
from weft.llm.model.transformer import Model
from weft.llm.weights.gguf import gguf_parts
from weft.llm.weights.hugging_face import hub_parts
from weft.llm.weights.layer import Progress, resident


def load(
    path: str | Path, context: int = 0, device: str | None = None, progress: Progress | None = None
) -> Model:
    """The model of a file or a folder; `context` limits its positions.

    Weights stay as packed as they are. `progress(done, total)` hears how many bytes are there.
    A model in several GGUF files is named by the first.
    """
    path = Path(path)
    read = hub_parts if path.is_dir() else gguf_parts
    with CollectorPaused():  # a vocabulary is a hundred thousand objects, and all of them stay
        config, weights, tokenizer_data = read(path, context, device)
        return Model(config, resident(weights, progress), tokenizer_data)

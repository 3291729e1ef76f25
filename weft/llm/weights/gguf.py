"""A model of a GGUF file: its facts from the metadata, its weights under their own names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.io.gguf import StoredTensor, gguf_stored
from weft.llm.model.config import Config
from weft.llm.model.facts import Facts, config_of
from weft.support.errors import FileFormatError
from weft.tensor.tensor import Tensor

# Factors of the rotary frequencies that stand in tensors of their own.
_FACTORS = ("rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight")


def gguf_parts(
    path: Path, context: int, device: str | None
) -> tuple[Config, dict[str, StoredTensor], dict[str, Any]]:
    """The facts, the weights, and what the file says of its tokenizer."""
    metadata, weights = gguf_stored(path, device)
    for other in _other_files(path, metadata):
        weights |= gguf_stored(other, device)[1]
    factors = {n: weights[n].over(weights[n].data) for n in _FACTORS if n in weights}
    text = {key: value for key, value in metadata.items() if key.startswith("tokenizer.")}
    return config_from_gguf(metadata, factors, context), weights, text


def config_from_gguf(
    metadata: Mapping[str, Any], weights: Mapping[str, Tensor], context: int = 0
) -> Config:
    """The facts of a model from the metadata of its file."""
    name = metadata.get("general.architecture")
    every, short, long = (weights[each].tolist() if each in weights else None for each in _FACTORS)
    factors: dict[str, Any] = {"short": short or long, "long": long or short}
    if every:  # what the file divides frequencies by, at every length
        factors = {"short": every, "long": every, "magnitude": 1.0}
    return config_of(Facts(metadata, str(name), is_hub=False), context, factors)


def _other_files(path: Path, metadata: Mapping[str, Any]) -> list[Path]:
    """The other files of a model that is split: `name-00001-of-00003.gguf` is the first."""
    count = metadata.get("split.count", 1)
    if not isinstance(count, int) or count < 2:
        return []
    named = re.fullmatch(r"(.*-)00001(-of-\d{5}\.gguf)", path.name)
    if named is None:
        raise FileFormatError(
            f"GGUF: {path.name} is one of {count} files of a model",
            fix="load the first, whose name ends with 00001-of-" + f"{count:05d}.gguf",
        )
    others = [path.with_name(f"{named[1]}{n:05d}{named[2]}") for n in range(2, count + 1)]
    missing = [each.name for each in others if not each.exists()]
    if missing:
        raise FileFormatError(f"GGUF: {missing[0]} is missing", rule="all files are in one folder")
    return others

"""A model of a folder of Hugging Face: config.json, safetensors, and the files of a tokenizer.

Weights of 8 bits stay so: a scale beside them (`weight_scale`, `weight_scale_inv`; for all, for
rows or for blocks) is multiplied inside of the kernels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weft.io.safetensors import safe_load
from weft.ir.dtypes import dtypes
from weft.llm.model.architectures import HUB_NAMES
from weft.llm.model.config import Config
from weft.llm.model.facts import Facts, config_of
from weft.llm.weights.names import gguf_names
from weft.support.errors import FileFormatError
from weft.tensor.tensor import Tensor

_TEXT_FILES: Final = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "generation_config.json",
    "chat_template.jinja",
)
_SCALES: Final = ("weight_scale", "weight_scale_inv")


def hub_parts(
    folder: Path, context: int, device: str | None
) -> tuple[Config, dict[str, Tensor], dict[str, Any]]:
    """The facts, the weights, and the texts of the tokenizer's files by their names."""
    stated = _config(folder)
    names = stated.get("architectures") or [stated.get("model_type")]
    name = HUB_NAMES.get(str(names[0]), str(names[0]))
    config = config_of(Facts(stated, name, is_hub=True), context)
    text = {
        file: (folder / file).read_text(encoding="utf-8")
        for file in _TEXT_FILES
        if (folder / file).is_file()
    }
    stored = _tensors(folder)
    if stated.get("tie_word_embeddings"):
        stored.pop("lm_head.weight", None)
    is_offset = Facts(stated, name, is_hub=True).row.offset_norms
    return config, _weights(stored, is_offset, device), text


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileFormatError(f"model: there is no config.json in {folder}") from None
    except ValueError as failure:
        raise FileFormatError(f"model: {path} is not valid JSON: {failure}") from None
    if not isinstance(found, dict):
        raise FileFormatError(f"model: expected a table in {path}")
    inner = found.get("text_config")  # of models that see as well
    return {**inner, "architectures": found.get("architectures")} if inner else found


def _tensors(folder: Path) -> dict[str, Tensor]:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return safe_load(index)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise FileFormatError(f"model: there are no safetensors in {folder}")
    tensors: dict[str, Tensor] = {}
    for file in files:
        tensors |= safe_load(file)
    return tensors


def _weights(
    stored: Mapping[str, Tensor], is_offset: bool, device: str | None
) -> dict[str, Tensor]:
    device = Tensor.empty(0, device=device).device
    made = {}
    for name, parts in gguf_names(stored).items():
        if name.endswith(_SCALES):
            continue
        weight = _joined([stored[part].to(device) for part in parts])
        scale = _scale(stored, parts, device)
        if scale is not None:
            weight = scaled(weight, scale)
        if is_offset and name.endswith("norm.weight"):
            weight = weight.cast(dtypes.float32) + 1
        made[name] = weight
    return made


def _joined(parts: list[Tensor]) -> Tensor:
    """The tensors of all experts as one in memory; a single one stays in its file."""
    return parts[0] if len(parts) == 1 else Tensor.stack(*parts).contiguous().realize()


def _scale(stored: Mapping[str, Tensor], parts: list[str], device: str) -> Tensor | None:
    for kind in _SCALES:
        names = [f"{part.removesuffix('weight')}{kind}" for part in parts]
        if parts[0].endswith("weight") and names[0] in stored:
            return _joined([stored[name].to(device) for name in names])
    return None


def scaled(weight: Tensor, scale: Tensor) -> Tensor:
    """A weight (..., out, in) times a scale for all, for rows, or for blocks of both axes.

    >>> from weft.tensor import Tensor
    >>> scaled(Tensor([[1, 2], [3, 4]]), Tensor([[10.0], [1.0]])).tolist()
    [[10.0, 20.0], [3.0, 4.0]]
    """
    weight, scale = weight.cast(dtypes.float32), scale.cast(dtypes.float32)
    while scale.ndim < weight.ndim:
        scale = scale.unsqueeze(-1)
    for axis in (-2, -1):
        size, count = int(weight.shape[axis]), int(scale.shape[axis])
        if count not in (1, size):
            block = next(
                (b for b in (128, 64, 32, 256) if -(-size // b) == count), -(-size // count)
            )
            scale = scale.repeat_interleave(block, axis)
            scale = scale[..., :size] if axis == -1 else scale[..., :size, :]
    return weight * scale

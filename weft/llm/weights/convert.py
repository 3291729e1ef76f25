"""A model in another file: GGUF with other types of weights, or safetensors.

Weights are converted one at a time, so memory holds the largest of them. Vectors (norms, biases)
stay float32, as do rows that are not a whole number of blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.io.gguf import gguf_load, gguf_typed_metadata
from weft.io.gguf_blocks import QUANTIZED
from weft.io.gguf_pack import KIND_OF, packed, packed_size
from weft.io.gguf_write import PackedTensor, Typed, gguf_save
from weft.io.safetensors import safe_save
from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor

Progress = Callable[[str, int, int], None]  # a name, and how many of how many weights
# What `general.file_type` says of a file whose weights are mostly of a type.
_FILE_TYPES: Final = {
    "F32": 0,
    "F16": 1,
    "Q4_0": 2,
    "Q4_1": 3,
    "Q8_0": 7,
    "Q5_0": 8,
    "Q5_1": 9,
    "BF16": 32,
    "TQ1_0": 36,
    "TQ2_0": 37,
    "MXFP4": 38,
}
_FLOATS: Final = {"F32": dtypes.float32, "F16": dtypes.float16, "BF16": dtypes.bfloat16}


def convert(
    source: str | Path, target: str | Path, kind: str = "Q8_0", progress: Progress | None = None
) -> None:
    """Write the GGUF file `source` as `target`, whose name ends with .gguf or .safetensors."""
    source, target, kind = Path(source), Path(target), kind.upper()
    if kind not in KIND_OF:
        raise ArgumentError(
            f"convert: weights as {kind}", rule="types are " + ", ".join(sorted(KIND_OF))
        )
    if source.is_dir():
        raise ArgumentError("convert: expected a GGUF file, got a folder")
    if target.suffix == ".safetensors":
        _write_safetensors(source, target, kind)
        return
    if target.suffix != ".gguf":
        raise ArgumentError(f"convert: {target.name} ends with neither .gguf nor .safetensors")
    weights = gguf_load(source)[1]
    metadata: dict[str, Any] = dict(gguf_typed_metadata(source))
    metadata["general.file_type"] = Typed(4, _FILE_TYPES[kind])
    metadata["general.quantization_version"] = Typed(4, 2)
    metadata.pop("general.alignment", None)
    tensors = {}
    for number, (name, weight) in enumerate(weights.items(), 1):
        shape = tuple(int(size) for size in weight.shape)
        chosen = _kind_of(name, shape, kind)
        told = (name, number, len(weights))
        size = packed_size(shape, chosen)
        tensors[name] = PackedTensor(
            shape, KIND_OF[chosen], size, _data(weight, chosen, told, progress)
        )
    gguf_save(target, metadata, tensors)


def _data(
    weight: Tensor, kind: str, told: tuple[str, int, int], progress: Progress | None
) -> Callable[[], Any]:
    def data() -> Any:
        if progress is not None:
            progress(*told)
        return packed(weight.cast(dtypes.float32).numpy(), kind).data

    return data


def _kind_of(name: str, shape: tuple[int, ...], kind: str) -> str:
    """The type that a weight gets; routers of experts are small, and rounding them is felt."""
    row = QUANTIZED.get(KIND_OF[kind])
    if len(shape) < 2 or "ffn_gate_inp" in name:
        return "F32"
    if row is not None and shape[-1] % row.elements:
        return "F16"
    if kind.startswith("TQ") and ("token_embd" in name or name == "output.weight"):
        return "Q8_0"
    return kind


def _write_safetensors(source: Path, target: Path, kind: str) -> None:
    """All weights as floats under the names of GGUF; the metadata as text."""
    if kind not in _FLOATS:
        raise ArgumentError(
            f"convert: safetensors with weights as {kind}",
            rule="safetensors have F32, F16 and BF16",
        )
    metadata, weights = gguf_load(source)
    tensors = {
        name: weight.cast(_FLOATS["F32" if weight.ndim < 2 else kind])
        for name, weight in weights.items()
    }
    plain = (str, int, float, bool, np.number)
    facts = {key: str(value) for key, value in metadata.items() if isinstance(value, plain)}
    safe_save(tensors, target, facts)

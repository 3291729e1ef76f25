"""Numbers packed into the blocks of GGUF: the way back from `gguf_blocks`, on the host.

Each function takes rows of float32 cut into blocks, (count, elements), and gives their bytes
(count, bytes), equal to those of the `gguf` package. `PACKED` is by the names of the types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.io.gguf_blocks import QUANTIZED, TINY_FLOATS
from weft.support.errors import ArgumentError

Array = np.ndarray[Any, np.dtype[Any]]


def packed(weight: Array, name: str) -> Array:
    """The bytes of a weight in a type; its rows are whole blocks."""
    kind = KIND_OF[name]
    flat = np.ascontiguousarray(weight, np.float32)
    if kind not in QUANTIZED:
        return _PLAIN[name](flat).reshape(-1).view(np.uint8)
    row = QUANTIZED[kind]
    if not flat.ndim or flat.shape[-1] % row.elements:
        raise ArgumentError(
            f"GGUF: rows of {flat.shape[-1:]} elements as {name}",
            rule=f"a row of {name} is a whole number of {row.elements} elements",
        )
    return PACKED[name](flat.reshape(-1, row.elements)).reshape(-1)


def packed_size(shape: tuple[int, ...], name: str) -> int:
    """How many bytes a tensor of a type has."""
    count = int(np.prod(shape, dtype=np.int64))
    row = QUANTIZED.get(KIND_OF[name])
    if row is None:
        return count * {"F32": 4, "F16": 2, "BF16": 2}[name]
    return count // row.elements * row.bytes


def _inverse(scale: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.where(scale == 0, np.float32(0), np.float32(1) / scale).astype(np.float32)


def _half_bytes(numbers: Array) -> Array:
    with np.errstate(over="ignore"):
        return numbers.astype(np.float16).view(np.uint8)


def _rounded(numbers: Array) -> Array:
    """To the nearest whole number, halves away from zero."""
    size = np.abs(numbers)
    whole = np.floor(size)
    nearest: Array = np.sign(numbers) * (whole + np.floor(2 * (size - whole)))
    return nearest


def _nibbles(codes: Array) -> Array:
    """The first half of the elements in low halves of bytes, the second in high ones."""
    half = codes.shape[1] // 2
    joined: Array = codes[:, :half] | codes[:, half:] << np.uint8(4)
    return joined


def _top_bits(codes: Array) -> Array:
    """The fifth bits of 32 codes in four bytes."""
    return np.packbits(codes >> 4, axis=-1, bitorder="little")


def _symmetric(blocks: Array, middle: int) -> tuple[Array, Array]:
    """The scale that takes the element of greatest size to -middle, and the codes."""
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[:, None], -1)
    scale = largest / np.float32(-middle)
    wide = blocks.astype(np.float64) * _inverse(scale).astype(np.float64) + (middle + 0.5)
    codes = np.trunc(wide).astype(np.float32).astype(np.uint8).clip(0, 2 * middle - 1)
    return _half_bytes(scale), codes


def _between(blocks: Array, most: int) -> tuple[Array, Array, Array]:
    """Scale and least element, so that codes 0 to `most` span the block."""
    least = blocks.min(-1, keepdims=True)
    scale = (blocks.max(-1, keepdims=True) - least) / np.float32(most)
    codes = np.trunc((blocks - least) * _inverse(scale) + np.float32(0.5))
    return _half_bytes(scale), _half_bytes(least), codes.astype(np.uint8).clip(0, most)


def _q4_0(blocks: Array) -> Array:
    scale, codes = _symmetric(blocks, 8)
    return np.concatenate([scale, _nibbles(codes)], -1)


def _q5_0(blocks: Array) -> Array:
    scale, codes = _symmetric(blocks, 16)
    return np.concatenate([scale, _top_bits(codes), _nibbles(codes & np.uint8(15))], -1)


def _q4_1(blocks: Array) -> Array:
    scale, least, codes = _between(blocks, 15)
    return np.concatenate([scale, least, _nibbles(codes)], -1)


def _q5_1(blocks: Array) -> Array:
    scale, least, codes = _between(blocks, 31)
    return np.concatenate([scale, least, _top_bits(codes), _nibbles(codes & np.uint8(15))], -1)


def _q8_0(blocks: Array) -> Array:
    scale = np.abs(blocks).max(-1, keepdims=True) / np.float32(127)
    codes = _rounded(blocks * _inverse(scale)).astype(np.int8)
    return np.concatenate([_half_bytes(scale), codes.view(np.uint8)], -1)


def _ternary(blocks: Array) -> tuple[Array, Array]:
    scale = np.abs(blocks).max(-1, keepdims=True)
    codes = (_rounded(blocks * _inverse(scale)).astype(np.int8) + np.int8(1)).view(np.uint8)
    return _half_bytes(scale), codes


def _tq1_0(blocks: Array) -> Array:
    scale, codes = _ternary(blocks)
    parts = []
    for begin, count, width in ((0, 5, 32), (160, 5, 16), (240, 4, 4)):
        digits = codes[:, begin : begin + count * width].reshape(-1, count, width)
        number: Array = np.zeros((len(codes), width), np.uint16)
        for digit in range(5):
            number = number * 3 + (digits[:, digit] if digit < count else 0)
        parts.append(((number * 256 + 242) // 243).astype(np.uint8))
    return np.concatenate([*parts, scale], -1)


def _tq2_0(blocks: Array) -> Array:
    scale, codes = _ternary(blocks)
    fields = codes.reshape(-1, 2, 4, 32)
    joined = fields[:, :, 0].copy()
    for index in range(1, 4):
        joined |= fields[:, :, index] << np.uint8(2 * index)
    return np.concatenate([joined.reshape(-1, 64), scale], -1)


def _mxfp4(blocks: Array) -> Array:
    """An exponent for the largest element, and the nearest of the eight sizes with its sign."""
    size = np.abs(blocks)
    largest = size.max(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        exponent = np.where(largest > 0, np.floor(np.log2(largest)) + 125, 0).clip(0, 254)
    scale = np.ldexp(np.float32(1), exponent.astype(np.int32) - 128)
    distance = [np.abs(scale * np.float32(each) - size) for each in TINY_FLOATS[:8]]
    codes = np.argmin(distance, axis=0).astype(np.uint8)
    codes |= ((blocks < 0) & (codes > 0)).astype(np.uint8) << np.uint8(3)
    return np.concatenate([exponent.astype(np.uint8), _nibbles(codes)], -1)


def _bfloat16(numbers: Array) -> Array:
    """The upper halves, rounded to even; NaN stays NaN."""
    bits = numbers.view(np.uint32)
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    quiet = (bits & np.uint32(0xFFFF0000)) | np.uint32(64 << 16)
    bits = np.where(is_nan, quiet, bits).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _float16(numbers: Array) -> Array:
    with np.errstate(over="ignore"):
        return numbers.astype(np.float16)


_PLAIN: Final[dict[str, Callable[[Array], Array]]] = {
    "F32": lambda numbers: numbers,
    "F16": _float16,
    "BF16": _bfloat16,
}
PACKED: Final[dict[str, Callable[[Array], Array]]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "TQ1_0": _tq1_0,
    "TQ2_0": _tq2_0,
    "MXFP4": _mxfp4,
}
KIND_OF: Final = {"F32": 0, "F16": 1, "BF16": 30} | {
    row.name: kind for kind, row in QUANTIZED.items() if row.name in PACKED
}

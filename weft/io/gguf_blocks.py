"""The quantized blocks of GGUF, unpacked by tensor ops.

A block has a few scales and some bits for each of its elements. Each function below takes blocks
as (count, bytes) of uint8 and gives (count, elements) of float32. They are elementwise but for
views, so they become part of the kernel that uses the numbers, and only packed bytes are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from weft.io import gguf_grid_blocks as grid_blocks
from weft.ir.dtypes import DType, dtypes
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor


class BlockFormat(NamedTuple):
    """How many elements a block has in how many bytes, and how to unpack it."""

    name: str
    elements: int
    bytes: int
    unpack: Callable[[Tensor], Tensor]
    has_table: bool = False  # what is unpacked is read from a table in memory


PLAIN: Final[dict[int, DType]] = {
    0: dtypes.float32,
    1: dtypes.float16,
    24: dtypes.int8,
    25: dtypes.int16,
    26: dtypes.int32,
    27: dtypes.int64,
    28: dtypes.float64,
    30: dtypes.bfloat16,
}
# The sixteen values of a non-linear 4-bit element, and those of a 4-bit float, doubled.
_NON_LINEAR: Final = (
    *(-127, -104, -83, -65, -49, -35, -22, -10),
    *(1, 13, 25, 38, 53, 69, 89, 113),
)
TINY_FLOATS: Final = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)


def _half(blocks: Tensor, first: int) -> Tensor:
    """A float16 of each block, as (count, 1)."""
    return blocks[:, first : first + 2].bitcast(dtypes.float16).cast(dtypes.float32)


def _fields(part: Tensor, bits: int, shape: Sequence[int], axis: int) -> Tensor:
    """Each byte as its fields of some bits, low ones first, along a new axis.

    `shape` is that of a block's bytes; the fields stand before its axis `axis`.
    """
    fields = 8 // bits
    rows = part.reshape(-1, *shape[:axis], 1, *shape[axis:])
    sizes = [1] * rows.ndim
    sizes[axis + 1] = fields
    amount = (Tensor.arange(fields, device=part.device) * bits).cast(dtypes.uint8).reshape(sizes)
    return (rows >> amount) & (1 << bits) - 1


def _nibbles(part: Tensor) -> Tensor:
    """All low halves, then all high ones."""
    return _fields(part, 4, (known(part.shape[1]),), 0).flatten(1)


def _with_fifth_bits(codes: Tensor, part: Tensor) -> Tensor:
    """32 codes of four bits, and above them the bits of four bytes in order.

    As one word the bytes are shifted by one bit more for each lane, which machines do with words.
    """
    word = part.bitcast(dtypes.uint32)  # (count, 1)
    amounts = Tensor.arange(32, device=part.device).cast(dtypes.uint32).unsqueeze(0)
    return codes.cast(dtypes.int32) | (word >> amounts & 1).cast(dtypes.int32) << 4


def _number(part: Tensor) -> Tensor:
    return part.cast(dtypes.float32)


def _signed(part: Tensor) -> Tensor:
    return part.bitcast(dtypes.int8).cast(dtypes.float32)


def _picked(table: Sequence[int], part: Tensor) -> Tensor:
    """The value that each 4-bit code stands for, by halving the table."""
    return _choose(table, part, 8)


def _choose(table: Sequence[int], part: Tensor, bit: int) -> Tensor:
    if len(table) == 1:
        return Tensor(float(table[0]), device=part.device)
    half = len(table) // 2
    low, high = _choose(table[:half], part, bit // 2), _choose(table[half:], part, bit // 2)
    return ((part & bit) != 0).where(high, low)


def _q4_0(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * (_number(_nibbles(blocks[:, 2:])) - 8)


def _q4_1(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * _number(_nibbles(blocks[:, 4:])) + _half(blocks, 2)


def _q5_0(blocks: Tensor) -> Tensor:
    codes = _with_fifth_bits(_nibbles(blocks[:, 6:]), blocks[:, 2:6])
    return _half(blocks, 0) * (_number(codes) - 16)


def _q5_1(blocks: Tensor) -> Tensor:
    codes = _with_fifth_bits(_nibbles(blocks[:, 8:]), blocks[:, 4:8])
    return _half(blocks, 0) * _number(codes) + _half(blocks, 2)


def _q8_0(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * _signed(blocks[:, 2:])


def _q8_k(blocks: Tensor) -> Tensor:
    return blocks[:, :4].bitcast(dtypes.float32) * _signed(blocks[:, 4:260])


def _pairs(part: Tensor) -> Tensor:
    """64 bytes as 256 codes of two bits: of each half, the lowest pairs of 32 bytes first."""
    return _fields(part, 2, (2, 32), 1).flatten(1)


def _scaled(scales: Tensor, codes: Tensor) -> Tensor:
    """(count, groups) times (count, elements), group by group."""
    groups = known(scales.shape[1])
    return (scales.unsqueeze(-1) * codes.unflatten(1, (groups, -1))).flatten(1)


def _spread(factors: Tensor, lowest: Tensor, codes: Tensor) -> Tensor:
    """Codes times their group's factor, less its offset."""
    groups = _number(codes).unflatten(1, (known(factors.shape[1]), -1))
    return (factors.unsqueeze(-1) * groups - lowest.unsqueeze(-1)).flatten(1)


def _q2_k(blocks: Tensor) -> Tensor:
    scales, codes = blocks[:, :16], _pairs(blocks[:, 16:80])
    factors = _half(blocks, 80) * _number(scales & 15)
    lowest = _half(blocks, 82) * _number(scales >> 4)
    return _spread(factors, lowest, codes)


def _q3_k(blocks: Tensor) -> Tensor:
    high = _fields(blocks[:, :32], 1, (32,), 0).flatten(1)
    codes = _number(_pairs(blocks[:, 32:96]) | high << 2) - 4
    low = _fields(blocks[:, 96:104], 4, (8,), 0).flatten(1)
    upper = _fields(blocks[:, 104:108], 2, (4,), 0).flatten(1)
    factors = _half(blocks, 108) * (_number(low | upper << 4) - 32)
    return _scaled(factors, codes)


def _six_bits(packed: Tensor) -> tuple[Tensor, Tensor]:
    """Twelve bytes as eight scales and eight offsets of six bits."""
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    is_first = (Tensor.arange(2, device=packed.device) == 0).reshape(1, 2, 1)

    def joined(low: Tensor, high: Tensor) -> Tensor:
        return is_first.where(low.unsqueeze(1), high.unsqueeze(1)).flatten(1)

    scales = joined(first & 63, third & 15 | first >> 6 << 4)
    return scales, joined(second & 63, third >> 4 | second >> 6 << 4)


def _q4_k(blocks: Tensor) -> Tensor:
    codes = _fields(blocks[:, 16:], 4, (4, 32), 1).flatten(1)
    return _with_offsets(blocks, codes)


def _q5_k(blocks: Tensor) -> Tensor:
    high = _fields(blocks[:, 16:48], 1, (32,), 0).flatten(1)
    codes = _fields(blocks[:, 48:], 4, (4, 32), 1).flatten(1) | high << 4
    return _with_offsets(blocks, codes)


def _with_offsets(blocks: Tensor, codes: Tensor) -> Tensor:
    scales, offsets = _six_bits(blocks[:, 4:16])
    return _spread(_half(blocks, 0) * _number(scales), _half(blocks, 2) * _number(offsets), codes)


def _q6_k(blocks: Tensor) -> Tensor:
    low = _fields(blocks[:, :128], 4, (2, 64), 1).flatten(1)
    high = _fields(blocks[:, 128:192], 2, (2, 32), 1).flatten(1)
    factors = _half(blocks, 208) * _signed(blocks[:, 192:208])
    return _scaled(factors, _number(low | high << 4) - 32)


def _iq4_nl(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * _picked(_NON_LINEAR, _nibbles(blocks[:, 2:]))


def _iq4_xs(blocks: Tensor) -> Tensor:
    low = _fields(blocks[:, 4:8], 4, (4,), 1).flatten(1)
    high = _fields(blocks[:, 2:4], 2, (2,), 1).flatten(1)
    factors = _half(blocks, 0) * (_number(low | high << 4) - 32)
    codes = _fields(blocks[:, 8:], 4, (8, 16), 1).flatten(1)
    return _scaled(factors, _picked(_NON_LINEAR, codes))


def _mxfp4(blocks: Tensor) -> Tensor:
    """The scale is an exponent: 2 ** (e - 128), built by its bits; the smallest is subnormal."""
    exponent = blocks[:, :1].cast(dtypes.uint32)
    normal = ((exponent - 1) << 23).bitcast(dtypes.float32)
    small = ((exponent + 1) << 21).bitcast(dtypes.float32)
    scale = (exponent < 2).where(small, normal)
    return scale * _picked(TINY_FLOATS, _nibbles(blocks[:, 1:]))


def _nvfp4(blocks: Tensor) -> Tensor:
    """Four scales in eight bits without a sign, each of the 16 elements in eight bytes."""
    byte = blocks[:, :4].cast(dtypes.uint32)
    exponent, fraction = byte >> 3 & 15, byte & 7
    normal = (exponent + 119 << 23 | fraction << 20).bitcast(dtypes.float32)
    scale = (exponent == 0).where(_number(fraction) * 2**-10, normal)
    scales = (byte == 0x7F).where(0.0, scale)  # which means that there is none
    codes = _fields(blocks[:, 4:], 4, (4, 8), 1).flatten(1)
    return _scaled(scales, _picked(TINY_FLOATS, codes))


def _tq1_0(blocks: Tensor) -> Tensor:
    """Five digits of base 3 in a byte, as a fraction: each is what is left above the point."""
    parts = [
        _digits(blocks[:, :32], 5),
        _digits(blocks[:, 32:48], 5),
        _digits(blocks[:, 48:52], 4),
    ]
    digits = parts[0].cat(*parts[1:], dim=1)
    return (_number(digits) - 1) * _half(blocks, 52)


def _digits(part: Tensor, count: int) -> Tensor:
    """The first digits of each byte: all first ones, then all second ones."""
    powers = Tensor([3**digit for digit in range(count)], dtype=dtypes.uint16, device=part.device)
    left = (part.cast(dtypes.uint16).unsqueeze(1) * powers.reshape(1, count, 1)) & 255
    return ((left * 3) >> 8).flatten(1)


def _tq2_0(blocks: Tensor) -> Tensor:
    codes = _fields(blocks[:, :64], 2, (2, 32), 1).flatten(1)
    return (_number(codes) - 1) * _half(blocks, 64)


QUANTIZED: Final[dict[int, BlockFormat]] = {
    2: BlockFormat("Q4_0", 32, 18, _q4_0),
    3: BlockFormat("Q4_1", 32, 20, _q4_1),
    6: BlockFormat("Q5_0", 32, 22, _q5_0),
    7: BlockFormat("Q5_1", 32, 24, _q5_1),
    8: BlockFormat("Q8_0", 32, 34, _q8_0),
    10: BlockFormat("Q2_K", 256, 84, _q2_k),
    11: BlockFormat("Q3_K", 256, 110, _q3_k),
    12: BlockFormat("Q4_K", 256, 144, _q4_k),
    13: BlockFormat("Q5_K", 256, 176, _q5_k),
    14: BlockFormat("Q6_K", 256, 210, _q6_k),
    15: BlockFormat("Q8_K", 256, 292, _q8_k),
    16: BlockFormat("IQ2_XXS", 256, 66, grid_blocks.iq2_xxs, True),
    17: BlockFormat("IQ2_XS", 256, 74, grid_blocks.iq2_xs, True),
    18: BlockFormat("IQ3_XXS", 256, 98, grid_blocks.iq3_xxs, True),
    19: BlockFormat("IQ1_S", 256, 50, grid_blocks.iq1_s, True),
    20: BlockFormat("IQ4_NL", 32, 18, _iq4_nl),
    21: BlockFormat("IQ3_S", 256, 110, grid_blocks.iq3_s, True),
    22: BlockFormat("IQ2_S", 256, 82, grid_blocks.iq2_s, True),
    23: BlockFormat("IQ4_XS", 256, 136, _iq4_xs),
    29: BlockFormat("IQ1_M", 256, 56, grid_blocks.iq1_m, True),
    34: BlockFormat("TQ1_0", 256, 54, _tq1_0),
    35: BlockFormat("TQ2_0", 256, 66, _tq2_0),
    39: BlockFormat("MXFP4", 32, 17, _mxfp4),
    40: BlockFormat("NVFP4", 64, 36, _nvfp4),
}

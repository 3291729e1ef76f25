"""Where the elements of a tile are in local memory, as copies bring and matrix units read them."""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import SCALARS, DType
from weft.ir.ops import Op
from weft.ir.reduction.contract import ROW_BYTES, Factor
from weft.ir.spec.program import DYNAMIC
from weft.ir.uop import UOp, make

# Bytes of the sum that one multiplication takes.
MMA_BYTES: Final = 32


def tile_memory(name: str, count: int, factor: Factor, size: int) -> UOp:
    """Local memory of so many bytes for the elements of a factor, which stay bits there."""
    bits: DType = SCALARS[f"uint{8 * factor.of.itemsize}"]
    return make(Op.MEMORY, bits, (), (f"{name}{count}", DYNAMIC, size // bits.itemsize))


def panel_bytes(factor: Factor) -> int:
    """How far panels are apart; 0 where the sum runs along rows and there are none."""
    return 0 if factor.is_along_depth else factor.row_elements * ROW_BYTES


def part_start(factor: Factor, part: int) -> int:
    """Where in a tile the rows of a part of its depth begin, in elements."""
    return part * factor.height * factor.row_elements


def mma_start(factor: Factor, number: int) -> int:
    """Where in a tile a multiplication begins, in elements."""
    part, inside = divmod(number, ROW_BYTES // MMA_BYTES)
    depth = inside * MMA_BYTES // factor.of.itemsize
    across = depth * (1 if factor.is_along_depth else factor.row_elements)
    return part_start(factor, part) + across

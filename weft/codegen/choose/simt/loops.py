"""Questions about the loops of a kernel, and small steps, that all shapes for threads share."""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.analysis.accesses import Access
from weft.codegen.analysis.loops import GRID, LOOP, THREAD, kinds_of, own_ranges
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simt.share import addresses_of
from weft.codegen.opts.table import Bind, Opt, Unroll
from weft.ir.reduction.contraction import contraction_of
from weft.ir.uop import UOp, range_ids

# Rows of a product that are written out.
FEW: Final = 16
# Lanes of vectors whose elements are not all of one width.
MOST_LANES: Final = 8


def to_thread(number: int) -> Opt:
    return Bind(number, THREAD)


def is_loop(chooser: Chooser, number: int) -> bool:
    return kinds_of(chooser.kernel)[number] == LOOP


def lanes_along(chooser: Chooser, number: int) -> int:
    """Elements of the widest access along a range that divide it and are aligned in each row."""
    near = [access for access in addresses_of(chooser) if access.stride(number) == 1]
    if not near:
        return 1
    bits = max(8 * access.dtype.itemsize for access in near)
    return _aligned(chooser, number, near, chooser.target.access_bits // bits)


def lanes_of_narrow(chooser: Chooser, number: int, along: list[int]) -> int:
    """Elements of the narrowest access along a range, of those that also walk along others.

    The others come in several vectors. They are few, or come from near.
    """
    near = [access for access in addresses_of(chooser) if access.stride(number) == 1]
    if not near:
        return 1
    far = [access for access in near if any(access.stride(n) != 0 for n in along)] or near
    bits = min(8 * access.dtype.itemsize for access in far)
    return _aligned(chooser, number, near, min(chooser.target.access_bits // bits, MOST_LANES))


def _aligned(chooser: Chooser, number: int, near: list[Access], lanes: int) -> int:
    """Lanes that are aligned in each row, and divide the range."""
    others = [n for n in kinds_of(chooser.kernel) if n != number]
    steps = [access.stride(n) or 0 for access in near for n in others]
    while lanes > 1 and any(size % lanes for size in (chooser.extent(number) or 1, *steps)):
        lanes //= 2
    return max(lanes, 1)


def bind_grid(chooser: Chooser, kept: int = -1) -> bool:
    """Groups along all common loops but one that is kept, if there is one."""
    loops = [number for number in chooser.common_loops() if number != kept]
    return all(chooser.take(Bind(number, GRID)) for number in loops)


def is_product(chooser: Chooser, node: UOp) -> bool:
    """Whether a reduction uses what it has read again for other results: a product of matrices."""
    return min((size for size, _ in sides_of(chooser, node)), default=1) > 1


def sides_of(chooser: Chooser, node: UOp) -> list[tuple[int, list[int]]]:
    """How many rows and columns a contraction has, and their loops; none of other reductions."""
    parts = contraction_of(node)
    sides = () if parts is None else (parts.rows, parts.columns)
    loops = [[n for n in range_ids(side) if is_loop(chooser, n)] for side in sides]
    return [(math.prod(chooser.extent(n) or 1 for n in each), each) for each in loops]


def write_out_few(chooser: Chooser) -> None:
    """Each thread computes all results of the short side of a product, from what it has read.

    Heads of queries that share a head of keys are such a side, once their loop is taken apart.
    """
    mark = chooser.mark()
    chooser.take_apart(most=FEW)
    products = [node for node, _ in chooser.closers() if contraction_of(node) is not None]
    if not products:
        chooser.undo_to(mark)
    sides = sides_of(chooser, products[0]) if len(products) == 1 else []
    if sides and min(sides)[0] <= FEW:
        for number in min(sides)[1]:
            chooser.take(Unroll(number))


def stored_loops(store: UOp) -> list[int]:
    return [r.arg for r in own_ranges(store)]

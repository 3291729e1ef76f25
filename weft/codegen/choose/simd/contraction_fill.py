"""How the copies of a contraction's factors are filled: vectors along what lies side by side.

`contraction_loops` keeps a panel, and sometimes rows, near the core, and asks here for the loops
that copy them. A copy is filled once and read many times, so its loops only have to keep up with
memory: whole vectors, masks outside of the innermost loop, and squares where it is transposed.
"""

from __future__ import annotations

import math

from weft.codegen.analysis.loops import nodes_of, own_ranges
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simd.register_tile import MOST_VECTORS
from weft.codegen.opts.table import Merge, Unroll, Vectorize
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological


def fill_rows(chooser: Chooser, fill: list[int], reduced: int, lanes: int) -> None:
    """Vectors along the copied rows, which lie side by side behind the ranges reduced over."""
    rows = fill[reduced]
    if len(fill) > reduced + 1 and not chooser.take(Merge(rows, fill[-1])):
        return
    vector = chooser.split(rows, lanes, "mask")
    if vector >= 0:
        chooser.take(Vectorize(vector))


def fill_panel(chooser: Chooser, fill: list[int], most: int) -> bool:
    """Vectors of at most these lanes along the last range of a panel, which is contiguous in it.

    Where the factor is contiguous along another one, squares are transposed on the way.
    """
    *others, last = fill
    extent = chooser.extent(last) or 1
    lanes = math.gcd(extent, most)
    masked = _masked(chooser, others)
    chooser.order(masked + [n for n in fill if n not in masked])
    along = _contiguous(chooser, others)
    if along is not None and extent == most and (chooser.extent(along) or 1) % lanes == 0:
        vector = chooser.split(along, lanes)
        return vector >= 0 and chooser.take(Vectorize(vector), Unroll(last))
    vector = chooser.split(last, lanes)
    if lanes < 2 or vector < 0 or not chooser.take(Vectorize(vector)):
        return False
    beside = last if vector != last else others[-1]
    if (
        chooser.extent(beside) or 1
    ) <= MOST_VECTORS:  # masks of all its iterations stay in registers
        chooser.take(Unroll(beside))
    return True


def _contiguous(chooser: Chooser, numbers: list[int]) -> int | None:
    """The range along which a factor that is plainly loaded lies in memory."""
    stage = _filled(chooser, numbers)
    if stage.src[0].op != Op.LOAD:
        return None
    (access,) = chooser.accesses(stage.src[0].src[0])
    return next((n for n in numbers if access.stride(n) == 1), None)


def _masked(chooser: Chooser, numbers: list[int]) -> list[int]:
    """The ranges that masks of the panel look at; outermost, so that masks stay outside."""
    seen = 0
    for node in topological(_filled(chooser, numbers)):
        if node.op == Op.INDEX:
            seen |= node.src[1].ranges
    return [n for n in numbers if seen >> n & 1]


def _filled(chooser: Chooser, numbers: list[int]) -> UOp:
    """The stage that some of these ranges fill."""
    return next(
        node
        for node in nodes_of(chooser.kernel)
        if node.op == Op.STAGE and any(r.arg in numbers for r in own_ranges(node))
    )

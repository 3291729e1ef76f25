"""Sums that are read in a narrower type alone are rounded before they are moved.

In and Out: a tensor graph. Memory has a sum that several kernels read; where all of them round it
first, memory can hold the rounded one, in the order that the sum is computed in. So the cast goes
below the views between the two:

    cast bfloat16: permute: reduce ADD    ->    permute: cast bfloat16: reduce ADD
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph, topological, with_sources
from weft.schedule.context import ScheduleContext

# Views that neither drop elements nor repeat them.
_WHOLE = frozenset((Op.RESHAPE, Op.PERMUTE, Op.FLIP))


def narrow_results(root: UOp, context: ScheduleContext) -> UOp:
    """Round sums of floats before views of them."""
    del context
    readers = Counter(source for node in topological(root) for source in node.src)

    def narrowed(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = with_sources(node, made)
        if new.op != Op.CAST or not _narrows(new) or new.src[0].op not in _WHOLE:
            return new
        views: list[UOp] = []
        below, moved = node.src[0], new.src[0]
        while moved.op in _WHOLE and readers[below] == 1:
            views.append(moved)
            below, moved = below.src[0], moved.src[0]
        if moved.op != Op.REDUCE or readers[below] > 1:
            return new
        value = make(Op.CAST, new.dtype, (moved,), new.arg)
        for view in reversed(views):
            value = make(view.op, new.dtype, (value, *view.src[1:]), view.arg)
        return value

    return map_graph(root, narrowed)


def _narrows(node: UOp) -> bool:
    source = node.src[0].dtype
    return source.is_float and node.dtype.is_float and node.dtype.bits < source.bits

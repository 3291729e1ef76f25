"""What a contraction is: a reduction that sums products, each of whose factors is used many times.

In a kernel each factor has ranges that the other lacks, and every range plays one part:

    batch    in both factors and in the result
    rows     in the left factor and in the result: the right one is used again for each
    columns  in the right factor and in the result: the left one is used again for each
    reduced  closed by the reduction

In a tensor graph there are no ranges yet; there a factor is used again where it is expanded, and
`reuse_of` says how often: by the columns for the left one and by the rows for the right one. The
cost model of fusion asks that; opts, the heuristics and the merging of loops ask for the ranges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp, make

_THROUGH: Final = MOVEMENT | {Op.CAST}
# What multiplies two factors; of words, all their bytes at once.
PRODUCTS: Final = frozenset((Op.MUL, Op.DOT_BYTES))


@dataclass(frozen=True)
class Contraction:
    """A reduction, its factors, and its ranges as bit sets of their numbers."""

    reduction: UOp
    left: UOp
    right: UOp
    batch: int
    rows: int
    columns: int
    reduced: int


def contraction_of(node: UOp) -> Contraction | None:
    """The parts of a contraction; None for every other node."""
    factors = factors_of(node)
    if factors is None:
        return None
    left, right = factors
    rows = left.ranges & ~right.ranges & node.ranges
    columns = right.ranges & ~left.ranges & node.ranges
    if not rows or not columns:
        return None
    reduced = sum(1 << r.arg for r in node.src[1:])
    return Contraction(node, left, right, node.ranges & ~rows & ~columns, rows, columns, reduced)


def is_contraction(node: UOp) -> bool:
    """Whether a reduction sums products of which each factor has ranges that the other lacks."""
    return contraction_of(node) is not None


def factors_of(node: UOp) -> tuple[UOp, UOp] | None:
    """The two factors that a reduction sums the products of, seen through casts and views.

    In a kernel also through guards, which are for iterations past the end of a loop.
    """
    if node.op != Op.REDUCE or node.arg[0] != Op.ADD:
        return None
    is_in_kernel = len(node.src) > 1
    value = node.src[0]
    while value.op in _THROUGH or (is_in_kernel and value.op == Op.WHERE):
        value = value.src[1 if value.op == Op.WHERE else 0]
    return (value.src[0], value.src[1]) if value.op in PRODUCTS else None


def reuse_of(node: UOp) -> float:
    """How often each element of the factor that is used less is used, in a tensor graph.

    0 for every node that sums no products.
    """
    factors = factors_of(node)
    return 0.0 if factors is None else min(map(expansion_of, factors))


def expansion_of(factor: UOp) -> float:
    """How many times over a value is shown by the widest of the expansions on its way."""
    most = 1.0
    while factor.op in _THROUGH:
        source = factor.src[0]
        if factor.op == Op.EXPAND:
            size = largest_size(shape_of(source))
            most = max(most, largest_size(shape_of(factor)) / size if size else math.inf)
        factor = source
    return most


def with_factor(node: UOp, which: int, factor: UOp) -> UOp:
    """The reduction with another left (0) or right (1) factor."""
    return make(
        node.op, node.dtype, (_replaced(node.src[0], which, factor), *node.src[1:]), node.arg
    )


def _replaced(value: UOp, which: int, factor: UOp) -> UOp:
    if value.op in PRODUCTS:
        at = which
        made = factor
    else:
        at = 0 if value.op == Op.CAST else 1
        made = _replaced(value.src[at], which, factor)
    src = (*value.src[:at], made, *value.src[at + 1 :])
    return make(value.op, value.dtype, src, value.arg)

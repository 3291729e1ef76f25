"""What a contraction is made of: its factors, and its ranges by the part that they play.

A contraction is a fold that sums products of which each factor has ranges that the other lacks.
Every range of it plays one part:

    batch    in both factors and in the result
    rows     in the left factor and in the result: the right one is used again for each
    columns  in the right factor and in the result
    folded   closed by the fold

Opts, the heuristic and the merging of loops ask here, so that they agree on what is reused.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.ops import Op
from weft.ir.uop import UOp, make


@dataclass(frozen=True)
class Contraction:
    """A fold, its factors, and its ranges as bit sets of their numbers."""

    fold: UOp
    left: UOp
    right: UOp
    batch: int
    rows: int
    columns: int
    folded: int


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
    folded = sum(1 << r.arg for r in node.src[1:])
    return Contraction(node, left, right, node.ranges & ~rows & ~columns, rows, columns, folded)


def is_contraction(node: UOp) -> bool:
    """Whether a fold sums products of which each factor has ranges that the other lacks."""
    return contraction_of(node) is not None


def factors_of(node: UOp) -> tuple[UOp, UOp] | None:
    """The two factors that a fold sums the products of, seen through casts and guards."""
    if node.op != Op.REDUCE or node.arg[0] != Op.ADD:
        return None
    value = node.src[0]
    while value.op in (Op.CAST, Op.WHERE):
        value = value.src[0 if value.op == Op.CAST else 1]
    return (value.src[0], value.src[1]) if value.op == Op.MUL else None


def with_factor(node: UOp, which: int, factor: UOp) -> UOp:
    """The fold with another left (0) or right (1) factor."""
    return make(
        node.op, node.dtype, (_replaced(node.src[0], which, factor), *node.src[1:]), node.arg
    )


def _replaced(value: UOp, which: int, factor: UOp) -> UOp:
    if value.op == Op.MUL:
        at = which
        made = factor
    else:
        at = 0 if value.op == Op.CAST else 1
        made = _replaced(value.src[at], which, factor)
    src = (*value.src[:at], made, *value.src[at + 1 :])
    return make(value.op, value.dtype, src, value.arg)

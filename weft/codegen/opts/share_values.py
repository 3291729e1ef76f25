"""The rewrite behind the opt Share: what a fold computes in each turn is kept for a later loop.

Softmax sums exponentials and then computes them again to divide them. With Share the loop of the
sum also fills a row in memory near the core, and the later loop reads it. The row is written in
the loop of the fold itself, because both hold the same range and the same value.
"""

from __future__ import annotations

from weft.codegen.analysis.loops import extent_of, nodes_of, own_ranges, ranges_of
from weft.codegen.opts.stage_factor import fold_over
from weft.ir.build import true
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute, topological


def shared_value(kernel: UOp, fold: int, again: int) -> UOp | None:
    """The largest value of a fold's turn that the loop over another range computes again."""
    node = fold_over(kernel, fold)
    ranges = ranges_of(kernel)
    if node is None or len(own_ranges(node)) != 1 or again == fold:
        return None
    old, new = ranges[fold], ranges[again]
    if extent_of(old) is None or old.src[0] is not new.src[0]:
        return None
    if any(new in own_ranges(part) for part in topological(node)):
        return None  # that loop ends before the fold begins
    present = set(nodes_of(kernel))
    body = topological(node.src[0], enter=lambda part: bool(part.ranges >> fold & 1))
    for part in reversed(body):
        if part.op in ELEMENTWISE and part.ranges >> fold & 1:
            twin = substitute(part, {old: new})
            if twin is not part and twin in present and not _is_index(part):
                return part
    return None


def _is_index(node: UOp) -> bool:
    return not node.ops >> Op.LOAD & 1


def share_value(kernel: UOp, fold: int, again: int) -> UOp:
    """The kernel with that value kept in a row, which the later loop reads."""
    value = shared_value(kernel, fold, again)
    assert value is not None
    ranges = ranges_of(kernel)
    old, new = ranges[fold], ranges[again]
    size = extent_of(old) or 1
    stage = make(Op.STAGE, value.dtype, (value, old, old), ("local", (size,)))
    read = make(Op.READ, value.dtype, (stage, true(), new))
    return substitute(kernel, {substitute(value, {old: new}): read})

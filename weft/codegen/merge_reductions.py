"""Independent folds over like ranges share one loop.

In and Out: a kernel of KERNEL_SPEC. Two folds that depend on the same outer ranges and run over
equal extents, neither needing the other, are written over the same ranges; their accumulators then
live in one loop and loads that they share are done once. Products of unlike operands keep their
own loops: each of those wants all the registers there are.
"""

from __future__ import annotations

from collections import Counter

from weft.codegen.context import Context
from weft.codegen.loops import kinds_of, ranges_of, with_loops
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute, topological


def merge_reductions(kernel: UOp, context: Context) -> UOp:
    """Write like folds over the same ranges."""
    while True:
        pair = _try_find_pair(kernel)
        if pair is None:
            return kernel
        kept, moved = pair
        ranges = dict(zip(moved.src[1:], kept.src[1:], strict=True))
        value = substitute(moved.src[0], ranges)
        replaced = make(Op.REDUCE, moved.dtype, (value, *kept.src[1:]), moved.arg)
        kernel = substitute(kernel, {moved: replaced})
        present = ranges_of(kernel)
        kernel = with_loops(kernel, [(n, k) for n, k in kinds_of(kernel).items() if n in present])


def _try_find_pair(kernel: UOp) -> tuple[UOp, UOp] | None:
    """Two folds that can share their ranges and do not do so yet.

    A fold that shares its ranges stays with them, or it would go back and forth between two.
    """
    kinds = kinds_of(kernel)
    alike: dict[object, list[UOp]] = {}
    folds = [n for n in topological(kernel) if n.op == Op.REDUCE and not is_contraction(n)]
    sharing = Counter(node.src[1:] for node in folds)
    for node in folds:
        own = node.src[1:]
        key = (node.ranges, tuple((r.src[0], kinds[r.arg]) for r in own))
        for other in alike.setdefault(key, []):
            is_free = other.src[1:] != own and sharing[own] == 1
            if is_free and not _needs(node, other.src[1:]):
                return other, node
        alike[key].append(node)
    return None


def _needs(node: UOp, ranges: tuple[UOp, ...]) -> bool:
    """Whether a fold needs another that runs over these ranges, which then has to end before."""
    return not set(ranges).isdisjoint(topological(node))


def is_contraction(node: UOp) -> bool:
    """Whether a fold sums products of which each factor has ranges that the other lacks."""
    if node.op != Op.REDUCE or node.arg[0] != Op.ADD:
        return False
    factors = factors_of(node)
    if factors is None:
        return False
    x, y = factors
    free = node.ranges
    return bool(x.ranges & ~y.ranges & free) and bool(y.ranges & ~x.ranges & free)


def factors_of(node: UOp) -> tuple[UOp, UOp] | None:
    """The two factors that a fold sums the products of, seen through casts and guards."""
    value = node.src[0]
    while value.op in (Op.CAST, Op.WHERE):
        value = value.src[0 if value.op == Op.CAST else 1]
    return (value.src[0], value.src[1]) if value.op == Op.MUL else None

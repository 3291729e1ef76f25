"""Independent folds over like ranges share one loop.

In and Out: a kernel of KERNEL_SPEC. Two folds that depend on the same outer ranges and run over
equal extents, neither needing the other, are written over the same ranges; their accumulators then
live in one loop and loads that they share are done once. Products of unlike operands keep their
own loops: each of those wants all the registers there are.
"""

from __future__ import annotations

from collections import Counter

from weft.codegen.context import Context
from weft.codegen.contraction import is_contraction
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

"""Sums of sums are one sum, and independent reductions over like ranges share one loop.

In and Out: a kernel of KERNEL_SPEC. Two reductions that depend on the same outer ranges and run
over equal extents, neither needing the other, are written over the same ranges; their accumulators
then live in one loop and loads that they share are done once. Products of unlike operands keep
their own loops: each of those wants all the registers there are. A sum of sums that depend on its
own ranges, as in the gradient of a convolution, becomes a sum over all ranges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from weft.codegen.analysis.loops import kinds_of, rebuilt, without_unused
from weft.codegen.context import CodegenContext
from weft.codegen.lower.join_rolled import join_rolled
from weft.codegen.lower.select_elements import select_elements
from weft.codegen.lower.trim_loops import hoist_masks
from weft.ir.ops import Op
from weft.ir.reduction.contraction import is_contraction
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph, substitute, topological, users
from weft.target.compute import Simt


def merge_reductions(kernel: UOp, context: CodegenContext) -> UOp:
    """Write sums of one element as that, sums of sums as one, like reductions over one range."""
    kernel = _with_flat_sums(hoist_masks(select_elements(kernel)))
    if isinstance(context.target.compute, Simt):
        kernel = join_rolled(kernel)
    while True:
        pair = _try_find_pair(kernel)
        if pair is None:
            return kernel
        kept, moved = pair
        ranges = dict(zip(moved.src[1:], kept.src[1:], strict=True))
        value = substitute(moved.src[0], ranges)
        replaced = make(Op.REDUCE, moved.dtype, (value, *kept.src[1:]), moved.arg)
        kernel = without_unused(substitute(kernel, {moved: replaced}))


def _with_flat_sums(kernel: UOp) -> UOp:
    """Join a sum with the one that it adds up, where nobody else uses that."""
    readers = users(kernel)

    def flattened(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = rebuilt(node, made, {})
        return _flat_sum(new, node, readers) if is_sum(new) else new

    return map_graph(kernel, flattened)


def is_sum(node: UOp) -> bool:
    return node.op == Op.REDUCE and node.arg[0] == Op.ADD


def _flat_sum(new: UOp, old: UOp, readers: dict[UOp, list[UOp]]) -> UOp:
    value, before = new.src[0], old.src[0]
    conditions: list[UOp] = []
    while value.op == Op.WHERE and _is_zero(value.src[2]) and len(readers[before]) == 1:
        conditions.append(value.src[0])
        value, before = value.src[1], before.src[1]
    own = sum(1 << r.arg for r in new.src[1:])
    if not is_sum(value) or len(readers[before]) != 1 or not value.ranges & own:
        return new
    inner = value.src[0]
    for condition in reversed(conditions):
        inner = make(Op.WHERE, inner.dtype, (condition, inner, inner.const_like(0)))
    return make(Op.REDUCE, new.dtype, (inner, *new.src[1:], *value.src[1:]), new.arg)


def _is_zero(node: UOp) -> bool:
    return node.op == Op.CONST and node.arg == 0


def _try_find_pair(kernel: UOp) -> tuple[UOp, UOp] | None:
    """Two reductions that can share their ranges and do not do so yet.

    A reduction that shares its ranges stays with them, or it would go back and forth between two.
    """
    kinds = kinds_of(kernel)
    alike: dict[object, list[UOp]] = {}
    reductions = [n for n in topological(kernel) if n.op == Op.REDUCE and not is_contraction(n)]
    sharing = Counter(node.src[1:] for node in reductions)
    for node in reductions:
        own = node.src[1:]
        key = (node.ranges, tuple((r.src[0], kinds[r.arg]) for r in own))
        for other in alike.setdefault(key, []):
            is_free = other.src[1:] != own and sharing[own] == 1
            if is_free and not _needs(node, other.src[1:]):
                return other, node
        alike[key].append(node)
    return None


def _needs(node: UOp, ranges: tuple[UOp, ...]) -> bool:
    """Whether a reduction needs another over these ranges, which then has to end before."""
    return not set(ranges).isdisjoint(topological(node))

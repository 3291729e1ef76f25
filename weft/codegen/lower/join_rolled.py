"""Two masked sums that read a range and what follows it, rolled, are one sum of the rolled range.

`merge_reductions` asks, for targets of threads: a thread of a row then has one more row to sum,
not two, of which one is nothing. So are queries and keys rotated: `cat((-right, left))` reads the
right half where the index is in the left one, and the other way round.

    before:  reduce ADD over k: x[i + 32, k if i < 32]
             reduce ADD over k: x[i - 32, k if ~(i < 32)]
    after:   s = reduce ADD over k: x[(i + 32) % 64, k]
             where(i < 32, s, 0) and where(i < 32, 0, s)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from weft.codegen.analysis.loops import extent_of, without_unused
from weft.ir.build import all_of
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.ir.walk import substitute, topological
from weft.rules.logic import conditions
from weft.rules.simplify import simplify


class _Masked(NamedTuple):
    """A sum of which all that is loaded stands under one condition, and its value without that."""

    node: UOp
    limit: UOp  # a range < a constant
    value: UOp


def join_rolled(kernel: UOp) -> UOp:
    """The kernel with each pair of such sums as one."""
    while True:
        found = _try_find(kernel)
        if found is None:
            return kernel
        kernel = without_unused(substitute(kernel, found))


def _try_find(kernel: UOp) -> dict[UOp, UOp] | None:
    sums = [n for n in topological(kernel) if n.op == Op.REDUCE and n.arg[0] == Op.ADD]
    below = [masked for node in sums for masked in _masked(node, is_below=True)]
    above = [masked for node in sums for masked in _masked(node, is_below=False)] if below else []
    for one in below:
        for other in above:
            joined = _try_join(one, other) if one.limit is other.limit else None
            if joined is not None:
                nothing = const(joined.dtype, 0)
                return {
                    one.node: one.limit.where(joined, nothing),
                    other.node: one.limit.where(nothing, joined),
                }
    return None


def _masked(node: UOp, is_below: bool) -> Iterator[_Masked]:
    """The sum under each condition that makes it nothing where it does not hold."""
    loads = [each for each in topological(node.src[0]) if each.op == Op.LOAD]
    if not loads or any(each.op == Op.REDUCE for each in topological(node.src[0])):
        return
    masks = [conditions(load.src[0].src[1]) for load in loads]
    for mask in masks[0]:
        limit = mask if is_below else mask.src[0] if mask.op == Op.NOT else None
        if limit is None or limit.op != Op.LESS or limit.src[0].op != Op.RANGE:
            continue
        if limit.src[1].op != Op.CONST or not all(mask in each for each in masks):
            continue
        nothing = {load: const(load.dtype, 0) for load in loads}
        left = simplify(substitute(node.src[0], nothing))
        if left.op == Op.CONST and left.arg == 0:
            addresses = {load.src[0]: _without(load.src[0], mask) for load in loads}
            yield _Masked(node, limit, substitute(node.src[0], addresses))


def _without(address: UOp, mask: UOp) -> UOp:
    memory, masks, *indices = address.src
    kept = [each for each in conditions(masks) if each is not mask]
    rest = all_of(*kept) if kept else const(masks.dtype, True)
    return make(Op.INDEX, address.dtype, (memory, rest, *indices))


def _try_join(one: _Masked, other: _Masked) -> UOp | None:
    """The sum of both, if the second is the first, a whole range further back."""
    rolled_range, size = one.limit.src[0], extent_of(one.limit.src[0])
    own, others = one.node.src[1:], other.node.src[1:]
    is_alike = [extent_of(r) for r in own] == [extent_of(r) for r in others]
    if size is None or not is_alike or one.node.dtype is not other.node.dtype:
        return None
    if rolled_range in own or rolled_range in others:  # a part of each sum
        return None
    value = substitute(other.value, dict(zip(others, own, strict=True)))
    if simplify(substitute(one.value, {rolled_range: rolled_range - size})) is not simplify(value):
        return None
    by = size - int(one.limit.src[1].arg)
    start = (rolled_range + by) % size - by
    rolled = simplify(substitute(one.value, {rolled_range: start}))
    return make(Op.REDUCE, one.node.dtype, (rolled, *own), one.node.arg)

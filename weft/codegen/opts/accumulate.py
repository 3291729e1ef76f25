"""The rewrites behind two opts that reduce block by block.

Accumulate: a reduction goes on, block by block, in its result.

A range of the reduction becomes a loop of the store, an ordered one: each iteration reduces its
share into what the iterations before it have stored. What is done with the result happens in the
last iteration. A sum that is stored as it is can have several such loops.

Nest: each block is reduced for itself, and then the results are.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.codegen.analysis.loops import (
    ORDERED,
    extent_of,
    kinds_of,
    ranges_of,
    rebuilt,
    with_loops,
)
from weft.codegen.opts.stage_value import reduction_over
from weft.ir.build import index_of, load
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph, substitute
from weft.rules.simplify import simplify


def carried_sum(store: UOp, reduction: UOp) -> UOp | None:
    """The load to which a store adds a reduction, if that is all it does, at its own address."""
    address, value = store.src[:2]
    if reduction.arg[0] != Op.ADD or value.op != Op.ADD:
        return None
    if value.src[0] is not reduction or value.src[1].op != Op.LOAD:
        return None
    other = value.src[1].src[0]
    is_own = other.src[0] is address.src[0] and other.src[2:] == address.src[2:]
    return value.src[1] if is_own else None


def accumulate(kernel: UOp, number: int) -> UOp:
    """The kernel with a range of its reduction moved out to the loops of its store."""
    reduction = reduction_over(kernel, number)
    assert reduction is not None
    (store,) = kernel.src
    address, value, *own = store.src
    block = ranges_of(kernel)[number]
    rest = tuple(r for r in reduction.src[1:] if r is not block)
    share = (
        make(Op.REDUCE, reduction.dtype, (reduction.src[0], *rest), reduction.arg)
        if rest
        else reduction.src[0]
    )
    memory, mask, *indices = address.src
    is_later = simplify(block >= 1)
    before = simplify(mask & is_later)
    carried = carried_sum(store, reduction)
    if carried is not None:  # of another range: all iterations but the very first find a sum
        before = simplify(carried.src[0].src[1] | before)
        value = reduction
    total = make(
        reduction.arg[0], reduction.dtype, (share, load(index_of(memory, indices, before)))
    )
    if (
        reduction.arg[0] != Op.ADD
    ):  # a load that is masked off is 0, which is not the identity of the others
        total = make(Op.WHERE, reduction.dtype, (is_later, total, share))
    done = substitute(value, {reduction: total})
    if value is not reduction:
        is_last = simplify(block >= (extent_of(block) or 1) - 1)
        done = make(Op.WHERE, value.dtype, (is_last, done, total))
    stored = make(Op.STORE, store.dtype, (address, done, *own, block))
    loops = {**kinds_of(kernel), number: ORDERED}
    return with_loops(make(Op.KERNEL, kernel.dtype, (stored,), kernel.arg), loops.items())


def nest_reductions(kernel: UOp, number: int) -> UOp:
    """The kernel with each reduction over a range as one of reductions over that range alone."""
    inner = ranges_of(kernel)[number]

    def nested(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = rebuilt(node, made, {})
        if new.op != Op.REDUCE or inner not in new.src[1:]:
            return new
        first = make(Op.REDUCE, new.dtype, (new.src[0], inner), new.arg)
        rest = tuple(r for r in new.src[1:] if r is not inner)
        return make(Op.REDUCE, new.dtype, (first, *rest), new.arg)

    return map_graph(kernel, nested)

"""Stores that reduce into their memory, iteration by iteration: which loops are in order.

    store p[load i[r0], r1] = load p[load i[r0], r1] + load v[r0, r1] for r0, r1

Iterations of `r1` write different addresses, for an index of the address is `r1` itself.
Iterations of `r0` may meet at one address, so each has to see what those before it have written.
`may_meet` is for those who make such a store; opts only replace ranges that keep their iterations
apart, so that of a store that they have changed it is enough to ask what is `hidden`.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir.bounds import bounds
from weft.ir.extremes import multiplied_out
from weft.ir.linear import linear
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological


def may_meet(store: UOp) -> int:
    """The ranges of a STORE whose iterations may write to one address, as bits."""
    apart = 0
    for index in store.src[0].src[2:]:
        apart |= _told_apart(index)
    return _bits(store.src[2:]) & ~apart


def _told_apart(index: UOp) -> int:
    """The ranges of an index that has another value for each of their iterations, else none.

    Terms are digits of the index: each counts in steps that those before it do not reach.
    """
    reach = 0
    terms = sorted(linear(index)[1], key=lambda pair: abs(pair[1]))
    for term, factor in terms:
        least, most = bounds(term)
        if abs(factor) <= reach:
            return 0
        reach += abs(factor) * (most - least)
    return _bits(term for term, _ in terms if term.op == Op.RANGE)


def counts_along(index: UOp, rank: int) -> int | None:
    """The axis along which an index tensor is 0, 1, 2, …, if it is the same along all others."""
    while index.op in (Op.EXPAND, Op.CAST):
        index = index.src[0]
    shape = shape_of(index)
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    if index.op == Op.RESHAPE:
        index = index.src[0]
    is_count = index.op == Op.IOTA and len(shape) == rank and len(axes) == 1
    return axes[0] if is_count else None


def hidden(store: UOp) -> int:
    """The ranges of a STORE that reads its own address which that address does not show, as bits.

    A range that is only in what the address loads is not shown.
    """
    address, value, *ranges = store.src
    if not (value.ops >> Op.LOAD & 1 and _reads(value, address)):
        return 0
    shown = 0
    for index in address.src[2:]:
        for product in multiplied_out(index):
            if not any(part.ops >> Op.LOAD & 1 for part in product):
                for part in product:
                    shown |= part.ranges
    return _bits(ranges) & ~shown


def _reads(value: UOp, address: UOp) -> bool:
    for node in topological(value):
        if node.op == Op.LOAD:
            other = node.src[0]
            if other.src[0] is address.src[0] and other.src[2:] == address.src[2:]:
                return True
    return False


def _bits(ranges: Iterable[UOp]) -> int:
    bits = 0
    for each in ranges:
        bits |= 1 << each.arg
    return bits

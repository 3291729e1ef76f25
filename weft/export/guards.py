"""Guards of what depends on data: indices, and amounts of shifts and powers.

No check of a graph can bound data. Graphs that Weft builds have a mask for their indices, or data
that the host has looked at, and no negative amounts, which no op defines; a file may have neither.
So in the graph of a file every index is compared with its axis, and amounts are never negative. A
comparison that the compiler can decide costs nothing.
"""

from __future__ import annotations

from weft.ir.bounds import bounds, dtype_limits
from weft.ir.build import Size, all_of
from weft.ir.dtypes import FLOAT, DType, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.sizes import most
from weft.ir.uop import UOp, const, make


def guarded(node: UOp) -> UOp:
    """A node that is defined for all data, and touches nothing outside of its value.

    p0[p1]    ->  p0[p1 if (0 <= p1) & (p1 < 10)]
    p0 << p1  ->  p0 << where(p1 < 0, 32, p1)
    """
    if node.op in (Op.INDEX, Op.SCATTER):
        return _masked(node)
    return _total(node) if node.op in (Op.SHL, Op.SHR, Op.POW) else node


def _total(node: UOp) -> UOp:
    """A shift that moves all bits out where its amount is negative; a power with exponent 0."""
    value, amount = node.src
    if amount.dtype.kind & FLOAT or bounds(amount)[0] >= 0:
        return node
    instead = const(amount.dtype, 0 if node.op == Op.POW else node.dtype.bits)
    is_negative = make(Op.LESS, dtypes.bool, (amount, const(amount.dtype, 0)))
    positive = make(Op.WHERE, amount.dtype, (is_negative, instead, amount))
    return make(node.op, node.dtype, (value, positive))


def _masked(node: UOp) -> UOp:
    first = 1 if node.op == Op.INDEX else 2  # of the sources, the mask
    mask, *indices = node.src[first:]
    masks = [] if mask.op == Op.CONST and mask.arg else [mask]
    extents = shape_of(node.src[0])
    conditions = [
        condition
        for index, extent in zip(indices, extents, strict=False)
        for condition in _conditions(index, extent)
    ]
    if not conditions:
        return node
    sources = (*node.src[:first], all_of(*masks, *conditions), *indices)
    return make(node.op, node.dtype, sources, node.arg)


def _conditions(index: UOp, extent: Size) -> list[UOp]:
    """What has to hold for an index, less what is known to."""
    low, high = bounds(index)
    known = extent if isinstance(extent, int) else bounds(extent)[0]
    found = []
    if low < 0:
        found.append(make(Op.LESS_EQUAL, dtypes.bool, (const(index.dtype, 0), index)))
    if high >= known:
        wide = _wide(index, most(extent))
        limit = const(wide.dtype, extent) if isinstance(extent, int) else _cast(extent, wide.dtype)
        found.append(make(Op.LESS, dtypes.bool, (wide, limit)))
    return found


def _wide(index: UOp, limit: int) -> UOp:
    """An index in a dtype that has room for what it is compared with."""
    return index if limit <= dtype_limits(index.dtype)[1] else _cast(index, dtypes.int64)


def _cast(node: UOp, dtype: DType) -> UOp:
    return make(Op.CAST, dtype, (node,))

"""Gradients of SCAN, by the op of the fold. An element is in every prefix from its own on."""

from __future__ import annotations

import math
from typing import Final

from weft.gradient.elementwise import Parts, SlopeRule
from weft.gradient.settled import settled
from weft.ir.build import Size, scan_axis, where
from weft.ir.dtypes import dtypes
from weft.ir.movement import expand, flip, iota, pad, reshape, shrink, zeros_like
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, const, make


def _from_the_end(value: UOp, op: int, axis: int) -> UOp:
    """The folds of all suffixes along an axis."""
    return flip(scan_axis(flip(value, (axis,)), op, axis), (axis,))


def _positions(like: UOp, axis: int) -> UOp:
    """For each element its number along an axis."""
    shape = shape_of(like)
    ones: list[Size] = [1] * len(shape)
    ones[axis] = shape[axis]
    return expand(reshape(iota(shape[axis], dtypes.int32), tuple(ones)), shape)


def _sums(node: UOp, g: UOp) -> Parts:
    """sums s of x: the sum of g from each element on"""
    (axis,) = node.arg[1]
    return (_from_the_end(g, Op.ADD, axis),)


def _products(node: UOp, g: UOp) -> Parts:
    """products p of x: the sum of g p from each element on, over x

    From the first zero on p is 0, so only that zero has a part in later prefixes: the sum of g
    times the product without it. What comes behind it has none.
    """
    x, (axis,) = node.src[0], node.arg[1]
    is_zero = x.equal(0)
    count = scan_axis(is_zero.cast(dtypes.int32), Op.ADD, axis)
    one, zero = x.const_like(1), x.const_like(0)
    is_before = count.equal(0)
    is_first = is_zero & count.equal(1)
    others = scan_axis(where(is_first, one, x), Op.MUL, axis)
    before = _from_the_end(g * node, Op.ADD, axis) / where(is_before, x, one)
    at_zero = _from_the_end(where(is_before, zero, g * others), Op.ADD, axis)
    return (where(is_before, before, where(is_first, at_zero, zero)),)


def _extremes(node: UOp, g: UOp) -> Parts:
    """greatest or least m of x so far: the sum of g up to the next element that sets it

    The last of equal elements sets it, and NaN does, as in torch.cummax. The sums are differences
    of sums from the end, which are taken in float64.
    """
    x, (axis,) = settled(node.src[0]), node.arg[1]
    if shape_of(x)[axis] == 0:
        return (zeros_like(x),)
    extreme = node if x is node.src[0] else scan_axis(x, node.arg[0], axis)
    sets = x.equal(extreme) | ~x.equal(x)
    rest = _from_the_end(g.cast(dtypes.float64), Op.ADD, axis)
    size = shape_of(x)[axis]
    past = const(dtypes.int32, size) if isinstance(size, int) else size.cast(dtypes.int32)
    setter = where(sets, _positions(x, axis), past)
    following = _from_the_end(setter, Op.MIN, axis)
    own = _gathered(rest, _next(following, axis, past), axis)
    return (where(sets, (rest - own).cast(x.dtype), x.const_like(0)),)


def _next(value: UOp, axis: int, last: UOp) -> UOp:
    """What stands one place further along an axis; behind the end, `last`."""
    shape = shape_of(value)
    cut = [(1 if i == axis else 0, size) for i, size in enumerate(shape)]
    room = [(0, 1 if i == axis else 0) for i in range(len(shape))]
    shifted = pad(shrink(value + 1, cut), room)
    return where(shifted.equal(0), last, shifted - 1)


def _gathered(value: UOp, places: UOp, axis: int) -> UOp:
    """The value at places along an axis, 0 behind its end."""
    shape = shape_of(value)
    size = shape[axis]
    past = const(dtypes.int32, size) if isinstance(size, int) else size.cast(dtypes.int32)
    indices = [places if i == axis else _positions(value, i) for i in range(len(shape))]
    return make(Op.INDEX, value.dtype, (value, places < past, *indices))


def _logadds(node: UOp, g: UOp) -> Parts:
    """logarithms y of sums of e ** x: e ** x times the sum of g e ** -y from each element on

    The sums of what is positive and of what is negative are logarithms too, so nothing overflows.
    """
    x, (axis,) = node.src[0], node.arg[1]
    nothing = g.const_like(-math.inf)

    def share(part: UOp) -> UOp:
        is_there = (part > 0) & ~node.equal(-math.inf)
        safe = where(is_there, part, g.const_like(1))
        weight = where(is_there, make(Op.LOG, g.dtype, (safe,)) - node, nothing)
        return make(Op.EXP, g.dtype, (x + _from_the_end(weight, Op.LOGADD, axis),))

    return (share(g) - share(-g),)


_RULES: Final[dict[int, SlopeRule]] = {
    Op.ADD: _sums,
    Op.MUL: _products,
    Op.MAX: _extremes,
    Op.MIN: _extremes,
    Op.LOGADD: _logadds,
}


def _scan(node: UOp, g: UOp) -> Parts:
    """SCAN: the rule of its fold"""
    return _RULES[node.arg[0]](node, g)


SCAN_RULES: Final[dict[int, SlopeRule]] = {Op.SCAN: _scan}

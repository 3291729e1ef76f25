"""Gradients of SCAN, by the op of the reduction. An element is in every prefix from its own on."""

from __future__ import annotations

import math
from typing import Final

from weft.gradient.elementwise import Parts, SlopeRule
from weft.gradient.settled import settled
from weft.ir.build import Size, scan_axis, where
from weft.ir.dtypes import dtypes
from weft.ir.movement import expand, flip, iota, pad, reshape, shrink, zeros_like
from weft.ir.ops import Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.sizes import plus
from weft.ir.uop import UOp, const, make


def _from_the_end(value: UOp, op: int, axis: int) -> UOp:
    """The reductions of all suffixes along an axis."""
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
    """products p of x: the product before each element, times the sum s of g times what follows

    s[i] = g[i] + x[i + 1] s[i + 1]. Nothing is divided and nothing asks for zeros, so that all
    derivatives of it are right too, zeros or not.
    """
    x, (axis,) = node.src[0], node.arg[1]
    return (products_before(x, axis) * _recurrence(_later(x, axis, 1), g, axis),)


def products_before(x: UOp, axis: int) -> UOp:
    """The product of all elements before each one."""
    room = [(1 if i == axis else 0, 0) for i in range(len(shape_of(x)))]
    moved = shrink(pad(x, room), [(0, size) for size in shape_of(x)])
    is_first = _positions(x, axis).equal(0)
    return scan_axis(where(is_first, x.const_like(1), moved), Op.MUL, axis)


def products_behind(x: UOp, axis: int) -> UOp:
    """The product of all elements behind each one."""
    return flip(products_before(flip(x, (axis,)), axis), (axis,))


def _recurrence(factor: UOp, value: UOp, axis: int) -> UOp:
    """s[i] = value[i] + factor[i] s[i + 1], from the end.

    A run of steps is a step of the same form, so runs of twice the length are made of two.
    """
    size = largest_size((shape_of(value)[axis],))
    position, zero = _positions(value, axis), value.const_like(0)
    length = 1
    while length < size:
        # Behind the end there is nothing, also for a factor of infinity.
        is_there = position + length < _past(value, axis)
        value = value + where(is_there, factor * _later(value, axis, length), zero)
        factor = factor * _later(factor, axis, length)
        length *= 2
    return value


def _later(value: UOp, axis: int, by: int) -> UOp:
    """The element so many positions further along an axis, 0 behind the end."""
    shape = shape_of(value)
    room = [(0, by if i == axis else 0) for i in range(len(shape))]
    cut: list[tuple[Size, Size]] = [(0, size) for size in shape]
    cut[axis] = (by, plus(shape[axis], by))
    return shrink(pad(value, room), cut)


def _past(value: UOp, axis: int) -> UOp:
    """The size of an axis, as int32."""
    size = shape_of(value)[axis]
    return const(dtypes.int32, size) if isinstance(size, int) else size.cast(dtypes.int32)


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
    past = _past(x, axis)
    setter = where(sets, _positions(x, axis), past)
    following = _from_the_end(setter, Op.MIN, axis)
    own = _gathered(rest, _next(following, axis, past), axis)
    return (where(sets, (rest - own).cast(x.dtype), x.const_like(0)),)


def _next(value: UOp, axis: int, last: UOp) -> UOp:
    """What stands one position further along an axis; behind the end, `last`."""
    shape = shape_of(value)
    cut = [(1 if i == axis else 0, size) for i, size in enumerate(shape)]
    room = [(0, 1 if i == axis else 0) for i in range(len(shape))]
    shifted = pad(shrink(value + 1, cut), room)
    return where(shifted.equal(0), last, shifted - 1)


def _gathered(value: UOp, addresses: UOp, axis: int) -> UOp:
    """The value at positions along an axis, 0 behind its end."""
    shape = shape_of(value)
    past = _past(value, axis)
    indices = [addresses if i == axis else _positions(value, i) for i in range(len(shape))]
    return make(Op.INDEX, value.dtype, (value, addresses < past, *indices))


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
    """SCAN: the rule of its reduction"""
    return _RULES[node.arg[0]](node, g)


SCAN_RULES: Final[dict[int, SlopeRule]] = {Op.SCAN: _scan}

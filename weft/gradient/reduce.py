"""Gradients of REDUCE, by the op of the fold. AND and OR fold no floats and have none."""

from __future__ import annotations

from typing import Final

from weft.gradient.elementwise import Parts, SlopeRule
from weft.gradient.settled import settled
from weft.ir.build import reduce_axes, where
from weft.ir.dtypes import DType, dtypes
from weft.ir.movement import expand
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make


def _count(condition: UOp, axes: tuple[int, ...], dtype: DType) -> UOp:
    """How often the condition holds along the axes, as a float.

    It is counted in int32, for a small float cannot count far.
    """
    return reduce_axes(condition.cast(dtypes.int32), Op.ADD, axes).cast(dtype)


def _sum(node: UOp, g: UOp) -> Parts:
    """sum of x: g for every element"""
    return (expand(g, shape_of(node.src[0])),)


def _product(node: UOp, g: UOp) -> Parts:
    """product of x: g times the product of the other elements

    The product p of the elements that are not 0 serves all: without zeros the others have p / x;
    a single zero has p itself, and the rest 0; with more zeros all have 0. No zero divides. The
    second derivative by two elements is right wherever neither of them is 0.
    """
    x, axes = node.src[0], node.arg[1]
    shape = shape_of(x)
    is_zero = x.equal(0)
    one, zero = x.const_like(1), x.const_like(0)
    nonzero = where(is_zero, one, x)
    product = g * reduce_axes(nonzero, Op.MUL, axes)
    zeros = _count(is_zero, axes, dtypes.float32)
    for_others = expand(where(zeros.equal(0), product, zero), shape) / nonzero
    for_zero = expand(where(zeros.equal(1), product, zero), shape)
    return (where(is_zero, for_zero, for_others),)


def _extremum(node: UOp, g: UOp) -> Parts:
    """max or min of x: g shared evenly by the elements equal to it, as torch.amax does

    A result of NaN equals no element and gives NaN to all.
    """
    x, (op, axes) = settled(node.src[0]), node.arg[:2]
    shape = shape_of(x)
    extreme = node if x is node.src[0] else reduce_axes(x, op, axes)
    is_chosen = x.equal(expand(extreme, shape))
    wide = x.dtype if x.dtype.bits >= 32 else dtypes.float32
    count = _count(is_chosen, axes, wide)
    chosen = where(is_chosen, expand(g, shape), g.const_like(0))
    return ((chosen.cast(wide) / expand(count, shape)).cast(x.dtype),)


def _logadd(node: UOp, g: UOp) -> Parts:
    """log of the sum of e ** x: g times the share of each element in the sum"""
    x = node.src[0]
    gap = x - expand(node, shape_of(x))
    return (expand(g, shape_of(x)) * make(Op.EXP, x.dtype, (gap,)),)


FOLD_RULES: Final[dict[int, SlopeRule]] = {
    Op.ADD: _sum,
    Op.MUL: _product,
    Op.MAX: _extremum,
    Op.MIN: _extremum,
    Op.LOGADD: _logadd,
}


def _reduce(node: UOp, g: UOp) -> Parts:
    """REDUCE: the rule of its fold"""
    return FOLD_RULES[node.arg[0]](node, g)


REDUCE_RULES: Final[dict[int, SlopeRule]] = {Op.REDUCE: _reduce}

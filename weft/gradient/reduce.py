"""Gradients of REDUCE, by the op of the reduction. AND and OR reduce no floats and have none."""

from __future__ import annotations

from typing import Final

from weft.gradient.elementwise import Parts, SlopeRule
from weft.gradient.scan import products_before, products_behind
from weft.gradient.settled import settled
from weft.ir.build import reduce_axes, where
from weft.ir.dtypes import DType, dtypes
from weft.ir.movement import expand, permute, reshape
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.sizes import times
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

    That is the product before each element times the one behind it, along the axes in a row.
    Nothing is divided, so all derivatives are right too, zeros or not.
    """
    x, axes = node.src[0], node.arg[1]
    shape = shape_of(x)
    order = [*(i for i in range(len(shape)) if i not in axes), *axes]
    moved = permute(x, order)
    kept = [shape[i] for i in order[: len(order) - len(axes)]]
    row = reshape(moved, (*kept, times(*(shape[i] for i in axes))))
    last = len(kept)
    others = products_before(row, last) * products_behind(row, last)
    back = permute(reshape(others, shape_of(moved)), [order.index(i) for i in range(len(order))])
    return (expand(g, shape) * back,)


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


REDUCTION_RULES: Final[dict[int, SlopeRule]] = {
    Op.ADD: _sum,
    Op.MUL: _product,
    Op.MAX: _extremum,
    Op.MIN: _extremum,
    Op.LOGADD: _logadd,
}


def _reduce(node: UOp, g: UOp) -> Parts:
    """REDUCE: the rule of its reduction"""
    return REDUCTION_RULES[node.arg[0]](node, g)


REDUCE_RULES: Final[dict[int, SlopeRule]] = {Op.REDUCE: _reduce}

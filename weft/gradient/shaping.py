"""Gradients of values that stood with greater shapes."""

from __future__ import annotations

from weft.ir.build import reduce_axes
from weft.ir.movement import reshape
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp


def sum_to(value: UOp, shape: Shape) -> UOp:
    """The gradient of a source with `shape` that stood with a greater one as a scalar does.

    A scalar is read by every element, so its gradient is the sum over all of them.
    """
    own = shape_of(value)
    if shape or not own:
        return value
    return reshape(reduce_axes(value, Op.ADD, range(len(own))), ())

"""Builders of movement ops on nodes: sizes may be symbolic, results are plain nodes.

Symbolic sizes compare by identity, so a shape that was computed (`n + 2 - 2`) is not the shape it
equals (`n`). `as_shape` puts that right with a RESHAPE; where sizes are ints it adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.build import Size, split_symbolic
from weft.ir.dtypes import DType, Scalar, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import Shape, same_shape, shape_of
from weft.ir.uop import UOp, const, make

Pairs = Sequence[tuple[Size, Size]]


def reshape(value: UOp, shape: Sequence[Size]) -> UOp:
    static, symbolic = split_symbolic(shape)
    return make(Op.RESHAPE, value.dtype, (value, *symbolic), static)


def as_shape(value: UOp, shape: Shape) -> UOp:
    """The value in a shape that is known to have the same sizes."""
    return value if same_shape(shape_of(value), shape) else reshape(value, shape)


def expand(value: UOp, shape: Shape) -> UOp:
    """The value with its axes of size 1 repeated; itself where there is nothing to repeat."""
    if same_shape(shape_of(value), shape):
        return value
    static, symbolic = split_symbolic(shape)
    return make(Op.EXPAND, value.dtype, (value, *symbolic), static)


def spread(value: UOp, first: int, shape: Shape) -> UOp:
    """The value with its axes at `first` and on, repeated along all others; a scalar stays."""
    own = shape_of(value)
    if not own:
        return value
    after = len(shape) - first - len(own)
    return expand(as_shape(value, (*(1,) * first, *own, *(1,) * after)), shape)


def full(dtype: DType, shape: Shape, value: Scalar) -> UOp:
    """One number in every element."""
    number = const(dtype, value)
    return expand(reshape(number, (1,) * len(shape)), shape) if shape else number


def zeros_like(node: UOp) -> UOp:
    return full(node.dtype, shape_of(node), 0)


def iota(size: Size, dtype: DType = dtypes.int32) -> UOp:
    """0, 1, 2, … below the size."""
    static, symbolic = split_symbolic((size,))
    return make(Op.IOTA, dtype, symbolic, static)


def permute(value: UOp, order: Sequence[int]) -> UOp:
    """The axes in another order: `order` has the source axis of each."""
    return make(Op.PERMUTE, value.dtype, (value,), tuple(order))


def pad(value: UOp, pairs: Pairs) -> UOp:
    return _boxed(Op.PAD, value, pairs)


def shrink(value: UOp, pairs: Pairs) -> UOp:
    return _boxed(Op.SHRINK, value, pairs)


def _boxed(op: int, value: UOp, pairs: Pairs) -> UOp:
    static, symbolic = split_symbolic([bound for pair in pairs for bound in pair])
    arg = tuple(zip(static[::2], static[1::2], strict=True))
    return make(op, value.dtype, (value, *symbolic), arg)

"""Builders of movement ops, with sizes that may be symbolic: the one place that makes them.

The tensor layer, the gradient rules and the passes of the schedule build views with these. Nothing
is simplified: a reshape to the same shape is a node, unless a docstring says otherwise.

Symbolic sizes compare by identity, so a shape that was computed (`n + 2 - 2`) is not the shape it
equals (`n`). `as_shape` puts that right with a RESHAPE; where sizes are ints it adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.build import Size, split_symbolic
from weft.ir.dtypes import DType, Number, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import Shape, same_shape, shape_of
from weft.ir.sizes import ceil_quotient, minus, shape_value, size_value, times
from weft.ir.uop import UOp, const, make

# A movement op without its source: the op, its arg, and the sources for symbolic sizes.
Movement = tuple[int, object, tuple[UOp, ...]]
Pairs = Sequence[tuple[Size, Size]]


def sized_step(op: int, sizes: Sequence[Size]) -> Movement:
    """A RESHAPE or EXPAND to these sizes."""
    static, symbolic = split_symbolic(sizes)
    return op, static, symbolic


def boxed_step(op: int, pairs: Pairs) -> Movement:
    """A PAD or SHRINK with these pairs."""
    static, symbolic = split_symbolic([bound for pair in pairs for bound in pair])
    return op, tuple(zip(static[::2], static[1::2], strict=True)), symbolic


def step_sizes(step: Movement) -> Shape:
    """The sizes of a RESHAPE or EXPAND."""
    _, arg, symbolic = step
    assert isinstance(arg, tuple)
    rest = iter(symbolic)
    return tuple(next(rest) if size is None else size for size in arg)


def step_pairs(step: Movement) -> list[tuple[Size, Size]]:
    """The pairs of a PAD or SHRINK."""
    op, arg, symbolic = step
    assert isinstance(arg, tuple)
    flat = step_sizes((op, tuple(bound for pair in arg for bound in pair), symbolic))
    return list(zip(flat[::2], flat[1::2], strict=True))


def with_values(step: Movement) -> Movement:
    """A step with the values of its variables instead of its symbolic sizes."""
    op, _, symbolic = step
    if not symbolic:
        return step
    if op in (Op.PAD, Op.SHRINK):
        return boxed_step(op, [(size_value(a), size_value(b)) for a, b in step_pairs(step)])
    return sized_step(op, shape_value(step_sizes(step)))


def apply(node: UOp, step: Movement) -> UOp:
    """The value of a step on a node."""
    op, arg, symbolic = step
    return make(op, node.dtype, (node, *symbolic), arg)


def apply_all(node: UOp, steps: Sequence[Movement]) -> UOp:
    for step in steps:
        node = apply(node, step)
    return node


def _resized(op: int, node: UOp, shape: Sequence[Size]) -> UOp:
    static, symbolic = split_symbolic(shape)
    made = make(op, node.dtype, (node, *symbolic), static)
    if not symbolic:
        made.known_shape = static
    return made


def reshape(node: UOp, shape: Sequence[Size]) -> UOp:
    return _resized(Op.RESHAPE, node, shape)


def as_shape(node: UOp, shape: Shape) -> UOp:
    """The value in a shape that is known to have the same sizes."""
    return node if same_shape(shape_of(node), shape) else reshape(node, shape)


def permute(node: UOp, order: Sequence[int]) -> UOp:
    return make(Op.PERMUTE, node.dtype, (node,), tuple(order))


def flip(node: UOp, axes: Sequence[int]) -> UOp:
    return make(Op.FLIP, node.dtype, (node,), tuple(axes))


def pad(node: UOp, pairs: Pairs) -> UOp:
    return apply(node, boxed_step(Op.PAD, pairs))


def shrink(node: UOp, pairs: Pairs) -> UOp:
    return apply(node, boxed_step(Op.SHRINK, pairs))


def expand(node: UOp, shape: Shape) -> UOp:
    """The value with its axes of size 1 repeated; itself where there is nothing to repeat."""
    same = same_shape(shape_of(node), shape)
    return node if same else _resized(Op.EXPAND, node, shape)


def broadcast(node: UOp, shape: Shape) -> UOp:
    """The node in a shape that it broadcasts to: axes of size 1 in front, then EXPAND."""
    own = shape_of(node)
    if own == shape:
        return node
    if len(own) < len(shape):
        node = reshape(node, (1,) * (len(shape) - len(own)) + own)
    return expand(node, shape)


def broadcast_axes(node: UOp, first: int, shape: Shape) -> UOp:
    """The value with its axes at `first` and on, repeated along all others; a scalar stays."""
    own = shape_of(node)
    if not own:
        return node
    after = len(shape) - first - len(own)
    return expand(as_shape(node, (*(1,) * first, *own, *(1,) * after)), shape)


def full(dtype: DType, value: Number, shape: Shape) -> UOp:
    """One number in every element."""
    return broadcast(const(dtype, value), shape)


def zeros_like(node: UOp) -> UOp:
    return full(node.dtype, 0, shape_of(node))


def iota(size: Size, dtype: DType = dtypes.int32) -> UOp:
    """0, 1, 2, … below the size."""
    static, symbolic = split_symbolic((size,))
    return make(Op.IOTA, dtype, symbolic, static)


def positions(shape: Shape, axis: int, dtype: DType = dtypes.int32) -> UOp:
    """For each element of a shape, its number along an axis."""
    ones: list[Size] = [1] * len(shape)
    ones[axis] = shape[axis]
    return broadcast(reshape(iota(shape[axis], dtype), ones), shape)


def strided_steps(shape: Shape, axis: int, step: int) -> list[Movement]:
    """Every `step`-th element along an axis, from the first on.

    The axis is filled up to whole blocks of `step`, and the first of each block is taken.
    """
    size = shape[axis]
    blocks = ceil_quotient(size, step)
    missing = minus(times(blocks, step), size)
    before, after = shape[:axis], shape[axis + 1 :]
    steps = []
    if missing != 0:
        edges: list[tuple[Size, Size]] = [(0, 0)] * len(shape)
        edges[axis] = (0, missing)
        steps.append(boxed_step(Op.PAD, edges))
    steps.append(sized_step(Op.RESHAPE, (*before, blocks, step, *after)))
    box: list[tuple[Size, Size]] = [(0, n) for n in (*before, blocks, step, *after)]
    box[axis + 1] = (0, 1)
    steps.append(boxed_step(Op.SHRINK, box))
    steps.append(sized_step(Op.RESHAPE, (*before, blocks, *after)))
    return steps

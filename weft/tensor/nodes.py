"""Movement ops as functions on nodes, with sizes that may be symbolic.

The families of methods build their graphs with these, and with those of `ir/movement.py`, which
they find here too. Nothing is simplified: a reshape to the same shape is a node, unless the caller
leaves it out.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.build import Size, split_symbolic
from weft.ir.dtypes import DType, Scalar, dtypes
from weft.ir.movement import iota as iota
from weft.ir.movement import pad as pad
from weft.ir.movement import permute as permute
from weft.ir.movement import reshape as reshape
from weft.ir.movement import shrink as shrink
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.sizes import shape_value, size_value
from weft.ir.uop import UOp, const, make
from weft.tensor.checks import known

# A movement op without its source: the op, its arg, and the sources for symbolic sizes.
Step = tuple[int, object, tuple[UOp, ...]]
Pairs = Sequence[tuple[Size, Size]]


def sized_step(op: int, sizes: Sequence[Size]) -> Step:
    """A RESHAPE or EXPAND to these sizes."""
    static, symbolic = split_symbolic(sizes)
    return op, static, symbolic


def boxed_step(op: int, pairs: Pairs) -> Step:
    """A PAD or SHRINK with these pairs."""
    static, symbolic = split_symbolic([bound for pair in pairs for bound in pair])
    return op, tuple(zip(static[::2], static[1::2], strict=True)), symbolic


def step_sizes(step: Step) -> Shape:
    """The sizes of a RESHAPE or EXPAND."""
    _, arg, symbolic = step
    assert isinstance(arg, tuple)
    rest = iter(symbolic)
    return tuple(next(rest) if size is None else size for size in arg)


def step_pairs(step: Step) -> list[tuple[Size, Size]]:
    """The pairs of a PAD or SHRINK."""
    op, arg, symbolic = step
    assert isinstance(arg, tuple)
    flat = step_sizes((op, tuple(bound for pair in arg for bound in pair), symbolic))
    return list(zip(flat[::2], flat[1::2], strict=True))


def with_values(step: Step) -> Step:
    """A step with the values of its variables in the places of its symbolic sizes."""
    op, _, symbolic = step
    if not symbolic:
        return step
    if op in (Op.PAD, Op.SHRINK):
        return boxed_step(op, [(size_value(a), size_value(b)) for a, b in step_pairs(step)])
    return sized_step(op, shape_value(step_sizes(step)))


def apply(node: UOp, step: Step) -> UOp:
    """The value of a step on a node."""
    op, arg, symbolic = step
    return make(op, node.dtype, (node, *symbolic), arg)


def apply_all(node: UOp, steps: Sequence[Step]) -> UOp:
    for step in steps:
        node = apply(node, step)
    return node


def broadcast(node: UOp, shape: Shape) -> UOp:
    """The node in a shape that it broadcasts to: axes of size 1 in front, then EXPAND."""
    own = shape_of(node)
    if own == shape:
        return node
    if len(own) < len(shape):
        own = (1,) * (len(shape) - len(own)) + own
        node = reshape(node, own)
    return node if own == shape else apply(node, sized_step(Op.EXPAND, shape))


def filled(dtype: DType, value: Scalar, shape: Shape) -> UOp:
    """A constant in every place of a shape."""
    return broadcast(const(dtype, value), shape)


def positions(shape: Shape, axis: int, dtype: DType = dtypes.int32) -> UOp:
    """For each element of a shape, its number along an axis."""
    ones: list[Size] = [1] * len(shape)
    ones[axis] = shape[axis]
    return broadcast(reshape(iota(shape[axis], dtype), ones), shape)


def strided_steps(shape: Shape, axis: int, step: int) -> list[Step]:
    """Every `step`-th element along an axis, from the first on.

    The axis is filled up to whole blocks of `step`, and the first of each block is taken.
    """
    size = known(shape[axis])
    blocks = -(-size // step)
    before, after = shape[:axis], shape[axis + 1 :]
    steps = []
    if blocks * step != size:
        edges: list[tuple[Size, Size]] = [(0, 0)] * len(shape)
        edges[axis] = (0, blocks * step - size)
        steps.append(boxed_step(Op.PAD, edges))
    steps.append(sized_step(Op.RESHAPE, (*before, blocks, step, *after)))
    box: list[tuple[Size, Size]] = [(0, n) for n in (*before, blocks, step, *after)]
    box[axis + 1] = (0, 1)
    steps.append(boxed_step(Op.SHRINK, box))
    steps.append(sized_step(Op.RESHAPE, (*before, blocks, *after)))
    return steps

"""Joining tensors and cutting them apart, and masks that select by position."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from weft.ir import movement
from weft.ir.build import Size
from weft.ir.dtypes import dtypes, promote
from weft.ir.movement import Movement
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.sizes import minus, plus
from weft.ir.uop import UOp, make, on_sweep
from weft.support.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from weft.tensor.checks import (
    axis_of,
    known,
    require_one_device,
    size_node,
    size_of,
    symbolic_fix,
)
from weft.tensor.indexing.inside import require_labels

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def listed(name: str, self: Any, args: Sequence[Any]) -> list[Tensor]:
    """Operands given as `Tensor.cat(a, b)`, `a.cat(b)` or `Tensor.cat([a, b])`."""
    first = list(self) if isinstance(self, (tuple, list)) else [self]
    if isinstance(self, (tuple, list)) and len(args) == 1 and isinstance(args[0], int):
        args = ()  # PyTorch's cat(tensors, dim), of which the caller reads dim
    tensors = [*first, *args]
    for each in tensors:
        if not hasattr(type(each), "uop"):
            raise ArgumentTypeError(
                f"{name}: expected a tensor, got {type(each).__name__}",
                rule="only tensors can be joined",
            )
    if not tensors:
        raise ArgumentError(f"{name}: there is nothing to join", rule=f"{name} needs a tensor")
    return tensors


def _axis(self: Any, args: Sequence[Any], dim: int) -> int:
    """The axis of cat(tensors, dim), where it is not named."""
    is_given = isinstance(self, (tuple, list)) and len(args) == 1 and isinstance(args[0], int)
    return args[0] if is_given else dim


def cat(self: Tensor, *args: Tensor, dim: int = 0) -> Tensor:
    """Join tensors along an axis they have.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).cat(Tensor([3])).tolist()
    [1, 2, 3]
    """
    tensors = listed("cat", self, args)
    dim = _axis(self, args, dim)
    # What is of shape (0,) has no say in PyTorch: programs start a list with it.
    tensors = [each for each in tensors if each.shape != (0,)] or tensors[:1]
    first = tensors[0]
    axis = axis_of("cat", dim, first.ndim)
    require_one_device("cat", *tensors)
    for number, each in enumerate(tensors):
        if not each.ndim or _rest(each, axis) != _rest(first, axis) or each.ndim != first.ndim:
            raise ShapeError(
                f"cat: tensor {number} has shape {each.shape}, the first {first.shape}",
                facts=[(f"tensor {i}", one.shape) for i, one in enumerate(tensors)],
                rule=f"all sizes but that of axis {axis} are equal, and there is an axis",
                fix="use stack to join along a new axis"
                if not each.ndim
                else symbolic_fix(*each.shape, *first.shape),
            )
    dtype = promote(*(each.dtype for each in tensors))
    return first._new(joined([each.uop.cast(dtype) for each in tensors], axis))


def _rest(tensor: Tensor, axis: int) -> Shape:
    return tensor.shape[:axis] + tensor.shape[axis + 1 :]


def joined(parts: list[UOp], axis: int) -> UOp:
    """Each part padded to the whole, and chosen where the position is before its end."""
    sizes = tuple([(part.known_shape or shape_of(part))[axis] for part in parts])
    whole, plan = _plan(sizes, shape_of(parts[0]), axis)
    result: UOp | None = None
    for part, (step, before) in zip(reversed(parts), plan, strict=True):
        padded = part
        if step is not None:
            op, arg, symbolic = step
            padded = make(op, part.dtype, (part, *symbolic), arg)
            padded.known_shape = whole
        if result is None:
            result = padded
        elif before is not None:
            result = make(Op.WHERE, part.dtype, (before, padded, result))
            result.known_shape = whole
    assert result is not None
    return result


@lru_cache(maxsize=256)
def _plan(
    sizes: tuple[Size, ...], shape: Shape, axis: int
) -> tuple[Shape, tuple[tuple[Movement | None, UOp | None], ...]]:
    """The joined shape and, for each part from the last on, its padding and where it is chosen.

    What is empty is chosen nowhere.
    """
    total: Size = 0
    for size in sizes:
        total = plus(total, size)
    whole = (*shape[:axis], total, *shape[axis + 1 :])
    position = movement.positions(whole, axis)
    plan: list[tuple[Movement | None, UOp | None]] = []
    end: Size = total
    for size in reversed(sizes):
        pairs: list[tuple[Size, Size]] = [(0, 0)] * len(whole)
        pairs[axis] = (minus(end, size), minus(total, end))
        step = movement.boxed_step(Op.PAD, pairs) if size != total else None
        before = position < size_node(end, position.dtype) if size != 0 else None
        plan.append((step, before))
        end = minus(end, size)
    return whole, tuple(plan)


on_sweep(_plan.cache_clear)


def stack(self: Tensor, *args: Tensor, dim: int = 0) -> Tensor:
    """Join tensors of one shape along a new axis.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).stack(Tensor([3, 4]), dim=1).tolist()
    [[1, 3], [2, 4]]
    """
    given = listed("stack", self, args)
    dim = _axis(self, args, dim)
    nodes = [each.uop for each in given]
    shape = shape_of(nodes[0])
    for number, node in enumerate(nodes):
        if node.known_shape != shape and shape_of(node) != shape:
            raise ShapeError(
                f"stack: tensor {number} has shape {given[number].shape}, the first {shape}",
                rule="stack joins tensors of one shape along a new axis",
                fix="use cat to join along an axis they have",
            )
    require_one_device("stack", *given)
    axis = axis_of("stack", dim, len(shape) + 1)
    wide = (*shape[:axis], 1, *shape[axis:])
    dtype = promote(*dict.fromkeys([node.dtype for node in nodes]))
    op, arg, symbolic = movement.sized_step(Op.RESHAPE, wide)
    parts: list[UOp] = []
    for node in nodes:
        whole = node if node.dtype is dtype else node.cast(dtype)
        parts.append(make(op, dtype, (whole, *symbolic), arg))
        parts[-1].known_shape = wide
    return given[0]._new(joined(parts, axis))


def split(self: Tensor, sizes: int | Sequence[Size], dim: int = 0) -> tuple[Tensor, ...]:
    """Cut into views along an axis, each of a size or of the sizes listed.

    >>> from weft.tensor import Tensor
    >>> [part.tolist() for part in Tensor([1, 2, 3]).split(2)]
    [[1, 2], [3]]
    """
    axis = axis_of("split", dim, self.ndim)
    size = self.shape[axis]
    if isinstance(sizes, int):
        size = known(size)
        if sizes < 1 and size:
            raise ArgumentError(f"split: parts of {sizes} elements", rule="a part has 1 or more")
        sizes = [min(sizes, size - start) for start in range(0, size, sizes or 1)] or [0]
    whole: Size = 0
    for part in sizes:
        whole = plus(whole, size_of("split", part))
    if whole != size:
        raise ShapeError(
            f"split: the sizes add up to {whole}, and axis {axis} has {size}",
            facts=[("sizes", tuple(sizes)), ("shape", self.shape)],
            rule="the sizes add up to that of the axis",
        )
    parts: list[Tensor] = []
    start: Size = 0
    for part in sizes:
        box: list[Any] = [None] * self.ndim
        box[axis] = (start, plus(start, part))
        parts.append(self.shrink(box))
        start = plus(start, part)
    return tuple(parts)


def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Cut into at most `chunks` views of equal size; the last may be smaller.

    PyTorch: chunk; NumPy: array_split.

    >>> from weft.tensor import Tensor
    >>> [each.tolist() for each in Tensor([1, 2, 3]).chunk(2)]
    [[1, 2], [3]]
    """
    if chunks < 1:
        raise ArgumentError(f"chunk: {chunks} chunks", rule="chunk needs 1 or more chunks")
    size = known(self.shape[axis_of("chunk", dim, self.ndim)])
    if not size:
        return self.split([0] * chunks, dim)
    return self.split(-(-size // chunks), dim)


def meshgrid(self: Tensor, *args: Tensor, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Expand vectors to a grid, one result for each of them.

    PyTorch and NumPy: meshgrid.

    >>> from weft.tensor import Tensor
    >>> [each.tolist() for each in Tensor([1, 2]).meshgrid(Tensor([3, 4]))]
    [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
    """
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"meshgrid: unknown indexing {indexing!r}", rule='it is "ij" or "xy"')
    vectors = listed("meshgrid", self, args)
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    sizes: list[Size] = [0] * len(vectors)
    for axis, vector in zip(order, vectors, strict=True):
        sizes[axis] = vector.numel()
    result = []
    for axis, vector in zip(order, vectors, strict=True):
        ones = [1] * len(vectors)
        ones[axis] = -1
        result.append(vector.reshape(ones).expand(sizes))
    return tuple(result)


def tril(self: Tensor, diagonal: Size = 0) -> Tensor:
    """Keep what is on or below a diagonal of the last two axes, and zero the rest.

    >>> from weft.tensor import Tensor
    >>> Tensor.ones(2, 2).tril().tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return _triangle(self, "tril", diagonal + 1, below=True)


def triu(self: Tensor, diagonal: Size = 0) -> Tensor:
    """Keep what is on or above a diagonal of the last two axes, and zero the rest.

    Shape and dtype stay. PyTorch and NumPy: triu.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).triu().tolist()
    [[1, 2], [0, 4]]
    """
    return _triangle(self, "triu", diagonal, below=False)


def _triangle(self: Tensor, name: str, offset: Any, below: bool) -> Tensor:
    if self.ndim < 2:
        raise ShapeError(f"{name}: there are {self.ndim} axes", rule=f"{name} needs two axes")
    shape = self.shape
    column, row = (
        movement.positions(shape, self.ndim - 1),
        movement.positions(shape, self.ndim - 2),
    )
    offset = size_node(size_of(name, offset), dtypes.int32)
    inside = column < row + offset
    zero = self.uop.const_like(0)
    node = self.uop
    sources = (inside, node, zero) if below else (inside, zero, node)
    return self._new(make(Op.WHERE, self.dtype, sources))


def one_hot(self: Tensor, num_classes: int) -> Tensor:
    """Return 1 at the class of each element in a new last axis, and 0 elsewhere, as int64.

    >>> from weft.tensor import Tensor
    >>> Tensor([0, 2]).one_hot(3).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """
    if not self.dtype.is_int:
        raise DTypeError(f"one_hot: classes are {self.dtype.name}", rule="one_hot takes integers")
    require_labels("one_hot", self, num_classes)
    return hot(self, num_classes).cast(dtypes.int64)


def hot(self: Tensor, num_classes: int) -> Tensor:
    """Where the new last axis counts to the element's value."""
    classes = movement.iota(num_classes, dtypes.int64)
    shape = (*self.shape, num_classes)
    left = movement.broadcast(
        movement.reshape(self.uop.cast(dtypes.int64), (*self.shape, 1)), shape
    )
    return self._new(left.equal(movement.broadcast(classes, shape)))

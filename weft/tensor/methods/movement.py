"""Movement: other shapes of the same elements.

All of these but `pad` return views: they share the storage, so a write through one is seen by all.
Where PyTorch's `reshape` would have to copy, this one is a view too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.ir import movement
from weft.ir.build import Size
from weft.ir.ops import Op
from weft.ir.shapes import Shape
from weft.ir.sizes import least, times, try_quotient
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import (
    axes_of,
    axis_of,
    ints_of,
    known,
    least_fix,
    require_box,
    shape_from,
    size_of,
    symbolic_fix,
)

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def reshape(self: Tensor, shape: Any, *args: Any) -> Tensor:
    """Return the same elements in another shape; one size may be -1, and None keeps a size.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3, 4]).reshape(2, -1).tolist()
    [[1, 2], [3, 4]]
    """
    listed = (*shape, *args) if isinstance(shape, (tuple, list)) else (shape, *args)
    kept = [self.shape[i] if size is None else size for i, size in enumerate(listed)]
    wanted = _inferred("reshape", self.shape, ints_of("reshape", tuple(kept), ()))
    if wanted == self.shape:
        return self
    return self._view(movement.sized_step(Op.RESHAPE, wanted))


def _inferred(name: str, shape: Shape, wanted: Sequence[Size]) -> Shape:
    """The wanted shape with its -1 worked out."""
    count = times(*shape)
    holes = [axis for axis, size in enumerate(wanted) if size == -1]
    product = times(*(size for size in wanted if size != -1))
    if len(holes) > 1 or any(isinstance(size, int) and size < -1 for size in wanted):
        raise ShapeError(
            f"{name}: expected a shape, got {tuple(wanted)}",
            rule="sizes are 0 or more, and at most one is -1, to be worked out",
        )
    rest = try_quotient(count, product) if holes and product != 0 else None
    if rest is not None:
        return tuple(rest if size == -1 else size for size in wanted)
    if holes or product != count:
        raise ShapeError(
            f"{name}: {count} elements cannot become {tuple(wanted)}",
            facts=[("from", shape, f"{count} elements"), ("to", tuple(wanted), f"{product}")],
            rule=f"{name} keeps the number of elements",
            fix=symbolic_fix(*shape, *wanted),
        )
    return tuple(wanted)


def expand(self: Tensor, shape: Any, *args: Any) -> Tensor:
    """Repeat axes of size 1; -1 keeps a size, and new axes come in front.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1], [2]]).expand(2, 3).tolist()
    [[1, 1, 1], [2, 2, 2]]
    """
    wanted = ints_of("expand", shape, args)
    own = (1,) * (len(wanted) - self.ndim) + self.shape
    fits = len(own) == len(wanted)
    target = tuple(a if b == -1 else b for a, b in zip(own, wanted, strict=False))
    if not fits or any(a != 1 and a != b for a, b in zip(own, target, strict=True)):
        raise ShapeError(
            f"expand: {self.shape} does not expand to {wanted}",
            facts=[("from", self.shape), ("to", wanted)],
            rule="counted from the last axis, a size stays the same or was 1",
            fix=symbolic_fix(*own, *wanted),
        )
    view = self.reshape(own)
    return view if own == target else view._view(movement.sized_step(Op.EXPAND, target))


def permute(self: Tensor, order: Any, *args: Any) -> Tensor:
    """Put the axes in another order.

    >>> from weft.tensor import Tensor
    >>> Tensor.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    axes = [axis_of("permute", known(axis), self.ndim) for axis in ints_of("permute", order, args)]
    if sorted(axes) != list(range(self.ndim)):
        raise ShapeError(
            f"permute: expected an order of {self.ndim} axes, got {tuple(axes)}",
            facts=[("shape", self.shape), ("order", tuple(axes))],
            rule="permute names each axis once",
        )
    return self._view((Op.PERMUTE, tuple(axes), ())) if self.ndim else self


def transpose(self: Tensor, dim0: int = 1, dim1: int = 0) -> Tensor:
    """Swap two axes.

    The result is a view. PyTorch and NumPy: transpose.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).transpose().tolist()
    [[1, 3], [2, 4]]
    """
    a, b = axis_of("transpose", dim0, self.ndim), axis_of("transpose", dim1, self.ndim)
    order = list(range(self.ndim))
    if not order:
        return self
    order[a], order[b] = order[b], order[a]
    return self.permute(order)


def reversed_axes(self: Tensor) -> Tensor:
    """Return the tensor with its axes in reverse order; of a matrix, its transpose."""
    return self.permute(tuple(range(self.ndim))[::-1]) if self.ndim else self


def transposed(self: Tensor) -> Tensor:
    """Return a matrix with its two axes swapped; what has fewer axes as it is. PyTorch: t.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2]]).t().tolist()
    [[1], [2]]
    """
    if self.ndim > 2:
        raise ShapeError(
            f"t: there are {self.ndim} axes",
            facts=[("shape", self.shape)],
            rule="t swaps the axes of a matrix",
            fix="use transpose(a, b) or permute",
        )
    return reversed_axes(self)


def last_axes_swapped(self: Tensor) -> Tensor:
    """Return the tensor with its last two axes swapped: each matrix of a batch transposed."""
    return self.transpose(-2, -1)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the same elements in the shape of another tensor. PyTorch: reshape_as, view_as.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).reshape_as(Tensor([[0], [0]])).tolist()
    [[1], [2]]
    """
    return self.reshape(other.shape)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Repeat axes of size 1 to the shape of another tensor. PyTorch: expand_as.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1], [2]]).expand_as(Tensor.zeros(2, 2)).tolist()
    [[1, 1], [2, 2]]
    """
    return self.expand(other.shape)


def movedim(self: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Move axes to other positions; the rest keep their order. PyTorch: movedim, NumPy: moveaxis.

    >>> from weft.tensor import Tensor
    >>> Tensor.zeros(2, 3, 4).movedim((0, 1), (-1, 0)).shape
    (3, 4, 2)
    """
    pairs = [
        [axis_of("movedim", each, self.ndim) for each in _each(axes)]
        for axes in (source, destination)
    ]
    if len(pairs[0]) != len(pairs[1]) or any(len(set(axes)) != len(axes) for axes in pairs):
        raise ArgumentError(
            f"movedim: axes {source} to {destination}",
            rule="each axis is named once and has one destination",
        )
    rest = iter(axis for axis in range(self.ndim) if axis not in pairs[0])
    sources = dict(zip(pairs[1], pairs[0], strict=True))
    return self.permute([sources[i] if i in sources else next(rest) for i in range(self.ndim)])


def _each(axes: int | Sequence[int]) -> tuple[int, ...]:
    return (axes,) if isinstance(axes, int) else tuple(axes)


def flip(self: Tensor, axis: Any = (), *args: Any, dims: Any = None) -> Tensor:
    """Read axes backwards.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).flip(0).tolist()
    [3, 2, 1]
    """
    named: list[Any] = list(ints_of("flip", axis if dims is None else dims, args))
    axes = axes_of("flip", named, self.ndim) if named else ()
    return self._view((Op.FLIP, axes, ())) if axes else self


def shrink(self: Tensor, arg: Sequence[tuple[Size, Size] | None]) -> Tensor:
    """Cut out a box: a pair (start, stop) for each axis, or None for all of it.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2, 3], [4, 5, 6]]).shrink(((0, 1), (1, 3))).tolist()
    [[2, 3]]
    """
    if len(arg) != self.ndim:
        raise ShapeError(
            f"shrink: {len(arg)} pairs for {self.ndim} axes",
            facts=[("shape", self.shape)],
            rule="shrink takes a pair for each axis",
        )
    pairs = [
        (0, size) if pair is None else (size_of("shrink", pair[0]), size_of("shrink", pair[1]))
        for pair, size in zip(arg, self.shape, strict=True)
    ]
    for axis, ((start, stop), size) in enumerate(zip(pairs, self.shape, strict=True)):
        require_box("shrink", axis, start, stop, size)
    if all(pair == (0, size) for pair, size in zip(pairs, self.shape, strict=True)):
        return self
    return self._view(movement.boxed_step(Op.SHRINK, pairs))


def squeeze(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Drop axes of size 1: all of them, or those named that have it.

    The result is a view. PyTorch and NumPy: squeeze.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2]]).squeeze(0).tolist()
    [1, 2]
    """
    if isinstance(dim, (tuple, list)) and not dim:
        return self
    axes = axes_of("squeeze", dim, self.ndim) if dim is not None else range(self.ndim)
    dropped = {axis for axis in axes if self.ndim and self.shape[axis] == 1}
    return self.reshape([size for axis, size in enumerate(self.shape) if axis not in dropped])


def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """Insert an axis of size 1.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).unsqueeze(-1).shape
    (2, 1)
    """
    axis = axis_of("unsqueeze", dim, self.ndim + 1)
    return self.reshape((*self.shape[:axis], 1, *self.shape[axis:]))


def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge a run of axes into one.

    The sizes from start_dim to end_dim are multiplied; the result is a view. PyTorch: flatten;
    NumPy: ravel.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).flatten().tolist()
    [1, 2, 3, 4]
    """
    first = axis_of("flatten", start_dim, self.ndim)
    last = axis_of("flatten", end_dim, self.ndim)
    if first > last:
        raise ShapeError(
            f"flatten: start_dim {start_dim} comes after end_dim {end_dim}",
            facts=[("shape", self.shape)],
            rule="a run of axes begins before it ends",
        )
    merged = times(*self.shape[first : last + 1])
    return self.reshape((*self.shape[:first], merged, *self.shape[last + 1 :]))


def unflatten(self: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Split an axis into several; one size may be -1.

    >>> from weft.tensor import Tensor
    >>> Tensor.zeros(2, 6).unflatten(1, (3, -1)).shape
    (2, 3, 2)
    """
    axis = axis_of("unflatten", dim, self.ndim)
    inner = _inferred(
        "unflatten", self.shape[axis : axis + 1], ints_of("unflatten", tuple(sizes), ())
    )
    return self.reshape((*self.shape[:axis], *inner, *self.shape[axis + 1 :]))


def broadcast_to(self: Tensor, *shape: Any) -> Tensor:
    """Expand to a shape; new axes come in front.

    A size of 1 becomes any size; the result is a view. PyTorch and NumPy: broadcast_to.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).broadcast_to(2, 2).tolist()
    [[1, 2], [1, 2]]
    """
    return self.expand(*shape)


def repeat(self: Tensor, repeats: Any, *args: Any) -> Tensor:
    """Repeat the whole tensor along each axis.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).repeat(2, 2).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    counts = shape_from("repeat", ints_of("repeat", repeats, args))
    if len(counts) < self.ndim:
        raise ShapeError(
            f"repeat: {len(counts)} counts for {self.ndim} axes",
            facts=[("shape", self.shape), ("repeats", counts)],
            rule="repeat needs a count for each axis",
        )
    own = (1,) * (len(counts) - self.ndim) + self.shape
    apart = [part for size in own for part in (1, size)]
    wide = [part for count, size in zip(counts, own, strict=True) for part in (count, size)]
    whole = [times(count, size) for count, size in zip(counts, own, strict=True)]
    return self.reshape(apart).expand(wide).reshape(whole)._same()


def repeat_interleave(
    self: Tensor, repeats: Any, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeat each element along an axis; of the flat tensor where no axis is named.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).repeat_interleave(2).tolist()
    [1, 1, 2, 2]
    """
    x = self.flatten() if dim is None else self
    axis = axis_of("repeat_interleave", dim or 0, x.ndim)
    if isinstance(repeats, self.__class__) and repeats.numel() != 1:
        return _repeated_each(x, repeats, axis, output_size)
    repeats = int(repeats.item()) if isinstance(repeats, self.__class__) else repeats
    x = x if x.ndim else x.reshape((1,))
    before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    wide = x.reshape((*before, size, 1, *after)).expand((*before, size, repeats, *after))
    return wide.reshape((*before, times(size, repeats), *after))._same()


def _repeated_each(x: Tensor, repeats: Tensor, axis: int, total: int | None) -> Tensor:
    """Each slice along an axis as often as its own number says; the sum is computed now."""
    ends = repeats.cumsum(0)
    count = int(ends[-1].item()) if total is None else total
    numbers = x.__class__.arange(count, device=x.device)
    return x.index_select(axis, ends.searchsorted(numbers, right=True))


def roll(self: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Shift elements along axes; those that leave at one end come in at the other.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).roll(1).tolist()
    [3, 1, 2]
    """
    if dims is None:
        return self.flatten().roll(shifts, 0).reshape(self.shape)
    offsets = tuple(shifts) if isinstance(shifts, (tuple, list)) else (shifts,)
    axes = tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    if len(offsets) != len(axes):
        raise ArgumentError(
            f"roll: {len(offsets)} shifts for {len(axes)} axes", rule="each axis has its shift"
        )
    result = self._same()
    for shift, dim in zip(offsets, axes, strict=True):
        axis = axis_of("roll", dim, self.ndim)
        size = known(result.shape[axis])
        cut = -shift % size if size else 0
        if cut:
            parts = result.split([cut, size - cut], dim=axis)
            result = parts[1].cat(parts[0], dim=axis)
    return result


def unfold(self: Tensor, dim: int, size: int, step: int) -> Tensor:
    """Return all windows of a size along an axis, `step` apart, in a new last axis.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3, 4]).unfold(0, 2, 1).tolist()
    [[1, 2], [2, 3], [3, 4]]
    """
    from weft.tensor.neural.windows import windows_along

    axis = axis_of("unfold", dim, self.ndim)
    if not self.ndim and size == 1:
        return self.reshape((1,))
    if size < 1 or step < 1 or size > least(self.shape[axis]):
        raise ShapeError(
            f"unfold: no windows of {size} with step {step} along axis {axis}",
            facts=[("shape", self.shape)],
            rule="unfold needs 1 <= size <= shape[dim] and step >= 1",
            fix=least_fix(self.shape[axis]),
        )
    return windows_along(self, axis, size, step, 1)


def diagonal(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a diagonal of two axes as the last axis, as a view.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([[1, 2], [3, 4]])
    >>> x.diagonal().tolist()
    [1, 4]
    >>> _ = x.diagonal().fill_(0)
    >>> x.tolist()
    [[0, 2], [3, 0]]
    """
    a, b = axis_of("diagonal", dim1, self.ndim), axis_of("diagonal", dim2, self.ndim)
    if a == b:
        raise ArgumentError("diagonal: dim1 and dim2 are the same axis")
    rest = [axis for axis in range(self.ndim) if axis not in (a, b)]
    x = self.permute(*rest, a, b)
    rows, columns = known(x.shape[-2]), known(x.shape[-1])
    top, left = max(-offset, 0), max(offset, 0)
    count = max(0, min(rows - top, columns - left))
    keep = [(0, size) for size in x.shape[:-2]]
    if not count:
        return x.shrink((*keep, (0, 0), (0, min(columns, 1)))).reshape((*x.shape[:-2], 0))
    square = x.shrink((*keep, (top, top + count), (left, left + count)))
    flat = square.flatten(-2)
    return flat._view(*movement.strided_steps(flat.shape, flat.ndim - 1, count + 1))

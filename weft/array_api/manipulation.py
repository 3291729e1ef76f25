"""Shapes: joining, splitting, moving and repeating axes; reading at positions."""

from __future__ import annotations

import math
from typing import Any

from weft.array_api.promotion import result_type
from weft.support.errors import ArgumentError, AxisError, ShapeError
from weft.tensor.tensor import Tensor

Axes = int | tuple[int, ...] | None


def sizes_of(x: Tensor) -> tuple[int, ...]:
    return tuple(map(int, x.shape))


def axis_of(name: str, axis: int, rank: int) -> int:
    """An axis, counted from the front."""
    if not -rank <= axis < rank:
        raise AxisError(f"{name}: axis {axis} of an array with {rank} axes")
    return axis % rank


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """The array with this shape, its elements repeated."""
    return x.expand(tuple(shape))


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The arrays with the one shape that all of them broadcast to."""
    shape = Tensor.broadcast_shapes(*(each.shape for each in arrays))
    return [each.expand(shape) for each in arrays]


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Arrays one behind the other along an axis; flat ones where it is None."""
    common = result_type(*arrays)
    parts: list[Tensor] = [each.cast(common) for each in arrays]
    if axis is None:
        parts, axis = [each.flatten() for each in parts], 0
    return parts[0].cat(*parts[1:], dim=axis) if len(parts) > 1 else parts[0]


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new axis."""
    common = result_type(*arrays)
    parts: list[Tensor] = [each.cast(common) for each in arrays]
    return parts[0].stack(*parts[1:], dim=axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The arrays along an axis."""
    axis = axis_of("unstack", axis, x.ndim)
    return tuple(x.select(axis, number) for number in range(int(x.shape[axis])))


def expand_dims(x: Tensor, /, *, axis: int = 0) -> Tensor:
    """The array with an axis of one element more."""
    return x.unsqueeze(axis_of("expand_dims", axis, x.ndim + 1))


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """The array without these axes, which have one element."""
    listed = (axis,) if isinstance(axis, int) else tuple(axis)
    gone = {axis_of("squeeze", each, x.ndim) for each in listed}
    shape = sizes_of(x)
    if any(shape[each] != 1 for each in gone):
        raise ShapeError(f"squeeze: axes {listed} of shape {shape} have more than one element")
    return x.reshape(tuple(size for number, size in enumerate(shape) if number not in gone))


def flip(x: Tensor, /, *, axis: Axes = None) -> Tensor:
    """The array backwards along these axes, or all."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return x.flip(tuple(axes)) if axes else x


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """The array with axes in another order."""
    return x.movedim(source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """The array with its axes in this order."""
    return x.permute(tuple(axes)) if x.ndim else x


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The matrices in the last two axes, transposed."""
    axis_of("matrix_transpose", -2, x.ndim)
    return x.transpose(-2, -1)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape."""
    made = x.reshape(tuple(shape))
    return made.clone() if copy else made


def roll(x: Tensor, /, shift: Any, *, axis: Axes = None) -> Tensor:
    """The elements moved around the ends of axes; those of the flat array where it is None."""
    if axis is None:
        return x.flatten().roll(shift, 0).reshape(x.shape) if x.ndim else x
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    steps = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    return x.roll(steps, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element several times; how often may be said for each."""
    if axis is None:
        x, axis = x.flatten(), 0
    if isinstance(repeats, Tensor) and repeats.numel() == 1:
        repeats = int(repeats.item())
    return x.repeat_interleave(repeats, axis_of("repeat", axis, x.ndim))


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The array several times along each axis."""
    counts = tuple(repetitions)
    counts = (1,) * (x.ndim - len(counts)) + counts
    return x.repeat(counts) if counts else x


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """What is at these positions along an axis."""
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(
                f"take: no axis for {x.ndim} axes", rule="only arrays of one axis need none"
            )
        axis = 0
    axis = axis_of("take", axis, x.ndim)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return x.index_select(axis, indices.flatten()).reshape(shape)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """What is at the positions that another array has, along an axis."""
    return x.take_along_dim(indices, axis_of("take_along_axis", axis, x.ndim))


def element_count(x: Tensor, axes: Axes) -> int:
    """How many elements a reduction over these axes sees for each result."""
    if axes is None:
        return math.prod(sizes_of(x))
    listed = (axes,) if isinstance(axes, int) else axes
    return math.prod(int(x.shape[axis]) for axis in listed)

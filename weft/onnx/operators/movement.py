"""Operators that move elements: shapes, axes, joins, cuts, padding, blocks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.ir.dtypes import dtypes
from weft.ir.sizes import at_least, at_most, least, most, plus, times, try_quotient
from weft.ir.uop import UOp
from weft.onnx.elements import Small, dtype_of
from weft.onnx.fold import shape_array, sizes_array, slice_of
from weft.onnx.real_sizes import InexactSizeError, RealSize
from weft.onnx.table import op
from weft.onnx.values import element_of_value
from weft.tensor.checks import multiple_fix
from weft.tensor.tensor import Tensor


def sizes_of(array: Any) -> list[Any]:
    """Numbers of a host array as ints or symbolic sizes."""
    return [
        int(cell) if isinstance(cell, (int, np.integer, float, np.floating)) else cell
        for cell in np.asarray(array).reshape(-1)
    ]


@op("Shape", raw=True)
def shape(call: Any, x: Any) -> Any:
    return shape_array(tuple(x.shape), call)


@op("Size", raw=True)
def size(call: Any, x: Any) -> Any:
    return sizes_array([times(*x.shape)]).reshape(())


@op("Reshape", host=(1,), keeps_element=True)
def reshape(call: Any, x: Tensor, wanted: Any = None) -> Tensor:
    sizes = call.get("shape") if wanted is None else sizes_of(wanted)
    if not call.get("allowzero", 0):
        sizes = [
            x.shape[axis] if isinstance(size, int) and size == 0 else size
            for axis, size in enumerate(sizes)
        ]
    return x.reshape(sizes)


@op("Flatten", keeps_element=True)
def flatten(call: Any, x: Tensor) -> Tensor:
    axis = call.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@op("Squeeze", host=(1,), keeps_element=True)
def squeeze(call: Any, x: Tensor, axes: Any = None) -> Tensor:
    listed = call.get("axes") if axes is None else sizes_of(axes)
    if listed is None:
        return x.squeeze()
    chosen = {axis % max(x.ndim, 1) for axis in listed}
    for axis in chosen:
        if x.shape[axis] != 1:
            raise call.error(f"axis {axis} has the size {x.shape[axis]}", "the size is 1")
    return x.reshape([each for axis, each in enumerate(x.shape) if axis not in chosen])


@op("Unsqueeze", host=(1,), keeps_element=True)
def unsqueeze(call: Any, x: Tensor, axes: Any = None) -> Tensor:
    listed = call.get("axes") if axes is None else sizes_of(axes)
    rank = x.ndim + len(listed)
    chosen = {axis + rank if axis < 0 else axis for axis in listed}
    if len(chosen) != len(listed) or any(not 0 <= axis < rank for axis in chosen):
        raise call.error(f"axes {listed} for {rank} axes")
    sizes = iter(x.shape)
    return x.reshape([1 if axis in chosen else next(sizes) for axis in range(rank)])


@op("Transpose", keeps_element=True)
def transpose(call: Any, x: Tensor) -> Tensor:
    return x.permute(call.get("perm", list(range(x.ndim))[::-1]))


@op("Expand", host=(1,), keeps_element=True)
def expand(call: Any, x: Tensor, wanted: Any) -> Tensor:
    sizes = sizes_of(wanted)
    rank = max(len(sizes), x.ndim)
    sizes = [1] * (rank - len(sizes)) + sizes
    own = [1] * (rank - x.ndim) + list(x.shape)
    pairs = zip(own, sizes, strict=True)
    return x.reshape(own).expand([mine if each == 1 else each for mine, each in pairs])


@op("Tile", host=(1, 2), keeps_element=True)
def tile(call: Any, x: Tensor, repeats: Any, axis: Any = None) -> Tensor:
    if axis is not None:  # opset 1
        counts = [1] * x.ndim
        counts[int(axis)] = int(repeats)
        return x.repeat(counts)
    return x.repeat(sizes_of(repeats)) if x.ndim else x


@op("Concat", raw=True)
def concat(call: Any, *values: Any) -> Any:
    tensors = [call.run.tensor(value) for value in values]
    axis = call.get("axis", 1)
    if isinstance(tensors[0], Small):
        plain = [each.tensor for each in tensors]
        return Small(plain[0].cat(*plain[1:], dim=axis), tensors[0].element)
    return tensors[0].cat(*tensors[1:], dim=axis) if len(tensors) > 1 else tensors[0]


@op("Split", host=(1,), keeps_element=True)
def split(call: Any, x: Tensor, sizes: Any = None) -> Any:
    axis = call.get("axis", 0)
    listed = call.get("split") if sizes is None else sizes_of(sizes)
    if listed is None:
        count = call.get("num_outputs") or len(call.node.outputs)
        if not isinstance(x.shape[axis], int):
            return tuple(x.split(_equal_parts(call, x.shape[axis], count), axis))
        chunk = -(-x.shape[axis] // count)
        listed = [max(0, min(chunk, x.shape[axis] - chunk * each)) for each in range(count)]
    return tuple(x.split(listed, axis))


def _equal_parts(call: Any, size: Any, count: int) -> list[Any]:
    """A symbolic size in equal parts."""
    part = try_quotient(size, count)
    if part is None:
        error = call.error(f"{count} parts of an axis of {size}", "the parts are equal, always")
        error.fix = multiple_fix(size)
        raise error
    return [part] * count


def cut(x: Tensor, starts: Any, ends: Any, axes: Any, steps: Any) -> Tensor:
    """Slices along axes; what lies outside of them is clamped."""
    key: list[Any] = [slice(None)] * x.ndim
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step == 0:
            raise ValueError("a slice with step 0")
        extent = x.shape[axis]
        if isinstance(extent, int) and isinstance(start, int) and isinstance(end, int):
            key[axis] = slice_of(start, end, step, extent)
        elif isinstance(step, int) and step < 0 and _is_whole(start, end, extent):
            key[axis] = slice(None, None, step)
        else:
            key[axis] = slice(_in_axis(start, extent), _in_axis(end, extent), step)
    return x[tuple(key)]


def _is_whole(start: Any, end: Any, extent: Any) -> bool:
    """Whether a slice backward is of all elements of an axis of symbolic size."""
    if not isinstance(start, int) or not isinstance(end, int):
        return False
    return (start == -1 or start >= most(extent) - 1) and end < -most(extent)


def _in_axis(at: Any, extent: Any) -> Any:
    """A position on an axis of symbolic size, moved into the axis as the specification says."""
    if not isinstance(at, int) or isinstance(extent, int):
        return at
    return at_least(plus(extent, at), 0) if at < 0 else at_most(extent, at)


@op("Slice", since=1, keeps_element=True)
def slice_by_attributes(call: Any, x: Tensor) -> Tensor:
    return cut(x, call.get("starts"), call.get("ends"), call.get("axes"), None)


@op("Slice", since=10, host=(1, 2, 3, 4), keeps_element=True)
def slice_(
    call: Any, x: Tensor, starts: Any, ends: Any, axes: Any = None, steps: Any = None
) -> Tensor:
    listed = [None if each is None else sizes_of(each) for each in (starts, ends, axes, steps)]
    return cut(x, *listed)


_PAD_MODES = {
    "constant": "constant",
    "reflect": "reflect",
    "edge": "replicate",
    "wrap": "circular",
}


def _padded(call: Any, x: Tensor, amounts: list[Any], value: Any, axes: Any) -> Tensor:
    chosen = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in axes]
    if len(amounts) != 2 * len(chosen):
        raise call.error(f"{len(amounts)} amounts for {len(chosen)} axes")
    pairs = [(0, 0)] * x.ndim
    for number, axis in enumerate(chosen):
        pairs[axis] = (amounts[number], amounts[number + len(chosen)])
    mode = call.get("mode", "constant")
    if mode not in _PAD_MODES:
        raise call.error(f"mode {mode!r}", "the modes are " + ", ".join(_PAD_MODES))
    if mode != "constant":
        return x.pad(pairs, mode=_PAD_MODES[mode])
    if isinstance(value, Tensor):
        inside = x.ones_like().cast(dtypes.bool).pad(pairs)
        return inside.where(x.pad(pairs), value.reshape([1] * x.ndim))
    return x.pad(pairs, value=value)


@op("Pad", since=2)
def pad_by_attributes(call: Any, x: Tensor) -> Tensor:
    return _padded(call, x, call.get("pads"), call.get("value", 0.0), None)


@op("Pad", since=11, host=(1, 3), keeps_element=True)
def pad(
    call: Any, x: Tensor, amounts: Any, value: Tensor | None = None, axes: Any = None
) -> Tensor:
    listed = None if axes is None else sizes_of(axes)
    return _padded(call, x, sizes_of(amounts), 0 if value is None else value, listed)


@op("DepthToSpace", keeps_element=True)
def depth_to_space(call: Any, x: Tensor) -> Tensor:
    n, channels, height, width = x.shape
    b = call.get("blocksize")
    if call.get("mode", "DCR") == "DCR":
        blocks = x.reshape(n, b, b, channels // b**2, height, width).permute(0, 3, 4, 1, 5, 2)
    else:
        blocks = x.reshape(n, channels // b**2, b, b, height, width).permute(0, 1, 4, 2, 5, 3)
    return blocks.reshape(n, channels // b**2, height * b, width * b)


@op("SpaceToDepth", keeps_element=True)
def space_to_depth(call: Any, x: Tensor) -> Tensor:
    n, channels, height, width = x.shape
    b = call.get("blocksize")
    rows, columns = (_equal_parts(call, size, b) for size in (height, width))
    blocks = x.reshape(n, channels, rows[0], b, columns[0], b)
    order = (0, 3, 5, 1, 2, 4) if call.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return blocks.permute(order).reshape(n, channels * b**2, rows[0], columns[0])


@op("CenterCropPad", host=(1,), keeps_element=True)
def center_crop_pad(call: Any, x: Tensor, wanted: Any) -> Tensor:
    axes = [axis % x.ndim for axis in call.get("axes", range(x.ndim))]
    box: list[Any] = [(0, extent) for extent in x.shape]
    grow = [(0, 0)] * x.ndim
    for axis, target in zip(axes, sizes_of(wanted), strict=True):
        extent = x.shape[axis]
        if target < extent:
            start = (extent - target) // 2
            box[axis] = (start, start + target)
        else:
            grow[axis] = ((target - extent) // 2, target - extent - (target - extent) // 2)
    return x.shrink(box).pad(grow)


@op("Trilu", host=(1,), keeps_element=True)
def trilu(call: Any, x: Tensor, diagonal: Any = None) -> Tensor:
    offset = 0 if diagonal is None else sizes_of(diagonal)[0]
    return x.triu(offset) if call.get("upper", 1) else x.tril(offset)


@op("ReverseSequence", keeps_element=True)
def reverse_sequence(call: Any, x: Tensor, lengths: Tensor) -> Tensor:
    time, batch = call.get("time_axis", 0), call.get("batch_axis", 1)
    rows = x.movedim((batch, time), (0, 1))  # (batch, time, ...)
    count = rows.shape[1]
    position = Tensor.arange(count, dtype=dtypes.int64, device=x.device).reshape(1, count)
    ends = lengths.cast(dtypes.int64).reshape(-1, 1)
    source = (position < ends).where(ends - 1 - position, position)
    source = source.reshape(*source.shape, *[1] * (rows.ndim - 2)).expand(rows.shape)
    return rows.gather(1, source).movedim((0, 1), (batch, time))


@op("EyeLike", raw=True)
def eye_like(call: Any, x: Any) -> Any:
    rows, columns = x.shape
    own = element_of_value(x)
    offset = call.get("k", 0)
    row = Tensor.arange(rows, device=call.device).reshape(rows, 1)
    column = Tensor.arange(columns, device=call.device).reshape(1, columns)
    return (column - row == offset).cast(dtype_of(call.get("dtype", own)))


def _symbolic_range(call: Any, first: Any, last: Any, step: Any, dtype: Any) -> Tensor:
    """A range whose ends are sizes, or floats that were made of sizes."""
    try:
        count = ((RealSize.of(last) - first) / step).ceil().size
    except InexactSizeError:
        raise call.error(
            f"{first} to {last} by {step}", "a range of symbolic sizes has a known step"
        ) from None
    if least(count) < 0:
        raise call.error(f"{first} to {last} can be less than nothing")
    start = first.tensor(call.device) if isinstance(first, RealSize) else first
    index = Tensor.arange(count, device=call.device).cast(dtype)
    return (index * step.item() if hasattr(step, "item") else index * step) + start


@op("Range", raw=True)
def range_(call: Any, start: Any, limit: Any, delta: Any) -> Any:
    first, last, step = (call.run.host(each).reshape(())[()] for each in (start, limit, delta))
    dtype = call.run.tensor(start).dtype
    if any(isinstance(each, (UOp, RealSize)) for each in (first, last, step)):
        return _symbolic_range(call, first, last, step, dtype)
    count = max(math.ceil((float(last) - float(first)) / float(step)), 0)
    index = Tensor.arange(count, dtype=dtypes.int64, device=call.device)
    wide = dtypes.float64 if dtype.is_float else dtypes.int64
    return (index.cast(wide) * step.item() + first.item()).cast(dtype)

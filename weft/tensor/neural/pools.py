"""Pools: the greatest or the average of windows over the last axes, and the way back.

A kernel of one number is square; a tuple of one or three numbers makes pools over as many axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft.ir.build import Size
from weft.ir.dtypes import Scalar, dtypes
from weft.ir.sizes import ceil_quotient, floor_quotient, least, minus, plus, times, try_quotient
from weft.support.errors import ShapeError
from weft.tensor.checks import known, size_of
from weft.tensor.methods.unary import as_float
from weft.tensor.neural.convolution import Ints, each_axis, padding_pairs, require_windows
from weft.tensor.neural.windows import Frame, summed_windows, windows
from weft.tensor.small_floats import rounded_once

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


class _Pool(NamedTuple):
    """What a pool slides over its input, and how the input is padded for it."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    edges: list[tuple[int, int]]
    room: list[tuple[int, int]]  # what ceil_mode adds after the edges
    counts: tuple[Size | None, ...]  # the windows that count, where room may be for one more

    @property
    def of(self) -> Frame:
        """The windows that it takes."""
        before = tuple([low for low, _ in self.edges])
        return Frame(self.kernel, self.stride, self.dilation, before)

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.kernel, self.stride, self.dilation, *self.edges, *self.room, *self.counts)


def _frame(
    name: str,
    self: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    dilation: Ints,
    padding: Ints,
    ceil_mode: bool,
) -> _Pool:
    rank = 2 if isinstance(kernel_size, int) else len(kernel_size)
    if self.ndim < rank:
        raise ShapeError(f"{name}: {self.ndim} axes for {rank} spatial ones")
    kernel, gaps = each_axis(name, kernel_size, rank), each_axis(name, dilation, rank)
    strides = kernel if stride is None else each_axis(name, stride, rank)
    edges = padding_pairs(name, padding, rank)
    room = [(0, 0)] * rank
    counts: list[Size | None] = [None] * rank
    if ceil_mode:
        sizes = self.shape[self.ndim - rank :]
        each = list(zip(sizes, edges, kernel, strides, gaps, strict=True))
        room, counts = [(0, _missing(*one)) for one in each], [_counted(*one) for one in each]
    return _Pool(kernel, strides, gaps, edges, room, tuple(counts))


def _windows_of(name: str, self: Tensor, frame: _Pool, edge: Scalar, rest: Scalar) -> Tensor:
    """Windows (…, positions…, taps…), with one value in the padding and one beyond it."""
    none = [(0, 0)] * (self.ndim - len(frame.kernel))
    padded = self
    for pairs, value in ((frame.edges, edge), (frame.room, rest)):
        if any(map(any, pairs)):
            padded = padded.pad([*none, *pairs], value=value)
    require_windows(name, padded, frame.kernel, frame.stride, frame.dilation)
    taps = windows(padded, frame.kernel, frame.stride, frame.dilation)
    if all(count is None for count in frame.counts):
        return taps
    box = [None if count is None else (0, count) for count in frame.counts]
    return taps.shrink((*[None] * len(none), *box, *[None] * len(box)))


def _counted(
    size: Size, edges: tuple[int, int], kernel: int, stride: int, dilation: int
) -> Size | None:
    """How many windows of a symbolic size start inside the input or its padding.

    None where all do that have room.
    """
    low, high = edges
    if isinstance(size, int) or stride + high <= dilation * (kernel - 1) + 1:
        return None
    return ceil_quotient(plus(size, low), stride)


def _missing(size: Size, edges: tuple[int, int], kernel: int, stride: int, dilation: int) -> int:
    """How much a last, partial window lacks; it must start inside the input or its padding."""
    low, high = edges
    if not isinstance(size, int):
        return stride - 1
    reach = dilation * (kernel - 1) + 1
    count = -(-(size + low + high - reach) // stride) + 1
    if (count - 1) * stride >= size + low:
        count -= 1
    return max(0, (count - 1) * stride + reach - size - low - high)


def max_pool2d(
    self: Tensor,
    kernel_size: Ints = (2, 2),
    stride: Ints | None = None,
    dilation: Ints = 1,
    padding: Ints = 0,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the greatest element of each window over the last axes.

    With `return_indices` also where it was found, as a number in the flat spatial axes; of equal
    ones the first. PyTorch: max_pool1d, max_pool2d, max_pool3d.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).max_pool2d().tolist()
    [[4]]
    """
    frame = _frame("max_pool2d", self, kernel_size, stride, dilation, padding, ceil_mode)
    lowest = self.dtype.min
    taps = _windows_of("max_pool2d", self, frame, lowest, lowest)
    axes = tuple(range(self.ndim, taps.ndim))
    greatest = taps.max(axes)
    if self.dtype.is_float and least(greatest.numel()):
        greatest = _with_slope_of_first(greatest, taps, self, frame)
    if not return_indices:
        return greatest
    spatial = self.shape[self.ndim - len(axes) :]
    beyond: Any = times(*spatial)
    numbers = self.arange(beyond, dtype=dtypes.int64, device=self.device).reshape(spatial)
    indices = _windows_of("max_pool2d", numbers, frame, beyond, beyond)
    is_found = (taps == greatest.reshape((*greatest.shape, *[1] * len(axes)))) | taps.isnan()
    return greatest, is_found.where(indices, beyond).min(axes)


def _with_slope_of_first(greatest: Tensor, taps: Tensor, x: Tensor, frame: _Pool) -> Tensor:
    """The pool, whose gradient goes to the first tap of each window that is the greatest.

    Which tap that is takes a byte for each window, and so all that the gradient reads are these
    bytes. Padding is never chosen. Where windows overlap, it is the gradient of the input, and
    the bytes are in memory; else that of the taps, each of which is one element.
    """
    from weft.tensor.autodiff.custom_gradient import with_body

    rank = len(frame.kernel)
    count = math.prod(frame.kernel)
    dtype = dtypes.uint8 if count < 256 else dtypes.int32
    spatial = x.shape[x.ndim - rank :]

    is_shared = frame.of.is_shared

    def slope_of(inputs: Any, value: Tensor, slope: Tensor) -> Tensor:
        seen: Tensor = inputs[0]
        if is_shared:
            seen = _windows_of("max_pool2d", seen, frame, x.dtype.min, x.dtype.min)
        axes = tuple(range(seen.ndim - rank, seen.ndim))
        wide = (*value.shape, *[1] * rank)
        number = x.arange(count, dtype=dtype, device=x.device).reshape(frame.kernel)
        is_found = (seen == value.reshape(wide)) | seen.isnan()
        if any(map(any, [*frame.edges, *frame.room])):
            ones = x.ones(spatial, dtype=dtypes.bool, device=x.device)
            is_found = is_found & _windows_of("max_pool2d", ones, frame, False, False)
        first = is_found.where(number, count).min(axes, keepdim=True)
        first = first.contiguous() if is_shared else first
        slopes = (first == number).where(slope.reshape(wide), 0)
        return summed_windows(slopes, x.shape, frame.of) if is_shared else slopes

    source, key = x if is_shared else taps, ("max_pool2d", *frame.key, *spatial)
    return with_body(greatest, (source,), key, slope_of)


def max_unpool2d(
    self: Tensor,
    indices: Tensor,
    kernel_size: Ints = (2, 2),
    stride: Ints | None = None,
    dilation: Ints = 1,
    padding: Ints = 0,
    output_size: Sequence[Size] | None = None,
) -> Tensor:
    """Put the values of a max pool back where they were found, with zeros elsewhere.

    `output_size` names the size where several would pool to this one; its last numbers count.
    PyTorch: max_unpool1d, max_unpool2d, max_unpool3d.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> values, where = x.max_pool2d(return_indices=True)
    >>> values.max_unpool2d(where).tolist()
    [[0.0, 0.0], [0.0, 4.0]]
    """
    rank = 2 if isinstance(kernel_size, int) else len(kernel_size)
    if indices.shape != self.shape or self.ndim < rank:
        raise ShapeError(
            "max_unpool2d: values and indices do not fit",
            facts=[("values", self.shape), ("indices", indices.shape)],
            rule=f"they have one shape, of {rank} axes or more",
        )
    kernel, gaps = each_axis("max_unpool2d", kernel_size, rank), each_axis("", dilation, rank)
    strides = kernel if stride is None else each_axis("max_unpool2d", stride, rank)
    edges = padding_pairs("max_unpool2d", padding, rank)
    lead = self.shape[: self.ndim - rank]
    if output_size is not None:
        sizes = [size_of("max_unpool2d", size) for size in tuple(output_size)[-rank:]]
    else:
        sizes = [
            plus(times(minus(size, 1), step), gap * (taps - 1) + 1 - sum(pair))
            for size, step, pair, gap, taps in zip(
                self.shape[self.ndim - rank :], strides, edges, gaps, kernel, strict=True
            )
        ]
    rows = times(*lead)
    flat = self.zeros((rows, times(*sizes)), dtype=self.dtype, device=self.device)
    if not self.numel():
        return flat.reshape((*lead, *sizes))
    index, values = (each.reshape((rows, -1)) for each in (indices, self))
    # Where several values go to one element the last stays, and all have the slope of it.
    flat = flat.scatter(1, index, values.detach())
    flat = flat + flat.zeros_like().scatter_add(1, index, values - values.detach())
    return flat.reshape((*lead, *sizes))


@rounded_once
def avg_pool2d(
    self: Tensor,
    kernel_size: Ints = (2, 2),
    stride: Ints | None = None,
    dilation: Ints = 1,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the average of each window over the last axes.

    PyTorch: avg_pool1d, avg_pool2d, avg_pool3d.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).avg_pool2d().tolist()
    [[2.5]]
    """
    x = as_float(self)
    frame = _frame("avg_pool2d", x, kernel_size, stride, dilation, padding, ceil_mode)
    taps = _windows_of("avg_pool2d", x, frame, 0.0, 0.0)
    axes = tuple(range(x.ndim, taps.ndim))
    counts: Tensor | int = math.prod(frame.kernel)
    if not count_include_pad or ceil_mode:  # what ceil_mode adds counts in no case
        spatial = x.ones(x.shape[x.ndim - len(axes) :], dtype=x.dtype, device=x.device)
        ones = _windows_of("avg_pool2d", spatial, frame, float(count_include_pad), 0.0)
        counts = ones.sum(tuple(range(len(axes), 2 * len(axes))))
    average = taps.sum(axes) / counts
    if not frame.of.is_shared or not least(average.numel()):
        return average
    counted = (count_include_pad, ceil_mode)  # all that the counts depend on, beside the frame
    return _with_slope_of_taps(average, x, taps.shape, counts, (*counted, *frame.key), frame)


def _with_slope_of_taps(
    average: Tensor,
    x: Tensor,
    shape: Sequence[Any],
    counts: Tensor | int,
    key: tuple[Any, ...],
    frame: _Pool,
) -> Tensor:
    """The average of windows that overlap; every tap has the same part in it."""
    from weft.tensor.autodiff.custom_gradient import with_body

    def slope_of_input(inputs: Any, value: Tensor, slope: Tensor) -> Tensor:
        given: Tensor = inputs[0]
        each = (slope / counts).reshape((*slope.shape, *[1] * len(frame.kernel)))
        return summed_windows(each.expand(shape), given.shape, frame.of)

    return with_body(average, (x,), ("avg_pool2d", *key), slope_of_input)


@rounded_once
def adaptive_avg_pool2d(self: Tensor, output_size: Ints) -> Tensor:
    """Average windows that share the last axes out evenly. PyTorch: adaptive_avg_pool1d, 2d, 3d.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 2.0, 6.0]]).adaptive_avg_pool2d((1, 2)).tolist()
    [[1.5, 4.0]]
    """
    x = as_float(self)
    for axis, size in _adaptive_sizes("adaptive_avg_pool2d", self, output_size):
        parts = _even_parts(x, axis, size)
        if parts is not None:
            x = parts.mean(axis + 1)
            continue
        taps, inside = _adaptive_windows(x, axis, size)
        count = inside.sum(-1).cast(x.dtype).reshape((size, *[1] * (x.ndim - axis - 1)))
        x = inside.where(taps.movedim(axis + 1, -1).movedim(axis, -2), 0.0).sum(-1)
        x = x.movedim(-1, axis) / count
    return x


def adaptive_max_pool2d(self: Tensor, output_size: Ints) -> Tensor:
    """Return the greatest of windows that share the last axes out evenly.

    PyTorch: adaptive_max_pool1d, 2d, 3d.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 2.0, 6.0]]).adaptive_max_pool2d((1, 2)).tolist()
    [[2.0, 6.0]]
    """
    x = self
    for axis, size in _adaptive_sizes("adaptive_max_pool2d", self, output_size):
        parts = _even_parts(x, axis, size)
        if parts is not None:
            x = parts.max(axis + 1)
            continue
        taps, inside = _adaptive_windows(x, axis, size)
        last = taps.movedim(axis + 1, -1).movedim(axis, -2)
        x = inside.where(last, self.dtype.min).max(-1).movedim(-1, axis)
    return x


def _adaptive_sizes(name: str, self: Tensor, output_size: Any) -> list[tuple[int, int]]:
    """The axes to pool, and the sizes they get; None keeps a size."""
    listed = (output_size,) * 2 if isinstance(output_size, int) else tuple(output_size)
    first = self.ndim - len(listed)
    if first < 0 or any(size is not None and known(size) < 1 for size in listed):
        raise ShapeError(
            f"{name}: output_size {output_size} for shape {self.shape}",
            rule="there is a size from 1 on for each of the last axes, or None to keep it",
        )
    return [(first + i, size) for i, size in enumerate(listed) if size is not None]


def _even_parts(x: Tensor, axis: int, size: int) -> Tensor | None:
    """An axis of symbolic size in parts of one symbolic size; None where they are not equal."""
    have = x.shape[axis]
    part = None if isinstance(have, int) else try_quotient(have, size)
    if part is None or least(part) < 1:
        return None
    return x.reshape((*x.shape[:axis], size, part, *x.shape[axis + 1 :]))


def _adaptive_windows(x: Tensor, axis: int, size: int) -> tuple[Tensor, Tensor]:
    """Windows along an axis, their taps after it, and which (window, tap) are inside."""
    have = x.shape[axis]
    if not isinstance(have, int):
        return _adaptive_symbolic(x, axis, size)
    starts = np.arange(size) * have // size
    stops = -(-(np.arange(size) + 1) * have // size)
    reach = int((stops - starts).max())
    numbers = starts[:, None] + np.arange(reach)[None]
    taps = x[(*(slice(None),) * axis, np.minimum(numbers, have - 1))]
    return taps, x.__class__(numbers < stops[:, None], device=x.device)


def _adaptive_symbolic(x: Tensor, axis: int, size: int) -> tuple[Tensor, Tensor]:
    """The same along an axis of symbolic size: as many taps as the longest window may have."""
    have = x.shape[axis]
    if least(have) < 1:
        raise ShapeError(
            "adaptive pool: an axis can be empty",
            facts=[("shape", x.shape), ("axis", axis)],
            rule="the axes that are pooled have at least one element",
            fix="give the Variable a min of 1",
        )
    window = x.arange(size, dtype=dtypes.int64, device=x.device).unsqueeze(1)
    starts = window * have // size
    stops = ((window + 1) * have + (size - 1)) // size
    tap = x.arange(plus(floor_quotient(have, size), 2), dtype=dtypes.int64, device=x.device)
    numbers = starts + tap
    taps = x[(*(slice(None),) * axis, numbers.minimum(stops - 1))]
    return taps, numbers < stops

"""Pools over windows and over everything, the way back, and columns to images."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from weft.ir.dtypes import dtypes
from weft.ir.sizes import ceil_quotient, least, minus, plus, times
from weft.onnx.operators.convolution import Pairs, short_strides, window
from weft.onnx.operators.movement import sizes_of
from weft.onnx.table import op
from weft.tensor.checks import known, least_fix
from weft.tensor.neural.windows import windows
from weft.tensor.tensor import Tensor


class _Frame(NamedTuple):
    """What a pool slides over its input, and how the input is padded for it."""

    kernel: list[int]
    strides: list[int]
    gaps: list[int]
    pairs: Pairs
    room: Pairs  # what ceil_mode adds behind the padding
    counts: list[Any]  # the windows, where room may be for one more; else None


def _frame(call: Any, x: Tensor) -> _Frame:
    kernel, sizes = list(call.get("kernel_shape")), list(x.shape[2:])
    if len(kernel) != len(sizes):
        raise call.error(f"kernel {kernel} for {len(sizes)} axes")
    strides, gaps, pairs = window(call, kernel, sizes)
    room: Pairs = []
    counts: list[Any] = []
    for extent, stride, gap, (low, high), size in zip(
        kernel, strides, gaps, pairs, sizes, strict=True
    ):
        reach = gap * (extent - 1) + 1
        counts.append(None)
        if not isinstance(size, int):
            _require_window(call, size, low, high, reach)
            room.append((0, stride - 1 if call.get("ceil_mode", 0) else 0))
            if call.get("ceil_mode", 0) and least(plus(high, stride - reach)) > 0:
                counts[-1] = ceil_quotient(plus(size, low), stride)
            continue
        span = size + low + high - reach
        count = span // stride + 1
        if call.get("ceil_mode", 0):
            count = -(-span // stride) + 1
            if (count - 1) * stride >= size + low:
                count -= 1
        if count < 1:
            raise call.error(f"a window of {reach} on an axis of {size} with padding {low, high}")
        room.append((0, max((count - 1) * stride + reach - size - low - high, 0)))
    return _Frame(kernel, short_strides(strides, sizes, pairs), gaps, pairs, room, counts)


def _require_window(call: Any, size: Any, low: Any, high: Any, reach: int) -> None:
    """A window fits into the least value of a symbolic size."""
    if least(plus(plus(size, low), high)) < reach:
        error = call.error(f"a window of {reach} on an axis of {size} with padding {low, high}")
        error.fix = least_fix(size)
        raise error


def _taps(x: Tensor, frame: _Frame, edge: Any, rest: Any) -> Tensor:
    kernel, strides, gaps, pairs, room, counts = frame
    none = [(0, 0)] * (x.ndim - len(kernel))
    for amounts, value in ((pairs, edge), (room, rest)):
        if any(amount != 0 for pair in amounts for amount in pair):
            x = x.pad([*none, *amounts], value=value)
    taps = windows(x, tuple(kernel), tuple(strides), tuple(gaps))
    if all(count is None for count in counts):
        return taps
    box = [None if count is None else (0, count) for count in counts]
    return taps.shrink((*[None] * len(none), *box, *[None] * len(box)))


@op("MaxPool")
def max_pool(call: Any, x: Tensor) -> Any:
    frame = _frame(call, x)
    least = x.dtype.min
    taps = _taps(x, frame, least, least)
    axes = tuple(range(x.ndim, taps.ndim))
    greatest = taps.max(axes)
    if not call.is_wanted(1):
        return greatest
    sizes = list(x.shape)
    numbers = _numbers(sizes, bool(call.get("storage_order", 0)), x.device)
    beyond: Any = times(*sizes)
    positions = _taps(numbers, frame, beyond, beyond)
    is_found = taps == greatest.reshape(*greatest.shape, *[1] * len(axes))
    return greatest, is_found.where(positions, beyond).min(axes)


def _numbers(sizes: list[int], is_column_major: bool, device: Any) -> Tensor:
    """The flat position of each element; column-major ones count the spatial axes backwards."""
    total = times(*sizes)
    if not is_column_major:
        return Tensor.arange(total, dtype=dtypes.int64, device=device).reshape(sizes)
    spatial = sizes[2:]
    area = times(*spatial)
    inner = Tensor.arange(area, dtype=dtypes.int64, device=device).reshape(spatial[::-1])
    inner = inner.permute(list(range(len(spatial)))[::-1])
    outer = Tensor.arange(times(*sizes[:2]), dtype=dtypes.int64, device=device) * area
    return outer.reshape(*sizes[:2], *[1] * len(spatial)) + inner


@op("AveragePool")
def average_pool(call: Any, x: Tensor) -> Tensor:
    frame = _frame(call, x)
    taps = _taps(x, frame, 0, 0)
    axes = tuple(range(x.ndim, taps.ndim))
    total = taps.sum(axes)
    ones = Tensor.ones(1, 1, *x.shape[2:], dtype=x.dtype, device=x.device)
    counts = _taps(ones, frame, 1 if call.get("count_include_pad", 0) else 0, 0)
    return total / counts.sum(axes)


@op("LpPool")
def lp_pool(call: Any, x: Tensor) -> Tensor:
    p = call.get("p", 2)
    taps = _taps(x.abs().pow(p), _frame(call, x), 0, 0)
    return taps.sum(tuple(range(x.ndim, taps.ndim))).pow(1.0 / p)


@op("GlobalAveragePool")
def global_average_pool(call: Any, x: Tensor) -> Tensor:
    return x.mean(tuple(range(2, x.ndim)), True)


@op("GlobalMaxPool")
def global_max_pool(call: Any, x: Tensor) -> Tensor:
    return x.max(tuple(range(2, x.ndim)), True)


@op("GlobalLpPool")
def global_lp_pool(call: Any, x: Tensor) -> Tensor:
    p = call.get("p", 2)
    return x.abs().pow(p).sum(tuple(range(2, x.ndim)), True).pow(1.0 / p)


@op("MaxUnpool", host=(2,))
def max_unpool(call: Any, x: Tensor, index: Tensor, wanted: Any = None) -> Tensor:
    """Values back where they came from; the positions count the smallest output."""
    kernel = list(call.get("kernel_shape"))
    strides, _, pairs = window(call, kernel, list(x.shape[2:]))
    sizes = [
        minus(minus(plus(times(minus(size, 1), stride), extent), low), high)
        for size, stride, extent, (low, high) in zip(
            x.shape[2:], strides, kernel, pairs, strict=True
        )
    ]
    shape = [*x.shape[:2], *sizes]
    target = shape if wanted is None else sizes_of(wanted)
    # Positions count elements of the shape that the pool had, which may be given.
    total = times(*shape)
    none = Tensor.zeros(total, dtype=x.dtype, device=x.device)
    put = none.scatter(0, index.reshape(-1), x.reshape(-1)).reshape(shape)
    return put.pad([(0, minus(b, a)) for a, b in zip(shape, target, strict=True)])


@op("Col2Im", host=(1, 2))
def col2im(call: Any, x: Tensor, image: Any, block: Any) -> Tensor:
    """The sum of blocks where they overlap."""
    sizes, kernel = [known(size) for size in sizes_of(image)], sizes_of(block)
    strides, gaps, pairs = window(call, kernel, sizes)
    n = x.shape[0]
    channels = x.shape[1] // math.prod(kernel)
    counts = [
        (size + low + high - gap * (extent - 1) - 1) // stride + 1
        for size, (low, high), gap, extent, stride in zip(
            sizes, pairs, gaps, kernel, strides, strict=True
        )
    ]
    padded = [size + low + high for size, (low, high) in zip(sizes, pairs, strict=True)]
    numbers = Tensor.arange(math.prod(padded), dtype=dtypes.int64, device=x.device)
    where = windows(numbers.reshape(padded), tuple(kernel), tuple(strides), tuple(gaps))
    rank = len(kernel)
    where = where.permute([*range(rank, 2 * rank), *range(rank)])  # (taps…, positions…)
    values = x.reshape(n, channels, math.prod(kernel) * math.prod(counts))
    index = where.reshape(1, 1, -1).expand(values.shape)
    total = Tensor.zeros(n, channels, math.prod(padded), dtype=x.dtype, device=x.device)
    summed = total.scatter_add(2, index, values).reshape(n, channels, *padded)
    return summed.pad([(0, 0), (0, 0), *[(-low, -high) for low, high in pairs]])

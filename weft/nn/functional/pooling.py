"""Pools over one, two or three axes, adaptive pools, and the way back."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.support.errors import ShapeError
from weft.tensor.checks import known
from weft.tensor.small_floats import rounded_once
from weft.tensor.tensor import Tensor

Ints = int | Sequence[int]
Pool = Callable[..., Any]


def listed(value: Ints, rank: int) -> tuple[int, ...]:
    listed = (value,) if isinstance(value, int) else tuple(value)
    return listed * rank if len(listed) == 1 else listed


def _stride(kernel: tuple[int, ...], stride: Any) -> tuple[int, ...]:
    is_given = stride is not None and (isinstance(stride, int) or len(stride))
    return listed(stride, len(kernel)) if is_given else kernel


def require_spatial(name: str, x: Tensor, rank: int) -> None:
    if x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(
            f"{name}: an input with {x.ndim} axes",
            facts=[("input", x.shape)],
            rule=f"the input is (batch, channels) or (channels), and {rank} spatial axes",
        )


def _max_pool(
    rank: int,
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    require_spatial(f"max_pool{rank}d", input, rank)
    kernel = listed(kernel_size, rank)
    return input.max_pool2d(
        kernel,
        _stride(kernel, stride),
        listed(dilation, rank),
        listed(padding, rank),
        ceil_mode,
        return_indices,
    )


def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest of windows over the last axis."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest of windows over the last two axes."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest of windows over the last three axes."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


max_pool1d_with_indices = functools.partial(max_pool1d, return_indices=True)
max_pool2d_with_indices = functools.partial(max_pool2d, return_indices=True)
max_pool3d_with_indices = functools.partial(max_pool3d, return_indices=True)


@rounded_once
def _avg_pool(
    rank: int,
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> Tensor:
    require_spatial(f"avg_pool{rank}d", input, rank)
    kernel = listed(kernel_size, rank)
    frame = (kernel, _stride(kernel, stride), 1, listed(padding, rank), ceil_mode)
    if divisor_override is None:
        return input.avg_pool2d(*frame, count_include_pad)
    # The mean of windows without ceil_mode counts every tap; with it, those beyond count not.
    means = input.avg_pool2d(*frame, True)
    ones = (
        input.ones_like()
        .detach()
        .pad(
            [amount for each in reversed(listed(padding, rank)) for amount in (each, each)],
            value=1.0,
        )
    )
    zero = (kernel, frame[1], 1, 0, ceil_mode)
    if not ceil_mode:
        return means * (float(np.prod(kernel)) / divisor_override)
    counts = _tap_counts(ones, *zero)
    return means * (counts / divisor_override)


def _tap_counts(ones: Tensor, kernel: Any, stride: Any, *rest: Any) -> Tensor:
    """How many taps of each window are inside of the padded input."""
    rank = len(kernel)
    sizes = [known(size) for size in ones.shape[-rank:]]
    total: Any = 1.0
    for axis, (size, taps, step) in enumerate(zip(sizes, kernel, stride, strict=True)):
        count = -(-(size - taps) // step) + 1
        count -= (count - 1) * step >= size
        starts = np.arange(count) * step
        inside = np.minimum(starts + taps, size) - starts
        total = total * inside.reshape([-1] + [1] * (rank - axis - 1))
    return Tensor(np.asarray(total, np.float32), device=ones.device).cast(ones.dtype)


def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The average of windows over the last axis."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The average of windows over the last two axes."""
    return _avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The average of windows over the last three axes."""
    return _avg_pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of windows over the last axis."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of windows over the last two axes."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of windows over the last three axes."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def _lp_pool(rank: int, x: Tensor, p: float, kernel: Ints, stride: Any, ceil_mode: bool) -> Tensor:
    count = float(np.prod(listed(kernel, rank)))
    mean = _avg_pool(rank, x**p, kernel, stride, 0, ceil_mode, True)
    return (mean.sign() * mean.abs().relu() * count) ** (1.0 / p)


def _adaptive_max(rank: int, input: Tensor, output_size: Any, return_indices: bool) -> Any:
    require_spatial(f"adaptive_max_pool{rank}d", input, rank)
    sizes = _adaptive_sizes(input, output_size, rank)
    values = input.adaptive_max_pool2d(sizes)
    if not return_indices:
        return values
    spatial = tuple([known(size) for size in input.shape[-rank:]])
    flat = Tensor.arange(math.prod(spatial), device=input.device).reshape(spatial)
    # The first element of each window that equals the greatest.
    return values, _first_equal(input, values, flat, sizes, rank)


def _first_equal(x: Tensor, values: Tensor, flat: Tensor, sizes: Any, rank: int) -> Tensor:
    """Where in the flat spatial axes each window has its value."""
    taps, positions, inside = x, flat, Tensor([True], device=x.device)
    lead = x.ndim - rank
    for axis, size in enumerate(sizes):
        have = int(x.shape[lead + axis])
        starts = np.arange(size) * have // size
        stops = -(-(np.arange(size) + 1) * have // size)
        reach = int((stops - starts).max())
        numbers = starts[:, None] + np.arange(reach)[None]
        index = np.minimum(numbers, have - 1)
        # Axes are (lead…, done windows…, this axis, …, done taps…): windows stay, taps go last.
        taps = taps[(*(slice(None),) * (lead + axis), index)].movedim(lead + axis + 1, -1)
        positions = positions[(*(slice(None),) * axis, index)].movedim(axis + 1, -1)
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = size, reach
        inside = inside & Tensor(numbers < stops[:, None], device=x.device).reshape(shape)
    axes = tuple(range(taps.ndim - rank, taps.ndim))
    is_found = inside & (taps == values.reshape((*values.shape, *[1] * rank)))
    return is_found.where(positions, int(flat.numel())).min(axes).cast("int64")


def _adaptive_sizes(x: Tensor, output_size: Any, rank: int) -> tuple[Any, ...]:
    """A number for each spatial axis; None where a symbolic size stays."""
    listed = (output_size,) * rank if isinstance(output_size, int) else tuple(output_size)
    listed = listed * rank if len(listed) == 1 else listed
    return tuple(
        have if size is None and isinstance(have, int) else size
        for size, have in zip(listed, x.shape[-rank:], strict=True)
    )


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The greatest of windows that share the last axis out evenly."""
    return _adaptive_max(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The greatest of windows that share the last two axes out evenly."""
    return _adaptive_max(2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The greatest of windows that share the last three axes out evenly."""
    return _adaptive_max(3, input, output_size, return_indices)


adaptive_max_pool1d_with_indices = functools.partial(adaptive_max_pool1d, return_indices=True)
adaptive_max_pool2d_with_indices = functools.partial(adaptive_max_pool2d, return_indices=True)
adaptive_max_pool3d_with_indices = functools.partial(adaptive_max_pool3d, return_indices=True)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The average of windows that share the last axis out evenly."""
    require_spatial("adaptive_avg_pool1d", input, 1)
    return input.adaptive_avg_pool2d(_adaptive_sizes(input, output_size, 1))


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The average of windows that share the last two axes out evenly."""
    require_spatial("adaptive_avg_pool2d", input, 2)
    return input.adaptive_avg_pool2d(_adaptive_sizes(input, output_size, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The average of windows that share the last three axes out evenly."""
    require_spatial("adaptive_avg_pool3d", input, 3)
    return input.adaptive_avg_pool2d(_adaptive_sizes(input, output_size, 3))


def _unpool(
    rank: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    kernel = listed(kernel_size, rank)
    return input.max_unpool2d(
        indices, kernel, _stride(kernel, stride), 1, listed(padding, rank), output_size
    )


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The values of a max pool where they were found, and zeros."""
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The values of a max pool where they were found, and zeros."""
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The values of a max pool where they were found, and zeros."""
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)

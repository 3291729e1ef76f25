"""Convolutions, pools, norms and resampling, with the operators that are their gradients."""

from __future__ import annotations

from typing import Any

import weft.nn.functional as F  # noqa: N812 -- as everyone calls it
from weft.interop.torch.slopes import slopes_of
from weft.interop.torch.table import Call, aten
from weft.ir.dtypes import dtypes
from weft.tensor.tensor import Tensor


def _convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    is_transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    rank = weight.ndim - 2
    stride, padding, dilation = (_each(each, rank) for each in (stride, padding, dilation))
    edges = [edge for size in reversed(padding) for edge in (size, size)]
    if not is_transposed:
        return x.conv2d(weight, bias, groups, stride, dilation, edges)
    return x.conv_transpose2d(
        weight, bias, groups, stride, dilation, edges, _each(output_padding, rank)
    )


def _each(value: Any, rank: int) -> tuple[int, ...]:
    """A number for each spatial axis; one number stands for all."""
    listed = (value,) if isinstance(value, int) else tuple(value)
    return listed * rank if len(listed) == 1 else listed


@aten("convolution")
def _convolution(call: Call, x: Tensor, weight: Tensor, bias: Any, *how: Any) -> Tensor:
    if x.ndim == weight.ndim - 1:  # without a batch
        return _convolve(x.unsqueeze(0), weight, bias, *how).squeeze(0)
    return _convolve(x, weight, bias, *how)


@aten("convolution_backward")
def _convolution_slopes(
    call: Call, slope: Tensor, x: Tensor, weight: Tensor, bias_sizes: Any, *rest: Any
) -> tuple[Tensor | None, ...]:
    *how, wanted = rest
    is_single = x.ndim == weight.ndim - 1
    if is_single:
        slope, x = slope.unsqueeze(0), x.unsqueeze(0)
    found: list[Tensor | None] = [None, None, None]
    targets = [number for number in (0, 1) if wanted[number]]

    def convolved(*given: Tensor) -> Tensor:
        operands = [x, weight]
        for number, value in zip(targets, given, strict=True):
            operands[number] = value
        return _convolve(operands[0], operands[1], None, *how)

    if targets:
        given = tuple((x, weight)[number] for number in targets)
        for number, value in zip(targets, slopes_of(convolved, given, slope), strict=True):
            found[number] = value.squeeze(0) if is_single and number == 0 else value
    if wanted[2]:
        found[2] = slope.sum((0, *range(2, slope.ndim)))
    return tuple(found)


@aten("max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(
    call: Call, x: Tensor, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    how = _pool_arguments(call, kernel, stride)
    values, indices = x.max_pool2d(
        *how, _each(dilation, len(how[0])), _both(padding, len(how[0])), ceil_mode, True
    )
    return values, indices


def _pool_arguments(call: Call, kernel: Any, stride: Any) -> tuple[Any, Any]:
    rank = 3 if "3d" in call.name else 2
    return _each(kernel, rank), _each(stride, rank) if tuple(stride or ()) else None


def _both(padding: Any, rank: int) -> list[int]:
    return [edge for size in reversed(_each(padding, rank)) for edge in (size, size)]


@aten("max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward")
def _max_pool_slope(
    call: Call, slope: Tensor, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool, indices: Tensor,
) -> Any:  # fmt: skip
    size, step = _pool_arguments(call, kernel, stride)
    gaps, edges = _each(dilation, len(size)), _both(padding, len(size))
    pooled = lambda y: y.max_pool2d(size, step, gaps, edges, ceil_mode)  # noqa: E731
    return slopes_of(pooled, (x,), slope)[0]


def _average(
    call: Call, x: Tensor, kernel: Any, stride: Any = (), padding: Any = 0,
    ceil_mode: bool = False, counts_padding: bool = True, divisor: int | None = None,
) -> Tensor:  # fmt: skip
    size, step = _pool_arguments(call, kernel, stride)
    edges = _both(padding, len(size))
    if divisor is None:
        return x.avg_pool2d(size, step, 1, edges, ceil_mode, counts_padding)
    function = F.avg_pool3d if len(size) == 3 else F.avg_pool2d
    return function(x, size, step, _each(padding, len(size)), ceil_mode, counts_padding, divisor)


@aten("avg_pool2d", "avg_pool3d")
def _avg_pool(call: Call, x: Tensor, *how: Any) -> Tensor:
    return _average(call, x, *how)


@aten("avg_pool2d_backward", "avg_pool3d_backward")
def _avg_pool_slope(call: Call, slope: Tensor, x: Tensor, *how: Any) -> Any:
    return slopes_of(lambda y: _average(call, y, *how), (x,), slope)[0]


@aten("_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def _adaptive(call: Call, x: Tensor, size: Any) -> Tensor:
    function = F.adaptive_avg_pool3d if "3d" in call.name else F.adaptive_avg_pool2d
    return function(x, tuple(size))


@aten("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")
def _adaptive_slope(call: Call, slope: Tensor, x: Tensor) -> Any:
    rank = 3 if "3d" in call.name else 2
    return slopes_of(lambda y: _adaptive(call, y, slope.shape[-rank:]), (x,), slope)[0]


@aten("native_layer_norm")
def _layer_norm(
    call: Call, x: Tensor, shape: Any, weight: Any, bias: Any, eps: float
) -> tuple[Tensor, ...]:
    return x.native_layer_norm(tuple(shape), weight, bias, eps)


@aten("native_group_norm")
def _group_norm(call: Call, x: Tensor, weight: Any, bias: Any, *how: Any) -> tuple[Tensor, ...]:
    return x.native_group_norm(weight, bias, *how)


def _normalized(x: Tensor, weight: Any, bias: Any, mean: Tensor, scale: Tensor) -> Tensor:
    shape = (1, -1, *[1] * (x.ndim - 2))
    x = (x - mean.reshape(shape)) * scale.reshape(shape)
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def _batch_statistics(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    axes = (0, *range(2, x.ndim))
    return x.mean(axes), x.var(axes, correction=0)


@aten("_native_batch_norm_legit_functional")
def _batch_norm_functional(
    call: Call, x: Tensor, weight: Any, bias: Any, mean: Tensor, variance: Tensor, training: bool,
    momentum: float, eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The result, the statistics of the batch, and the running ones as they are from then on."""
    if not training:
        empty = Tensor.zeros(0, dtype=x.dtype)
        result = _normalized(x, weight, bias, mean, (variance + eps).rsqrt())
        return result, empty, empty, mean, variance
    own, spread = _batch_statistics(x, eps)
    scale = (spread + eps).rsqrt()
    count = x.numel() // max(int(x.shape[1]), 1)
    unbiased = spread * (count / max(count - 1, 1))
    return (
        _normalized(x, weight, bias, own, scale),
        own,
        scale,
        mean * (1 - momentum) + own.cast(mean.dtype) * momentum,
        variance * (1 - momentum) + unbiased.cast(variance.dtype) * momentum,
    )


@aten("_native_batch_norm_legit.no_stats")
def _batch_norm_alone(
    call: Call, x: Tensor, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> tuple[Tensor, ...]:
    own, spread = _batch_statistics(x, eps)
    scale = (spread + eps).rsqrt()
    return _normalized(x, weight, bias, own, scale), own, scale


@aten("_native_batch_norm_legit_no_training")
def _batch_norm_running(
    call: Call, x: Tensor, weight: Any, bias: Any, mean: Tensor, variance: Tensor,
    momentum: float, eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    empty = Tensor.zeros(0, dtype=x.dtype)
    return _normalized(x, weight, bias, mean, (variance + eps).rsqrt()), empty, empty


@aten("native_dropout")
def _dropout(
    call: Call, x: Tensor, p: float, training: bool | None, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The mask was drawn by PyTorch."""
    if mask is None:
        return x, Tensor.ones(*x.shape, dtype=dtypes.bool)
    return mask.where(x * (1 / (1 - p) if p < 1 else 0.0), 0), mask


@aten("bernoulli.drawn")
def _bernoulli(call: Call, p: Tensor, drawn: Tensor) -> Tensor:
    return drawn < p


@aten("grid_sampler_2d")
def _grid_sample(
    call: Call, x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool
) -> Tensor:
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return F.grid_sample(x, grid, modes[mode], paddings[padding], align_corners)


@aten("upsample_nearest2d")
def _upsample_nearest(call: Call, x: Tensor, size: Any, *factors: float | None) -> Tensor:
    return _resampled(x, size, factors, "nearest", None)


@aten("upsample_bilinear2d")
def _upsample_bilinear(
    call: Call, x: Tensor, size: Any, align_corners: bool, *factors: float | None
) -> Tensor:
    return _resampled(x, size, factors, "bilinear", align_corners)


def _resampled(x: Tensor, size: Any, factors: Any, mode: str, align_corners: Any) -> Tensor:
    """By factors where all are given, as in PyTorch; they say where samples are taken."""
    by_factors = bool(factors) and None not in factors
    return F.interpolate(
        x,
        None if by_factors else tuple(size),
        tuple(factors) if by_factors else None,
        mode,
        align_corners,
    )

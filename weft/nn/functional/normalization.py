"""Normalization: by batch, layer, group, instance, root mean square, length, neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.shapes import same_size
from weft.ir.sizes import most, times
from weft.support.errors import ArgumentError
from weft.tensor.neural.normalization import unbiased
from weft.tensor.small_floats import rounded_once, widened
from weft.tensor.tensor import Tensor


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over the last axes, then times weight plus bias."""
    return input.layer_norm(tuple(normalized_shape), weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divided by the root of the mean square over the last axes, then times weight."""
    return input.rms_norm(tuple(normalized_shape), weight, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 of groups of channels."""
    return input.group_norm(num_groups, weight, bias, eps)


@rounded_once
def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Vectors along an axis, divided by their p-norm."""
    result = input / input.norm(p, dim, keepdim=True).clamp(min_=eps)
    return result if out is None else out.assign(result)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 of each channel: of the batch in training, else of what runs."""
    if input.ndim == 1 and not input.numel():
        return input
    if training:
        axes = (0, *range(2, input.ndim))
        count = times(*[input.shape[axis] for axis in axes])
        if same_size(count, 1):
            raise ArgumentError(
                f"batch_norm: one value for each channel of {input.shape}",
                rule="a batch in training has several values for each channel",
            )
        wide = widened(input)
        mean, variance = wide.mean(axes), wide.var(axes, correction=0)
        _run(running_mean, mean, momentum)
        _run(running_var, unbiased(variance, count), momentum)
    elif running_mean is None or running_var is None:
        raise ArgumentError(
            "batch_norm: no running statistics", rule="they are needed outside of training"
        )
    else:
        mean, variance = running_mean, running_var
    return _scaled(input, mean, variance, weight, bias, eps).cast(input.dtype)


def _run(running: Tensor | None, value: Tensor, momentum: float) -> None:
    if running is not None:
        moved = running * (1 - momentum) + value.detach() * momentum
        running.assign(moved.cast(running.dtype))


@rounded_once
def _scaled(
    x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor | None, bias: Tensor | None,
    eps: float,
) -> Tensor:  # fmt: skip
    shape = (1, -1, *[1] * (x.ndim - 2))
    result = (x - mean.reshape(shape)) * (variance + eps).rsqrt().reshape(shape)
    result = result if weight is None else result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 of each channel of each example."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    axes = tuple(range(2, input.ndim))
    x = widened(input)
    mean, variance = x.mean(axes, keepdim=True), x.var(axes, keepdim=True, correction=0)
    count = times(*input.shape[2:])
    _run(running_mean, mean.flatten(1).mean(0), momentum)
    _run(running_var, unbiased(variance.flatten(1).mean(0), count), momentum)
    result = (x - mean) * (variance + eps).rsqrt()
    shape = (1, -1, *[1] * (input.ndim - 2))
    result = result if weight is None else result * weight.reshape(shape)
    return (result if bias is None else result + bias.reshape(shape)).cast(input.dtype)


@rounded_once
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x / (k + alpha · mean of squares of neighbouring channels) ** beta."""
    if not most(input.numel()):
        return input
    shape = input.shape
    squares = input.square().flatten(2) if input.ndim > 2 else input.square().unsqueeze(2)
    squares = squares.movedim(1, -1)
    padded = squares.pad((size // 2, (size - 1) // 2))
    mean = padded.unfold(-1, size, 1).mean(-1).movedim(-1, 1).reshape(shape)
    return input / (mean * alpha + k) ** beta


@rounded_once
def cross_map_lrn2d(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x / (k + alpha / size · sum of squares of neighbouring channels) ** beta, as Torch 7 had it.

    The sums are those of a window that moves, and which never lets the first channel go.
    """
    if input.ndim != 4:
        raise ArgumentError(
            f"CrossMapLRN2d: an input of shape {input.shape}",
            rule="it is (batch, channels, height, width)",
        )
    reach, channels = (size - 1) // 2 + 1, int(input.shape[1])
    numbers = Tensor.arange(channels, device=input.device)
    of, by = numbers.unsqueeze(1), numbers.unsqueeze(0)
    near = ((of - by).abs() < reach) | ((by == 0) & (of >= reach))
    sums = near.cast(input.dtype).matmul(input.square().flatten(2)).reshape(input.shape)
    return input * (sums * (alpha / size) + k) ** -beta

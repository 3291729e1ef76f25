"""PyTorch's names for what its layers are made of: results together with what was computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.ir.sizes import times
from weft.tensor.neural.normalization import unbiased
from weft.tensor.small_floats import rounded_to_input, widened

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def _statistics(x: Tensor, axes: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    mean = x.mean(axes, keepdim=True)
    return mean, (x.var(axes, keepdim=True, correction=0) + eps).rsqrt()


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Any) -> Tensor:
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


@rounded_to_input
def native_layer_norm(
    self: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `layer_norm`, the mean and one over the deviation. PyTorch: native_layer_norm.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 3.0]]).native_layer_norm((2,), eps=0.0)[1].tolist()
    [[2.0]]
    """
    axes = tuple(range(self.ndim - len(tuple(normalized_shape)), self.ndim))
    mean, scale = _statistics(self, axes, eps)
    return _affine((self - mean) * scale, weight, bias, tuple(normalized_shape)), mean, scale


@rounded_to_input
def native_group_norm(
    self: Tensor, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `group_norm`, the means and one over the deviations. PyTorch: native_group_norm.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 3.0]]).native_group_norm(None, None, 1, 2, 1, 1, 0.0)[1].tolist()
    [[2.0]]
    """
    grouped = self.reshape((N, group, C // group * HxW))
    mean, scale = _statistics(grouped, (2,), eps)
    found = ((grouped - mean) * scale).reshape(self.shape)
    shape = (1, C, *[1] * (self.ndim - 2))
    return _affine(found, weight, bias, shape), mean.squeeze(2), scale.squeeze(2)


def native_batch_norm(
    self: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `batch_norm`, and in training the means and one over the deviations.

    PyTorch: native_batch_norm.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([[1.0], [3.0]])
    >>> x.native_batch_norm(None, None, None, None, True, 0.1, 0.0)[1].tolist()
    [2.0]
    """
    shape = (1, -1, *[1] * (self.ndim - 2))
    axes = (0, *range(2, self.ndim))
    empty = self.zeros((0,), dtype=self.dtype, device=self.device)
    x = widened(self)
    if not training:
        mean, scale = running_mean, (widened(running_var) + eps).rsqrt()
        found = (x - mean.reshape(shape)) * scale.reshape(shape)
        return _affine(found, weight, bias, shape).cast(self.dtype), empty, empty
    mean, scale = _statistics(x, axes, eps)
    count = times(*[self.shape[axis] for axis in axes])
    flat, variance = mean.flatten(), scale.flatten() ** -2 - eps
    for running, new in (
        (running_mean, flat),
        (running_var, unbiased(variance, count)),
    ):
        if running is not None:
            moved = running * (1 - momentum) + new.detach() * momentum
            running.assign(moved.cast(running.dtype))
    found = _affine((x - mean) * scale, weight, bias, shape)
    return found.cast(self.dtype), flat.cast(self.dtype), scale.flatten().cast(self.dtype)


def constant_pad_nd(self: Tensor, pad: Any, value: float = 0) -> Tensor:
    """Return `pad` with a constant. PyTorch: constant_pad_nd.

    >>> from weft.tensor import Tensor
    >>> Tensor([1]).constant_pad_nd((1, 0), 7).tolist()
    [7, 1]
    """
    return self.pad(tuple(pad), value=value)


def native_dropout_backward(self: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Return the gradient of a dropout with this mask. PyTorch: native_dropout_backward.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).native_dropout_backward(Tensor([True]), 2.0).tolist()
    [2.0]
    """
    return self * mask.cast(self.dtype) * scale

"""Rows made comparable: softmax and its relatives, layer norm, unit length."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from weft.ir.build import Size
from weft.ir.ops import Op
from weft.ir.sizes import at_least, minus
from weft.tensor.autocast import in_float32
from weft.tensor.checks import Axes, axes_of
from weft.tensor.methods.reduce import DTypeLike, reduction
from weft.tensor.methods.unary import as_float
from weft.tensor.trace.built_once import built_once

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def _shifted(self: Tensor, axis: Axes) -> Tensor:
    """The values less their greatest, so that no exponential overflows.

    The greatest is a constant to the gradient: softmax does not change when all values shift.
    """
    x = as_float(self)
    if 0 in x.shape:
        return x
    return x - reduction(x, Op.MAX, axis, True, "softmax").detach()


def softmax(self: Tensor, axis: int = -1, dtype: DTypeLike = None) -> Tensor:
    """Return exponentials that add up to 1 along an axis.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0, 0.0]).softmax().tolist()
    [0.5, 0.5]
    """
    return _softmax(self, axis) if dtype is None else _softmax(self.cast(dtype), axis).cast(dtype)


@in_float32
@built_once
def _softmax(x: Tensor, axis: int) -> Tensor:
    weights = _shifted(x, axis).exp()
    return weights * weights.sum(axis, keepdim=True).reciprocal()


def log_softmax(self: Tensor, axis: int = -1, dtype: DTypeLike = None) -> Tensor:
    """Return the logarithm of softmax.

    y = x - log Σ exp(x), without overflow; shapes stay. PyTorch: log_softmax.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0, 0.0]).log_softmax().tolist()]
    [-0.6931, -0.6931]
    """
    if dtype is None:
        return _log_softmax(self, axis)
    return _log_softmax(self.cast(dtype), axis).cast(dtype)


@in_float32
@built_once
def _log_softmax(x: Tensor, axis: int) -> Tensor:
    shifted = _shifted(x, axis)
    return shifted - shifted.exp().sum(axis, keepdim=True).log()


def softmin(self: Tensor, axis: int = -1, dtype: DTypeLike = None) -> Tensor:
    """Return the softmax of the negated values.

    y = exp(-x) / Σ exp(-x); shapes stay. PyTorch: nn.functional.softmin.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 1.0]).softmin().tolist()
    [0.5, 0.5]
    """
    return (-self).softmax(axis, dtype)


@in_float32
def logsumexp(self: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Return the logarithm of the sum of exponentials, without overflow.

    Without an axis all elements count; keepdim leaves axes of size 1. Integers and bools become
    the default float. PyTorch: logsumexp.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([0.0, 0.0]).logsumexp().item(), 4)
    0.6931
    """
    x = as_float(self)
    if any(x.shape[i] == 0 for i in axes_of("logsumexp", axis, x.ndim)):
        return reduction(x, Op.ADD, axis, keepdim, "logsumexp") - math.inf
    top = reduction(x.real, Op.MAX, axis, True, "logsumexp").detach()  # of the exponents' sizes
    top = (top.abs() == math.inf).where(0.0, top)
    total = (x - top).exp().sum(axis, keepdim=True).log() + top
    axes = axes_of("logsumexp", axis, x.ndim)
    return total if keepdim else total.squeeze(axes) if axes else total


def unbiased(variance: Tensor, count: Size) -> Tensor:
    """The variance of which so many numbers are a sample, from theirs."""
    if isinstance(count, int):
        return variance * (count / max(count - 1, 1))
    return variance * count / at_least(minus(count, 1), 1)


@in_float32
@built_once
def layernorm(self: Tensor, axis: Axes = -1, eps: float = 1e-5) -> Tensor:
    """Shift and scale to mean 0 and variance 1 along axes.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 3.0]).layernorm(eps=0).tolist()
    [-1.0, 1.0]
    """
    x = as_float(self)
    axis = axes_of("layernorm", axis, x.ndim)
    centered = x - x.mean(axis, keepdim=True)
    scale = (centered * centered).mean(axis, keepdim=True) + eps
    return centered * scale.rsqrt()


@in_float32
def normalize(self: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide by the p-norm along an axis, which is at least `eps`.

    PyTorch: nn.functional.normalize.

    >>> from weft.tensor import Tensor
    >>> [round(x, 4) for x in Tensor([3.0, 4.0]).normalize(dim=0).tolist()]
    [0.6, 0.8]
    """
    x = as_float(self)
    return x / x.norm(p, dim, keepdim=True).clamp(min_=eps)

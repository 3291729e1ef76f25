"""Reductions and normalizations of what a mask keeps, with the names of torch.masked.

A mask is True where an element counts, and broadcasts. Where nothing counts, a reduction is that
of no elements; results of normalizations and scans are 0 where the mask does not hold.
"""

from __future__ import annotations

import math
from typing import Any

from weft.support.module_names import missing_name
from weft.tensor.tensor import Tensor

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]


def _kept(x: Tensor, mask: Tensor | None, fill: Any) -> Tensor:
    return x if mask is None else mask.expand(x.shape).where(x, fill)


def _axes(x: Tensor, dim: Any) -> Any:
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(x.ndim))
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _typed(x: Tensor, dtype: Any) -> Tensor:
    return x if dtype is None else x.cast(dtype)


def sum(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The sum of what the mask keeps."""
    return _kept(_typed(input, dtype), mask, 0).sum(_axes(input, dim), keepdim)


def prod(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The product of what the mask keeps."""
    return _kept(_typed(input, dtype), mask, 1).prod(_axes(input, dim), keepdim)


def amax(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The greatest of what the mask keeps."""
    x = _typed(input, dtype)
    return _kept(x, mask, x.dtype.min).amax(_axes(input, dim), keepdim)


def amin(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The least of what the mask keeps."""
    x = _typed(input, dtype)
    return _kept(x, mask, x.dtype.max).amin(_axes(input, dim), keepdim)


def argmax(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """Where the greatest is of what the mask keeps, in the dtype of the input, as in PyTorch."""
    x = _typed(input, dtype)
    return _kept(x, mask, x.dtype.min).argmax(dim, keepdim).cast(x.dtype)


def argmin(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """Where the least is of what the mask keeps, in the dtype of the input, as in PyTorch."""
    x = _typed(input, dtype)
    return _kept(x, mask, x.dtype.max).argmin(dim, keepdim).cast(x.dtype)


def _count(x: Tensor, mask: Any, dim: Any, keepdim: bool) -> Tensor:
    ones = x.detach().ones_like()
    return _kept(ones, mask, 0.0).sum(_axes(x, dim), keepdim)


def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The mean of what the mask keeps."""
    x = _typed(input, dtype)
    x = x if x.dtype.is_inexact else x.float()
    return sum(x, dim, keepdim=keepdim, mask=mask) / _count(x, mask, dim, keepdim)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The median of what the mask keeps; NaN of nothing."""
    x = _typed(input, dtype)
    x = x if x.dtype.is_inexact else x.float()
    found: Tensor = _kept(x, mask, math.nan).nanmedian(dim, keepdim).values
    return found


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The variance of what the mask keeps."""
    x = _typed(input, dtype)
    x = x if x.dtype.is_inexact else x.float()
    less = 1 if correction is None and unbiased is None else correction
    less = int(bool(unbiased)) if less is None else less
    away = x - mean(x, dim, keepdim=True, mask=mask)
    total = sum(away * away, dim, keepdim=keepdim, mask=mask)
    return total / (_count(x, mask, dim, keepdim) - less).clamp(min_=0)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The standard deviation of what the mask keeps."""
    found = var(
        input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask
    )
    is_zero = found == 0
    return is_zero.where(0.0, is_zero.where(1.0, found).sqrt())


def norm(
    input: Tensor,
    ord: Any = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The p-norm of what the mask keeps."""
    x = _typed(input, dtype)
    p = 2.0 if ord is None else float(ord)
    fill = math.inf if p < 0 else 0.0
    return _kept(x, mask, fill).norm(p, _axes(x, dim), keepdim)


def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """log Σ exp(x) of what the mask keeps."""
    x = _typed(input, dtype)
    return _kept(x, mask, -math.inf).logsumexp(_axes(x, dim), keepdim)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Any = None,
    other_mask: Any = None,
) -> Tensor:
    """log(exp(x) + exp(y)), where a mask for each says what counts."""
    left = _kept(_typed(input, dtype), input_mask, -math.inf)
    return left.logaddexp(_kept(_typed(other, dtype), other_mask, -math.inf))


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Running sums of what the mask keeps."""
    return _kept(_typed(input, dtype), mask, 0).cumsum(dim)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Running products of what the mask keeps."""
    return _kept(_typed(input, dtype), mask, 1).cumprod(dim)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The softmax of what the mask keeps."""
    return _kept(_typed(input, dtype), mask, -math.inf).softmax(dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The softmin of what the mask keeps."""
    return _kept(_typed(input, dtype), mask, math.inf).softmin(dim)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """The logarithm of the softmax of what the mask keeps."""
    return _kept(_typed(input, dtype), mask, -math.inf).log_softmax(dim)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """What the mask keeps, divided by its p-norm."""
    x = _kept(_typed(input, dtype), mask, 0.0)
    length = norm(x, ord, dim, keepdim=True, mask=mask)
    return x / length.clamp(min_=eps)


__getattr__ = missing_name(__name__)

"""Operators that reduce, scan and sort."""

from __future__ import annotations

import math
from typing import Any

from weft.interop.torch.table import Call, aten
from weft.ir.dtypes import dtypes
from weft.tensor.tensor import Tensor


def _axes(dim: Any) -> Any:
    """None and an empty list mean all axes."""
    if dim is None or isinstance(dim, int):
        return dim
    return tuple(dim) or None


@aten("sum", "sum.dim_IntList")
def _sum(call: Call, x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return x.sum(_axes(dim), keepdim, dtype=call.result)


@aten("mean", "mean.dim")
def _mean(
    call: Call, x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    return x.cast(call.result).mean(_axes(dim), keepdim)


@aten("prod", "prod.dim_int")
def _prod(
    call: Call, x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    return x.cast(call.result).prod(_axes(dim), keepdim)


@aten("amax")
def _amax(call: Call, x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    return x.max(axis=_axes(dim), keepdim=keepdim)


@aten("amin")
def _amin(call: Call, x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    return x.min(axis=_axes(dim), keepdim=keepdim)


@aten("max")
def _max(call: Call, x: Tensor) -> Tensor:
    return x.max(axis=None)


@aten("min")
def _min(call: Call, x: Tensor) -> Tensor:
    return x.min(axis=None)


@aten("max.dim")
def _max_dim(call: Call, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return x.max(axis=dim, keepdim=keepdim), x.argmax(dim, keepdim)


@aten("min.dim")
def _min_dim(call: Call, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return x.min(axis=dim, keepdim=keepdim), x.argmin(dim, keepdim)


@aten("any", "any.dim", "any.dims")
def _any(call: Call, x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    return x.cast(dtypes.bool).any(_axes(dim), keepdim)


@aten("all", "all.dim", "all.dims")
def _all(call: Call, x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    return x.cast(dtypes.bool).all(_axes(dim), keepdim)


@aten("argmax")
def _argmax(call: Call, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return x.argmax(dim, keepdim)


@aten("argmin")
def _argmin(call: Call, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return x.argmin(dim, keepdim)


def _variance(x: Tensor, axes: Any, keepdim: bool, correction: Any) -> Tensor:
    return x.var(axes, keepdim, 1 if correction is None else correction)


@aten("var.correction")
def _var(
    call: Call, x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Tensor:
    return _variance(x, _axes(dim), keepdim, correction)


@aten("var.dim")
def _var_dim(
    call: Call, x: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False
) -> Tensor:
    return _variance(x, _axes(dim), keepdim, int(unbiased))


@aten("var_mean.correction")
def _var_mean(
    call: Call, x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    axes = _axes(dim)
    return _variance(x, axes, keepdim, correction), x.mean(axes, keepdim)


@aten("logsumexp")
def _logsumexp(call: Call, x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    return x.cast(call.result).logsumexp(_axes(dim), keepdim)


@aten("linalg_vector_norm")
def _vector_norm(
    call: Call, x: Tensor, p: float = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    x, axes = x.cast(call.result).abs(), _axes(dim)
    if p in (math.inf, -math.inf):
        return x.max(axis=axes, keepdim=keepdim) if p > 0 else x.min(axis=axes, keepdim=keepdim)
    if p == 0:
        return (x != 0).cast(x.dtype).sum(axes, keepdim)
    if p == 1:
        return x.sum(axes, keepdim)
    if p == 2:
        return (x * x).sum(axes, keepdim).sqrt()
    return (x**p).sum(axes, keepdim) ** (1 / p)


@aten("cumsum")
def _cumsum(call: Call, x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return x.cast(call.result).cumsum(dim) if x.ndim else x


@aten("cumprod")
def _cumprod(call: Call, x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return x.cast(call.result).cumprod(dim) if x.ndim else x


@aten("cummax")
def _cummax(call: Call, x: Tensor, dim: int) -> tuple[Any, ...]:
    return tuple(x.cummax(dim))


@aten("cummin")
def _cummin(call: Call, x: Tensor, dim: int) -> tuple[Any, ...]:
    return tuple(x.cummin(dim))


@aten("logcumsumexp")
def _logcumsumexp(call: Call, x: Tensor, dim: int) -> Tensor:
    return x.logcumsumexp(dim)


@aten("sort")
def _sort(call: Call, x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Any, ...]:
    return tuple(x.sort(dim, descending))


@aten("sort.stable")
def _sort_stable(
    call: Call, x: Tensor, *, stable: Any = None, dim: int = -1, descending: bool = False
) -> tuple[Any, ...]:
    return tuple(x.sort(dim, descending))


@aten("topk")
def _topk(
    call: Call, x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Any, ...]:
    return tuple(x.topk(k, dim, largest))


@aten("_softmax")
def _softmax(call: Call, x: Tensor, dim: int, to_float: bool = False) -> Tensor:
    return x.cast(call.result).softmax(dim) if x.ndim else x * 0 + 1


@aten("_log_softmax")
def _log_softmax(call: Call, x: Tensor, dim: int, to_float: bool = False) -> Tensor:
    return x.cast(call.result).log_softmax(dim) if x.ndim else x * 0


@aten("_softmax_backward_data")
def _softmax_slope(call: Call, slope: Tensor, y: Tensor, dim: int, dtype: Any) -> Tensor:
    product = slope * y
    return product - y * product.sum(dim, keepdim=True)


@aten("_log_softmax_backward_data")
def _log_softmax_slope(call: Call, slope: Tensor, y: Tensor, dim: int, dtype: Any) -> Tensor:
    return slope - y.exp() * slope.sum(dim, keepdim=True)

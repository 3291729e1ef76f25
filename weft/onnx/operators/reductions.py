"""Reductions over axes, and prefixes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.ir.dtypes import dtypes
from weft.onnx.operators.movement import sizes_of
from weft.onnx.table import op
from weft.tensor.tensor import Tensor

Axes = tuple[int, ...]


def _extreme(x: Tensor, axes: Axes, keeps: bool, is_max: bool) -> Tensor:
    """The greatest or least; of no elements the least or greatest that the dtype has."""
    if x.dtype is dtypes.bool:
        return x.any(axes, keeps) if is_max else x.all(axes, keeps)
    if any(x.shape[axis] == 0 for axis in axes):
        sizes = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
        limit = x.dtype.min if is_max else x.dtype.max
        empty = Tensor.full(sizes, limit, dtype=x.dtype, device=x.device)
        return empty if keeps else empty.reshape(_without(x.shape, axes))
    return x.max(axes, keeps) if is_max else x.min(axes, keeps)


def _without(shape: Any, axes: Axes) -> list[Any]:
    return [size for axis, size in enumerate(shape) if axis not in axes]


def _sum(x: Tensor, axes: Axes, keeps: bool) -> Tensor:
    return x.sum(axes, keeps).cast(x.dtype)


def _mean(x: Tensor, axes: Axes, keeps: bool) -> Tensor:
    if x.dtype.is_float:
        return x.mean(axes, keeps)
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return x.sum(axes, keeps).div(count, rounding_mode="trunc").cast(x.dtype)


def _rooted(x: Tensor, axes: Axes, keeps: bool) -> Tensor:
    squares = x * x
    if x.dtype.is_float:
        return squares.sum(axes, keeps).sqrt()
    return squares.cast(dtypes.float64).sum(axes, keeps).sqrt().cast(x.dtype)


def _log_sum(x: Tensor, axes: Axes, keeps: bool) -> Tensor:
    wide = x if x.dtype.is_float else x.cast(dtypes.float64)
    return wide.sum(axes, keeps).log().cast(x.dtype)


def _log_sum_exp(x: Tensor, axes: Axes, keeps: bool) -> Tensor:
    wide = x if x.dtype.is_float else x.cast(dtypes.float64)
    if any(x.shape[axis] == 0 for axis in axes):
        return wide.exp().sum(axes, keeps).log().cast(x.dtype)
    return wide.logsumexp(axes, keeps).cast(x.dtype)


_FUNCTIONS: Final[dict[str, Callable[[Tensor, Axes, bool], Tensor]]] = {
    "ReduceSum": _sum,
    "ReduceMean": _mean,
    "ReduceMax": lambda x, axes, keeps: _extreme(x, axes, keeps, True),
    "ReduceMin": lambda x, axes, keeps: _extreme(x, axes, keeps, False),
    "ReduceProd": lambda x, axes, keeps: x.prod(axes, keeps).cast(x.dtype),
    "ReduceL1": lambda x, axes, keeps: x.abs().sum(axes, keeps).cast(x.dtype),
    "ReduceL2": _rooted,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceSumSquare": lambda x, axes, keeps: (x * x).sum(axes, keeps).cast(x.dtype),
}

_ALONE: Final = {  # what an element becomes where no axis is reduced
    "ReduceL1": lambda x: x.abs(),
    "ReduceL2": lambda x: x.abs(),
    "ReduceLogSum": lambda x: x.log(),
    "ReduceSumSquare": lambda x: x * x,
}


@op(*_FUNCTIONS, host=(1,))
def reduce(call: Any, x: Tensor, axes: Any = None) -> Tensor:
    listed = call.get("axes") if axes is None else sizes_of(axes)
    if not listed:
        if call.get("noop_with_empty_axes", 0):
            return _ALONE.get(call.node.op, lambda y: y)(x)
        listed = range(x.ndim)
    chosen = tuple(sorted({axis % max(x.ndim, 1) for axis in listed}))
    if not x.ndim:
        return _FUNCTIONS[call.node.op](x.reshape(1), (0,), False)
    return _FUNCTIONS[call.node.op](x, chosen, bool(call.get("keepdims", 1)))


@op("CumSum", "CumProd", host=(1,))
def prefixes(call: Any, x: Tensor, axis: Any) -> Tensor:
    along = int(axis.reshape(-1)[0]) % x.ndim
    is_sum = call.node.op == "CumSum"
    rows = x.flip(along) if call.get("reverse", 0) else x
    if call.get("exclusive", 0):
        pairs = [(1, 0) if number == along else (0, 0) for number in range(x.ndim)]
        box = [(0, size) for size in x.shape]
        rows = rows.pad(pairs, value=0 if is_sum else 1).shrink(box)
    total = rows.cumsum(along) if is_sum else rows.cumprod(along)
    total = total.cast(x.dtype)
    return total.flip(along) if call.get("reverse", 0) else total

"""Softmaxes and normalizations."""

from __future__ import annotations

import math
from typing import Any

from weft.ir.dtypes import dtypes
from weft.onnx.elements import dtype_of
from weft.onnx.table import op
from weft.tensor.tensor import Tensor


@op("Softmax", "LogSoftmax", "Hardmax", since=1)
def softmax_of_rows(call: Any, x: Tensor) -> Tensor:
    """Before opset 13 the axes from one on are one axis."""
    axis = call.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    rows = x.reshape(math.prod(x.shape[:axis]), -1)
    return _soft(call.node.op, rows, 1).reshape(x.shape)


@op("Softmax", "LogSoftmax", "Hardmax", since=13)
def softmax(call: Any, x: Tensor) -> Tensor:
    return _soft(call.node.op, x, call.get("axis", -1))


def _soft(name: str, x: Tensor, axis: int) -> Tensor:
    if name == "Softmax":
        return x.softmax(axis)
    if name == "LogSoftmax":
        return x.log_softmax(axis)
    axis %= x.ndim
    first = x.argmax(axis, True)
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    numbers = Tensor.arange(x.shape[axis], dtype=first.dtype, device=x.device)
    return (numbers.reshape(shape) == first).cast(x.dtype)


@op("BatchNormalization")
def batch_normalization(
    call: Any, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor
) -> Any:
    shape = [1, -1, *[1] * (x.ndim - 2)]
    eps, momentum = call.get("epsilon", 1e-5), call.get("momentum", 0.9)
    if call.get("training_mode", 0):
        axes = (0, *range(2, x.ndim))
        wide = x.cast(mean.dtype)
        now, spread = wide.mean(axes), wide.var(axes, correction=0)
        running = [
            (old * momentum + new * (1 - momentum)).cast(old.dtype)
            for old, new in ((mean, now), (var, spread))
        ]
        y = _normalized(x, now, spread, scale, bias, eps, shape)
        return y, *running
    return _normalized(x, mean, var, scale, bias, eps, shape)


def _normalized(
    x: Tensor, mean: Tensor, var: Tensor, scale: Tensor, bias: Tensor, eps: float, shape: Any
) -> Tensor:
    """One product and one sum for each element: the rest is of channels."""
    factor = scale.cast(var.dtype) * (var + eps).rsqrt()
    shift = bias.cast(var.dtype) - mean * factor
    return (x * factor.reshape(shape) + shift.reshape(shape)).cast(x.dtype)


@op("InstanceNormalization")
def instance_normalization(call: Any, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    axes = tuple(range(2, x.ndim))
    shape = [1, -1, *[1] * (x.ndim - 2)]
    y = x.layernorm(axes, call.get("epsilon", 1e-5))
    return (y * scale.reshape(shape) + bias.reshape(shape)).cast(x.dtype)


@op("GroupNormalization")
def group_normalization(call: Any, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    groups = call.get("num_groups")
    wide = x.cast(dtype_of(call.get("stash_type", 1))) if x.dtype.itemsize < 4 else x
    rows = wide.reshape(x.shape[0], groups, -1)
    y = rows.layernorm((2,), call.get("epsilon", 1e-5)).reshape(x.shape).cast(x.dtype)
    if call.version < 21:  # a number for each group
        scale, bias = (
            each.reshape(groups, 1).expand(groups, x.shape[1] // groups) for each in (scale, bias)
        )
    shape = [1, -1, *[1] * (x.ndim - 2)]
    return y * scale.reshape(shape) + bias.reshape(shape)


@op("LayerNormalization")
def layer_normalization(call: Any, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Any:
    axis = call.axis(-1, x.ndim)
    axes = tuple(range(axis, x.ndim))
    wide = x.cast(dtype_of(call.get("stash_type", 1))) if x.dtype.itemsize < 4 else x
    mean = wide.mean(axes, True)
    spread = ((wide - mean) ** 2).mean(axes, True)
    inverse = (spread + call.get("epsilon", 1e-5)).rsqrt()
    y = ((wide - mean) * inverse).cast(x.dtype) * scale
    return (y if bias is None else y + bias), mean, inverse


@op("RMSNormalization")
def rms_normalization(call: Any, x: Tensor, scale: Tensor) -> Tensor:
    axes = tuple(range(call.axis(-1, x.ndim), x.ndim))
    wide = x.cast(dtype_of(call.get("stash_type", 1))) if x.dtype.itemsize < 4 else x
    inverse = ((wide * wide).mean(axes, True) + call.get("epsilon", 1e-5)).rsqrt()
    return ((wide * inverse).cast(x.dtype) * scale).cast(scale.dtype)


@op("MeanVarianceNormalization")
def mean_variance_normalization(call: Any, x: Tensor) -> Tensor:
    axes = tuple(call.get("axes", [0, 2, 3]))
    mean = x.mean(axes, True)
    spread = ((x - mean) ** 2).mean(axes, True)
    return (x - mean) / (spread.sqrt() + 1e-9)


@op("LpNormalization")
def lp_normalization(call: Any, x: Tensor) -> Tensor:
    axis, p = call.get("axis", -1), call.get("p", 2)
    size = x.abs().sum(axis, True) if p == 1 else (x * x).sum(axis, True).sqrt()
    return (size == 0).where(0, x / size).cast(x.dtype)


@op("LRN")
def local_response(call: Any, x: Tensor) -> Tensor:
    size = call.get("size")
    low = (size - 1) // 2
    squares = (x * x).pad([(0, 0), (low, size - 1 - low), *[(0, 0)] * (x.ndim - 2)])
    total: Any = 0
    for number in range(size):
        box = [(0, extent) for extent in x.shape]
        box[1] = (number, number + x.shape[1])
        total = total + squares.shrink(box)
    base = call.get("bias", 1.0) + total * (call.get("alpha", 1e-4) / size)
    return x / base.pow(call.get("beta", 0.75))


@op("Dropout", since=1)
def dropout_by_attribute(call: Any, x: Tensor) -> Any:
    return x, Tensor.ones(*x.shape, dtype=dtypes.bool, device=x.device)


@op("Dropout", since=12, host=(1, 2))
def dropout(call: Any, x: Tensor, ratio: Any = None, training: Any = None) -> Any:
    share = 0.5 if ratio is None else float(ratio.reshape(-1)[0])
    if training is None or not bool(training.reshape(-1)[0]) or share == 0.0:
        return x, Tensor.ones(*x.shape, dtype=dtypes.bool, device=x.device)
    stays = Tensor.rand(*x.shape, device=x.device) >= share
    return stays.where(x / (1 - share), 0).cast(x.dtype), stays

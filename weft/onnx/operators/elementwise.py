"""Two or more operands: arithmetic, comparisons, logic, bits, extremes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.ir.dtypes import dtypes
from weft.onnx.dequantized import Scaled, are_bytes
from weft.onnx.elements import Small
from weft.onnx.table import op
from weft.onnx.values import plain
from weft.tensor.tensor import Tensor


@op("Add")
def add(call: Any, x: Tensor, y: Tensor) -> Tensor:
    return x + y


@op("Sub")
def sub(call: Any, x: Tensor, y: Tensor) -> Tensor:
    return x - y


@op("Mul", raw=True)
def mul(call: Any, x: Any, y: Any) -> Any:
    """Of two dequantized values the integers are multiplied."""
    if are_bytes(x, y) and x.scale.numel() == y.scale.numel() == 1:
        total = x.integers.whole() * y.integers.whole()
        return Scaled(total, (x.scale * y.scale).reshape([1] * total.ndim), None, x.dtype)
    return plain(call.run.tensor(x)) * plain(call.run.tensor(y))


@op("Div")
def div(call: Any, x: Tensor, y: Tensor) -> Tensor:
    if x.dtype.is_float:
        return x / y
    return x.div(y, rounding_mode="trunc")


@op("Mod")
def mod(call: Any, x: Tensor, y: Tensor) -> Tensor:
    if call.get("fmod", 0):
        return x.fmod(y)
    if not x.dtype.is_float:
        return x.remainder(y)
    rest = x.fmod(y)  # and then the sign of the divisor
    rest = (rest == 0).where(rest.copysign(y), rest)
    return ((rest != 0) & ((rest < 0) != (y < 0))).where(rest + y, rest)


@op("Pow")
def pow_(call: Any, x: Tensor, y: Tensor) -> Tensor:
    """The result has the dtype of the base."""
    if x.dtype.is_float:
        return x.pow(y.cast(x.dtype))
    if y.dtype.is_float:
        return x.cast(dtypes.float64).pow(y.cast(dtypes.float64)).cast(x.dtype)
    return x.pow(y.cast(x.dtype))


@op("Equal", raw=True)
def equal(call: Any, x: Any, y: Any) -> Any:
    tensors = [call.run.tensor(value) for value in (x, y)]
    left, right = (each.tensor if isinstance(each, Small) else each for each in tensors)
    return left == right


@op("Less")
def less(call: Any, x: Tensor, y: Tensor) -> Tensor:
    return x < y


@op("LessOrEqual")
def less_or_equal(call: Any, x: Tensor, y: Tensor) -> Tensor:
    return x <= y


@op("Greater")
def greater(call: Any, x: Tensor, y: Tensor) -> Tensor:
    return x > y


@op("GreaterOrEqual")
def greater_or_equal(call: Any, x: Tensor, y: Tensor) -> Tensor:
    return x >= y


@op("And")
def and_(call: Any, x: Tensor, y: Tensor) -> Tensor:
    return x.logical_and(y)


@op("Or")
def or_(call: Any, x: Tensor, y: Tensor) -> Tensor:
    return x.logical_or(y)


@op("Xor")
def xor(call: Any, x: Tensor, y: Tensor) -> Tensor:
    return x.logical_xor(y)


@op("BitwiseAnd")
def bitwise_and(call: Any, x: Tensor, y: Tensor) -> Tensor:
    return x & y


@op("BitwiseOr")
def bitwise_or(call: Any, x: Tensor, y: Tensor) -> Tensor:
    return x | y


@op("BitwiseXor")
def bitwise_xor(call: Any, x: Tensor, y: Tensor) -> Tensor:
    return x ^ y


@op("BitShift")
def bit_shift(call: Any, x: Tensor, y: Tensor) -> Tensor:
    """Shifts by the width and more leave no bit, or copies of the sign."""
    direction = call.get("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise call.error(f"direction {direction!r}", 'the direction is "LEFT" or "RIGHT"')
    width = x.dtype.itemsize * 8
    is_whole = (y >= width) if y.dtype.is_unsigned else (y >= width) | (y < 0)
    amount = is_whole.where(y.zeros_like(), y)
    if direction == "LEFT":
        return is_whole.where(x.zeros_like(), x << amount)
    rest = x.zeros_like() if x.dtype.is_unsigned else (x < 0).where(-x.ones_like(), 0)
    return is_whole.where(rest.cast(x.dtype), x >> amount)


def _reduced(values: tuple[Tensor, ...], function: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


@op("Max")
def max_(call: Any, *values: Tensor) -> Tensor:
    return _reduced(values, lambda x, y: x.maximum(y))


@op("Min")
def min_(call: Any, *values: Tensor) -> Tensor:
    return _reduced(values, lambda x, y: x.minimum(y))


@op("Sum")
def sum_(call: Any, *values: Tensor) -> Tensor:
    return _reduced(values, lambda x, y: x + y)


@op("Mean")
def mean(call: Any, *values: Tensor) -> Tensor:
    return _reduced(values, lambda x, y: x + y) / len(values)


@op("Where", raw=True)
def where(call: Any, condition: Any, x: Any, y: Any) -> Any:
    if isinstance(x, np.ndarray) and x.dtype == object and isinstance(x.flat[0], str):
        return np.where(call.run.host(condition), x, call.run.host(y))
    chosen, left, right = (call.run.tensor(value) for value in (condition, x, y))
    if isinstance(left, Small):
        return Small(chosen.where(left.tensor, right.tensor), left.element)
    return chosen.where(left, right)


@op("Clip", since=1)
def clip_by_attributes(call: Any, x: Tensor) -> Tensor:
    return x.clamp(call.get("min", x.dtype.min), call.get("max", x.dtype.max))


@op("Clip", since=11)
def clip(call: Any, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """The least of the high limit and the greatest of the low one."""
    if low is not None:
        x = x.maximum(low)
    return x if high is None else x.minimum(high)


@op("PRelu")
def prelu(call: Any, x: Tensor, slope: Tensor) -> Tensor:
    if call.version < 9 and slope.ndim == 1 and slope.shape[0] > 1:  # a slope for each channel
        slope = slope.reshape(-1, *[1] * (x.ndim - 2))
    return (x < 0).where(x * slope, x)

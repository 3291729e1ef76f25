"""Operators on each element: arithmetic, comparisons, logic, activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from weft.interop.torch.table import Call, aten
from weft.ir.dtypes import dtypes
from weft.tensor.tensor import Tensor

# Operators that PyTorch computes in floats, whatever they are given.
_FLOAT_UNARY: Final = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "digamma", "erf", "erfc",
    "erfinv", "exp", "exp2", "expm1", "lgamma", "log", "log10", "log1p", "log2", "logit",
    "reciprocal", "rsqrt", "sigmoid", "sin", "sinc", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
# Operators that keep the dtype, or say yes and no.
_UNARY: Final = (
    "abs", "bitwise_not", "ceil", "floor", "frac", "isfinite", "isinf", "isnan", "logical_not",
    "neg", "relu", "round", "sgn", "sign", "signbit", "square", "trunc",
    "hardsigmoid", "hardswish", "mish", "silu",
)  # fmt: skip
# Operators on two operands that are promoted to one dtype.
_BINARY: Final = (
    "atan2", "fmax", "fmin", "hypot", "logaddexp", "maximum", "minimum", "nextafter",
)  # fmt: skip
# The same, with overloads for numbers.
_WITH_SCALARS: Final = (
    "bitwise_and", "bitwise_or", "bitwise_xor", "copysign", "eq", "fmod", "ge", "gt", "le", "lt",
    "mul", "ne", "remainder", "xlogy",
)  # fmt: skip
_OVERLOADS: Final = ("Tensor", "Scalar", "Scalar_Tensor", "Scalar_Self", "Scalar_Other")


def _in_floats(name: str) -> Callable[..., Any]:
    method = getattr(Tensor, name)

    def computed(call: Call, x: Tensor, *rest: Any) -> Any:
        return method(x if x.dtype.is_float else x.cast(call.result), *rest)

    return computed


def _as_it_is(name: str) -> Callable[..., Any]:
    method = getattr(Tensor, name)
    return lambda call, x: method(x)


def _of_two(name: str) -> Callable[..., Any]:
    method = getattr(Tensor, name)

    def computed(call: Call, x: Any, y: Any) -> Any:
        x, y = call.promoted(x, y)
        if not isinstance(x, Tensor):
            x = Tensor.full((), x, dtype=call.common)
        return method(x, y)

    return computed


for _name in _FLOAT_UNARY:
    aten(_name)(_in_floats(_name))
for _name in _UNARY:
    aten(_name)(_as_it_is(_name))
for _name in _BINARY:
    aten(_name)(_of_two(_name))
for _name in _WITH_SCALARS:
    aten(*(f"{_name}.{overload}" for overload in _OVERLOADS))(_of_two(_name))


@aten("add.Tensor", "add.Scalar")
def _add(call: Call, x: Any, y: Any, alpha: Any = 1) -> Any:
    x, y = call.promoted(x, y)
    return x + (y if alpha == 1 else y * alpha)


@aten("sub.Tensor", "sub.Scalar")
def _sub(call: Call, x: Any, y: Any, alpha: Any = 1) -> Any:
    x, y = call.promoted(x, y)
    return x - (y if alpha == 1 else y * alpha)


@aten("rsub.Tensor", "rsub.Scalar")
def _rsub(call: Call, x: Any, y: Any, alpha: Any = 1) -> Any:
    return _sub(call, y, x, alpha)


@aten("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode")
def _div(call: Call, x: Tensor, y: Any, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        x = x.cast(call.result)
        return x / (y.cast(call.result) if isinstance(y, Tensor) else y)
    x, y = call.promoted(x, y)
    return x.div(y, rounding_mode=rounding_mode)


@aten("floor_divide")
def _floor_divide(call: Call, x: Tensor, y: Any) -> Any:
    return _div(call, x, y, "floor")


@aten("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def _pow(call: Call, x: Any, y: Any) -> Any:
    x, y = call.promoted(x, y)
    return x**y


@aten("bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar")
def _left_shift(call: Call, x: Any, y: Any) -> Any:
    x, y = call.promoted(x, y)
    return x << y


@aten("bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar")
def _right_shift(call: Call, x: Any, y: Any) -> Any:
    x, y = call.promoted(x, y)
    return x >> y


@aten("logical_and")
def _logical_and(call: Call, x: Tensor, y: Tensor) -> Tensor:
    return x.cast(dtypes.bool) & y.cast(dtypes.bool)


@aten("logical_or")
def _logical_or(call: Call, x: Tensor, y: Tensor) -> Tensor:
    return x.cast(dtypes.bool) | y.cast(dtypes.bool)


@aten("logical_xor")
def _logical_xor(call: Call, x: Tensor, y: Tensor) -> Tensor:
    return x.cast(dtypes.bool) ^ y.cast(dtypes.bool)


@aten("where.self", "where.ScalarOther", "where.ScalarSelf")
def _where(call: Call, condition: Tensor, x: Any, y: Any) -> Tensor:
    x, y = [each.cast(call.result) if isinstance(each, Tensor) else each for each in (x, y)]
    return condition.where(x, y)


@aten("clamp", "clamp.Tensor", "clamp_min", "clamp_min.Tensor")
def _clamp(call: Call, x: Tensor, least: Any = None, most: Any = None) -> Tensor:
    x, least, most = call.promoted(x.cast(call.result), least, most)
    return x.clamp(least, most)


@aten("clamp_max", "clamp_max.Tensor")
def _clamp_max(call: Call, x: Tensor, most: Any) -> Any:
    return _clamp(call, x, None, most)


@aten("hardtanh")
def _hardtanh(call: Call, x: Tensor, least: float = -1, most: float = 1) -> Tensor:
    return x.clamp(least, most)


@aten("gelu")
def _gelu(call: Call, x: Tensor, approximate: str = "none") -> Tensor:
    return x.gelu(approximate=approximate)


@aten("elu")
def _elu(
    call: Call, x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1
) -> Tensor:
    return (x > 0).where(x * scale, (x * input_scale).expm1() * (alpha * scale))


@aten("leaky_relu")
def _leaky_relu(call: Call, x: Tensor, slope: float = 0.01) -> Tensor:
    return (x > 0).where(x, x * slope)


@aten("softplus")
def _softplus(call: Call, x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    return (x * beta > threshold).where(x, (x * beta).exp().log1p() / beta)


@aten("round.decimals")
def _round(call: Call, x: Tensor, decimals: int = 0) -> Tensor:
    return x.round(decimals)


@aten("nan_to_num")
def _nan_to_num(
    call: Call, x: Tensor, nan: float | None = None, high: Any = None, low: Any = None
) -> Tensor:
    return x.nan_to_num(nan if nan is not None else 0.0, high, low)


@aten("lerp.Scalar", "lerp.Tensor")
def _lerp(call: Call, x: Tensor, end: Tensor, weight: Any) -> Any:
    return x + (end - x) * weight


@aten("addcmul")
def _addcmul(call: Call, x: Tensor, a: Tensor, b: Tensor, value: Any = 1) -> Any:
    return x + a * b * value


@aten("addcdiv")
def _addcdiv(call: Call, x: Tensor, a: Tensor, b: Tensor, value: Any = 1) -> Any:
    return x + a / b * value


@aten("deg2rad")
def _deg2rad(call: Call, x: Tensor) -> Tensor:
    return x.cast(call.result) * (math.pi / 180)

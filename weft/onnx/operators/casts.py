"""Casts between element types, small floats and integers included, and constants."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from weft.ir.dtypes import DType, dtypes
from weft.onnx.elements import DTYPES, SMALL, Small, dtype_of, element_of
from weft.onnx.table import op
from weft.onnx.values import element_of_value, host_array, plain
from weft.tensor.tensor import Tensor

_SMALL_FLOATS = {
    dtypes.fp8e4m3: 448.0,
    dtypes.fp8e5m2: 57344.0,
    dtypes.fp8e4m3fnuz: 240.0,
    dtypes.fp8e5m2fnuz: 57344.0,
}


@op("Cast", raw=True)
def cast(call: Any, x: Any) -> Any:
    return cast_to(call, x, call.get("to"))


@op("CastLike", raw=True)
def cast_like(call: Any, x: Any, like: Any) -> Any:
    return cast_to(call, x, element_of_value(like))


def cast_to(call: Any, x: Any, element: int) -> Any:
    """A value in another element type."""
    source = element_of_value(x)
    if source == element:
        return x
    if source == TensorProto.STRING:
        return _from_text(call, host_array(x), element)
    value = call.run.tensor(x)
    if element == TensorProto.STRING:
        return _to_text(call.run.host(value), source)
    return cast_tensor(
        plain(value), element, bool(call.get("saturate", 1)), call.get("round_mode", "up")
    )


def cast_tensor(x: Tensor, element: int, saturates: bool = True, rounding: str = "up") -> Any:
    """A tensor in another element type, a Small where no dtype has it."""
    if element in SMALL:
        return Small(_to_small(x, element, saturates, rounding), element)
    dtype = dtype_of(element)
    if dtype in _SMALL_FLOATS:
        return _to_small_float(x, dtype, saturates)
    if dtype is dtypes.bool:
        return x != 0
    return x.cast(dtype)


def _to_small_float(x: Tensor, dtype: DType, saturates: bool) -> Tensor:
    """Eight bits: what is too large becomes the greatest number, or else infinite or NaN."""
    wide = x.cast(dtypes.float32) if x.dtype is not dtypes.float64 else x
    most = _SMALL_FLOATS[dtype]
    if saturates:
        return wide.isnan().where(float("nan"), wide.clamp(-most, most)).cast(dtype)
    # Half a unit in the last place above the greatest number still rounds to it.
    bits = 3 if dtype in (dtypes.fp8e4m3, dtypes.fp8e4m3fnuz) else 2
    unit = 2.0 ** (np.floor(np.log2(most)) - bits)
    beyond = wide.abs() >= most + unit / 2
    is_even = dtype in (dtypes.fp8e4m3,)
    if is_even:  # 448 ends in an even digit, so that a tie goes to it
        beyond = wide.abs() > most + unit / 2
    nan = float("nan")
    is_endless = dtype is dtypes.fp8e5m2
    lost: Any = (wide < 0).where(-float("inf"), float("inf")) if is_endless else nan
    kept = (beyond | wide.isinf()).where(lost, wide.clamp(-most, most))
    return wide.isnan().where(nan, kept).cast(dtype)


def _to_small(x: Tensor, element: int, saturates: bool, rounding: str) -> Tensor:
    small = SMALL[element]
    if element == TensorProto.FLOAT4E2M1:
        return _to_e2m1(x.cast(dtypes.float32))
    if element == TensorProto.FLOAT8E8M0:
        return _to_e8m0(x.cast(dtypes.float32), saturates, rounding)
    whole = x.trunc() if x.dtype.is_float else x
    whole = whole.cast(dtypes.int32)
    bits = 2 if "2" in small.name else 4
    kept = whole & ((1 << bits) - 1)
    if small.least < 0:
        kept = (kept >= 1 << (bits - 1)).where(kept - (1 << bits), kept)
    return kept.cast(small.held_as)


def _to_e2m1(x: Tensor) -> Tensor:
    """The nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; ties to the even one."""
    size = x.abs().minimum(6.0)
    step = (size < 2).where(0.5, (size < 4).where(1.0, 2.0))
    rounded = (size / step).round() * step
    return x.isnan().where(-0.0, rounded.copysign(x))


def _to_e8m0(x: Tensor, saturates: bool, rounding: str) -> Tensor:
    """A power of two: the exponent of a number, rounded as asked for."""
    bits = x.abs().bitcast(dtypes.int32)
    exponent, fraction = bits >> 23, bits & 0x7FFFFF
    if rounding == "up":
        exponent = exponent + (fraction > 0).cast(dtypes.int32)
    elif rounding == "nearest":
        exponent = exponent + (fraction >= 0x400000).cast(dtypes.int32)
    if saturates:
        exponent = exponent.clamp(0, 254)
    power = (exponent << 23).bitcast(dtypes.float32)
    power = (exponent == 0).where(2.0**-127, power)
    return ((exponent > 254) | x.isnan()).where(float("nan"), power)


def _from_text(call: Any, array: Any, element: int) -> Any:
    cells = [str(cell) for cell in array.reshape(-1)]
    numbers = np.array([float(cell) for cell in cells], dtype=np.float64)
    if element in DTYPES and DTYPES[element].is_int:
        numbers = np.array([int(float(cell)) for cell in cells], dtype=np.int64)
    made = call.run.tensor(numbers.reshape(array.shape))
    return cast_tensor(made, element)


def _to_text(array: Any, source: int) -> Any:
    cells = np.empty(array.size, dtype=object)
    cells[:] = [_shown(cell) for cell in array.reshape(-1)]
    return cells.reshape(array.shape)


def _shown(number: Any) -> str:
    if isinstance(number, (float, np.floating)):
        return "NaN" if np.isnan(number) else str(number).replace("inf", "INF")
    return str(int(number))


@op("BitCast", raw=True)
def bit_cast(call: Any, x: Any) -> Any:
    element = call.get("to")
    value = call.run.tensor(x)
    if isinstance(value, Small) or element in SMALL:
        return _small_bits(call, value, element)
    if value.dtype is dtypes.bool:
        value = value.cast(dtypes.uint8)
    if element == TensorProto.BOOL:
        return value.bitcast(dtypes.uint8) != 0
    return value.bitcast(dtype_of(element))


def _small_bits(call: Any, value: Any, element: int) -> Any:
    source = element_of(value)
    pairs: dict[int, int] = {
        TensorProto.INT4: 4,
        TensorProto.UINT4: 4,
        TensorProto.INT2: 2,
        TensorProto.UINT2: 2,
    }
    if source not in pairs or pairs.get(element) != pairs[source]:
        raise call.error("elements of different widths")
    return cast_tensor(plain(value).cast(dtypes.int32), element)


@op("Constant", raw=True)
def constant(call: Any) -> Any:
    for name, kind in (("value_float", np.float32), ("value_int", np.int64)):
        if name in call.attributes:
            return np.array(call.attributes[name], dtype=kind)
    for name, kind in (("value_floats", np.float32), ("value_ints", np.int64)):
        if name in call.attributes:
            return np.array(call.attributes[name], dtype=kind)
    for name in ("value_string", "value_strings"):
        if name in call.attributes:
            return np.array(call.attributes[name], dtype=object)
    for name in ("value", "sparse_value"):
        if name in call.attributes:
            return call.attributes[name]
    raise call.error("a constant without a value")


@op("ConstantOfShape", raw=True)
def constant_of_shape(call: Any, shape: Any) -> Any:
    sizes = list(call.run.host(shape).reshape(-1))
    value = call.get("value")
    value = np.zeros(1, np.float32) if value is None else value
    filled = call.run.tensor(np.asarray(value).reshape(()))
    if isinstance(filled, Small):
        return Small(filled.tensor.reshape([1] * len(sizes)).expand(sizes), filled.element)
    return filled.reshape([1] * len(sizes)).expand(sizes)

"""Quantized values: to integers and back, and products and convolutions of integers."""

from __future__ import annotations

from typing import Any

from onnx import TensorProto

from weft.ir.dtypes import DType, dtypes
from weft.onnx.dequantized import Dequantized, Scaled
from weft.onnx.elements import DTYPES, SMALL, Small, element_of
from weft.onnx.integers import Integers, along, product_sums
from weft.onnx.operators.casts import cast_tensor
from weft.onnx.operators.convolution import convolve_integers
from weft.onnx.table import op
from weft.onnx.values import element_of_value, plain
from weft.tensor.tensor import Tensor


def _target(call: Any, zero: Any) -> int:
    if zero is not None:
        return element_of(zero)
    return call.get("output_dtype", 0) or int(TensorProto.UINT8)


@op("QuantizeLinear", raw=True)
def quantize_linear(call: Any, x: Any, scale: Any, zero: Any = None) -> Any:
    if isinstance(x, Scaled) and not call.get("precision", 0):
        step, point = plain(call.run.tensor(scale)), call.run.tensor(zero)
        element = _target(call, point)
        if step.numel() == 1 and element in DTYPES and DTYPES[element].is_int:
            whole = x.over(step).round()
            return rounded_to(
                whole if point is None else whole + point.cast(dtypes.float32), element
            )
    value, step, zero = (call.run.tensor(each) for each in (x, scale, zero))
    return quantized(call, plain(value), plain(step), zero, _target(call, zero))


def quantized(call: Any, x: Tensor, scale: Tensor, zero: Any, element: int) -> Any:
    axis = call.get("axis", 1)
    axis = axis % x.ndim if x.ndim else 0
    precision = call.get("precision", 0)
    wide = DTYPES[precision] if precision else dtypes.float32
    wide = dtypes.float32 if wide.itemsize < 4 else wide
    block = call.get("block_size", 0)
    step = along(x, scale.cast(wide), axis, block)
    y = x.cast(wide) / step
    point = None if zero is None else along(x, plain(zero), axis, block)
    is_float = element in DTYPES and DTYPES[element].is_float
    if is_float or element == TensorProto.FLOAT4E2M1:
        y = y if point is None else y + point.cast(wide)
        return cast_tensor(y, element, bool(call.get("saturate", 1)))
    whole = y.round()
    whole = whole if point is None else whole + point.cast(wide)
    return rounded_to(whole, element)


def rounded_to(whole: Tensor, element: int) -> Any:
    """Whole numbers cut to the range of an integer type."""
    if element in SMALL:
        small = SMALL[element]
        return Small(whole.clamp(small.least, small.most).cast(small.held_as), element)
    dtype = DTYPES[element]
    return whole.clamp(float(dtype.min), float(dtype.max)).cast(dtype)


@op("DequantizeLinear", raw=True)
def dequantize_linear(call: Any, x: Any, scale: Any, zero: Any = None) -> Any:
    value, step, point = (plain(call.run.tensor(each)) for each in (x, scale, zero))
    axis = call.get("axis", 1)
    axis = axis % value.ndim if value.ndim else 0
    target = DTYPES[call.get("output_dtype", 0)] if call.get("output_dtype", 0) else step.dtype
    stays = value.dtype in (dtypes.int8, dtypes.uint8, dtypes.int32) and step.ndim <= 1
    if stays and element_of_value(x) not in SMALL:
        return Dequantized(Integers.of(call.run, value, point, axis), step, target)
    block = call.get("block_size", 0)
    wide = dtypes.float32 if step.dtype.itemsize <= 4 else step.dtype
    if value.dtype.is_int and point is not None:
        middle = along(value, point.cast(dtypes.int32), axis, block)
        number = (value.cast(dtypes.int32) - middle).cast(wide)
    else:
        number = value.cast(wide)
        number = number if point is None else number - along(value, point.cast(wide), axis, block)
    return (number * along(value, step.cast(wide), axis, block)).cast(target)


@op("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: Any, x: Tensor) -> Any:
    low, high = x.min().minimum(0.0), x.max().maximum(0.0)
    scale = (high - low) / 255.0
    safe = (scale == 0).where(1.0, scale)
    zero = (-low / safe).round().clamp(0, 255)
    y = ((x / safe).round() + zero).clamp(0, 255)
    return y.cast(dtypes.uint8), scale, zero.cast(dtypes.uint8)


@op("QLinearMatMul")
def qlinear_matmul(
    call: Any,
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
) -> Tensor:
    """Products of integers, summed in 32 bits and scaled once."""
    left = Integers.of(call.run, a, a_zero, a.ndim - 2)
    total = product_sums(left, Integers.of(call.run, b, b_zero, b.ndim - 1))
    a_scale = _on_axis(a_scale, total.ndim, total.ndim - 2)
    factor = a_scale * _on_axis(b_scale, total.ndim, total.ndim - 1)
    return requantized(total, factor, y_scale, y_zero)


def _on_axis(scale: Tensor, rank: int, axis: int) -> Tensor:
    scale = scale.cast(dtypes.float32)
    if scale.numel() == 1:
        return scale.reshape([1] * rank)
    if scale.ndim > 1:
        return scale
    shape = [1] * rank
    shape[axis] = scale.numel()
    return scale.reshape(shape)


def requantized(total: Tensor, factor: Tensor, y_scale: Tensor, y_zero: Tensor) -> Tensor:
    """Sums of 32 bits times a factor, in the integers of the output."""
    dtype: DType = y_zero.dtype
    scaled = total.cast(dtypes.float32) * (factor / y_scale.cast(dtypes.float32))
    if dtype.is_float:
        return (scaled + y_zero.cast(dtypes.float32)).cast(dtype)
    whole = scaled.round() + y_zero.cast(dtypes.float32)
    return whole.clamp(float(dtype.min), float(dtype.max)).cast(dtype)


@op("QLinearConv")
def qlinear_conv(
    call: Any,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    weight: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    run = call.run
    total = convolve_integers(
        call, Integers.of(run, x, x_zero), Integers.of(run, weight, w_zero, 0)
    )
    if bias is not None:
        total = total + bias.reshape(1, -1, *[1] * (x.ndim - 2))
    factor = x_scale.reshape([1] * x.ndim) * _on_axis(w_scale, x.ndim, 1)
    return requantized(total, factor, y_scale, y_zero)

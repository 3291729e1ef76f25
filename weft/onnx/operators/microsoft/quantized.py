"""Quantized products and layers of com.microsoft."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.ir.dtypes import dtypes
from weft.onnx.integers import Integers, product_sums
from weft.onnx.operators.quantization import (
    _on_axis,
    dequantize_linear,
    dynamic_quantize_linear,
    quantize_linear,
    requantized,
)
from weft.onnx.table import MICROSOFT, op
from weft.tensor.tensor import Tensor

# A row of QLinearSoftmax sums to less than 2**32 by this power of e.
_RESERVE: Final = 3

op("QuantizeLinear", domain=MICROSOFT, raw=True)(quantize_linear)
op("DequantizeLinear", domain=MICROSOFT, raw=True)(dequantize_linear)


def unpacked(packed: Tensor, bits: int) -> Tensor:
    """Numbers of a few bits that share bytes, the low bits first: the last axis grows."""
    if bits == 8:
        return packed
    count = 8 // bits
    parts = [(packed >> (bits * n)) & ((1 << bits) - 1) for n in range(count)]
    return Tensor.stack(*parts, dim=-1).reshape(*packed.shape[:-1], packed.shape[-1] * count)


@op("MatMulNBits", domain=MICROSOFT)
def matmul_nbits(
    call: Any,
    x: Tensor,
    packed: Tensor,
    scales: Tensor,
    zeros: Tensor | None = None,
    groups: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """A product with a weight in blocks of few bits, each with a scale and a zero point."""
    size, columns, bits = call.get("block_size"), call.get("N"), call.get("bits", 4)
    depth = call.get("K")
    blocks = -(-depth // size)
    values = unpacked(packed.reshape(columns, blocks, -1), bits)  # (N, blocks, size)
    if zeros is None:
        middle: Any = float(1 << (bits - 1))
    elif zeros.dtype.is_float:
        middle = zeros.reshape(columns, blocks, 1).cast(scales.dtype)
    else:
        wide = unpacked(zeros.reshape(columns, -1), bits)[:, :blocks]
        middle = wide.reshape(columns, blocks, 1).cast(scales.dtype)
    numbers, steps = values.cast(scales.dtype), scales.reshape(columns, blocks, 1)
    if groups is None:
        weight = ((numbers - middle) * steps).reshape(columns, blocks * size)[:, :depth]
    else:  # which scale each row has
        of_rows = groups.reshape(-1)[:depth].cast(dtypes.int64)
        numbers = numbers.reshape(columns, blocks * size)[:, :depth]
        steps = steps.squeeze(-1).index_select(1, of_rows)
        if isinstance(middle, Tensor):
            middle = middle.squeeze(-1).index_select(1, of_rows)
        weight = (numbers - middle) * steps
    y = x.matmul(weight.transpose(0, 1).cast(x.dtype))
    return y if bias is None else y + bias


@op("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(
    call: Any,
    x: Tensor,
    weight: Tensor,
    scale: Tensor,
    zero: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    small, x_scale, x_zero = dynamic_quantize_linear(call, x)
    return matmul_integer_to_float(call, small, weight, x_scale, scale, x_zero, zero, bias)


@op("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(
    call: Any,
    x: Tensor,
    weight: Tensor,
    x_scale: Tensor,
    scale: Tensor,
    x_zero: Tensor | None = None,
    zero: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    right = Integers.of(call.run, weight, zero, weight.ndim - 1)
    total = product_sums(Integers.of(call.run, x, x_zero), right)
    y = total.cast(dtypes.float32) * (x_scale.reshape([1] * total.ndim)) * scale
    return y if bias is None else y + bias


def _floats(x: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
    return Integers(x, zero, 0).whole().cast(dtypes.float32) * scale.reshape([1] * x.ndim)


def _small(y: Tensor, scale: Tensor, zero: Tensor | None, like: Tensor) -> Tensor:
    """Floats in the integers of an output."""
    return _within(y / scale.reshape([1] * y.ndim), zero, like)


def _within(y: Tensor, zero: Tensor | None, like: Tensor) -> Tensor:
    """Multiples of the scale of an output in its integers."""
    dtype = like.dtype if zero is None else zero.dtype
    whole = y.round()
    whole = whole if zero is None else whole + zero.reshape([1] * y.ndim).cast(dtypes.float32)
    return whole.clamp(float(dtype.min), float(dtype.max)).cast(dtype)


@op("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def qlinear_binary(
    call: Any,
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor | None,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor | None,
    y_scale: Tensor,
    y_zero: Tensor | None = None,
) -> Tensor:
    """A product is one of integers, scaled once."""
    if call.node.op == "QLinearMul":
        total = Integers(a, a_zero, 0).whole() * Integers(b, b_zero, 0).whole()
        factor = (a_scale * b_scale / y_scale).reshape([1] * total.ndim)
        return _within(total.cast(dtypes.float32) * factor, y_zero, a)
    return _small(_floats(a, a_scale, a_zero) + _floats(b, b_scale, b_zero), y_scale, y_zero, a)


@op("QLinearSigmoid", "QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_activation(
    call: Any,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    y_scale: Tensor,
    y_zero: Tensor | None = None,
) -> Tensor:
    wide = _floats(x, x_scale, x_zero)
    is_sigmoid = call.node.op == "QLinearSigmoid"
    y = wide.sigmoid() if is_sigmoid else wide.leaky_relu(call.get("alpha", 0.01))
    return _small(y, y_scale, y_zero, x)


@op("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(
    call: Any,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    y_scale: Tensor,
    y_zero: Tensor | None = None,
) -> Tensor:
    """Powers from a table, divided as integers: where the numbers lie is not in the result.

    The powers are cut to integers, with room for the sum of a row in 32 bits; what 1 is in the
    result is cut too. The zero point of the input is the same everywhere and falls out.
    """
    axis = int(call.get("axis", -1))
    rows = x if call.get("opset", 13) >= 13 else x.reshape(math.prod(x.shape[: axis % x.ndim]), -1)
    axis = axis if rows is x else 1
    step, unit = call.run.array_of(x_scale), call.run.array_of(y_scale)
    count = rows.shape[axis]
    if step is None or unit is None or not isinstance(count, int):
        raise call.error("its scales and the size of its axis must be known")
    wide = rows.cast(dtypes.int32)
    behind = wide - wide.max(axis, keepdim=True) + 255
    powers = Tensor(_table_of_powers(float(step.item()), count), device=x.device)[behind]
    total = powers.sum(axis, keepdim=True)
    whole = float(np.floor(np.float32(1) / np.float32(unit.item())))
    share = ((powers * whole + (total / 2).floor()) / total).floor().reshape(x.shape)
    return _within(share.cast(dtypes.float32), y_zero, x)


def _table_of_powers(step: float, count: int) -> Any:
    """exp(-255 * step) to exp(0), so large that a sum of so many has its bits; whole numbers.

    In float64 these integers, their products and the quotients are exact.
    """
    room = max(0.0, math.log((2**32 - 1) / max(count, 1)) - _RESERVE) / step
    with np.errstate(over="ignore"):
        return np.floor(np.exp((np.arange(-255, 1) + room) * step))


@op("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(call: Any, y_scale: Tensor, y_zero: Tensor, *values: Tensor) -> Tensor:
    parts = [_floats(*values[at : at + 3]) for at in range(0, len(values), 3)]
    joined = parts[0].cat(*parts[1:], dim=call.get("axis")) if len(parts) > 1 else parts[0]
    return _small(joined, y_scale, y_zero, values[0])


@op("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(
    call: Any, x: Tensor, x_scale: Tensor, x_zero: Tensor, y_scale: Tensor, y_zero: Tensor
) -> Tensor:
    is_last = bool(call.get("channels_last", 0))
    axes = tuple(range(1, x.ndim - 1)) if is_last else tuple(range(2, x.ndim))
    return _small(_floats(x, x_scale, x_zero).mean(axes, True), y_scale, y_zero, x)


@op("QLinearAveragePool", domain=MICROSOFT)
def qlinear_average_pool(
    call: Any,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor | None,
    y_scale: Tensor,
    y_zero: Tensor | None = None,
) -> Tensor:
    from weft.onnx.operators.pools import average_pool

    return _small(average_pool(call, _floats(x, x_scale, x_zero)), y_scale, y_zero, x)


@op("QGemm", domain=MICROSOFT)
def qgemm(
    call: Any,
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor,
    c: Tensor | None = None,
    y_scale: Tensor | None = None,
    y_zero: Tensor | None = None,
) -> Tensor:
    a = a.transpose(0, 1) if call.get("transA", 0) else a
    axis = 0 if call.get("transB", 0) else 1
    right = Integers.of(call.run, b, b_zero, axis)
    total = product_sums(Integers.of(call.run, a, a_zero), right, is_transposed=axis == 0)
    total = total if c is None else total + c
    factor = a_scale.reshape(1, 1) * _on_axis(b_scale, 2, 1) * call.get("alpha", 1.0)
    if y_scale is None or y_zero is None:
        return total.cast(dtypes.float32) * factor
    return requantized(total, factor, y_scale, y_zero)

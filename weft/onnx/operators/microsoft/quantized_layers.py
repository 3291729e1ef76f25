"""Layers of com.microsoft with weights in few bits: attention, embeddings, an LSTM, lookups."""

from __future__ import annotations

from typing import Any

from weft.ir.dtypes import dtypes
from weft.onnx.elements import SMALL
from weft.onnx.integers import Integers, product_sums
from weft.onnx.operators.indexing import from_front
from weft.onnx.operators.microsoft.attention import attend_joined
from weft.onnx.operators.microsoft.fused import embed_layer_norm
from weft.onnx.operators.microsoft.quantized import matmul_integer_to_float, unpacked
from weft.onnx.operators.pools import max_pool
from weft.onnx.operators.quantization import dynamic_quantize_linear, qlinear_conv
from weft.onnx.operators.recurrent import steps_of
from weft.onnx.table import MICROSOFT, op
from weft.onnx.values import element_of_value, plain
from weft.tensor.tensor import Tensor


@op("QAttention", domain=MICROSOFT)
def quantized_attention(
    call: Any,
    x: Tensor,
    weights: Tensor,
    bias: Tensor,
    x_scale: Tensor,
    scale: Tensor,
    mask: Tensor | None = None,
    x_zero: Tensor | None = None,
    zero: Tensor | None = None,
    past: Tensor | None = None,
) -> Any:
    """The product for queries, keys and values is one of integers; the rest is in floats."""
    joined = matmul_integer_to_float(call, x, weights, x_scale, scale, x_zero, zero, bias)
    return attend_joined(call, joined, mask, past, None)


@op("QEmbedLayerNormalization", domain=MICROSOFT)
def quantized_embed_layer_norm(
    call: Any,
    words: Tensor,
    segments: Tensor | None,
    word_table: Tensor,
    position_table: Tensor,
    segment_table: Tensor | None,
    gamma: Tensor,
    beta: Tensor,
    mask: Tensor | None = None,
    *numbers: Tensor | None,
) -> Any:
    """Five tables of bytes, then their scales, then their zero points."""
    tables = (word_table, position_table, segment_table, gamma, beta)
    floats = [
        None
        if table is None or scale is None
        else Integers(table, zero, 0).whole().cast(scale.dtype) * scale.reshape([1] * table.ndim)
        for table, scale, zero in zip(tables, numbers[:5], numbers[5:], strict=True)
    ]
    y, ends, _ = embed_layer_norm(call, words, segments, *floats, mask)
    return y, ends


@op("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(
    call: Any,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None,
    lengths: Tensor | None,
    first_h: Tensor | None,
    first_c: Tensor | None,
    peepholes: Tensor | None,
    w_scale: Tensor,
    w_zero: Tensor | None,
    r_scale: Tensor,
    r_zero: Tensor | None,
) -> Any:
    """An LSTM with matrices (directions, size, 4 · hidden) of bytes; inputs become bytes, too."""

    def matrix(number: int, weight: Tensor, scale: Tensor, zero: Tensor | None) -> Any:
        point = None if zero is None else zero[number] if zero.ndim else zero
        step = scale[number] if scale.ndim else scale
        return Integers(weight[number], point, 1), step

    def product(value: Tensor, weight: Any) -> Tensor:
        integers, step = weight
        small, scale, zero = dynamic_quantize_linear(call, value)
        total = product_sums(Integers(small, zero, 0), integers)
        return total.cast(dtypes.float32) * (scale * step)

    matrices = [
        (matrix(number, w, w_scale, w_zero), matrix(number, r, r_scale, r_zero))
        for number in range(w.shape[0])
    ]
    rest = (b, lengths, first_h, first_c, peepholes)
    return steps_of(call, "LSTM", x, matrices, r.shape[1], product, *rest)


@op("GatherBlockQuantized", domain=MICROSOFT, raw=True)
def gather_block_quantized(
    call: Any, data: Any, indices: Any, scales: Any, zeros: Any = None
) -> Tensor:
    """Rows of a table in blocks of few bits, each with a scale; those outside of it are zeros."""
    element, bits = element_of_value(data), call.get("bits", 4)
    table, index, steps, points = (
        plain(call.run.tensor(each)) for each in (data, indices, scales, zeros)
    )
    is_packed = element not in SMALL and bits < 8
    middle: Any = 0 if element in SMALL else 1 << (bits - 1)
    if is_packed:
        table = unpacked(table, bits)
        points = None if points is None else unpacked(points, bits)
    axis, at = call.get("quantize_axis", 1) % table.ndim, call.get("gather_axis", 0) % table.ndim
    size = call.get("block_size", 128)
    count = table.shape[axis]
    blocks = Tensor.arange(count, dtype=dtypes.int64, device=table.device) // size
    if points is not None:
        middle = points.cast(steps.dtype).index_select(axis, blocks)
    floats = (table.cast(steps.dtype) - middle) * steps.index_select(axis, blocks)
    extent = table.shape[at]
    inside = (index >= -extent) & (index < extent)
    chosen = floats.index_select(at, from_front(index, extent).clamp(0, extent - 1).reshape(-1))
    shape = (*table.shape[:at], *index.shape, *table.shape[at + 1 :])
    flags = inside.reshape(*index.shape, *[1] * (table.ndim - at - 1))
    return flags.where(chosen.reshape(shape), 0.0).cast(steps.dtype)


@op("QLinearWhere", domain=MICROSOFT)
def qlinear_where(
    call: Any,
    condition: Tensor,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    z_scale: Tensor,
    z_zero: Tensor,
) -> Tensor:
    left, right = (
        Integers(value, zero, 0).whole().cast(dtypes.float32) * scale.reshape([1] * value.ndim)
        for value, scale, zero in ((x, x_scale, x_zero), (y, y_scale, y_zero))
    )
    whole = (condition.where(left, right) / z_scale).round() + z_zero.cast(dtypes.float32)
    dtype = z_zero.dtype
    return whole.clamp(float(dtype.min), float(dtype.max)).cast(dtype)


@op("NhwcMaxPool", domain=MICROSOFT)
def max_pool_channels_last(call: Any, x: Tensor) -> Tensor:
    return max_pool(call, x.movedim(-1, 1)).movedim(1, -1)


@op("QLinearConv", domain=MICROSOFT)
def qlinear_conv_of_layout(call: Any, x: Tensor, *rest: Any) -> Tensor:
    if not call.get("channels_last", 0):
        return qlinear_conv(call, x, *rest)
    return qlinear_conv(call, x.movedim(-1, 1), *rest).movedim(1, -1)

"""Layers that exporters fuse: activations with biases, normalizations with sums, products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ir.dtypes import dtypes
from weft.onnx.operators.convolution import convolve
from weft.onnx.operators.movement import sizes_of
from weft.onnx.table import MICROSOFT, op
from weft.tensor.tensor import Tensor


@op("Gelu", domain=MICROSOFT)
def gelu(call: Any, x: Tensor) -> Tensor:
    return x.gelu("none")


@op("FastGelu", domain=MICROSOFT)
def fast_gelu(call: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
    return (x if bias is None else x + bias).gelu("tanh")


@op("BiasGelu", domain=MICROSOFT)
def bias_gelu(call: Any, x: Tensor, bias: Tensor) -> Tensor:
    return (x + bias).gelu("none")


@op("QuickGelu", domain=MICROSOFT)
def quick_gelu(call: Any, x: Tensor) -> Tensor:
    return x * (x * call.get("alpha", 1.702)).sigmoid()


def normalized(x: Tensor, scale: Tensor, bias: Any, eps: float, is_simple: bool) -> Any:
    """A normalization of the last axis: the result, mean and inverse deviation."""
    wide = x.cast(dtypes.float32) if x.dtype.itemsize < 4 else x
    mean = None if is_simple else wide.mean(-1, True)
    centered = wide if mean is None else wide - mean
    inverse = ((centered * centered).mean(-1, True) + eps).rsqrt()
    y = (centered * inverse).cast(x.dtype) * scale
    return (y if bias is None else y + bias), mean, inverse


@op("SimplifiedLayerNormalization")
def simplified_layer_norm(call: Any, x: Tensor, scale: Tensor) -> Any:
    y, _, inverse = normalized(x, scale, None, call.get("epsilon", 1e-5), True)
    return y, inverse


@op("LayerNormalization", domain=MICROSOFT)
def layer_norm(call: Any, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Any:
    return normalized(x, scale, bias, call.get("epsilon", 1e-5), False)


@op("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(
    call: Any,
    x: Tensor,
    skip: Tensor,
    scale: Tensor,
    shift: Tensor | None = None,
    bias: Tensor | None = None,
) -> Any:
    total = x + skip if bias is None else x + skip + bias
    y, mean, inverse = normalized(total, scale, shift, call.get("epsilon", 1e-12), False)
    return y, mean, inverse, total


@op("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_norm(
    call: Any, x: Tensor, skip: Tensor, scale: Tensor, bias: Tensor | None = None
) -> Any:
    total = x + skip if bias is None else x + skip + bias
    y, _, inverse = normalized(total, scale, None, call.get("epsilon", 1e-12), True)
    return y, inverse, inverse, total


@op("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_norm(
    call: Any,
    words: Tensor,
    segments: Tensor | None,
    word_table: Tensor,
    position_table: Tensor,
    segment_table: Tensor | None,
    scale: Tensor,
    shift: Tensor,
    mask: Tensor | None = None,
    positions: Tensor | None = None,
) -> Any:
    batch, time = words.shape
    where = position_table[:time].unsqueeze(0) if positions is None else position_table[positions]
    total = word_table[words] + where
    if segments is not None and segment_table is not None:
        total = total + segment_table[segments]
    y, _, _ = normalized(total, scale, shift, call.get("epsilon", 1e-12), False)
    if mask is None:
        ends = Tensor.zeros(batch, dtype=dtypes.int32, device=words.device)
    else:
        ends = mask.cast(dtypes.int32).sum(1).cast(dtypes.int32)
    return y, ends, total


@op("FusedMatMul", domain=MICROSOFT)
def fused_matmul(call: Any, x: Tensor, y: Tensor) -> Tensor:
    x = x.transpose(-2, -1) if call.get("transA", 0) else x
    y = y.transpose(-2, -1) if call.get("transB", 0) else y
    return x.matmul(y) * call.get("alpha", 1.0)


def _activated(call: Any, x: Tensor) -> Tensor:
    name, numbers = call.get("activation", ""), call.get("activation_params") or []
    table: dict[str, Callable[[], Tensor]] = {
        "": lambda: x,
        "Relu": lambda: x.relu(),
        "Sigmoid": lambda: x.sigmoid(),
        "Tanh": lambda: x.tanh(),
        "LeakyRelu": lambda: x.leaky_relu(*numbers[:1]),
        "Clip": lambda: x.clamp(*numbers[:2]),
        "HardSigmoid": lambda: (x * numbers[0] + numbers[1]).clamp(0, 1),
    }
    if name not in table:
        raise call.error(
            f"activation {name!r}", "activations are " + ", ".join(filter(None, table))
        )
    return table[name]()


@op("FusedConv", domain=MICROSOFT)
def fused_conv(
    call: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None, z: Tensor | None = None
) -> Tensor:
    y = convolve(call, x, weight, bias)
    return _activated(call, y if z is None else y + z)


@op("FusedGemm", domain=MICROSOFT)
def fused_gemm(call: Any, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    from weft.onnx.operators.products import gemm

    return _activated(call, gemm(call, a, b, c))


@op("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(call: Any, x: Tensor, bias: Tensor) -> Tensor:
    left, right = (x + bias).chunk(2, -1)
    return left * right.gelu("none")


@op("Inverse", domain=MICROSOFT)
def inverse(call: Any, x: Tensor) -> Tensor:
    return x.inv()


@op("Trilu", domain=MICROSOFT, host=(1,))
def trilu(call: Any, x: Tensor, diagonal: Any = None) -> Tensor:
    offset = 0 if diagonal is None else sizes_of(diagonal)[0]
    return x.triu(offset) if call.get("upper", 1) else x.tril(offset)


@op("ExpandDims", domain=MICROSOFT, host=(1,))
def expand_dims(call: Any, x: Tensor, axis: Any) -> Tensor:
    return x.unsqueeze(int(axis.reshape(())))

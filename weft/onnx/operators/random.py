"""Random numbers: Weft's own, so that a jitted model draws new ones in every call.

A seed of a node is not used: it would name the numbers of another generator.
"""

from __future__ import annotations

from typing import Any

from weft.ir.dtypes import dtypes
from weft.onnx.elements import DTYPES, dtype_of, element_of
from weft.onnx.table import op
from weft.tensor.tensor import Tensor


def _drawn(call: Any, shape: Any, dtype: Any) -> Tensor:
    if "Normal" in call.node.op:
        numbers = Tensor.randn(*shape, device=call.device)
        numbers = numbers * call.get("scale", 1.0) + call.get("mean", 0.0)
    else:
        low, high = call.get("low", 0.0), call.get("high", 1.0)
        numbers = Tensor.rand(*shape, device=call.device) * (high - low) + low
    return numbers.cast(dtype)


@op("RandomNormal", "RandomUniform")
def random(call: Any) -> Tensor:
    return _drawn(call, call.get("shape"), dtype_of(call.get("dtype", 1)))


@op("RandomNormalLike", "RandomUniformLike")
def random_like(call: Any, x: Tensor) -> Tensor:
    own = DTYPES[element_of(x)]
    dtype = dtype_of(call.get("dtype", 0)) if call.get("dtype") else own
    return _drawn(call, x.shape, dtype if dtype.is_float else dtypes.float32)


@op("Bernoulli")
def bernoulli(call: Any, x: Tensor) -> Tensor:
    dtype = dtype_of(call.get("dtype")) if call.get("dtype") else x.dtype
    return (Tensor.rand(*x.shape, device=x.device) < x).cast(dtype)


@op("Multinomial")
def multinomial(call: Any, x: Tensor) -> Tensor:
    dtype = dtype_of(call.get("dtype", 6))
    return x.softmax(-1).multinomial(call.get("sample_size", 1), True).cast(dtype)

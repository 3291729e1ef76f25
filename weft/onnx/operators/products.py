"""Matrix products, also of integers, and determinants."""

from __future__ import annotations

from typing import Any

from weft.onnx.dequantized import Scaled, are_bytes, product_of
from weft.onnx.integers import Integers, product_sums
from weft.onnx.table import op
from weft.onnx.values import plain
from weft.tensor.tensor import Tensor


@op("MatMul", raw=True)
def matmul(call: Any, x: Any, y: Any) -> Any:
    if are_bytes(x, y) and x.ndim > 1 and y.ndim > 1:
        rank = max(x.ndim, y.ndim)
        left, right = x.scale_along(-2, rank, -2), y.scale_along(-1, rank, -1)
        if left is not None and right is not None:
            total = product_sums(x.integers, y.integers)
            return Scaled(total, left * right, None, x.dtype)
    return plain(call.run.tensor(x)).matmul(plain(call.run.tensor(y)))


@op("Gemm", raw=True)
def gemm_of_values(call: Any, a: Any, b: Any, c: Any = None) -> Any:
    """A product of integers where both are dequantized and nothing else is asked for."""
    is_plain = call.get("alpha", 1.0) == call.get("beta", 1.0) == 1.0
    if are_bytes(a, b) and is_plain and not call.get("transA", 0):
        is_transposed = bool(call.get("transB", 0))
        left, right = a.scale_along(0, 2, 0), b.scale_along(0 if is_transposed else 1, 2, 1)
        if left is not None and right is not None:
            total = product_sums(a.integers, b.integers, is_transposed)
            return product_of(call.run, total, (a.scale, b.scale), left * right, c, a.dtype)
    bias = None if c is None else plain(call.run.tensor(c))
    return gemm(call, plain(call.run.tensor(a)), plain(call.run.tensor(b)), bias)


def gemm(call: Any, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    a = a.transpose(0, 1) if call.get("transA", 0) else a
    b = b.transpose(0, 1) if call.get("transB", 0) else b
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    product = a.matmul(b)
    if alpha != 1.0:
        product = (product * alpha).cast(a.dtype)
    if c is None or beta == 0.0:
        return product
    return product + (c if beta == 1.0 else (c * beta).cast(a.dtype))


@op("Einsum")
def einsum(call: Any, *values: Tensor) -> Tensor:
    return Tensor.einsum(call.get("equation").replace(" ", ""), *values)


@op("Det")
def det(call: Any, x: Tensor) -> Tensor:
    return x.det()


@op("MatMulInteger")
def matmul_integer(
    call: Any, a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Tensor:
    left = Integers.of(call.run, a, a_zero, a.ndim - 2 if a.ndim > 1 else 0)
    return product_sums(left, Integers.of(call.run, b, b_zero, b.ndim - 1))

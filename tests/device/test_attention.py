"""Attention in one kernel on the matrix units of this GPU is NumPy's."""

from typing import NamedTuple

import numpy as np
import pytest

from weft import Tensor, dtypes, jit
from weft.ir.dtypes import DType

BF16, F16 = dtypes.bfloat16, dtypes.float16
LIMITS = {BF16: 2**-7, F16: 2**-9}


class Shape(NamedTuple):
    """Sequences, heads of queries and of keys, queries, keys, the size of a head."""

    batch: int
    heads: int
    groups: int
    queries: int
    keys: int
    size: int


def drawn(shape: Shape, dtype: DType) -> list[Tensor]:
    batch, heads, groups, queries, keys, size = shape
    shapes = [(batch, heads, queries, size), *2 * [(batch, groups, keys, size)]]
    rng = np.random.default_rng(0)
    return [
        Tensor(rng.normal(size=each).astype(np.float32)).cast(dtype).realize() for each in shapes
    ]


def wanted(tensors: list[Tensor], mask: np.ndarray | None, bias: np.ndarray | None) -> np.ndarray:
    q, k, v = (each.float().numpy().astype(np.float64) for each in tensors)
    k, v = (each.repeat(q.shape[1] // k.shape[1], 1) for each in (k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores = scores if bias is None else scores + bias
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isinf(top), 0.0, top))
    total = powers.sum(-1, keepdims=True)
    return powers / np.where(total == 0.0, 1.0, total) @ v


def causal(shape: Shape) -> np.ndarray:
    return np.tri(shape.queries, shape.keys, dtype=bool)


def require_close(out: Tensor, expected: np.ndarray, dtype: DType) -> None:
    error = np.abs(out.float().numpy() - expected).max() / np.abs(expected).max()
    assert error <= LIMITS[dtype], error


SHAPES = [
    Shape(1, 1, 1, 128, 128, 64),
    Shape(2, 3, 3, 256, 256, 128),
    Shape(1, 2, 2, 100, 66, 96),  # hardly more than one block
    Shape(2, 4, 2, 333, 1001, 80),
    Shape(1, 8, 1, 77, 300, 40),
    Shape(1, 2, 2, 1500, 1500, 128),  # more blocks than there are slots
    Shape(1, 2, 2, 300, 40, 64),  # fewer keys than a block: three kernels
    Shape(1, 2, 2, 1, 700, 64),  # one query: three kernels
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", LIMITS, ids=str)
def test_full_rows(shape: Shape, dtype: DType):
    q, k, v = tensors = drawn(shape, dtype)
    out = q.scaled_dot_product_attention(k, v, enable_gqa=shape.heads != shape.groups)
    require_close(out, wanted(tensors, None, None), dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_behind_a_diagonal(shape: Shape):
    q, k, v = tensors = drawn(shape, BF16)
    grouped = shape.heads != shape.groups
    out = q.scaled_dot_product_attention(k, v, is_causal=True, enable_gqa=grouped)
    require_close(out, wanted(tensors, causal(shape), None), BF16)


@pytest.mark.parametrize("width", [5, 100, 700])
def test_windows(width: int):
    shape = Shape(1, 2, 2, 1000, 1000, 64)
    q, k, v = tensors = drawn(shape, BF16)
    i, j = Tensor.arange(1000).reshape(-1, 1), Tensor.arange(1000).reshape(1, -1)
    out = q.scaled_dot_product_attention(k, v, attn_mask=(j <= i) & (i - j < width))
    mask = causal(shape) & ~np.tri(1000, 1000, -width, dtype=bool)
    require_close(out, wanted(tensors, mask, None), BF16)


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
def test_masks_and_biases_in_memory(dtype: DType):
    shape = Shape(2, 3, 3, 200, 392, 64)
    q, k, v = tensors = drawn(shape, dtype)
    rng = np.random.default_rng(1)
    mask = rng.random((200, 392)) < 0.3
    mask[7] = False  # a query that sees nothing
    out = q.scaled_dot_product_attention(k, v, attn_mask=Tensor(mask))
    require_close(out, wanted(tensors, mask, None), dtype)
    bias = Tensor(rng.normal(size=(3, 200, 392)).astype(np.float32)).cast(dtype).realize()
    out = q.scaled_dot_product_attention(k, v, attn_mask=bias)
    require_close(out, wanted(tensors, None, bias.float().numpy()), dtype)


def test_runs_are_equal():
    q, k, v = drawn(Shape(4, 8, 8, 1024, 1024, 128), BF16)
    step = jit(lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True))
    first = step(q, k, v).float().numpy()
    for _ in range(20):
        assert (step(q, k, v).float().numpy() == first).all()

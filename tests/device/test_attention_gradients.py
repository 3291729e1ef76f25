"""Attention on this GPU and its gradients are those of float64, as near as 16 bits let them be."""

import math

import numpy as np
import pytest

from weft import Tensor, dtypes, jit
from weft.gradient.reverse import gradients

Shape = tuple[int, ...]
# Queries, keys, and whether the mask is causal.
CASES: dict[str, tuple[Shape, Shape, bool]] = {
    "heads of 64": ((2, 4, 512, 64), (2, 4, 512, 64), True),
    "heads of 128": ((1, 4, 640, 128), (1, 4, 640, 128), True),
    "full rows": ((2, 3, 300, 64), (2, 3, 520, 64), False),
    "odd sizes": ((1, 5, 1000, 72), (1, 5, 1000, 72), True),
    "heads that share keys": ((2, 8, 256, 64), (2, 2, 256, 64), True),
    "one head of keys": ((1, 4, 264, 32), (1, 1, 264, 32), False),
}


@jit
def causal(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor) -> tuple[Tensor, ...]:
    return differentiated(q, k, v, slopes, True)


@jit
def full(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor) -> tuple[Tensor, ...]:
    return differentiated(q, k, v, slopes, False)


def differentiated(
    q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, is_causal: bool
) -> tuple[Tensor, ...]:
    out = q.scaled_dot_product_attention(k, v, is_causal=is_causal, enable_gqa=True)
    found = gradients(out.uop, [q.uop, k.uop, v.uop], slopes.uop)
    return out, *(Tensor(each) for each in found if each is not None)


def expected(arrays: list[np.ndarray], is_causal: bool) -> list[np.ndarray]:
    q, k, v, slopes = (each.astype(np.float64) for each in arrays)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, 1), v.repeat(group, 1)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -math.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    weights = powers / powers.sum(-1, keepdims=True)
    out = weights @ v
    of_scores = slopes @ v.swapaxes(-1, -2) - (slopes * out).sum(-1, keepdims=True)
    of_scores = weights * of_scores / math.sqrt(q.shape[-1])
    shared = (k.shape[0], k.shape[1] // group, group, *k.shape[2:])
    of_keys = (of_scores.swapaxes(-1, -2) @ q).reshape(shared).sum(2)
    of_values = (weights.swapaxes(-1, -2) @ slopes).reshape(shared).sum(2)
    return [out, of_scores @ k, of_keys, of_values]


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_whole_rows(name: str):
    queries, keys, is_causal = CASES[name]
    rng = np.random.default_rng(0)
    tensors = [
        Tensor(rng.normal(size=shape).astype(np.float32)).cast(dtypes.bfloat16).realize()
        for shape in (queries, keys, keys, queries)
    ]
    wanted = expected([each.float().numpy() for each in tensors], is_causal)
    for _ in range(2):  # traced, and replayed
        found = (causal if is_causal else full)(*tensors)
        for got, want in zip(found, wanted, strict=True):
            scale = np.abs(want).max()
            np.testing.assert_allclose(got.float().numpy() / scale, want / scale, atol=2e-2)

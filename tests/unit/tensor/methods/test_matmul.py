"""Products of matrices, against PyTorch."""

import numpy as np
import pytest

from tests.unit.tensor.compare import assert_like_torch, numbers
from weft.ir.dtypes import dtypes
from weft.tensor import Tensor

SHAPES = (
    *(((4,), (4,)), ((2, 4), (4,)), ((4,), (4, 3)), ((2, 4), (4, 3)), ((5, 2, 4), (4, 3))),
    *(((5, 2, 4), (5, 4, 3)), ((1, 2, 4), (5, 4, 3)), ((2, 1, 2, 4), (3, 4, 2))),
    *(((0, 4), (4, 3)), ((2, 0), (0, 3)), ((3,), (2, 3, 4))),
)
FORMULAS = (
    *(("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij->ji", (2, 3))),
    *(("ij->", (2, 3)), ("ij->i", (2, 3)), ("ii->i", (3, 3)), ("ii", (3, 3))),
    *(("i,j->ij", (2,), (3,)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 2))),
    *(("...ij,...jk->...ik", (2, 2, 3), (3, 4)), ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4))),
    *(("b...->...b", (2, 3, 4)), ("ij,ij->", (2, 3), (2, 3)), ("iij->j", (2, 2, 3))),
)


@pytest.mark.peers("torch")
@pytest.mark.parametrize("left,right", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ("int32", "float32", "float64"))
def test_matmul(left: tuple[int, ...], right: tuple[int, ...], dtype: str):
    assert_like_torch(lambda x, y: x @ y, numbers(dtype, left, 1), numbers(dtype, right, 2))


def test_halves_are_summed_in_float32():
    x = Tensor([2048.0] + [1.0] * 100).half()
    product = x @ x.ones_like()
    assert product.dtype is dtypes.float16
    assert product.item() == 2148.0
    assert (x.dot(x.ones_like(), dtype="float32")).dtype is dtypes.float32


@pytest.mark.peers("torch")
@pytest.mark.parametrize("case", FORMULAS, ids=lambda case: case[0])
def test_einsum(case: tuple[str, ...]):
    import torch

    formula, *shapes = case
    arrays = [numbers("float32", shape, i) for i, shape in enumerate(shapes)]
    assert_like_torch(
        lambda *xs: Tensor.einsum(formula, *xs),
        *arrays,
        other=lambda *xs: torch.einsum(formula, *xs),
    )


def test_linear():
    x, weight, bias = Tensor([[1.0, 2.0]]), Tensor([[1.0, 0.0], [0.0, 2.0]]), Tensor([1.0, 1.0])
    assert x.linear(weight, bias).tolist() == [[2.0, 5.0]]
    assert x.linear(Tensor([2.0, 3.0]), bias).tolist() == [[3.0, 7.0]]
    assert x.matmul(Tensor([[3.0]]), reverse=True).tolist() == [[3.0, 6.0]]


@pytest.mark.peers("torch")
def test_attention():
    import torch.nn.functional as functional

    q, k, v = (np.random.default_rng(i).normal(size=(2, 2, 3, 4)).astype("f") for i in range(3))
    mask = numbers("bool", (3, 3), 1) | np.eye(3, dtype=bool)
    theirs = functional.scaled_dot_product_attention

    def ours(q: Tensor, k: Tensor, v: Tensor, **kwargs: object) -> Tensor:
        return q.scaled_dot_product_attention(k, v, **kwargs)

    assert_like_torch(ours, q, k, v, other=theirs)
    assert_like_torch(
        lambda q, k, v: ours(q, k, v, is_causal=True),
        *(q, k, v),
        other=lambda q, k, v: theirs(q, k, v, is_causal=True),
    )
    assert_like_torch(
        lambda q, k, v, m: ours(q, k, v, attn_mask=m),
        *(q, k, v, mask),
        other=lambda q, k, v, m: theirs(q, k, v, attn_mask=m),
    )
    assert_like_torch(
        lambda q, k, v: ours(q, k, v, enable_gqa=True),
        *(q, k[:, :1], v[:, :1]),
        other=lambda q, k, v: theirs(q, k, v, enable_gqa=True),
    )

"""Reductions and what is made of them, against PyTorch."""

import math
from typing import Any

import numpy as np
import pytest

from tests.unit.tensor.compare import assert_like_torch, numbers
from weft.ir.dtypes import dtypes
from weft.support.errors import ShapeError
from weft.tensor import Tensor

DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64")
AXES = (None, 0, -1, (0, 2))


def reducer(name: str, axis: Any, keepdim: bool) -> tuple[Any, Any]:
    def ours(x: Any) -> Any:
        return getattr(x, name)(axis=axis, keepdim=keepdim)

    def theirs(x: Any) -> Any:
        if axis is None:
            axes = (
                tuple(range(x.dim())) if name in ("logsumexp", "var", "std") or keepdim else None
            )
        else:
            axes = axis
        if axes is None:
            return getattr(x, name)()
        torch_name = {"max": "amax", "min": "amin"}.get(name, name)
        return getattr(x, torch_name)(dim=axes, keepdim=keepdim)

    return ours, theirs


@pytest.mark.peers("torch")
@pytest.mark.parametrize(
    "name", ("sum", "max", "min", "any", "all", "mean", "var", "std", "logsumexp")
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(name: str, dtype: str):
    if name in ("mean", "var", "std", "logsumexp") and not dtype.startswith("f"):
        pytest.skip("PyTorch has it for floats alone")
    x = numbers(dtype, (2, 3, 4))
    for axis in AXES:
        for keepdim in (False, True):
            if dtype == "uint8" and name in ("any", "all"):
                continue  # PyTorch gives uint8 for uint8 alone
            ours, theirs = reducer(name, axis, keepdim)
            assert_like_torch(ours, x, other=theirs, rtol=3e-6, atol=2e-6)


@pytest.mark.peers("torch")
@pytest.mark.parametrize("dtype", ("bool", "uint8", "int32", "float32"))
def test_prod(dtype: str):
    x = numbers(dtype, (2, 3, 4))
    assert_like_torch(lambda x: x.prod(), x)
    assert_like_torch(lambda x: x.prod(1), x)
    assert_like_torch(lambda x: x.prod(-1, True), x)


@pytest.mark.peers("torch")
@pytest.mark.parametrize("name", ("argmax", "argmin"))
def test_positions(name: str):
    x = np.array([[1, 5, 5, 2], [np.nan, 9, np.nan, -1], [np.inf, 1, np.inf, -np.inf]], np.float32)
    for argument in ((), (0,), (1,), (-1, True)):
        assert_like_torch(lambda x, a=argument: getattr(x, name)(*a), x)
    assert_like_torch(lambda x: getattr(x, name)(1), numbers("int32", (3, 5)))
    assert getattr(Tensor(3.0), name)().item() == 0


def test_nan_and_infinities():
    x = Tensor([[1.0, float("nan")], [float("inf"), 2.0]])
    assert str(x.max(1).tolist()) == "[nan, inf]"
    assert str(x.min(1).tolist()) == "[nan, 2.0]"
    assert x.isnan().any().item() is True


def test_empty_reductions():
    x = Tensor.zeros(0, 3)
    assert x.sum().item() == 0.0
    assert x.prod(0).tolist() == [1.0, 1.0, 1.0]
    assert x.all().item() is True
    assert x.any().item() is False
    assert x.max(1).shape == (0,)
    assert str(x.mean().item()) == "nan"
    assert x.logsumexp(0).tolist() == [-float("inf")] * 3
    for name in ("max", "min", "argmax"):
        with pytest.raises(ShapeError, match=f"{name}: an empty axis"):
            getattr(x, name)(0)


def test_scalars():
    x = Tensor(3.0)
    assert x.sum(-1).item() == 3.0
    assert x.max(0).item() == 3.0
    y = x.sum()
    y += 1
    assert x.item() == 3.0


def test_dtypes_of_sums():
    assert Tensor([1, 2]).sum().dtype is dtypes.int64
    assert Tensor([1, 2]).sum(dtype="float32").dtype is dtypes.float32
    assert Tensor(np.array([1], np.uint64)).sum().dtype is dtypes.uint64
    assert Tensor([200, 100], dtype="uint8").sum(dtype="uint8").item() == 44
    assert Tensor([1, 2]).mean().item() == 1.5
    # 2049 is not a half, so each step of a sum in halves would lose the one that is added.
    assert Tensor([2048.0] + [1.0] * 100).half().sum().item() == 2148.0


@pytest.mark.peers("torch")
@pytest.mark.parametrize("axis", (0, 1, -1))
def test_softmax(axis: int):
    x = np.array([[1, 2, -np.inf], [1000, -1000, 0], [0, 0, 0]], np.float32)
    for name in ("softmax", "log_softmax"):
        assert_like_torch(lambda x, n=name: getattr(x, n)(axis), x)
    half = numbers("float16", (3, 4))
    assert_like_torch(lambda x: x.softmax(axis), half)


@pytest.mark.peers("torch")
def test_logsumexp_of_infinities():
    x = np.array([[-np.inf, -np.inf], [np.inf, 1], [1000, 1000], [np.nan, 0]], np.float32)
    assert_like_torch(lambda x: x.logsumexp(1), x)
    assert_like_torch(lambda x: x.logsumexp(0, True), x)


@pytest.mark.peers("torch")
def test_statistics():
    import torch
    import torch.nn.functional as functional

    x = numbers("float32", (3, 5))
    for correction in (0, 1, 2):
        assert_like_torch(
            lambda x, c=correction: x.var(1, correction=c),
            x,
            other=lambda x, c=correction: torch.var(x, 1, correction=c),
        )
    assert_like_torch(lambda x: x.var_mean(1), x, other=lambda x: torch.var_mean(x, 1))
    assert_like_torch(lambda x: x.std_mean(0), x, other=lambda x: torch.std_mean(x, 0))
    assert_like_torch(
        lambda x: x.layernorm(), x, other=lambda x: functional.layer_norm(x, (5,)), atol=1e-5
    )
    for p in (1.0, 2.0, 3.0, float("inf")):
        assert_like_torch(
            lambda x, p=p: x.normalize(p), x, other=lambda x, p=p: functional.normalize(x, p)
        )
    assert str(Tensor([1.0]).var().item()) == "nan"


@pytest.mark.parametrize("value", [1.0, 0.1, -3.7, 1e-20])
@pytest.mark.parametrize("shape", [(100_000, 100_000), (3, 1_000_003), (7, 70_001)])
def test_sums_of_equal_terms_round_once(shape: tuple[int, int], value: float):
    x = Tensor.full(shape, value)
    one = float(np.float32(value))
    count = shape[0] * shape[1]
    assert x.sum().item() == pytest.approx(one * count, rel=1e-6)
    assert x.mean().item() == pytest.approx(one, rel=1e-6)
    assert x.max().item() == one
    row = Tensor([value, 2 * value]).reshape(2, 1).expand(2, shape[1])
    np.testing.assert_allclose(row.sum(1).numpy(), [one * shape[1], 2 * one * shape[1]], rtol=1e-6)


def test_sums_of_equal_terms_of_other_dtypes():
    assert Tensor.full((5, 7), 3, dtype="int8").sum().item() == 105
    assert Tensor.full((1 << 20, 1 << 12), 3).sum(dtype="int32").item() == 0  # wraps, as adding
    assert Tensor.full((3, 100_000), 2.5, dtype="float16").sum(1).tolist() == [math.inf] * 3
    assert Tensor.full((3, 100_000), 2.5, dtype="bfloat16").sum().item() == 749_568
    assert Tensor.full((5, 7), True).sum().item() == 35
    assert Tensor.full((0, 7), 3.0).sum().item() == 0
    assert np.isnan(Tensor.full((9,), math.nan).sum().item())
    assert Tensor.full((9,), -math.inf).sum().item() == -math.inf

"""Searching, selecting and counting against NumPy, with sizes given and computed."""

import numpy as np
import pytest

from tests.unit.tensor.compare import assert_same, numbers
from weft.support.errors import ArgumentError, DTypeError, ShapeError
from weft.tensor import Tensor


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(np.int32)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("size", [1, 7, 8, 9, 100])
def test_searchsorted(side: str, size: int):
    rows = np.sort(random(size))
    wanted = np.arange(-7, 8, dtype=np.int32)
    found = Tensor(rows).searchsorted(Tensor(wanted), side=side)
    assert_same(found, np.searchsorted(rows, wanted, side=side))
    assert_same(Tensor(rows).searchsorted(wanted.tolist(), right=side == "right"), found.numpy())


def test_searchsorted_takes_a_row_for_each_row():
    with pytest.raises(ShapeError, match="searchsorted"):
        Tensor(np.zeros((2, 3))).searchsorted(Tensor(np.zeros((3, 3))))


@pytest.mark.parametrize("size", [0, 3, 50])
def test_nonzero_of_a_size_is_lazy(size: int):
    x = random(4, 6)
    want = np.full((size, 2), -1)
    found = np.argwhere(x)[:size]
    want[: len(found)] = found
    assert_same(Tensor(x).nonzero(size=size, fill_value=-1), want)


@pytest.mark.parametrize("size", [0, 3, 50])
def test_masked_select_of_a_size_is_lazy(size: int):
    x = random(4, 6)
    want = np.full(size, 9, np.int32)
    found = x[x > 0][:size]
    want[: len(found)] = found
    assert_same(Tensor(x).masked_select(Tensor(x > 0), size=size, fill_value=9), want)


def test_unique():
    for x in (random(5, 9), numbers("float32", (40,)), np.zeros(0, np.int32), random(3, 100)):
        values, inverse, counts = Tensor(x).unique(return_inverse=True, return_counts=True)
        want = np.unique(x, return_inverse=True, return_counts=True)
        assert_same(values, want[0])
        assert_same(inverse, want[1].reshape(x.shape))
        assert_same(counts, want[2])


def test_bincount_refuses_negative_numbers_and_matrices():
    with pytest.raises(ArgumentError, match="-2 is negative"):
        Tensor([1, -2]).bincount()
    with pytest.raises(ShapeError, match="vector of integers"):
        Tensor([[1, 2]]).bincount()


@pytest.mark.parametrize("count", [3, 64, 65, 200])
def test_isin(count: int):
    x, others = random(4, 5) * 20, random(count, seed=1) * 20
    assert_same(Tensor(x).isin(Tensor(others)), np.isin(x, others))


def test_a_mask_holds_bools():
    with pytest.raises(DTypeError, match="the mask is int32"):
        Tensor([1, 2]).masked_select(Tensor([1, 0]))


def test_quantiles_and_medians():
    x = numbers("float32", (5, 8))
    shares = [0.0, 0.25, 0.6, 1.0]
    want = np.quantile(x, shares, axis=1)
    np.testing.assert_allclose(Tensor(x).quantile(shares, 1).numpy(), want, rtol=1e-6)
    assert Tensor(x).median().item() == np.sort(x.ravel())[19]
    with pytest.raises(ArgumentError, match="unknown interpolation"):
        Tensor(x).quantile(0.5, interpolation="cubic")

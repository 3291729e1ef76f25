"""Sorting against NumPy: sizes around the blocks, ties, NaN, all dtypes; and its kernels."""

import numpy as np
import pytest

from tests.unit.tensor.compare import FLOATS, INTS, assert_same, numbers
from weft.engine.counters import GlobalCounters
from weft.support.errors import ArgumentError
from weft.tensor import Tensor
from weft.tensor.indexing.sorting import BLOCK, MOST_COUNTED


@pytest.mark.parametrize(
    "size", [1, 2, BLOCK, MOST_COUNTED, MOST_COUNTED + 1, 5 * BLOCK - 1, 1111]
)
def test_sizes(size: int, seed: int):
    x = np.random.default_rng(seed).integers(-size // 3, size, (2, size)).astype(np.int32)
    values, positions = Tensor(x).sort()
    assert_same(values, np.sort(x))
    assert_same(positions, np.argsort(x, kind="stable"))


@pytest.mark.parametrize("dtype", ["bool", "uint16", "uint32", "uint64", *INTS, *FLOATS])
def test_dtypes(dtype: str):
    if dtype.startswith("uint") or dtype == "bool":
        x = numbers(dtype, (3, 40))
    else:
        x = numbers(dtype, (3, 40)) - numbers(dtype, (3, 40), 1)
    order = np.argsort(x, axis=1, kind="stable")
    values, positions = Tensor(x).sort()
    assert_same(values, np.take_along_axis(x, order, 1))
    assert_same(positions, order)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_the_greatest_and_the_least_number(dtype: str):
    limits = np.iinfo(dtype)
    middle = [0, 1, limits.max // 2, limits.max // 2 + 1, limits.max >> 16]
    x = np.array([limits.max, limits.min, *middle, limits.max - 1, limits.min + 1], dtype)
    assert_same(Tensor(x).sort()[0], np.sort(x))
    assert_same(Tensor(x).sort(descending=True)[0], np.sort(x)[::-1].copy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_comes_last_and_zeros_are_equal(dtype: str):
    x = np.array([0.0, np.nan, -0.0, -np.inf, 1e-40, np.inf, -np.nan, -1.0], dtype)
    assert Tensor(x).argsort().tolist() == [3, 7, 0, 2, 4, 5, 1, 6]
    assert Tensor(x).argsort(descending=True).tolist() == [1, 6, 5, 4, 0, 2, 7, 3]


@pytest.mark.parametrize("k", [1, 3, 64, 100, 700])
def test_topk_of_a_long_axis(k: int, seed: int):
    x = np.random.default_rng(seed).integers(0, 300, (2, 700)).astype(np.float32)
    values, positions = Tensor(x).topk(k)
    order = np.argsort(-x, axis=1, kind="stable")[:, :k]
    assert_same(positions, order)
    assert_same(values, np.take_along_axis(x, order, 1))


def test_a_sort_is_lazy_and_merges_in_one_kernel_each():
    x = Tensor(np.arange(16 * BLOCK, dtype=np.float32)[::-1].copy()).realize()
    GlobalCounters.reset()
    positions = x.argsort()
    assert GlobalCounters.kernel_count == 0
    positions.realize()
    assert GlobalCounters.kernel_count <= 3 + 4


def test_the_work_is_not_quadratic():
    counts = []
    for size in (64 * BLOCK, 256 * BLOCK):
        x = Tensor.zeros(size).contiguous().realize()
        GlobalCounters.reset()
        x.argsort().realize()
        counts.append(GlobalCounters.global_ops / size)
    assert counts[1] < 1.5 * counts[0]


def test_topk_refuses_what_is_not_there():
    for k in (-1, 4):
        with pytest.raises(ArgumentError, match=f"topk: {k} of 3 elements"):
            Tensor([1, 2, 3]).topk(k)

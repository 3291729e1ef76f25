"""Scans against NumPy: dtypes, long axes in blocks, neighbors, and every level of a program."""

import numpy as np
import pytest

from tests.unit.tensor.compare import assert_same, numbers
from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError, AxisError, ShapeError
from weft.support.settings import Context
from weft.tensor import Tensor


@pytest.mark.parametrize("size", [1 << 15, (1 << 15) + 1, 40_007])
def test_long_scans(size: int, seed: int):
    x = np.random.default_rng(seed).integers(-9, 9, size).astype(np.int32)
    assert_same(Tensor(x).cumsum(0), np.cumsum(x, dtype=np.int64))
    backwards = np.cumsum(x[::-1], dtype=np.int64)[::-1].copy()
    assert_same(Tensor(x).flip(0).cumsum(0).flip(0), backwards)
    values, positions = Tensor(x).cummax(0)
    best = np.maximum.accumulate(x)
    assert_same(values, best)
    assert_same(positions, np.maximum.accumulate(np.where(x == best, np.arange(size), 0)))


def test_long_columns(seed: int):
    x = np.random.default_rng(seed).integers(-9, 9, (20_001, 1, 1)).astype(np.int32)
    assert_same(Tensor(x).cumsum(0) * 2, np.cumsum(x, 0, dtype=np.int64) * 2)


def test_small_floats_are_added_in_float32():
    x = Tensor.ones(3000, dtype="float16")
    assert x.cumsum(0)[-1].item() == 3000
    assert x.cumsum(0).dtype is dtypes.float16


def test_dtypes_of_sums():
    for dtype, wide in (("bool", "int64"), ("uint8", "int64"), ("uint64", "uint64")):
        assert Tensor(numbers(dtype, (4,))).cumsum().dtype.name == wide
    assert Tensor([1, 2]).cumsum(0, dtype="float64").dtype is dtypes.float64


def test_every_level_computes_the_same():
    x = numbers("float32", (3, 5))
    with Context(CHECK="levels"):
        assert_same((Tensor(x) + 1).cumsum(1) * 2, np.cumsum(x + 1, 1) * 2)
        assert_same(Tensor(x).flip(0).cumsum(0).flip(0), np.cumsum(x[::-1], 0)[::-1].copy())
        assert_same(Tensor(x).cummin(0)[0], np.minimum.accumulate(x, 0))


def test_a_scan_in_place():
    x = Tensor(np.arange(6, dtype=np.int64)).contiguous().realize()
    x.assign(x.cumsum(0))
    assert x.tolist() == [0, 1, 3, 6, 10, 15]


def test_wrong_arguments():
    x = Tensor.zeros(2, 3)
    with pytest.raises(AxisError, match="cumsum: axis 2 is out of range"):
        x.cumsum(2)
    with pytest.raises(ShapeError, match="expected at least one axis"):
        Tensor(1.0).diff()
    with pytest.raises(ArgumentError, match="both x and dx"):
        x.cumulative_trapezoid(x, dx=1.0)


@pytest.mark.parametrize("shape", [(2_000_003,), (3, 400_000), (5000, 7)])
def test_long_sums_lose_no_more_than_their_last_digits(shape: tuple[int, ...]):
    """A scan adds one by one, so in float32 its error would grow with the number of elements."""
    x = np.full(shape, 0.1, np.float32)
    axis = int(np.argmax(shape))
    exact = np.cumsum(x.astype(np.float64), axis)
    for made in (Tensor(x), Tensor.full(shape, 0.1)):
        np.testing.assert_allclose(made.cumsum(axis).numpy(), exact, rtol=2e-7)

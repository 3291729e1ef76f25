"""Adding by index: repeated and missing numbers, dtypes, gradients, against NumPy and torch."""

import numpy as np
import pytest

from weft.engine.counters import GlobalCounters
from weft.support.settings import Context
from weft.tensor.tensor import Tensor

ROWS = np.array([3, 0, 3, -1, 3, 0])


def numbers(dtype, shape, seed=0):
    values = np.random.default_rng(seed).integers(-4, 5, shape)
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "float16"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_index_add(dtype, axis):
    shape = [5, 5, 5]
    x = numbers(dtype, shape)
    shape[axis] = 6
    values = numbers(dtype, shape, 1)
    want = x.copy()
    np.add.at(want, (*[slice(None)] * axis, ROWS), values)
    found = Tensor(x).index_add(axis, Tensor(ROWS), Tensor(values))
    np.testing.assert_array_equal(found.numpy(), want)


def test_index_put_with_accumulate():
    x, values = numbers("float32", (5, 4)), numbers("float32", (6,), 1)
    columns = np.array([0, 1, 0, 1, 0, 2])
    want = x.copy()
    np.add.at(want, (ROWS, columns), values)
    indices = Tensor(ROWS), Tensor(columns)
    found = Tensor(x).index_put(indices, Tensor(values), accumulate=True)
    np.testing.assert_array_equal(found.numpy(), want)


def test_nothing_to_add():
    x = Tensor([1.0, 2.0])
    none = Tensor(np.zeros(0, np.int64))
    assert x.index_add(0, none, Tensor(np.zeros(0, np.float32))).tolist() == [1, 2]
    assert x.scatter_add(0, none, Tensor(np.zeros(0, np.float32))).tolist() == [1, 2]
    empty = Tensor(np.zeros((0, 2), np.float32))
    assert empty.index_add(1, Tensor([0, 1]), empty).shape == (0, 2)


def test_computed_numbers_outside_add_nothing():
    x = Tensor([1, 1, 1])
    found = x.index_add(0, Tensor([5, -4, -1, 2]) + 0, Tensor([10, 20, 30, 40]))
    assert found.tolist() == [1, 1, 71]


def test_the_order_is_that_of_the_index():
    """In another order the great numbers would not cancel first."""
    values = np.array([1e8, -1e8, 1.0, 3e8, -3e8, 1.0], np.float32)
    found = Tensor.zeros(1).index_add(0, Tensor([0] * 6), Tensor(values))
    assert found.tolist() == [np.float32(1 + 3e8) - np.float32(3e8) + 1]


def test_small_floats_are_added_in_float32():
    ones = Tensor(np.ones(5000, np.float16))
    found = Tensor(np.zeros(1, np.float16)).index_add(0, Tensor([0] * 5000), ones)
    assert found.tolist() == [5000]


def test_every_level_agrees():
    x, values = numbers("float32", (5, 3)), numbers("float32", (6, 3), 1)
    table = Tensor(x)
    table.requires_grad_(True)
    with Context(CHECK="levels"):
        (table[Tensor(ROWS)] * Tensor(values)).sum().backward()
        found = table.grad.numpy()
        summed = Tensor(x).scatter_reduce(0, Tensor(ROWS[:, None]), Tensor(values), "amax")
        greatest = summed.numpy()
    want = np.zeros_like(x)
    np.add.at(want, ROWS, values)
    np.testing.assert_array_equal(found, want)
    want = x.copy()
    np.maximum.at(want[:, 0], ROWS, values[:, 0])
    np.testing.assert_array_equal(greatest, want)


def test_bincount_with_weights():
    number = np.random.default_rng(0).integers(0, 9, 50)
    for dtype in ("float32", "float64"):
        weights = numbers(dtype, 50)
        found = Tensor(number).bincount(Tensor(weights))
        np.testing.assert_array_equal(found.numpy(), np.bincount(number, weights))


def test_a_write_to_what_is_read():
    """The table is read, added to and written back, and the sum of the old one is kept."""
    x = Tensor(numbers("float32", (5, 3)))
    x.realize()
    old = x.sum(0)
    x.assign(x.index_add(0, Tensor(ROWS), x[Tensor(ROWS)] * 2))
    want = numbers("float32", (5, 3))
    before = want.copy()
    np.add.at(want, ROWS, before[ROWS] * 2)
    np.testing.assert_array_equal(x.numpy(), want)
    np.testing.assert_array_equal(old.numpy(), before.sum(0))


@pytest.mark.peers("torch")
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("included", [True, False])
def test_gradients_of_scatter_reduce(reduce, included):
    generator = np.random.default_rng(0)
    x, values = (generator.permutation(n).reshape(-1, 3) + 1.0 for n in (15, 18))
    index = generator.integers(0, 5, (6, 3))
    weights = generator.standard_normal((5, 3))

    def run(make, torch_like):
        a, b = make(x), make(values)
        a.requires_grad_(True)
        b.requires_grad_(True)
        how = {"include_self": included}
        made = a.scatter_reduce(0, torch_like(index), b, reduce, **how)
        (made * torch_like(weights)).sum().backward()
        return [part.grad.numpy() for part in (a, b)]

    import torch

    found, want = run(Tensor, Tensor), run(torch.tensor, torch.tensor)
    for mine, theirs in zip(found, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


@pytest.mark.peers("torch")
def test_gradients_of_sort_topk_and_masks():
    x = np.random.default_rng(0).standard_normal((4, 9)).astype(np.float32)
    import torch

    for make in (
        lambda x: x.sort(1)[0],
        lambda x: x.topk(3)[0],
        lambda x: x[x > 0],
    ):
        mine, theirs = Tensor(x), torch.tensor(x)
        for each in (mine, theirs):
            each.requires_grad_(True)
            made = make(each)
            (made * made).sum().backward()
        np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 16, 17, 40])
def test_slices_are_copied_in_place(count):
    generator = np.random.default_rng(count)
    x, rows = numbers("float32", (4, 50)), generator.integers(-50, 50, count)
    values = numbers("float32", (4, count), 1)
    whole = Tensor(np.stack((x, x)))
    whole[1].index_copy_(1, Tensor(rows), Tensor(values))
    x[:, rows] = values
    np.testing.assert_array_equal(whole.numpy()[1], x)


def test_a_slice_in_place_leaves_the_others_alone():
    cache = Tensor(np.zeros((64, 128), np.float32)).realize()
    row, values = Tensor([5]).realize(), Tensor(np.ones((1, 128), np.float32)).realize()
    GlobalCounters.reset()
    cache.index_copy_(0, row, values).realize()
    assert GlobalCounters.kernel_count == 1
    assert GlobalCounters.global_mem < 4 * 128 * 4
    assert cache.numpy().sum() == 128

"""Filled diagonals, functions of elements, shifts and samples that are written."""

import numpy as np
import pytest

import weft
from weft import ShapeError, Tensor

DIAGONALS = [
    ((3, 3), False), ((7, 3), True), ((7, 3), False), ((3, 7), True), ((3, 3, 3), False),
    ((8, 3), True), ((4, 1), True),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "wrap"), DIAGONALS)
def test_fill_diagonal(shape: tuple[int, ...], wrap: bool):
    wanted = np.zeros(shape, np.float32)
    np.fill_diagonal(wanted, 2.0, wrap)
    x = Tensor.zeros(*shape).contiguous()
    assert x.fill_diagonal_(2.0, wrap) is x
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_functions_of_elements():
    assert Tensor([[1.0], [2.0]]).apply_(lambda x: x * x).tolist() == [[1.0], [4.0]]
    assert Tensor([1, 2]).map_(Tensor([3]), max).tolist() == [3, 3]
    assert Tensor([1.0]).map2_(Tensor([2.0]), Tensor([5.0]), lambda *x: sum(x)).tolist() == [8.0]
    assert Tensor([1.0], dtype="float64").new(2).dtype is weft.float64
    assert Tensor([1, 2]).ger(Tensor([3, 4])).tolist() == [[3, 4], [6, 8]]
    assert [each.shape for each in Tensor.ones(5).unsafe_split_with_sizes([2, 3])] == [(2,), (3,)]
    with pytest.raises(ShapeError, match="ger: a tensor with 2 axes"):
        weft.ger(Tensor([[1.0]]), Tensor([1.0]))
    with pytest.raises(ShapeError, match="fill_diagonal_"):
        Tensor.zeros(2, 3, 2).fill_diagonal_(1)


def test_shifts():
    x = Tensor([1, -8, 3])
    assert weft.bitwise_left_shift(x, 2).tolist() == [4, -32, 12]
    assert x.bitwise_right_shift(Tensor([0, 1, 1])).tolist() == [1, -4, 1]
    assert x.bitwise_left_shift_(1) is x and x.tolist() == [2, -16, 6]


@pytest.mark.parametrize(
    ("name", "args", "median"),
    [
        ("exponential_", (2.0,), np.log(2) / 2),
        ("cauchy_", (1.0, 2.0), 1.0),
        ("log_normal_", (0.5, 1.0), np.exp(0.5)),
        ("geometric_", (0.3,), 2.0),
    ],
)
def test_samples(name: str, args: tuple[float, ...], median: float):
    Tensor.manual_seed(0)
    x = Tensor.zeros(20_000).contiguous()
    assert getattr(x, name)(*args) is x
    assert abs(np.median(x.numpy()) - median) < 0.06
    assert getattr(Tensor.zeros(2, dtype="float64"), name)(*args).dtype is weft.float64

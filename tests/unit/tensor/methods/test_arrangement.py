"""Shapes by name, selection by number and in-place forms against NumPy."""

import numpy as np
import pytest

from weft.support.errors import ArgumentError, DTypeError, NotSupported, ShapeError
from weft.tensor import Tensor


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


@pytest.mark.parametrize("k", range(-3, 5))
def test_rot90(k: int):
    array = numbers(2, 3, 4)
    np.testing.assert_array_equal(
        Tensor(array).rot90(k, (2, 0)).numpy(), np.rot90(array, k, (2, 0))
    )


@pytest.mark.parametrize("cuts", [3, 5, (1, 4), (4, 1), (-2,), ()])
def test_tensor_split(cuts: int | tuple[int, ...]):
    array = numbers(7, 2)
    parts = Tensor(array).tensor_split(cuts)
    for ours, theirs in zip(parts, np.array_split(array, cuts), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


@pytest.mark.parametrize(
    ("formula", "sizes", "shape", "wanted"),
    [
        ("a b -> b a", {}, (2, 3), lambda x: x.T),
        ("(a b) -> a b", {"b": 3}, (6,), lambda x: x.reshape(2, 3)),
        ("a b c -> (c a) b", {}, (2, 3, 4), lambda x: x.transpose(2, 0, 1).reshape(8, 3)),
        ("a ... -> ... a", {}, (2, 3, 4), lambda x: x.transpose(1, 2, 0)),
        ("... -> (...)", {}, (2, 3), lambda x: x.reshape(6)),
        ("a 1 b -> a b 1 1", {}, (2, 1, 3), lambda x: x.reshape(2, 3, 1, 1)),
        (" -> ", {}, (), lambda x: x),
        ("b (c x y) -> b c x y", {"x": 2, "y": 2}, (2, 12), lambda x: x.reshape(2, 3, 2, 2)),
    ],
)
def test_rearrange(formula: str, sizes: dict[str, int], shape: tuple[int, ...], wanted: object):
    array = numbers(*shape)
    made = Tensor(array).rearrange(formula, **sizes)
    np.testing.assert_array_equal(made.numpy(), wanted(array))  # type: ignore[operator]


@pytest.mark.parametrize(
    "formula",
    [
        "a b",
        "a b -> a -> b",
        "a a -> a",
        "a (b -> b a",
        "a ... -> a",
        "a ... ... -> ...",
        "a ? -> a",
    ],
)
def test_formulas_that_are_none(formula: str):
    with pytest.raises(ArgumentError):
        Tensor(numbers(2, 3)).rearrange(formula)


def test_rearrange_sizes_must_fit():
    with pytest.raises(ShapeError):
        Tensor(numbers(6)).rearrange("(a b) -> a b", a=4)
    with pytest.raises(ArgumentError):
        Tensor(numbers(6)).rearrange("a -> a", b=4)


def test_views_are_written_through():
    x = Tensor(numbers(2, 3))
    x.unbind(1)[2].assign(Tensor([7, 8]))
    x.narrow(1, 0, 2)[0] = 5
    assert x.tolist() == [[5, 5, 7], [3, 4, 8]]


def test_in_place_forms_change_the_tensor_and_its_views():
    x = Tensor([1.0, 4.0, 9.0])
    view = x[1:]
    assert x.sqrt_() is x
    assert view.tolist() == [2.0, 3.0]
    view.mul_(2).add_(1)
    assert x.tolist() == [1.0, 5.0, 7.0]
    assert x.zero_().tolist() == [0.0, 0.0, 0.0]
    assert view.fill_(3).tolist() == [3.0, 3.0]
    assert x.tolist() == [0.0, 3.0, 3.0]


def test_in_place_forms_keep_the_dtype_and_the_leaf():
    with pytest.raises(DTypeError):
        Tensor([1, 2]).sqrt_()
    with pytest.raises(ShapeError):
        Tensor([1, 2]).add_(Tensor([[1, 2], [3, 4]]))
    leaf = Tensor([1.0], requires_grad=True)
    with pytest.raises(NotSupported):
        leaf.mul_(2)
    assert leaf.fill_(2.0).tolist() == [2.0]
    assert leaf.requires_grad


def test_index_put_adds_every_value():
    array = np.zeros((3, 2), np.int32)
    rows, columns = np.array([0, 2, 0, 0]), np.array([1, 1, 1, 0])
    made = Tensor(array).index_put(
        (Tensor(rows), Tensor(columns)), Tensor([1, 2, 3, 4]), accumulate=True
    )
    np.add.at(array, (rows, columns), [1, 2, 3, 4])
    np.testing.assert_array_equal(made.numpy(), array)


def test_pool_indices_name_the_first_of_equal_ones():
    x = Tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    values, where = x.max_pool2d((2, 2), 1, return_indices=True)
    assert (values.tolist(), where.tolist()) == ([[1.0, 1.0]], [[0, 1]])


def test_padding_is_never_the_greatest():
    x = Tensor([[[[-np.inf, -np.inf], [-np.inf, -np.inf]]]])
    values, where = x.max_pool2d(2, padding=1, return_indices=True)
    assert where.tolist() == [[[[0, 1], [2, 3]]]]
    assert values.tolist() == [[[[-np.inf] * 2] * 2]]

"""Operations on two operands: values, dtypes, broadcasting, weak scalars, in-place forms."""

import operator
from typing import Any

import numpy as np
import pytest

from tests.unit.tensor.compare import (
    EDGES,
    FLOATS,
    INTS,
    SPECIAL,
    assert_like_torch,
    assert_same,
    numbers,
)
from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError, DTypeError
from weft.tensor import Tensor

ARITHMETIC = (operator.add, operator.sub, operator.mul)
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
BITS = (operator.and_, operator.or_, operator.xor)
SHAPES = (
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((2, 1, 3), (4, 1)),
    ((), (3,)),
    ((0, 2), (1, 2)),
    ((), ()),
)


@pytest.mark.peers("torch")
@pytest.mark.parametrize("function", ARITHMETIC + COMPARISONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", INTS + FLOATS)
def test_arithmetic_and_comparisons(function: Any, dtype: str):
    for left, right in SHAPES:
        assert_like_torch(function, numbers(dtype, left, 1), numbers(dtype, right, 2))


@pytest.mark.peers("torch")
@pytest.mark.parametrize("function", (*BITS, operator.add, operator.mul), ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ("bool", "uint8", "int32"))
def test_bits(function: Any, dtype: str):
    assert_like_torch(function, numbers(dtype, (9,), 1), numbers(dtype, (9,), 2))


@pytest.mark.parametrize("dtype", ("int8", "int32", "int64", "uint8", "float32", "float64"))
@pytest.mark.parametrize("function", (operator.floordiv, operator.mod), ids=lambda f: f.__name__)
def test_division_rounds_down(function: Any, dtype: str):
    left = numbers(dtype, (40,), 1)
    right = numbers(dtype, (40,), 2)
    right[right == 0] = 3
    assert_same(function(Tensor(left), Tensor(right)), function(left, right))


def test_integer_division_by_zero_is_zero():
    x = Tensor([5, -5])
    assert (x // 0).tolist() == [0, 0]
    assert (x % 0).tolist() == [0, 0]


@pytest.mark.peers("torch")
@pytest.mark.parametrize("mode", (None, "floor", "trunc"))
@pytest.mark.parametrize("dtype", ("int32", "float32"))
def test_div(mode: str | None, dtype: str):
    right = numbers(dtype, (4, 5), 2)
    right[right == 0] = 2
    assert_like_torch(lambda x, y: x.div(y, rounding_mode=mode), numbers(dtype, (4, 5), 1), right)


@pytest.mark.peers("torch")
def test_floats_at_the_edges():
    import torch

    values = np.array(EDGES + SPECIAL, np.float32)
    left, right = (each.reshape(-1) for each in np.meshgrid(values, values))
    for function in (*ARITHMETIC, *COMPARISONS, operator.truediv):
        assert_like_torch(function, left, right, rtol=0, atol=0)
    assert_like_torch(lambda x, y: x.fmod(y), left, right, rtol=0, atol=0)
    assert_like_torch(lambda x, y: x.maximum(y), left, right)
    assert_like_torch(lambda x, y: x.minimum(y), left, right)
    assert_like_torch(operator.pow, left, right)
    assert_like_torch(lambda x, y: x.copysign(y), left, right, rtol=0, atol=0)
    assert_like_torch(lambda x, y: x.logaddexp(y), left, right, other=torch.logaddexp, rtol=1e-5)
    assert_like_torch(
        lambda x, y: x.lerp(y, 0.25), left, right, other=lambda x, y: x + 0.25 * (y - x)
    )


@pytest.mark.peers("torch")
@pytest.mark.parametrize("dtype", ("int32", "int64", "uint8"))
def test_integer_powers(dtype: str):
    base = numbers(dtype, (30,), 1)
    assert_like_torch(operator.pow, base, np.abs(numbers(dtype, (30,), 2)))
    if dtype != "uint8":
        assert_like_torch(operator.pow, base[base != 0], numbers(dtype, (30,), 2)[base != 0])
    assert_like_torch(lambda x: x**3, base)


def test_integers_wrap():
    x = Tensor(np.array([127, -128], np.int8))
    assert (x + x).tolist() == [-2, 0]
    assert (-x).tolist() == [-127, -128]
    assert abs(x).tolist() == [127, -128]
    assert (Tensor(np.array([250], np.uint8)) * 2).tolist() == [244]


@pytest.mark.peers("torch")
@pytest.mark.parametrize("scalar", (3, -2, 2.5, True))
@pytest.mark.parametrize("dtype", ("int8", "int64", "uint8", "float16", "float32", "float64"))
def test_scalars_are_weak(scalar: float, dtype: str):
    x = np.abs(numbers(dtype, (5,), 1)) + numbers(dtype, (5,), 1).astype(dtype)
    assert_like_torch(lambda t: t + scalar, x)
    assert_like_torch(lambda t: scalar * t, x)
    assert_like_torch(lambda t: t < scalar, x)
    if not isinstance(scalar, bool):
        assert_like_torch(lambda t: t - scalar, x)
        assert_like_torch(lambda t: scalar - t, x)
        assert_like_torch(lambda t: t / scalar, x, rtol=1e-3 if dtype == "float16" else 2e-6)


def test_a_bool_meets_an_int_in_the_default_int():
    assert (Tensor([True]) + 1).dtype is dtypes.default_int
    assert (Tensor([True]) + 1.0).dtype is dtypes.default_float


@pytest.mark.peers("torch")
@pytest.mark.parametrize("left", ("bool", "uint8", "int8", "int32", "int64", "float16", "float32"))
@pytest.mark.parametrize("right", ("bool", "uint8", "int16", "int64", "float16", "float64"))
def test_promotion(left: str, right: str):
    assert_like_torch(operator.mul, numbers(left, (4,), 1), numbers(right, (4,), 2))


def test_bfloat16_and_half_meet_in_float32():
    x = Tensor([1.5]).bfloat16() * Tensor([2.0]).half()
    assert x.dtype is dtypes.float32
    assert x.tolist() == [3.0]


def test_reflected_operators():
    x = Tensor([1, 2, 4])
    assert (10 - x).tolist() == [9, 8, 6]
    assert (8 / x).tolist() == [8.0, 4.0, 2.0]
    assert (9 // x).tolist() == [9, 4, 2]
    assert (9 % x).tolist() == [0, 1, 1]
    assert (2**x).tolist() == [2, 4, 16]
    assert (7 & x).tolist() == [1, 2, 4]
    assert (1 | x).tolist() == [1, 3, 5]
    assert (1 ^ x).tolist() == [0, 3, 5]
    assert (1 << x).tolist() == [2, 4, 16]
    assert (64 >> x).tolist() == [32, 16, 4]
    assert (x < 3).tolist() == [True, True, False]


def test_arrays_are_operands():
    x = Tensor([1, 2])
    assert (np.array([3, 4], np.int32) - x).tolist() == [2, 2]
    assert (x * np.int32(3)).tolist() == [3, 6]
    assert isinstance(np.array([3, 4], np.int32) - x, Tensor)


def test_in_place_operators():
    for function in (
        operator.iadd,
        operator.isub,
        operator.imul,
        operator.ifloordiv,
        operator.imod,
        operator.ipow,
        operator.iand,
        operator.ior,
        operator.ixor,
        operator.ilshift,
        operator.irshift,
    ):
        array = np.array([5, 9, 12], np.int32)
        x = Tensor(array)
        view = x[1:]
        same = function(x, 3)
        assert same is x
        expected = function(array.copy(), 3)
        assert x.tolist() == expected.tolist(), function
        assert view.tolist() == expected[1:].tolist()


def test_in_place_keeps_the_dtype():
    x = Tensor([1.0, 2.0]).half()
    x += Tensor([1.0, 1.0]).double()
    assert x.dtype is dtypes.float16
    y = Tensor([1, 2])
    with pytest.raises(DTypeError, match="cannot be written to int32"):
        y += 1.5
    with pytest.raises(DTypeError):
        y /= 2


@pytest.mark.peers("torch")
def test_where():
    import torch

    condition = numbers("bool", (3, 1), 3)
    for a, b in (("int32", "int32"), ("int32", "float32"), ("float16", "float64")):
        assert_like_torch(
            lambda c, x, y: c.where(x, y),
            condition,
            numbers(a, (3, 4), 1),
            numbers(b, (4,), 2),
            other=torch.where,
        )
    assert Tensor([True, False]).where(1, 0.5).tolist() == [1.0, 0.5]
    assert Tensor([True, False]).where(Tensor([1, 2]), 7).dtype is dtypes.int32


def test_methods_with_reverse():
    x = Tensor([1.0, 2.0])
    assert x.sub(5, reverse=True).tolist() == [4.0, 3.0]
    assert x.div(4, reverse=True).tolist() == [4.0, 2.0]
    assert x.pow(2, reverse=True).tolist() == [2.0, 4.0]


def test_comparison_with_none_is_no_tensor():
    assert (Tensor([1]) == None) is False  # noqa: E711
    assert (Tensor([1]) != None) is True  # noqa: E711


def test_integers_have_no_negative_scalar_powers():
    with pytest.raises(ArgumentError, match="to a negative power"):
        Tensor([2]) ** -1


def test_clamp_and_masked_fill():
    x = Tensor([-3.0, float("nan"), 2.0])
    assert str(x.clamp(-1, 1).tolist()) == "[-1.0, nan, 1.0]"
    assert x.clamp(min_=Tensor([0.0, 0.0, 5.0])).tolist()[2] == 5.0
    assert Tensor([1, 2]).masked_fill(Tensor([True, False]), 9.7).tolist() == [9, 2]


@pytest.mark.peers("torch")
def test_isclose():
    left = np.array([1.0, np.nan, np.inf, -np.inf, 1e-9, 0.0], np.float32)
    right = np.array([1.0 + 1e-6, np.nan, np.inf, np.inf, 0.0, 1e-4], np.float32)
    assert_like_torch(lambda x, y: x.isclose(y), left, right)
    assert_like_torch(lambda x, y: x.isclose(y, equal_nan=True), left, right)

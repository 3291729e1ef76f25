"""Complex numbers by the array API standard, with NumPy as the oracle."""

import numpy as np
import pytest

from weft import array_api as xp
from weft.support.errors import DTypeError

RANDOM = np.random.default_rng(0)
UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "reciprocal",
    "negative",
    "positive",
    "square",
    "isfinite",
    "isinf",
    "isnan",
    "conj",
    "real",
    "imag",
    "sign",
    "round",
]
PAIRS = ["add", "subtract", "multiply", "divide", "pow", "equal", "not_equal", "vecdot"]
SHAPES = [
    "flip",
    "matrix_transpose",
    "tril",
    "triu",
    "zeros_like",
    "ones_like",
    "sum",
    "prod",
    "mean",
    "any",
    "all",
]


def numbers(dtype, *shape):
    values = RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)
    return (2 * values).astype(dtype)


def require_same(found, wanted):
    wanted = np.asarray(wanted)
    assert found.dtype.name == wanted.dtype.name
    assert found.shape == wanted.shape
    tolerance = 1e-4 if wanted.dtype in (np.complex64, np.float32) else 1e-10
    np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [*UNARY, *SHAPES])
def test_functions_of_one_array(name):
    x = numbers("complex64", 2, 3)
    require_same(getattr(xp, name)(xp.asarray(x)), getattr(np, name)(x))


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_arrays(name):
    x, y = numbers("complex128", 2, 3), numbers("complex128", 2, 3)
    require_same(getattr(xp, name)(xp.asarray(x), xp.asarray(y)), getattr(np, name)(x, y))


def test_promotion():
    for ours in ("complex64", "complex128"):
        for other in ("float32", "float64", "complex64", "complex128"):
            pair = (getattr(xp, ours), getattr(xp, other))
            assert xp.result_type(*pair).name == np.result_type(ours, other).name
    assert xp.result_type(xp.float64, 1j) is xp.complex128
    assert xp.result_type(xp.complex64, 2.5) is xp.complex64
    assert xp.result_type(xp.float32, 1j) is xp.complex64
    assert xp.asarray([1j, 2]).dtype is xp.complex64
    require_same(xp.add(xp.asarray(np.ones(2, "float32")), 1j), np.ones(2, "float32") + 1j)
    assert xp.can_cast(xp.float32, xp.complex64) and not xp.can_cast(xp.complex64, xp.float32)
    limits, wanted = xp.finfo(xp.complex128), np.finfo("complex128")
    assert (limits.eps, limits.max, limits.dtype) == (wanted.eps, wanted.max, xp.float64)


def test_creation_and_products():
    require_same(xp.linspace(0, 1j, 3, dtype=xp.complex128), np.linspace(0, 1j, 3))
    require_same(xp.full(2, 1 + 2j, dtype=xp.complex128), np.full(2, 1 + 2j))
    require_same(xp.eye(2, dtype=xp.complex64), np.eye(2, dtype="complex64"))
    x, y = numbers("complex64", 2, 3), numbers("complex64", 3, 2)
    require_same(xp.matmul(xp.asarray(x), xp.asarray(y)), x @ y)
    require_same(xp.concat([xp.asarray(x), xp.asarray(x)]), np.concat([x, x]))
    require_same(xp.cumulative_sum(xp.asarray(x), axis=1), np.cumsum(x, 1))
    require_same(xp.std(xp.asarray(x)), np.std(x))
    square = numbers("complex64", 3, 3)
    require_same(xp.linalg.inv(xp.asarray(square)), np.linalg.inv(square))


def test_what_has_no_meaning_is_refused():
    x = xp.asarray(numbers("complex64", 2))
    for call in (lambda: xp.less(x, x), lambda: xp.max(x), lambda: xp.floor(x)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(DTypeError, match="imag: elements of float32"):
        xp.imag(xp.ones(2))
    with pytest.raises(DTypeError, match="complex64 becomes float32"):
        xp.astype(x, xp.float32)

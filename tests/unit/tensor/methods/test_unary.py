"""Functions of one operand, against PyTorch, at the edges too."""

import numpy as np
import pytest

from tests.unit.tensor.compare import EDGES, SPECIAL, assert_like_torch, numbers
from weft.ir.dtypes import dtypes
from weft.support.errors import DTypeError
from weft.tensor import Tensor

SMOOTH = (
    *("sqrt", "rsqrt", "reciprocal", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("atanh", "erf", "sigmoid", "square"),
)
ROUNDING = ("floor", "ceil", "trunc", "round", "abs", "sign", "neg", "frac")
TESTS = ("isnan", "isinf", "isfinite", "signbit", "logical_not")
ACTIVATIONS = (
    *("relu", "relu6", "hardsigmoid", "hardswish", "leaky_relu", "silu", "elu", "celu", "selu"),
    *("mish", "softplus", "softsign", "hardtanh", "logsigmoid", "gelu"),
)
VALUES = np.array(EDGES + SPECIAL + (0.9, -0.99, 1e-7, 88.0, -100.0, 1e10), np.float64)


@pytest.mark.peers("torch")
@pytest.mark.parametrize("dtype", ("float32", "float64", "float16"))
@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions(name: str, dtype: str):
    with np.errstate(over="ignore"):
        values = VALUES.astype(dtype)
    rtol = {"float32": 3e-6, "float64": 1e-11, "float16": 3e-3}[dtype]
    if name in ("sin", "cos", "tan"):
        values = values[np.abs(values) < 1e4]
    assert_like_torch(lambda x: getattr(x, name)(), values, rtol=rtol, atol=1e-30)


@pytest.mark.peers("torch")
@pytest.mark.parametrize("name", ("exp", "sqrt", "sin", "sigmoid", "log1p"))
@pytest.mark.parametrize("dtype", ("bool", "uint8", "int64"))
def test_integers_become_floats(name: str, dtype: str):
    assert_like_torch(lambda x: getattr(x, name)(), np.abs(numbers(dtype, (5,))))


@pytest.mark.peers("torch")
@pytest.mark.parametrize("name", ROUNDING)
@pytest.mark.parametrize("dtype", ("float32", "float64", "int32", "uint8"))
def test_rounding(name: str, dtype: str):
    if (name, dtype) in (("frac", "int32"), ("frac", "uint8")):
        pytest.skip("PyTorch has no fractional part of integers")
    values = VALUES.astype(dtype) if dtype.startswith("f") else numbers(dtype, (20,))
    if name == "frac":
        values = values[np.isfinite(values)]
    assert_like_torch(lambda x: getattr(x, name)(), values, rtol=0, atol=0)


@pytest.mark.peers("torch")
@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("dtype", ("float32", "float16", "int32", "bool", "uint8"))
def test_questions(name: str, dtype: str):
    values = (
        VALUES.astype(np.float32).astype(dtype) if dtype == "float32" else numbers(dtype, (9,))
    )
    assert_like_torch(lambda x: getattr(x, name)(), values)


def test_infinities_by_sign():
    x = Tensor([float("inf"), float("-inf"), 0.0])
    assert x.isinf(detect_negative=False).tolist() == [True, False, False]
    assert x.isinf(detect_positive=False).tolist() == [False, True, False]


@pytest.mark.peers("torch")
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_activations(name: str, dtype: str):
    import torch.nn.functional as functional

    kwargs = {"approximate": "tanh"} if name == "gelu" else {}
    values = VALUES.astype(dtype)
    if name in ("hardswish", "mish", "gelu", "silu", "softsign"):
        values = values[np.isfinite(values)]  # infinity times zero differs by formula
    assert_like_torch(
        lambda x: getattr(x, name)(**kwargs),
        values,
        other=lambda x: getattr(functional, name)(x, **kwargs),
        rtol=1e-5,
        atol=2e-6,
    )


@pytest.mark.peers("torch")
def test_gelu_without_approximation():
    import torch.nn.functional as functional

    values = VALUES[np.isfinite(VALUES)].astype(np.float32)
    assert_like_torch(
        lambda x: x.gelu(approximate="none"), values, other=functional.gelu, rtol=1e-5, atol=1e-6
    )


@pytest.mark.peers("torch")
@pytest.mark.parametrize("dtype", ("bool", "uint8", "int32"))
def test_bitwise_not(dtype: str):
    assert_like_torch(lambda x: ~x, numbers(dtype, (9,)))


def test_results_of_integers_are_copies():
    x = Tensor([1, 2])
    y = x.floor()
    y += 1
    assert x.tolist() == [1, 2]


def test_what_is_not_defined():
    with pytest.raises(DTypeError, match="neg: not defined for bool"):
        -Tensor([True])
    with pytest.raises(DTypeError, match="bitwise_not: not defined for float32"):
        ~Tensor([1.0])
    with pytest.raises(DTypeError, match="sub: not defined for bool"):
        Tensor([True]) - Tensor([True])


def test_small_floats():
    x = Tensor([1.0, 2.0]).bfloat16()
    assert x.exp().dtype is dtypes.bfloat16
    assert (x / 3).tolist() == [0.333984375, 0.66796875]

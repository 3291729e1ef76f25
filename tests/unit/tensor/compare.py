"""Comparison with PyTorch and NumPy, which this folder's tests share."""

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.tensor import Tensor

INTS = ("int8", "int16", "int32", "int64", "uint8")
FLOATS = ("float16", "float32", "float64")
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -8.25, 1e-4, -1e-4, 20.0, -20.0)
SPECIAL = (float("inf"), float("-inf"), float("nan"))


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Small random values, exact in every dtype."""
    source = np.random.default_rng(seed)
    low = 0 if dtype.startswith("u") else -6
    if dtype == "bool":
        return source.integers(0, 2, shape).astype(bool)
    values = source.integers(low, 7, shape)
    return np.asarray(values / 2 if dtype.startswith("float") else values).astype(dtype)


def torch_of(value: Any) -> Any:
    import torch

    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, (list, tuple)):
        return type(value)(torch_of(each) for each in value)
    return value


def weft_of(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return Tensor(value)
    if isinstance(value, (list, tuple)):
        return type(value)(weft_of(each) for each in value)
    return value


def assert_like_torch(
    function: Callable[..., Any],
    *arguments: Any,
    other: Callable[..., Any] | None = None,
    rtol: float = 2e-6,
    atol: float = 1e-6,
) -> None:
    """The function of tensors gives what it (or the other) gives in PyTorch: values and dtype."""
    expected = (other or function)(*map(torch_of, arguments))
    actual = function(*map(weft_of, arguments))
    several = isinstance(expected, (list, tuple))
    assert isinstance(actual, (list, tuple)) == several
    pairs = zip(actual, expected, strict=True) if several else [(actual, expected)]
    for ours, theirs in pairs:
        assert_same(ours, theirs.detach().numpy(), rtol, atol)


def assert_same(ours: Tensor, array: Any, rtol: float = 0, atol: float = 0) -> None:
    """Shape, dtype and values are those of an array."""
    array = np.asarray(array)
    assert ours.shape == array.shape
    assert ours.dtype.name == array.dtype.name
    if array.dtype == np.float16:
        rtol, atol = max(rtol, 2e-3), max(atol, 1e-3)
    np.testing.assert_allclose(ours.numpy(), array, rtol=rtol, atol=atol)
    if array.dtype.kind == "f":
        zeros = array == 0
        if not atol:
            np.testing.assert_array_equal(
                np.signbit(ours.numpy()[zeros]), np.signbit(array[zeros])
            )

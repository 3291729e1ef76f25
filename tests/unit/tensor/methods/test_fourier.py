"""Fourier transforms of any length, against numpy.fft."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft.support.errors import ArgumentError, ShapeError
from weft.tensor import Tensor

# Small, a product of small factors, two stages, primes below and above the largest factor.
LENGTHS = (1, 2, 5, 12, 31, 37, 48, 74, 105)
NORMS = (None, "ortho", "forward", "backward")


def pairs(z: Any, dtype: str = "float64") -> Any:
    return np.stack([z.real, z.imag], -1).astype(dtype)


def numbers(*shape: int, seed: int = 0) -> Any:
    source = np.random.default_rng(seed)
    return source.normal(size=shape) + 1j * source.normal(size=shape)


def assert_near(ours: Tensor, exact: Any) -> None:
    """A few roundings for each of log n stages, of the largest number."""
    got = ours.numpy()
    wanted = pairs(exact) if np.iscomplexobj(exact) else exact
    assert got.shape == wanted.shape
    limit = 20 * np.finfo(got.dtype).eps * max(np.abs(wanted).max(initial=0), 1e-30)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=limit)


@pytest.mark.parametrize("size", LENGTHS)
def test_every_length(size: int):
    z = numbers(2, size)
    assert_near(Tensor(pairs(z)).fft(), np.fft.fft(z))
    assert_near(Tensor(pairs(z)).ifft(), np.fft.ifft(z))
    assert_near(Tensor(z.real).rfft(), np.fft.rfft(z.real))
    half = np.fft.rfft(z.real)
    assert_near(Tensor(pairs(half)).irfft(n=size), z.real)


def test_float32_and_a_large_length():
    z = numbers(1024)
    ours = Tensor(pairs(z, "float32")).fft()
    assert ours.dtype.name == "float32"
    assert_near(ours, np.fft.fft(pairs(z, "float32").astype("float64") @ np.array([1, 1j])))


@pytest.mark.parametrize("norm", NORMS)
def test_norms(norm: Any):
    z = numbers(3, 6)
    assert_near(Tensor(pairs(z)).fft(norm=norm), np.fft.fft(z, norm=norm))
    assert_near(Tensor(pairs(z)).ifft(norm=norm), np.fft.ifft(z, norm=norm))
    assert_near(Tensor(z.real).rfft2(norm=norm), np.fft.rfft2(z.real, norm=norm))
    assert_near(Tensor(pairs(z)).irfft2(norm=norm), np.fft.irfft2(z, norm=norm))


@pytest.mark.parametrize("size", [3, 4, 8])
def test_lengths_and_axes(size: int):
    z = numbers(4, 6, 2)
    for axis in (0, 1, -1, -3):
        assert_near(Tensor(pairs(z)).fft(size, axis), np.fft.fft(z, size, axis))
        assert_near(Tensor(z.real).rfft(size, axis), np.fft.rfft(z.real, size, axis))
        assert_near(Tensor(pairs(z)).irfft(size, axis), np.fft.irfft(z, size, axis))


def test_two_axes():
    z = numbers(2, 5, 6)
    assert_near(Tensor(pairs(z)).fft2(), np.fft.fft2(z))
    assert_near(Tensor(pairs(z)).ifft2((4, 8)), np.fft.ifft2(z, (4, 8)))
    assert_near(Tensor(pairs(z)).fft2(dim=(0, 1)), np.fft.fft2(z, axes=(0, 1)))
    assert_near(Tensor(z.real).rfft2((6, 5)), np.fft.rfft2(z.real, (6, 5)))
    assert_near(Tensor(pairs(z)).irfft2((3, 7)), np.fft.irfft2(z, (3, 7)))


def test_the_imaginary_parts_that_no_real_number_has():
    z = np.array([1 + 5j, 2 - 1j, 3 + 7j])
    assert_near(Tensor(pairs(z)).irfft(), np.fft.irfft(z))
    assert_near(Tensor(pairs(z)).irfft(5), np.fft.irfft(z, 5))


@pytest.mark.parametrize("size", [6, 37])
def test_gradients_are_the_transposed_transform(size: int):
    z, weights = numbers(size), numbers(size, seed=1)
    x = Tensor(pairs(z))
    total = (x.fft() * Tensor(pairs(weights))).sum()
    # The transpose of a real-linear map: conjugate, transform, conjugate.
    assert_near(total.gradient(x)[0], np.fft.fft(weights.conj()).conj())
    y = Tensor(z.real)
    half = weights[: size // 2 + 1]
    slope = (y.rfft() * Tensor(pairs(half))).sum().gradient(y)[0]
    angles = np.outer(np.arange(size), np.arange(size // 2 + 1)) * 2 * np.pi / size
    expected = (np.cos(angles) * half.real - np.sin(angles) * half.imag).sum(1)
    np.testing.assert_allclose(slope.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Tensor.ones(4).fft(), "not one of pairs"),
        (lambda: Tensor.ones(4, 2).fft(norm="half"), "unknown norm"),
        (lambda: Tensor.ones(4, 2).fft(0), "length is 0"),
        (lambda: Tensor.ones(1, 2).irfft(), "length is 0"),
        (lambda: Tensor.ones(4, 4, 2).fft2((2,)), "1 lengths for 2 axes"),
    ],
)
def test_mistakes_are_named(call: Callable[[], Any], text: str):
    with pytest.raises((ShapeError, ArgumentError), match=text):
        call()

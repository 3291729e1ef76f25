"""Functions of complex numbers where a part is 0 or large: values and slopes."""

from collections.abc import Callable

import numpy as np
import pytest

from weft.tensor import Tensor

AXES = np.array(
    [2, -2, 0.5, -0.5, 0.5j, -0.5j, 3j, 1 + 1j, 0.3 - 0.7j, -1.2 + 0.4j], np.complex128
)
# Each function, and its derivative.
SLOPES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[np.ndarray], np.ndarray]]] = {
    "exp": (Tensor.exp, np.exp),
    "exp2": (Tensor.exp2, lambda z: np.exp2(z) * np.log(2)),
    "expm1": (Tensor.expm1, np.exp),
    "sigmoid": (Tensor.sigmoid, lambda z: np.exp(-z) / (1 + np.exp(-z)) ** 2),
    "sinh": (Tensor.sinh, np.cosh),
    "cosh": (Tensor.cosh, np.sinh),
    "tanh": (Tensor.tanh, lambda z: 1 / np.cosh(z) ** 2),
    "sin": (Tensor.sin, np.cos),
    "cos": (Tensor.cos, lambda z: -np.sin(z)),
    "tan": (Tensor.tan, lambda z: 1 / np.cos(z) ** 2),
    "log": (Tensor.log, lambda z: 1 / z),
    "sqrt": (Tensor.sqrt, lambda z: 0.5 / np.sqrt(z)),
    "asinh": (Tensor.asinh, lambda z: 1 / np.sqrt(1 + z * z)),
    "atan": (Tensor.atan, lambda z: 1 / (1 + z * z)),
    "2.0 ** z": (lambda z: 2.0**z, lambda z: 2.0**z * np.log(2)),
    "z ** 2.5": (lambda z: z**2.5, lambda z: 2.5 * z**1.5),
    "z ** z": (lambda z: z**z, lambda z: z**z * (np.log(z) + 1)),
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_on_the_axes(name: str):
    function, derivative = SLOPES[name]
    points = AXES[AXES != 3j] if name == "asinh" else AXES  # on its branch cut
    z = Tensor(points)
    (slope,) = function(z).real.sum().gradient(z)
    np.testing.assert_allclose(slope.numpy(), derivative(points).conj(), 1e-9, 1e-12)


def test_an_infinite_exponential_has_no_nan():
    values = Tensor(np.array([1e4 + 0j, 1e4 + 1j, -np.inf + 3j], np.complex64)).exp().numpy()
    assert values[0] == np.inf and np.isinf(values[1]) and values[2] == 0


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_logsumexp_of_complex_numbers(axis):
    values = np.array([[1 + 2j, 3 - 1j], [900 + 1j, -5]])
    z = Tensor(values)
    top = values.real.max(axis, keepdims=True)
    wanted = np.log(np.exp(values - top).sum(axis, keepdims=True)) + top
    np.testing.assert_allclose(z.logsumexp(axis).numpy(), wanted.squeeze(axis), 1e-12)
    (slope,) = z.logsumexp(axis).real.sum().gradient(z)
    np.testing.assert_allclose(slope.numpy(), np.exp(values - wanted).conj(), 1e-12)


def test_logsumexp_of_one_complex_number():
    assert Tensor(2 + 1j).logsumexp().item() == pytest.approx(2 + 1j)

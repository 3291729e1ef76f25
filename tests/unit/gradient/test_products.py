"""Products and running products: every derivative is right, zeros or not."""

import itertools

import numpy as np
import pytest

from weft import Tensor, grad, jvp

ROWS = (
    [0.5, -0.7, 0.4, 0.3],
    [0.5, 0.0, 0.4, 0.3],
    [0.5, 0.0, 0.0, 0.3],
    [0.0, 0.4, 0.0, 0.0],
    [0.0, 0.0, 0.0, 0.0],
    [0.0],
)


def weighted(values: np.ndarray) -> np.ndarray:
    return np.linspace(0.5, 1.5, len(values))


def second_derivatives(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of the sum of weights times the product of the first elements, by two elements."""
    found = np.zeros((len(x), len(x)))
    for last, i, j in itertools.product(range(len(x)), repeat=3):
        if i != j and max(i, j) <= last:
            others = [x[k] for k in range(last + 1) if k not in (i, j)]
            found[i, j] += weights[last] * np.prod(others)
    return found


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize("is_running", [True, False])
def test_second_derivatives_at_zeros(row, is_running):
    x = np.array(row)
    weights = weighted(x) if is_running else np.eye(len(x))[-1]
    direction = weighted(x) + 0.1

    def total(t: Tensor) -> Tensor:
        return (t.cumprod(0) * Tensor(weights)).sum() if is_running else t.prod()

    wanted = second_derivatives(x, weights) @ direction
    by_reverse = grad(lambda t: (grad(total)(t) * Tensor(direction)).sum())(Tensor(x))
    by_tangent = jvp(grad(total), (Tensor(x),), (Tensor(direction),))[1]
    for found in (by_reverse, by_tangent):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)


def test_a_product_over_several_axes():
    x = np.array([[[2.0, 0.0, 3.0], [5.0, 7.0, 11.0]]])
    found = grad(lambda t: t.prod((0, 2)).sum())(Tensor(x)).numpy()
    assert found.tolist() == [[[0.0, 6.0, 0.0], [77.0, 55.0, 35.0]]]
    whole = grad(lambda t: t.prod())(Tensor(x)).numpy()
    assert whole.tolist() == [[[0.0, 2 * 3 * 5 * 7 * 11.0, 0.0], [0.0, 0.0, 0.0]]]

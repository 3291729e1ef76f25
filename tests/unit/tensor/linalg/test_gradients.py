"""Derivatives of decompositions of every order, against polynomials through values of NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft.engine.counters import GlobalCounters
from weft.tensor import Tensor

SIZE = 4
# Values at 17 points of a short interval determine the first derivatives to many digits.
RADIUS, POINTS = 0.2, 17
Function = Callable[[Any], Any]


def line(seed: int, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """A matrix and a direction: the functions below are those of a number t in A + t D."""
    source = np.random.default_rng(seed)
    at = source.normal(size=shape) + np.eye(*shape) * np.arange(2, 2 + shape[-1])
    return at, source.normal(size=shape) / 4


def weights(shape: tuple[int, ...]) -> Any:
    return np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape)


def definite(x: Any) -> Any:
    return x @ x.T + np.eye(SIZE)


def squares(columns: Any) -> Any:
    """What does not depend on the signs of vectors."""
    return columns * columns


CASES: dict[str, tuple[tuple[int, ...], Function, Function]] = {
    "inv": ((4, 4), lambda x: x.inv(), np.linalg.inv),
    "det": ((4, 4), lambda x: x.det(), np.linalg.det),
    "slogdet": ((4, 4), lambda x: x.slogdet()[1], lambda x: np.linalg.slogdet(x)[1]),
    "solve": ((4, 4), lambda x: x.solve(x.T @ x), lambda x: np.linalg.solve(x, x.T @ x)),
    "solve_triangular": (
        (4, 4),
        lambda x: x.solve_triangular(x.T, upper=True),
        lambda x: np.linalg.solve(np.triu(x), x.T),
    ),
    "cholesky": (
        (4, 4),
        lambda x: (x @ x.T + Tensor.eye(SIZE, dtype="float64")).cholesky(),
        lambda x: np.linalg.cholesky(definite(x)),
    ),
    "qr": ((4, 3), lambda x: x.qr().Q * 3.0, lambda x: np.linalg.qr(x).Q * 3.0),
    "qr of a wide matrix": ((3, 5), lambda x: x.qr().R, lambda x: np.linalg.qr(x).R),
    "eigenvalues": (
        (4, 4),
        lambda x: (x + x.T).eigh()[0],
        lambda x: np.linalg.eigh(x + x.T)[0],
    ),
    "eigenvectors": (
        (4, 4),
        lambda x: squares((x + x.T).eigh()[1]),
        lambda x: squares(np.linalg.eigh(x + x.T)[1]),
    ),
    "singular values": (
        (5, 3),
        lambda x: x.svd(full_matrices=False).S,
        lambda x: np.linalg.svd(x, full_matrices=False)[1],
    ),
    "singular vectors": (
        (5, 3),
        lambda x: squares(x.svd(full_matrices=False).U),
        lambda x: squares(np.linalg.svd(x, full_matrices=False)[0]),
    ),
    "pinv": ((5, 3), lambda x: x.pinv(), np.linalg.pinv),
    "lstsq": (
        (5, 3),
        lambda x: x.lstsq(x[:, :2] * x[:, :2]).solution,
        lambda x: np.linalg.lstsq(x, x[:, :2] * x[:, :2], rcond=None)[0],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_three_derivatives_along_a_line(name: str):
    shape, ours, theirs = CASES[name]
    at, direction = line(len(name), shape)
    points = RADIUS * np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
    values = [theirs(at + t * direction) for t in points]
    factor = weights(np.shape(values[0]))
    numbers = [float((value * factor).sum()) for value in values]
    wanted = np.polynomial.Polynomial.fit(points, numbers, POINTS - 1)
    t = Tensor(0.0, dtype="float64").realize()
    found = [(ours(Tensor(at) + t * Tensor(direction)) * Tensor(factor)).sum()]
    for _ in range(3):
        found += found[-1].gradient(t)
    for order, each in enumerate(found):
        exact = float(wanted.deriv(order)(0.0) if order else wanted(0.0))
        assert each.item() == pytest.approx(exact, rel=1e-6, abs=1e-6), f"derivative {order}"


def test_batches_share_what_is_broadcast():
    """A matrix for many right sides, and a right side for many matrices."""
    source = np.random.default_rng(0)
    matrix, right = source.normal(size=(3, 3)), source.normal(size=(2, 3, 4))
    a, b = Tensor(matrix), Tensor(right)
    slope = a.solve(b).square().sum().gradient(a, b)
    x = np.linalg.solve(matrix, right)
    of_right = np.linalg.solve(matrix.T, 2 * x)
    np.testing.assert_allclose(slope[1].numpy(), of_right, rtol=1e-9)
    of_matrix = -(of_right @ np.swapaxes(x, 1, 2)).sum(0)
    np.testing.assert_allclose(slope[0].numpy(), of_matrix, rtol=1e-9)


def test_what_is_not_read_may_be_anything():
    """Only the lower triangle counts, for values and gradients."""
    array = np.array([[4.0, np.nan], [2.0, 5.0]])
    x = Tensor(array)
    np.testing.assert_allclose(x.cholesky().numpy(), [[2.0, 0.0], [1.0, 2.0]])
    np.testing.assert_allclose(x.eigh()[0].numpy(), np.linalg.eigvalsh(array), rtol=1e-12)
    assert np.isfinite(x.eigh()[0].sum().gradient(x)[0].numpy()).all()


def test_the_derivative_costs_nothing_where_nobody_asks_for_it():
    x = Tensor(np.eye(3) * 2).realize()
    GlobalCounters.reset()
    x.slogdet()[1].realize()
    assert GlobalCounters.kernel_count <= 3 * 3 + 6

"""Chebyshev series, fitted on the host when a function is first used, and their sums.

The values to fit come from integrals and series in float64, to which the trapezoidal rule
converges exponentially; so no table of anybody's coefficients is needed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.ir.dtypes import dtypes

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

Values = Callable[[Any], Any]  # of an array of float64, for each element


def terms_of(x: Tensor) -> int:
    """How many terms of a series the dtype can use."""
    return 40 if x.dtype is dtypes.float64 else 22


@functools.cache
def coefficients(values: Values, low: float, high: float, terms: int) -> tuple[float, ...]:
    """The Chebyshev series of a function between two numbers."""
    nodes = np.cos(np.pi * (np.arange(terms) + 0.5) / terms)
    points = (high - low) / 2 * nodes + (high + low) / 2
    found = np.asarray(values(points), np.float64)
    angles = np.outer(np.arange(terms), np.arange(terms) + 0.5) * np.pi / terms
    series = 2 / terms * (np.cos(angles) * found).sum(1)
    series[0] /= 2
    return tuple(series.tolist())


def fitted(values: Values, low: float, high: float, x: Tensor) -> Tensor:
    """The fitted function at a tensor, which is between `low` and `high`; by Clenshaw's sum."""
    series = coefficients(values, low, high, terms_of(x))
    t = (x - (high + low) / 2) * (2 / (high - low))
    least = 2.0**-54 if x.dtype is dtypes.float64 else 2.0**-27
    size = max(map(abs, series))
    while len(series) > 2 and abs(series[-1]) < size * least:
        series = series[:-1]
    one: Any = 0.0
    two: Any = 0.0
    for value in reversed(series[1:]):
        one, two = 2 * t * one - two + value, one
    result: Tensor = t * one - two + series[0]
    return result


def trapezoid(
    integrand: Callable[[Any, Any], Any], low: float, high: float, points: int
) -> Values:
    """The integral over t of a smooth function that vanishes, or repeats, at both ends."""

    def values(x: Any) -> Any:
        t = np.linspace(low, high, points + 1)
        weight = np.full(points + 1, (high - low) / points)
        weight[[0, -1]] /= 2
        return (integrand(np.asarray(x)[:, None], t[None]) * weight).sum(1)

    return values

"""Hurwitz's zeta, the derivatives of log Γ, and incomplete gamma functions."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final

from weft.tensor.autodiff.tangent import Tensors, with_tangent
from weft.tensor.linalg.repeat import State, repeated
from weft.tensor.methods.unary import as_float, float_pair
from weft.tensor.small_floats import rounded_once

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# (2k)! / B(2k): what Euler's and Maclaurin's formula divides by.
_BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_HEAD: Final = 9


@rounded_once
def zeta(self: Tensor, other: Any) -> Tensor:
    """Return Σ (q + k) ** -x over k from 0 on: inf at x = 1, NaN below. PyTorch: special.zeta.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([2.0]).zeta(1.0).item(), 5)
    1.64493
    """
    x, q = float_pair(self, other, "zeta")
    shape = (x + q).shape
    x, q = x.expand(shape), q.expand(shape)
    is_pole = (q <= 0) & (q == q.floor())
    is_bad = (x < 1) | ((q <= 0) & ~is_pole & (x != x.floor()))
    usual = (x > 1) & ~is_pole & ~is_bad
    s, start = usual.where(x, 2.0), usual.where(q, 1.0)
    total: Any = start**-s
    at = start
    for _ in range(_HEAD):
        at = at + 1
        total = total + at**-s
    # A number below 0 is counted up until it is not.
    power = at**-s
    total = total + power * at / (s - 1) - power * 0.5
    is_small = power == 0  # then the rest is 0 too, however large the factor
    factor, scale = is_small.where(0.0, s), power / at
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        total = total + scale * factor * (bernoulli / math.factorial(2 * k))
        factor = is_small.where(0.0, factor * (s + 2 * k - 1) * (s + 2 * k))
        scale = scale / (at * at)
    special = (x == 1).where(math.inf, (is_bad | x.isnan() | q.isnan()).where(math.nan, math.inf))
    return usual.where(total, special)


@rounded_once
def polygamma(self: Any, other: Any) -> Tensor:
    """Return the n-th derivative of digamma: x.polygamma(n) or polygamma(n, x), as in PyTorch.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).polygamma(1).item(), 5)
    1.64493
    """
    n, x = (other, self) if isinstance(other, int) else (self, other)
    x = as_float(x)
    if n == 0:
        return x.digamma()
    # Reflection: ψ⁽ⁿ⁾(x) = (-1)ⁿ ψ⁽ⁿ⁾(1 - x) - π (d/dx)ⁿ cot(πx), for numbers below 1/2.
    is_low = x < 0.5
    a = is_low.where(1 - x, x)
    found = zeta(a.full_like(float(n + 1)), a) * ((-1.0) ** (n + 1) * math.factorial(n))
    distance = is_low.where(x - x.round(), 0.25) * math.pi
    cotangent = distance.cos() / distance.sin()
    total: Any = 0.0
    for coefficient in reversed(_cotangent_slopes(n)):
        total = total * cotangent + coefficient
    return is_low.where((-1.0) ** n * found - total, found)


@functools.cache
def _cotangent_slopes(n: int) -> tuple[float, ...]:
    """π (d/dx)ⁿ cot(πx) as a polynomial of cot(πx): each slope is times -π (1 + cot²)."""
    powers = [0.0, math.pi]
    for _ in range(n):
        slopes = [k * powers[k] for k in range(1, len(powers))]
        powers = [0.0] * (len(slopes) + 2)
        for k, value in enumerate(slopes):
            powers[k] -= math.pi * value
            powers[k + 2] -= math.pi * value
    return tuple(powers)


_STEPS: Final = 200


def _series_step(term: Tensor, total: Tensor, at: Tensor, x: Tensor) -> State:
    at = at + 1
    term = term * x / at
    return term, total + term, at, x


def _fraction_step(b: Tensor, c: Tensor, d: Tensor, h: Tensor, number: Tensor, a: Tensor) -> State:
    """Lentz's step of the continued fraction of Γ(a, x)."""
    number = number + 1
    factor = -number * (number - a)
    b = b + 2
    least = 1e-30
    d = factor * d + b
    d = 1 / (d.abs() < least).where(least, d)
    c = b + factor / c
    c = (c.abs() < least).where(least, c)
    return b, c, d, h * c * d, number, a


def _slope(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    """The density of the gamma distribution; a has no slope, as in PyTorch."""
    (_, density), (_, of_x) = results, changes
    return density * of_x, density * of_x * 0.0


def _regularized(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """P(a, x) and Q(a, x) for positive numbers, and the density at x."""
    a, x = a.detach().contiguous(), x.detach().contiguous()
    density_log = a * x.log() - x - a.lgamma()
    is_series = x < a + 1
    s_x = is_series.where(x, a)
    one = 1 / a
    _, total, _, _ = repeated(_series_step, _STEPS, one, one, a, s_x)
    low = total * density_log.exp()
    f_x = is_series.where(a + 1, x)
    b = f_x + 1 - a
    start = 1 / b
    found = repeated(_fraction_step, _STEPS, b, b.full_like(1e30), start, start, b.zeros_like(), a)
    high = found[3] * density_log.exp()
    lower = is_series.where(low, 1 - high)
    upper = is_series.where(1 - low, high)
    return lower, upper


def _incomplete(self: Tensor, other: Any, is_lower: bool, name: str) -> Tensor:
    a, x = float_pair(self, other, name)
    dtype = a.dtype
    a, x = (each.float() if dtype.bits < 32 else each for each in (a, x))
    shape = (a + x).shape
    a, x = a.expand(shape), x.expand(shape)
    is_usual = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    safe_a, safe_x = is_usual.where(a, 1.0), is_usual.where(x, 1.0)
    if not safe_a.numel():
        return (a + x).cast(dtype)
    found = _regularized(safe_a, safe_x)[0 if is_lower else 1]
    fixed = safe_a.detach()
    density = ((fixed - 1) * safe_x.detach().log() - safe_x.detach() - fixed.lgamma()).exp()
    density = density if is_lower else -density
    found = with_tangent((found, density), (safe_a, safe_x), _slope)[0]
    below = 0.0 if is_lower else 1.0
    at_edge = (x == 0).where((a > 0).where(below, 1 - below), 1 - below)
    at_edge = ((a == math.inf) & (x < math.inf)).where(below, at_edge)
    is_bad = (a < 0) | (x < 0) | a.isnan() | x.isnan() | ((a == 0) & (x == 0))
    is_bad = is_bad | ((a == math.inf) & (x == math.inf))
    return is_usual.where(found, is_bad.where(math.nan, at_edge)).cast(dtype)


@rounded_once
def igamma(self: Tensor, other: Any) -> Tensor:
    """Return the regularized lower incomplete gamma function P(a, x). PyTorch: igamma.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).igamma(Tensor([1.0])).item(), 5)
    0.63212
    """
    return _incomplete(self, other, True, "igamma")


@rounded_once
def igammac(self: Tensor, other: Any) -> Tensor:
    """Return the regularized upper incomplete gamma function Q(a, x). PyTorch: igammac.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).igammac(Tensor([1.0])).item(), 5)
    0.36788
    """
    return _incomplete(self, other, False, "igammac")

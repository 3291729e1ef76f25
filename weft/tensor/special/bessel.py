"""Bessel functions: J, Y, modified I and K, spherical j0, and Airy's Ai.

Near 0 a function is a Chebyshev series of the entire part of it, far away one of what is left
when its growth or its oscillation is taken out.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.tensor.methods.special import in_precise_floats
from weft.tensor.special.fits import fitted, trapezoid

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

_EDGE: Final = 8.0  # where the series near 0 ends
_EULER: Final = 0.57721566490153286061


# Values in float64 on the host. Those of a variable y are functions of x = √y.
def _i(order: int) -> Any:
    """exp(-x) I(x), by its integral over an angle."""

    def integrand(x: Any, t: Any) -> Any:
        return np.exp(x * (np.cos(t) - 1)) * np.cos(order * t) / np.pi

    return trapezoid(integrand, 0.0, np.pi, 400)


def _k(order: float) -> Any:
    """exp(x) K(x), by its integral."""

    def integrand(x: Any, t: Any) -> Any:
        return np.exp(-x * (np.cosh(t) - 1)) * np.cosh(order * t)

    return trapezoid(integrand, 0.0, 12.0, 4000)


_I0, _I1, _K0, _K1 = _i(0), _i(1), _k(0), _k(1)


def _far_i(order: int, t: Any) -> Any:
    """√x exp(-x) I(x) at x = 8 / t, over the angles where the integrand is not 0."""
    x = (_EDGE / np.maximum(t, 1e-6))[:, None]
    most = np.minimum(np.pi, 9 / np.sqrt(x))
    steps = 400
    angle = most * np.linspace(0, 1, steps + 1)
    inside = np.exp(-2 * x * np.sin(angle / 2) ** 2) * np.cos(order * angle)
    inside[:, [0, -1]] /= 2
    return (np.sqrt(x) * inside * most / steps / np.pi).sum(1)


_i0_far, _i1_far = functools.partial(_far_i, 0), functools.partial(_far_i, 1)


def _i1_near(x: Any) -> Any:
    return _I1(x) / x


def _k0_near(y: Any) -> Any:
    """K0(x) + log(x / 2) I0(x)."""
    return _series(y, lambda k: _harmonic(k) - _EULER, 0)


def _k1_near(y: Any) -> Any:
    """(K1(x) - log(x / 2) I1(x) - 1 / x) / x."""
    return -0.5 * _series(y, lambda k: _psi(k + 1) + _psi(k + 2), 1) / 2


def _harmonic(k: int) -> float:
    return math.fsum(1 / n for n in range(1, k + 1))


def _psi(n: int) -> float:
    return _harmonic(n - 1) - _EULER


def _series(y: Any, weight: Any, order: int, sign: int = 1) -> Any:
    """Σ weight(k) (±y / 4)ᵏ / (k! (k + order)!)."""
    total, power = np.zeros_like(y), np.ones_like(y)
    for k in range(60):
        total = total + weight(k) * power / (math.factorial(k) * math.factorial(k + order))
        power = power * (sign * y / 4)
    return total


def _k0_far(t: Any) -> Any:
    x = 2 / np.maximum(t, 1e-4)
    return np.sqrt(x) * _K0(x)


def _k1_far(t: Any) -> Any:
    x = 2 / np.maximum(t, 1e-4)
    return np.sqrt(x) * _K1(x)


def _j0_near(y: Any) -> Any:
    return _series(y, lambda k: 1.0, 0, -1)


def _j1_near(y: Any) -> Any:
    return _series(y, lambda k: 1.0, 1, -1) / 2


def _y0_near(y: Any) -> Any:
    """Y0(x) - 2 / π log(x / 2) J0(x)."""
    return 2 / np.pi * _series(y, lambda k: _EULER - _harmonic(k), 0, -1)


def _y1_near(y: Any) -> Any:
    """(Y1(x) - 2 / π (log(x / 2) J1(x) - 1 / x)) / x."""
    return -_series(y, lambda k: _psi(k + 1) + _psi(k + 2), 1, -1) / (2 * np.pi)


def _hankel(order: float) -> Any:
    """P + iQ: Hankel's function without √(2 / πx) exp(i (x - order π / 2 - π / 4))."""
    scale = 2 / math.gamma(order + 0.5)

    def integrand(x: Any, s: Any) -> Any:
        inside = (1 + 0.5j * s * s / x) ** (order - 0.5)
        return scale * np.exp(-s * s) * np.abs(s) ** (2 * order) * inside / 2

    return trapezoid(integrand, -6.2, 6.2, 800)


def _p(order: int) -> Any:
    values = _hankel(order)
    return lambda t: values(_EDGE / np.sqrt(np.maximum(t, 1e-12))).real


def _q(order: int) -> Any:
    values = _hankel(order)

    def scaled(t: Any) -> Any:
        x = _EDGE / np.sqrt(np.maximum(t, 1e-8))
        return values(x).imag * x

    return scaled


_P, _Q = (_p(0), _p(1)), (_q(0), _q(1))


def _oscillating(x: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """J and Y of numbers from 8 on."""
    t = (_EDGE / x).square()
    p, q = fitted(_P[order], 0.0, 1.0, t), fitted(_Q[order], 0.0, 1.0, t) / x
    angle = x - (order / 2 + 0.25) * math.pi
    scale = (2 / math.pi / x).sqrt()
    cosine, sine = angle.cos(), angle.sin()
    return scale * (p * cosine - q * sine), scale * (p * sine + q * cosine)


def _split(a: Tensor, edge: float) -> tuple[Tensor, Tensor, Tensor]:
    """Whether numbers are far from 0, and both arguments, harmless where they do not count."""
    is_far = a > edge
    return is_far, is_far.where(edge, a), is_far.where(a, edge)


@in_precise_floats
def bessel_j0(self: Tensor) -> Tensor:
    """Return J₀(x). PyTorch: special.bessel_j0; SciPy: special.j0.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).bessel_j0().item(), 5)
    0.7652
    """
    is_far, near, far = _split(self.abs(), _EDGE)
    return is_far.where(_oscillating(far, 0)[0], fitted(_j0_near, 0.0, _EDGE**2, near.square()))


@in_precise_floats
def bessel_j1(self: Tensor) -> Tensor:
    """Return J₁(x). PyTorch: special.bessel_j1; SciPy: special.j1.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).bessel_j1().item(), 5)
    0.44005
    """
    is_far, near, far = _split(self.abs(), _EDGE)
    close = near * fitted(_j1_near, 0.0, _EDGE**2, near.square())
    found = is_far.where(_oscillating(far, 1)[0], close)
    return (self < 0).where(-found, found)


def _second_kind(self: Tensor, order: int) -> Tensor:
    is_far, near, far = _split((self > 0).where(self, 1.0), _EDGE)
    y = near.square()
    if order == 0:
        first, rest = fitted(_j0_near, 0.0, 64.0, y), fitted(_y0_near, 0.0, 64.0, y)
        close = (2 / math.pi) * (near / 2).log() * first + rest
    else:
        first = near * fitted(_j1_near, 0.0, 64.0, y)
        rest = near * fitted(_y1_near, 0.0, 64.0, y)
        close = (2 / math.pi) * ((near / 2).log() * first - 1 / near) + rest
    found = is_far.where(_oscillating(far, order)[1], close)
    return (self > 0).where(found, (self == 0).where(-math.inf, math.nan))


@in_precise_floats
def bessel_y0(self: Tensor) -> Tensor:
    """Return Y₀(x): -inf at 0, NaN below. PyTorch: special.bessel_y0.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).bessel_y0().item(), 5)
    0.08826
    """
    return _second_kind(self, 0)


@in_precise_floats
def bessel_y1(self: Tensor) -> Tensor:
    """Return Y₁(x): -inf at 0, NaN below. PyTorch: special.bessel_y1.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).bessel_y1().item(), 5)
    -0.78121
    """
    return _second_kind(self, 1)


@in_precise_floats
def i0e(self: Tensor) -> Tensor:
    """Return exp(-|x|) I₀(x). PyTorch and SciPy: special.i0e.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0]).i0e().round(decimals=5).item()
    1.0
    """
    is_far, near, far = _split(self.abs(), _EDGE)
    tail = fitted(_i0_far, 0.0, 1.0, _EDGE / far) / far.sqrt()
    return is_far.where(tail, fitted(_I0, 0.0, _EDGE, near))


@in_precise_floats
def i1e(self: Tensor) -> Tensor:
    """Return exp(-|x|) I₁(x). PyTorch and SciPy: special.i1e.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).i1e().item(), 5)
    0.20791
    """
    is_far, near, far = _split(self.abs(), _EDGE)
    tail = fitted(_i1_far, 0.0, 1.0, _EDGE / far) / far.sqrt()
    tail = (self < 0).where(-tail, tail)
    # The sign of a near number is its own, so that there is a slope at 0.
    return is_far.where(tail, is_far.where(0.0, self) * fitted(_i1_near, 0.0, _EDGE, near))


@in_precise_floats
def i0(self: Tensor) -> Tensor:
    """Return I₀(x). PyTorch: i0; SciPy: special.i0.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).i0().item(), 5)
    1.26607
    """
    return i0e(self) * self.abs().exp()


@in_precise_floats
def i1(self: Tensor) -> Tensor:
    """Return I₁(x). PyTorch and SciPy: special.i1.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).i1().item(), 5)
    0.56516
    """
    return i1e(self) * self.abs().exp()


def _modified_second(self: Tensor, order: int, is_scaled: bool) -> Tensor:
    is_far, near, far = _split((self > 0).where(self, 1.0), 2.0)
    y = near.square()
    log = (near / 2).log()
    if order == 0:
        close = fitted(_k0_near, 0.0, 4.0, y) - log * i0(near)
        tail = fitted(_k0_far, 0.0, 1.0, 2 / far) / far.sqrt()
    else:
        close = near * fitted(_k1_near, 0.0, 4.0, y) + log * i1(near) + 1 / near
        tail = fitted(_k1_far, 0.0, 1.0, 2 / far) / far.sqrt()
    close = close * near.exp() if is_scaled else close
    tail = tail if is_scaled else tail * (-far).exp()
    return (self > 0).where(is_far.where(tail, close), (self == 0).where(math.inf, math.nan))


@in_precise_floats
def modified_bessel_k0(self: Tensor) -> Tensor:
    """Return K₀(x): inf at 0, NaN below. PyTorch: special.modified_bessel_k0.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).modified_bessel_k0().item(), 5)
    0.42102
    """
    return _modified_second(self, 0, False)


@in_precise_floats
def modified_bessel_k1(self: Tensor) -> Tensor:
    """Return K₁(x): inf at 0, NaN below. PyTorch: special.modified_bessel_k1.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).modified_bessel_k1().item(), 5)
    0.60191
    """
    return _modified_second(self, 1, False)


@in_precise_floats
def scaled_modified_bessel_k0(self: Tensor) -> Tensor:
    """Return exp(x) K₀(x). PyTorch: special.scaled_modified_bessel_k0.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).scaled_modified_bessel_k0().item(), 5)
    1.14446
    """
    return _modified_second(self, 0, True)


@in_precise_floats
def scaled_modified_bessel_k1(self: Tensor) -> Tensor:
    """Return exp(x) K₁(x). PyTorch: special.scaled_modified_bessel_k1.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).scaled_modified_bessel_k1().item(), 5)
    1.63615
    """
    return _modified_second(self, 1, True)


@in_precise_floats
def spherical_bessel_j0(self: Tensor) -> Tensor:
    """Return sin(x) / x. PyTorch: special.spherical_bessel_j0.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0]).spherical_bessel_j0().item()
    1.0
    """
    near = self.abs() < 0.5
    x = near.where(1.0, self)
    y = near.where(self, 0.0).square()
    series = 1 - y / 6 * (1 - y / 20 * (1 - y / 42 * (1 - y / 72 * (1 - y / 110))))
    return self.isinf().where(0.0, near.where(series, x.sin() / x))


_AI_LOW, _AI_HIGH = -5.0, 2.0
_AI_ZERO, _AI_SLOPE = 0.355028053887817239, 0.258819403792806798


def _airy_near(x: Any) -> Any:
    """The power series of Ai, in cubes."""
    cube = x**3
    f, g = np.ones_like(x), x.copy()
    one, two = f.copy(), g.copy()
    for k in range(1, 60):
        one = one * cube / ((3 * k - 1) * (3 * k))
        two = two * cube / ((3 * k) * (3 * k + 1))
        f, g = f + one, g + two
    return _AI_ZERO * f - _AI_SLOPE * g


def _airy_far(t: Any) -> Any:
    """Ai(x) without its decay, as a function of 2^1.5 / x^1.5."""
    z = 2 / 3 * _AI_HIGH**1.5 / np.maximum(t, 1e-4)
    return np.sqrt(z) * _k(1 / 3)(z)


_AIRY_HANKEL = _hankel(1 / 3)
_AIRY_EDGE = 2 / 3 * 5.0**1.5


def _airy_p(t: Any) -> Any:
    return _AIRY_HANKEL(_AIRY_EDGE / np.sqrt(np.maximum(t, 1e-10))).real


def _airy_q(t: Any) -> Any:
    z = _AIRY_EDGE / np.sqrt(np.maximum(t, 1e-8))
    return _AIRY_HANKEL(z).imag * z


@in_precise_floats
def airy_ai(self: Tensor) -> Tensor:
    """Return Airy's function Ai(x). PyTorch: special.airy_ai.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([0.0]).airy_ai().item(), 5)
    0.35503
    """
    x = self
    above, below = x > _AI_HIGH, x < _AI_LOW
    near = fitted(_airy_near, _AI_LOW, _AI_HIGH, (above | below).where(0.0, x))
    a = above.where(x, _AI_HIGH)
    z = 2 / 3 * a * a.sqrt()
    shape = fitted(_airy_far, 0.0, 1.0, 2 / 3 * _AI_HIGH**1.5 / z)
    decays = shape / z.sqrt() * (-z).exp() * (a / 3).sqrt() / math.pi
    b = below.where(-x, -_AI_LOW)
    w = 2 / 3 * b * b.sqrt()
    t = (_AIRY_EDGE / w).square()
    p, q = fitted(_airy_p, 0.0, 1.0, t), fitted(_airy_q, 0.0, 1.0, t) / w
    angle = w - math.pi / 4
    # Ai(-b) = √b / 3 (J(1/3) + J(-1/3)), and both are Hankel's function of order 1/3.
    waves = (p * angle.cos() - q * angle.sin()) / (math.pi**0.5 * b.sqrt().sqrt())
    return above.where(decays, below.where(waves, near))

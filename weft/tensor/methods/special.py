"""Special functions: erfc, erfinv, lgamma, digamma, sinc and their like, as formulas of ops.

Each is within a few ulp of the true value in float32 and in float64, in the tails too; halves are
computed in float32 and rounded once. Where a formula has several branches, the argument of each is
made harmless outside of it, so that gradients of every order are finite where the function is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from weft.ir.dtypes import dtypes
from weft.tensor.methods.unary import as_float, float_pair
from weft.tensor.small_floats import rounded_once

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

Function = Callable[["Tensor"], "Tensor"]


def in_precise_floats(function: Function) -> Function:
    """The function of one tensor, computed in float32 at least and rounded once."""
    once = rounded_once(function)

    @functools.wraps(function)
    def wrapped(self: Tensor) -> Tensor:
        return once(as_float(self))

    return wrapped


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """c0 + c1 x + c2 x² + …, by Horner's rule."""
    total: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    found: Tensor = total
    return found


def _is_double(x: Tensor) -> bool:
    return x.dtype is dtypes.float64


# (1 + 2x) exp(x²) erfc(x) in powers of (x - 3.75) / (x + 3.75), which is from -1 to 1 for x >= 0.
# Fitted at the nodes of Chebyshev: 2e-8 with the first list, 6e-17 with the second.
_ERFC_SINGLE: Final = (
    1.23751261846257167,
    -0.140240608010006919,
    0.00358631010168885169,
    0.082277417560368671,
    -0.108814584961741436,
    0.0922963679612030013,
    -0.058645982867712496,
    0.028396482120658268,
    -0.00984549109495929539,
    0.00168866223111567454,
    0.000396704638280054891,
    -0.000228747233590847735,
)
_ERFC_DOUBLE: Final = (
    1.23751263083782753,
    -0.140240598585547014,
    0.00358541548547957517,
    0.0822767384901497726,
    -0.108803930142466448,
    0.0923043211602589361,
    -0.0586933985763106125,
    0.0283622774203773337,
    -0.00974657968596217161,
    0.00175562584343186415,
    0.000293714390578855937,
    -0.000290154042033527084,
    5.16464934100289124e-5,
    2.23841385256569019e-5,
    -1.14379803744958321e-5,
    -9.73387516749718139e-7,
    1.74190119451983364e-6,
    -5.74107607297343605e-8,
    -2.48511086502433497e-7,
    2.33985343127080658e-8,
    3.19539861207290107e-8,
    -3.79818979758242224e-9,
    -2.61852015653308291e-9,
    3.20526233762366936e-10,
)


@in_precise_floats
def erfc(self: Tensor) -> Tensor:
    """Return 1 - erf(x), accurate where it is small. PyTorch: erfc; SciPy: special.erfc.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0, 1e30]).erfc().tolist()
    [1.0, 0.0]
    """
    x = self
    is_tail = x > 0.5
    tail = _erfc_tail(is_tail.where(x, 1.0))
    return is_tail.where(tail, 1 - is_tail.where(0.0, x).erf())


def _erfc_tail(x: Tensor) -> Tensor:
    """erfc of numbers from 0.5 on.

    exp(-x²) is exp(-h²) exp(-(x - h)(x + h)), where h is x with so few bits that its square is
    exact: the rounding of x² alone would cost as many ulp as x² counts. The limit is where the
    result is 0, and keeps infinities out.
    """
    limit, grid = (28.0, 2.0**16) if _is_double(x) else (11.0, 64.0)
    x = (x < limit).where(x, x.isnan().where(x, limit))
    head = (x * grid).trunc() * (1 / grid)
    power = (-head * head).exp() * (-(x - head) * (x + head)).exp()
    return power * scaled_erfc(x)


def scaled_erfc(x: Tensor) -> Tensor:
    """exp(x²) erfc(x) of numbers from 0 on."""
    position = (x - 3.75) / (x + 3.75)
    scaled = _polynomial(position, _ERFC_DOUBLE if _is_double(x) else _ERFC_SINGLE)
    return scaled / (1 + 2 * x)


# First guesses for the inverse of erf, right to 1e-6: of y / x in powers of w - 3, and of y in
# powers of sqrt(w) - 4.25, where w = -log(1 - x²) is below 6 and above it.
_ERFINV_NEAR: Final = (
    1.623542387,
    0.2416306886,
    -0.005739529784,
    -0.0008371933178,
    0.0001959617604,
    -1.215359e-5,
    -1.966779998e-6,
    3.498159292e-7,
)
_ERFINV_FAR: Final = (
    4.092223273,
    1.009978238,
    0.0007128704139,
    -0.0006034531026,
    0.000205319755,
    -6.018776927e-5,
    1.633656563e-5,
    -2.544119884e-6,
)


@in_precise_floats
def erfinv(self: Tensor) -> Tensor:
    """Return y with erf(y) = x; infinite at -1 and 1, NaN beyond. PyTorch: erfinv.

    One step of Halley's method makes a guess exact: its error is cubed.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0, 1.0]).erfinv().tolist()
    [0.0, inf]
    """
    is_edge = self.abs() == 1
    x = is_edge.where(0.0, self)
    negative = x.signbit()
    a = negative.where(-x, x)
    rest = 1 - a  # exact where it matters
    w = -(rest * (1 + a)).log()
    is_far = w > 6
    near = a * _polynomial(is_far.where(3.0, w) - 3, _ERFINV_NEAR)
    far = _polynomial(is_far.where(w, 6.0).sqrt() - 4.25, _ERFINV_FAR)
    guess = is_far.where(far, near)
    gap = (a > 0.5).where(rest - guess.erfc(), guess.erf() - a)  # erf(guess) - a
    step = gap * (math.sqrt(math.pi) / 2) * (guess * guess).exp()
    found = guess - step / (1 + guess * step)
    edge = is_edge.where(self, 0.0) / is_edge.where(1 - self.abs(), 1.0)
    return is_edge.where(edge, negative.where(-found, found))


@functools.cache
def _zeta_less_one(k: int) -> float:
    """The sum of n ** -k from n = 2 on, by Euler's and Maclaurin's formula for what comes late."""
    start = 300
    power = float(start) ** -k
    late = (
        power * start / (k - 1),
        power / 2,
        k * power / start / 12,
        -k * (k + 1) * (k + 2) * power / start**3 / 720,
    )
    return math.fsum((*(float(n) ** -k for n in range(2, start)), *late))


_EULER: Final = 0.57721566490153286061
# B(2k) / (2k (2k - 1)): Stirling's series in powers of 1 / x².
_STIRLING: Final = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)


def _terms(x: Tensor) -> tuple[int, int]:
    """How many terms the series around 2 and Stirling's series need."""
    return (30, len(_STIRLING)) if _is_double(x) else (14, 3)


class _Reduced:
    """A positive argument: near numbers as a distance from 2 and a product, far ones themselves.

    lgamma(a) = series(distance) + log(product) for numbers above 2.5, which are counted down;
    below 1.5 the logarithm of what they are multiplied by on the way up is taken away.
    """

    def __init__(self, a: Tensor) -> None:
        self.is_far = a >= 8
        self.far = self.is_far.where(a, 8.0)
        near = self.is_far.where(3.0, a)
        is_tiny, self.is_low = near < 0.5, near < 1.5
        y, product, reciprocals = near, near.ones_like(), near.zeros_like()
        for _ in range(6):
            above = y >= 2.5
            y = above.where(y - 1, y)
            product = above.where(product * y, product)
            reciprocals = above.where(reciprocals + 1 / above.where(y, 1.0), reciprocals)
        low = self.is_low.where(near, 1.0)
        self.distance = is_tiny.where(near, self.is_low.where(near - 1, y - 2))
        self.product = self.is_low.where(is_tiny.where(low * (low + 1), low), product)
        down = 1 / low + is_tiny.where(1 / (low + 1), 0.0)
        self.slope = self.is_low.where(-down, reciprocals)


def _pole_distance(x: Tensor) -> Tensor:
    """How far a number is from the nearest integer; exact."""
    return x - x.round()


@in_precise_floats
def lgamma(self: Tensor) -> Tensor:
    """Return log |Γ(x)|; infinite at 0 and the negative integers. PyTorch: lgamma.

    Relative accuracy is lost near the zeros between negative integers, where terms cancel.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0, 0.0]).lgamma().tolist()
    [0.0, 0.0, inf]
    """
    negative = self < 0
    a = negative.where(-self, self)
    parts = _Reduced(a)
    count, stirling = _terms(a)
    series = [1 - _EULER, *((-1) ** k * _zeta_less_one(k) / k for k in range(2, count))]
    log = parts.product.log()
    near = parts.distance * _polynomial(parts.distance, series) + parts.is_low.where(-log, log)
    x = parts.far
    rest = _polynomial(1 / (x * x), _STIRLING[:stirling]) / x
    far = (x - 0.5) * (x.log() - 1) + (0.5 * math.log(2 * math.pi) - 0.5) + rest
    found = parts.is_far.where(far, near)
    # Γ(-a) Γ(a) = -π / (a sin πa).
    b = (negative & (a < math.inf)).where(a, 0.5)
    sine = (_pole_distance(b) * math.pi).sin().abs()
    return (negative & (a < math.inf)).where(
        math.log(math.pi) - b.log() - sine.log() - found, found
    )


@in_precise_floats
def digamma(self: Tensor) -> Tensor:
    """Return the slope of log Γ(x); NaN at the negative integers. PyTorch: digamma.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([2.0]).digamma().item(), 6)
    0.422784
    """
    negative = self < 0
    a = negative.where(-self, self)
    parts = _Reduced((a == 0).where(1.0, a))
    count, stirling = _terms(a)
    series = [1 - _EULER, *((-1) ** k * _zeta_less_one(k) for k in range(2, count))]
    near = _polynomial(parts.distance, series) + parts.slope
    x = parts.far
    squared = 1 / (x * x)
    tail = [value * (2 * k + 1) for k, value in enumerate(_STIRLING[:stirling])]
    far = x.log() - 0.5 / x - squared * _polynomial(squared, tail)
    found = parts.is_far.where(far, near)
    b = negative.where(a, 0.5)
    distance = _pole_distance(b)
    cotangent = math.pi / (distance * math.pi).tan()
    reflected = (distance == 0).where(math.nan, found + 1 / b + cotangent)
    found = negative.where(reflected, found)
    return (self == 0).where(-1 / (self == 0).where(self, 1.0), found)


@in_precise_floats
def sinc(self: Tensor) -> Tensor:
    """Return sin(πx) / (πx), and 1 at 0. PyTorch and NumPy: sinc.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0]).sinc().tolist()
    [1.0]
    """
    is_zero = self == 0
    x = is_zero.where(1.0, self)
    sine = (_pole_distance(x) * math.pi).sin()
    half = x.round() / 2
    sine = (half == half.floor()).where(sine, -sine)  # each half turn changes the sign
    return is_zero.where(1.0, sine / (x * math.pi))


@rounded_once
def xlogy(self: Tensor, other: Any) -> Tensor:
    """Return x log(y), and 0 where x is 0 unless y is NaN. PyTorch: xlogy.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0, 2.0]).xlogy(Tensor([0.0, 1.0])).tolist()
    [0.0, 0.0]
    """
    x, y = float_pair(self, other, "xlogy")
    is_zero = (x == 0) & ((y <= 0) | (y == math.inf))  # where the product is not 0
    return is_zero.where(0.0, x * is_zero.where(1.0, y).log())


@rounded_once
def logit(self: Tensor, eps: float | None = None) -> Tensor:
    """Return log(x / (1 - x)), the inverse of sigmoid; `eps` keeps x inside. PyTorch: logit.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.5, 1.0]).logit().tolist()
    [0.0, inf]
    """
    x = as_float(self)
    x = x if eps is None else x.clamp(eps, 1 - eps)
    is_inside = (x > 0) & (x < 1)
    inside = is_inside.where(x, 0.5)
    # At 0 and 1 the value and the slope are infinite; outside both are NaN.
    outside = ((x < 0) | (x > 1)).where(math.nan, 0.0).cast(x.dtype) * x
    rest = x.log() - (1 - x).log() + outside
    return is_inside.where((inside / (1 - inside)).log(), rest)

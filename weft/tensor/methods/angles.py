"""Angles and hyperbolas: the functions that are made of sin, cos, exp and log.

Integers and bools become the default float; floats give floats of their dtype.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import dtypes
from weft.tensor.methods.unary import LN2, as_float, float_pair
from weft.tensor.small_floats import rounded_once

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


@rounded_once
def tan(self: Tensor) -> Tensor:
    """Return the tangent of radians.

    Integers and bools become the default float. PyTorch and NumPy: tan.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0, 1.0]).tan().tolist()]
    [0.0, 1.5574]
    """
    return self.sin() / self.cos()


def _magnitude(x: Tensor) -> Tensor:
    """|x|, whose gradient at 0 is that of x: an odd function of it has a slope there."""
    return x.signbit().where(-x, x)


def _odd_series(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """x (1 + c0 x² + c1 x⁴ + …)."""
    squared = x * x
    total = coefficients[-1] * squared + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        total = total * squared + coefficient
    return x + x * (squared * total)


_SINH = tuple(1 / math.factorial(2 * n + 3) for n in range(9))


@rounded_once
def sinh(self: Tensor) -> Tensor:
    """Return the hyperbolic sine.

    Integers and bools become the default float. PyTorch and NumPy: sinh.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0, 1.0]).sinh().tolist()]
    [0.0, 1.1752]
    """
    x = as_float(self)
    small = x.abs() < 1
    half = (x.abs() / 2).exp()
    magnitude = half * half / 2 - 0.5 / half / half
    return small.where(
        _odd_series(small.where(x, 0.0), _SINH), (x < 0).where(-magnitude, magnitude)
    )


@rounded_once
def cosh(self: Tensor) -> Tensor:
    """Return the hyperbolic cosine.

    Integers and bools become the default float. PyTorch and NumPy: cosh.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0, 1.0]).cosh().tolist()]
    [1.0, 1.5431]
    """
    half = (as_float(self).abs() / 2).exp()
    return half / 2 * half + 0.5 / half / half


# Taylor's coefficients of the arctangent after x: up to tan(π/16) the rest is below 1e-11.
_ATAN = tuple((-1) ** (n + 1) / (2 * n + 3) for n in range(6))


@rounded_once
def atan(self: Tensor) -> Tensor:
    """Return the arctangent in radians.

    Integers and bools become the default float. PyTorch: atan; NumPy: arctan.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0, 1.0]).atan().tolist()]
    [0.0, 0.7854]
    """
    x = as_float(self)
    magnitude = _magnitude(x)
    inverted = magnitude > 1
    reduced = inverted.where(1 / inverted.where(magnitude, 1.0), magnitude)  # in [0, 1]
    # atan(t) = angle + atan((t - slope) / (1 + t slope)) where slope = tan(angle).
    angle, slope = _nearest_center(reduced)
    rest = (reduced - slope) / (1 + reduced * slope)
    result = angle + _odd_series(rest, _ATAN)
    if x.dtype is dtypes.float64:
        sine, cosine = result.sin(), result.cos()
        result = result + (reduced * cosine - sine) / (cosine + reduced * sine)
    result = inverted.where(math.pi / 2 - result, result)
    return x.signbit().where(-result, result)


def _nearest_center(reduced: Tensor) -> tuple[Tensor, Tensor]:
    """One of the angles 0, π/8 and π/4, close to the arctangent, and its tangent."""
    low, high = math.tan(math.pi / 16), math.tan(3 * math.pi / 16)
    middle = reduced > low
    far = reduced > high
    zero = reduced._new(reduced.uop.const_like(0.0))
    angle = far.where(math.pi / 4, middle.where(math.pi / 8, zero))
    return angle, far.where(1.0, middle.where(math.tan(math.pi / 8), zero))


@rounded_once
def asin(self: Tensor) -> Tensor:
    """Return the arcsine in radians; NaN outside -1 to 1.

    Integers and bools become the default float. PyTorch: asin; NumPy: arcsin.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0, 1.0]).asin().tolist()]
    [0.0, 1.5708]
    """
    x = as_float(self)
    is_end = x.abs() == 1
    inside = is_end.where(0.0, x)
    found = (inside / ((1 - inside) * (1 + inside)).sqrt()).atan()
    # At the ends the value is ±π/2 and the slope infinite.
    return is_end.where(x.detach() * (math.pi / 2 - (2 - 2 * x.abs()).sqrt()), found)


@rounded_once
def acos(self: Tensor) -> Tensor:
    """Return the arccosine in radians; NaN outside -1 to 1.

    Integers and bools become the default float. PyTorch: acos; NumPy: arccos.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([1.0, 0.5]).acos().tolist()]
    [0.0, 1.0472]
    """
    x = as_float(self)
    is_end = x.abs() == 1
    inside = is_end.where(0.0, x)
    found = 2 * ((1 - inside) / (1 + inside)).sqrt().atan()
    # At the ends the value is 0 or π and the slope infinite.
    end = (1 - x).detach() * (math.pi / 2) + x.detach() * (2 - 2 * x.abs()).sqrt()
    return is_end.where(end, found)


def _is_huge(x: Tensor) -> Tensor:
    """Where the square of a value would overflow or lose the one that is added to it."""
    return x.abs() > 2.0 ** {16: 7, 32: 60}.get(x.dtype.bits, 500)


@rounded_once
def asinh(self: Tensor) -> Tensor:
    """Return the inverse hyperbolic sine.

    Integers and bools become the default float. PyTorch: asinh; NumPy: arcsinh.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0, 1.0]).asinh().tolist()]
    [0.0, 0.8814]
    """
    x = as_float(self)
    huge, magnitude = _is_huge(x), _magnitude(x)
    inside = huge.where(1.0, magnitude)
    squared = inside * inside
    near = (inside + squared / (1 + (1 + squared).sqrt())).log1p()
    result = huge.where(huge.where(magnitude, 1.0).log() + LN2, near)
    return x.signbit().where(-result, result)


@rounded_once
def acosh(self: Tensor) -> Tensor:
    """Return the inverse hyperbolic cosine; NaN below 1.

    Integers and bools become the default float. PyTorch: acosh; NumPy: arccosh.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([1.0, 2.0]).acosh().tolist()]
    [0.0, 1.317]
    """
    x = as_float(self)
    # Below -1 the value is NaN and the slope 1 / √(x² - 1), as in PyTorch.
    is_below = x <= -1
    y = is_below.where(x, -2.0)
    below = -(-y + (y.square() - 1).sqrt()).log() + math.nan
    x = is_below.where(2.0, x)
    huge = _is_huge(x)
    above = huge.where(1.0, x) - 1
    near = (above + above.sqrt() * (above + 2).sqrt()).log1p()
    found = huge.where(huge.where(x, 1.0).log() + LN2, near)
    return is_below.where(below, found)


@rounded_once
def atanh(self: Tensor) -> Tensor:
    """Return the inverse hyperbolic tangent; NaN outside -1 to 1.

    Integers and bools become the default float. PyTorch: atanh; NumPy: arctanh.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0, 0.5]).atanh().tolist()]
    [0.0, 0.5493]
    """
    x = as_float(self)
    is_end = x.abs() == 1
    inside = is_end.where(0.0, x)
    found = 0.5 * (2 * inside / (1 - inside)).log1p()
    return is_end.where(0.5 * (x.log1p() - (-x).log1p()), found)


@rounded_once
def atan2(self: Tensor, other: Any) -> Tensor:
    """Return the angle of the point (other, self) in radians, from -π to π, with signed zeros.

    PyTorch: atan2; NumPy: arctan2.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0, -0.0]).atan2(Tensor([1.0, -1.0])).tolist()
    [0.0, -3.1415927410125732]
    """
    y, x = float_pair(self, other, "atan2")
    below, left = y.signbit(), x.signbit()
    rise, run = below.where(-y, y), left.where(-x, x)
    steep = rise > run
    short, long = steep.where(run, rise), steep.where(rise, run)
    is_origin = (long == 0) & (short == 0)
    is_corner = (long == math.inf) & (short == math.inf)
    ratio = is_origin.where(0.0, short / is_origin.where(1.0, long))
    angle = is_corner.where(1.0, ratio).atan()
    angle = steep.where(math.pi / 2 - angle, angle)
    angle = left.where(math.pi - angle, angle)
    return below.where(-angle, angle)


@rounded_once
def hypot(self: Tensor, other: Any) -> Tensor:
    """Return sqrt(x² + y²) without overflow; infinite where a side is. PyTorch, NumPy: hypot.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([3e30]).hypot(4e30).item() / 5e30, 6)
    1.0
    """
    x, y = (each.abs() for each in float_pair(self, other, "hypot"))
    is_infinite = (x == math.inf) | (y == math.inf)
    x, y = is_infinite.where(0.0, x), is_infinite.where(0.0, y)
    is_less = x < y
    short, long = is_less.where(x, y), is_less.where(y, x)
    is_plain = long == 0
    ratio = short / is_plain.where(1.0, long)
    length = is_plain.where(long + short, long * (1 + ratio * ratio).sqrt())
    return is_infinite.where(math.inf, length)


@rounded_once
def deg2rad(self: Tensor) -> Tensor:
    """Convert degrees to radians. PyTorch and NumPy: deg2rad.

    >>> from weft.tensor import Tensor
    >>> Tensor([180.0]).deg2rad().tolist()
    [3.1415927410125732]
    """
    return as_float(self) * (math.pi / 180)


@rounded_once
def rad2deg(self: Tensor) -> Tensor:
    """Convert radians to degrees. PyTorch and NumPy: rad2deg.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([0.5]).rad2deg().item(), 3)
    28.648
    """
    return as_float(self) * (180 / math.pi)

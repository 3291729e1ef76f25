"""Functions of one operand: those the graph has ops for, and those made of them.

Floats give floats of their dtype; integers and bools become the default float where the function
has fractional values, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import BOOL, FLOAT, UINT, dtypes, promote
from weft.ir.ops import Op
from weft.ir.uop import make
from weft.support.errors import DTypeError
from weft.tensor.elementwise import lift

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

LN2 = math.log(2)


def as_float(self: Tensor) -> Tensor:
    """The tensor itself if it holds floats, else cast to the default float."""
    return self if self.dtype.kind == FLOAT else self.cast(dtypes.default_float)


def float_pair(self: Tensor, other: Any, name: str) -> tuple[Tensor, Tensor]:
    """Two operands as floats of one dtype."""
    right = lift(self, other, name)
    dtype = promote(self.dtype, right.dtype)
    dtype = dtype if dtype.kind == FLOAT else dtypes.default_float
    return self.cast(dtype), right.cast(dtype)


def _function(op: int, name: str, doc: str) -> Callable[[Tensor], Tensor]:
    def function(self: Tensor) -> Tensor:
        uop = as_float(self).uop
        return self._new(make(op, uop.dtype, (uop,)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _rounding(op: int, name: str, doc: str) -> Callable[[Tensor], Tensor]:
    def function(self: Tensor) -> Tensor:
        if self.dtype.kind != FLOAT:
            return self._same()
        return self._new(make(op, self.dtype, (self.uop,)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


sqrt = _function(Op.SQRT, "sqrt", "Return the square root; NaN below 0.")
exp = _function(Op.EXP, "exp", "Return e to the power of each element.")
exp2 = _function(Op.EXP2, "exp2", "Return 2 to the power of each element.")
log = _function(Op.LOG, "log", "Return the natural logarithm.")
log2 = _function(Op.LOG2, "log2", "Return the logarithm to base 2.")
sin = _function(Op.SIN, "sin", "Return the sine of radians.")
cos = _function(Op.COS, "cos", "Return the cosine of radians.")
tanh = _function(Op.TANH, "tanh", "Return the hyperbolic tangent.")
erf = _function(Op.ERF, "erf", "Return the error function.")
floor = _rounding(Op.FLOOR, "floor", "Round down to an integral value.")
trunc = _rounding(Op.TRUNC, "trunc", "Drop the fractional part.")
_rounded = _rounding(Op.ROUND, "round", "Round to the nearest integral value, halves to even.")


def round_(self: Tensor, decimals: int = 0) -> Tensor:
    """Round to the nearest multiple of 10 ** -decimals, halves to even; integers stay.

    PyTorch and NumPy: round. With decimals the product with a power of 10 is rounded, as there.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.5, 1.5, -2.7]).round().tolist(), Tensor([0.125]).round(decimals=2).tolist()
    ([0.0, 2.0, -3.0], [0.11999999731779099])
    """
    if not decimals or not self.dtype.is_float:
        return _rounded(self)
    scale = 10.0 ** abs(decimals)
    return _rounded(self * scale) / scale if decimals > 0 else _rounded(self / scale) * scale


def neg(self: Tensor) -> Tensor:
    """Negate; integers wrap."""
    if self.dtype.kind == BOOL:
        raise DTypeError(
            "neg: not defined for bool", law="a bool has no sign", fix="use logical_not or ~"
        )
    return self._new(-self.uop)


def positive(self: Tensor) -> Tensor:
    """Return the tensor itself."""
    return self


def ceil(self: Tensor) -> Tensor:
    """Round up to an integral value."""
    return self._same() if self.dtype.kind != FLOAT else -(-self).floor()


def frac(self: Tensor) -> Tensor:
    """Return the fractional part, with the sign of the value."""
    return self - self.trunc()


def abs_(self: Tensor) -> Tensor:
    """Return the magnitude; the least integer wraps to itself."""
    if self.dtype.kind in (BOOL, UINT):
        return self._same()
    greater = self.maximum(-self)
    # Of -0.0 and 0.0 a machine may call either the greater; their sum with 0.0 is 0.0.
    return greater + 0.0 if self.dtype.kind == FLOAT else greater


def bitwise_not(self: Tensor) -> Tensor:
    """Invert every bit; of a bool, negate it."""
    if self.dtype.kind == FLOAT:
        raise DTypeError(
            f"bitwise_not: not defined for {self.dtype.name}",
            law="bitwise_not takes bools and integers",
            fix="use logical_not, or bitcast to an integer dtype",
        )
    return self._new(~self.uop)


def logical_not(self: Tensor) -> Tensor:
    """Tell where the value is zero."""
    return self._new(~self.bool().uop)


def square(self: Tensor) -> Tensor:
    """Return the value times itself."""
    return self * self


def reciprocal(self: Tensor) -> Tensor:
    """Return one over the value."""
    return 1 / as_float(self)


def rsqrt(self: Tensor) -> Tensor:
    """Return one over the square root."""
    return 1 / self.sqrt()


def sign(self: Tensor) -> Tensor:
    """Return -1, 0 or 1 with the sign of the value; 0 for NaN, as in PyTorch.

    The zero is what TRUNC makes of the value, so that the gradient is zeros, not none at all.
    """
    if self.dtype.kind == BOOL:
        return self._same()
    one = lift(self, 1, "sign").cast(self.dtype)
    zero = (self.abs() < 0.5).where(self, 0).trunc() + 0 if self.dtype.kind == FLOAT else 0
    above = (self > 0).where(one, zero)
    return above if self.dtype.kind == UINT else (self < 0).where(-one, above)


def isnan(self: Tensor) -> Tensor:
    """Tell where the value is not a number."""
    return self != self


def isinf(self: Tensor, detect_positive: bool = True, detect_negative: bool = True) -> Tensor:
    """Tell where the value is infinite.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, float("-inf")]).isinf().tolist()
    [False, True]
    """
    if self.dtype.kind != FLOAT:
        return self.zeros_like(dtype=dtypes.bool)
    above = (self == math.inf) & detect_positive
    return above | ((self == -math.inf) & detect_negative)


def isfinite(self: Tensor) -> Tensor:
    """Tell where the value is neither infinite nor NaN."""
    if self.dtype.kind != FLOAT:
        return self.ones_like(dtype=dtypes.bool)
    return self.abs() < math.inf


def is_negative(self: Tensor) -> Tensor:
    """Tell where the sign bit is set; -0.0 and NaN with a sign count."""
    if self.dtype.kind != FLOAT:
        return self < 0 if self.dtype.kind != BOOL else self.zeros_like()
    bits = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}
    return self.bitcast(bits[self.dtype.bits]) < 0


def copysign(self: Tensor, other: Any) -> Tensor:
    """Return the magnitude of this with the sign of the other, whose zero has one too."""
    left, right = float_pair(self, other, "copysign")
    magnitude = left.abs()
    return right.signbit().where(-magnitude, magnitude)


def tan(self: Tensor) -> Tensor:
    """Return the tangent of radians."""
    return self.sin() / self.cos()


def log10(self: Tensor) -> Tensor:
    """Return the logarithm to base 10."""
    return self.log2() * math.log10(2)


def log1p(self: Tensor) -> Tensor:
    """Return log(1 + x), accurate for small x.

    What 1 + x loses by rounding is added with the slope of the logarithm.
    """
    x = as_float(self)
    total = 1 + x
    is_exact = (total == 1) | (total == math.inf) | (total == 0)
    lost = is_exact.where(0.0, x - (total - 1)) / is_exact.where(1.0, total)
    return (total == 1).where(x, total.log() + lost)


def expm1(self: Tensor) -> Tensor:
    """Return exp(x) - 1, accurate for small x.

    exp(x) - 1 = tanh(x / 2) (exp(x) + 1), which cancels nothing.
    """
    x = as_float(self)
    small = x.abs() < 1
    return small.where((small.where(x, 0.0) / 2).tanh() * (x.exp() + 1), x.exp() - 1)


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


def sinh(self: Tensor) -> Tensor:
    """Return the hyperbolic sine."""
    x = as_float(self)
    small = x.abs() < 1
    half = (x.abs() / 2).exp()
    magnitude = half * half / 2 - 0.5 / half / half
    return small.where(
        _odd_series(small.where(x, 0.0), _SINH), (x < 0).where(-magnitude, magnitude)
    )


def cosh(self: Tensor) -> Tensor:
    """Return the hyperbolic cosine."""
    half = (as_float(self).abs() / 2).exp()
    return half / 2 * half + 0.5 / half / half


# Taylor's coefficients of the arctangent after x: up to tan(π/16) the rest is below 1e-11.
_ATAN = tuple((-1) ** (n + 1) / (2 * n + 3) for n in range(6))


def atan(self: Tensor) -> Tensor:
    """Return the arctangent in radians."""
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


def asin(self: Tensor) -> Tensor:
    """Return the arcsine in radians; NaN outside -1 to 1."""
    x = as_float(self)
    return (x / ((1 - x) * (1 + x)).sqrt()).atan()


def acos(self: Tensor) -> Tensor:
    """Return the arccosine in radians; NaN outside -1 to 1."""
    x = as_float(self)
    return 2 * ((1 - x) / (1 + x)).sqrt().atan()


def _is_huge(x: Tensor) -> Tensor:
    """Where the square of a value would overflow or lose the one that is added to it."""
    return x.abs() > 2.0 ** {16: 7, 32: 60}.get(x.dtype.bits, 500)


def asinh(self: Tensor) -> Tensor:
    """Return the inverse hyperbolic sine."""
    x = as_float(self)
    huge, magnitude = _is_huge(x), _magnitude(x)
    inside = huge.where(1.0, magnitude)
    squared = inside * inside
    near = (inside + squared / (1 + (1 + squared).sqrt())).log1p()
    result = huge.where(huge.where(magnitude, 1.0).log() + LN2, near)
    return x.signbit().where(-result, result)


def acosh(self: Tensor) -> Tensor:
    """Return the inverse hyperbolic cosine; NaN below 1."""
    x = as_float(self)
    huge = _is_huge(x)
    above = huge.where(1.0, x) - 1
    near = (above + above.sqrt() * (above + 2).sqrt()).log1p()
    return huge.where(huge.where(x, 1.0).log() + LN2, near)


def atanh(self: Tensor) -> Tensor:
    """Return the inverse hyperbolic tangent; NaN outside -1 to 1."""
    x = as_float(self)
    return 0.5 * (2 * x / (1 - x)).log1p()

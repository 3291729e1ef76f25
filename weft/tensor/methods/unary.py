"""Functions of one operand: those the graph has ops for, and those made of them.

Floats give floats of their dtype; integers and bools become the default float where the function
has fractional values, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import BOOL, COMPLEX, FLOAT, UINT, dtypes, promote
from weft.ir.ops import Op
from weft.ir.uop import make
from weft.support.errors import DTypeError
from weft.tensor.complexes.functions import FUNCTIONS
from weft.tensor.complexes.parts import imag, magnitude, real, require_real
from weft.tensor.methods.elementwise import lift
from weft.tensor.methods.examples import with_example
from weft.tensor.small_floats import rounded_once
from weft.tensor.trace.built_once import built_once

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

LN2 = math.log(2)


def as_float(self: Tensor) -> Tensor:
    """The tensor itself if it holds floats or complex numbers, else cast to the default float."""
    return self if self.dtype.is_inexact else self.cast(dtypes.default_float)


def float_pair(self: Tensor, other: Any, name: str) -> tuple[Tensor, Tensor]:
    """Two operands as floats of one dtype."""
    right = lift(self, other, name)
    for operand in (self, right):
        require_real(operand, name)
    dtype = promote(self.dtype, right.dtype)
    dtype = dtype if dtype.kind == FLOAT else dtypes.default_float
    return self.cast(dtype), right.cast(dtype)


def _function(op: int, name: str, doc: str, at: str, shown: str) -> Callable[[Tensor], Tensor]:
    def function(self: Tensor) -> Tensor:
        if self.dtype.kind == COMPLEX:
            return _of_complex(self, op, name)
        uop = as_float(self).uop
        return self._new(make(op, uop.dtype, (uop,)))

    function.__name__ = function.__qualname__ = name
    call = f"[round(y, 4) for y in Tensor({at}).{name}().tolist()]"
    others = "PyTorch" if op == Op.ERF else "PyTorch and NumPy"
    more = f"Integers become the default float.\n\n{others}: {name}."
    function.__doc__ = with_example(doc, call, shown, more)
    return function


def _of_complex(self: Tensor, op: int, name: str) -> Tensor:
    if op not in FUNCTIONS:
        require_real(self, name)
    result: Tensor = FUNCTIONS[op](self)
    return result


def _rounding(op: int, name: str, doc: str, shown: str) -> Callable[[Tensor], Tensor]:
    def function(self: Tensor) -> Tensor:
        require_real(self, name)
        if self.dtype.kind != FLOAT:
            return self._same()
        return self._new(make(op, self.dtype, (self.uop,)))

    function.__name__ = function.__qualname__ = name
    call = f"Tensor([1.7, -1.2]).{name}().tolist()"
    more = f"Integers stay. PyTorch and NumPy: {name}."
    function.__doc__ = with_example(doc, call, shown, more)
    return function


sqrt = _function(
    Op.SQRT, "sqrt", "Return the square root; NaN below 0.", "[4.0, 2.0]", "[2.0, 1.4142]"
)
exp = _function(
    Op.EXP, "exp", "Return e to the power of each element.", "[0.0, 1.0]", "[1.0, 2.7183]"
)
exp2 = _function(
    Op.EXP2, "exp2", "Return 2 to the power of each element.", "[3.0, -1.0]", "[8.0, 0.5]"
)
log = _function(Op.LOG, "log", "Return the natural logarithm.", "[1.0, 2.0]", "[0.0, 0.6931]")
log2 = _function(Op.LOG2, "log2", "Return the logarithm to base 2.", "[1.0, 8.0]", "[0.0, 3.0]")
sin = _function(Op.SIN, "sin", "Return the sine of radians.", "[0.0, 1.0]", "[0.0, 0.8415]")
cos = _function(Op.COS, "cos", "Return the cosine of radians.", "[0.0, 1.0]", "[1.0, 0.5403]")
tanh = _function(Op.TANH, "tanh", "Return the hyperbolic tangent.", "[0.0, 1.0]", "[0.0, 0.7616]")
erf = _function(Op.ERF, "erf", "Return the error function.", "[0.0, 1.0]", "[0.0, 0.8427]")
floor = _rounding(Op.FLOOR, "floor", "Round down to an integral value.", "[1.0, -2.0]")
trunc = _rounding(Op.TRUNC, "trunc", "Drop the fractional part.", "[1.0, -1.0]")
_rounded = _rounding(Op.ROUND, "round", "Round to the nearest integral value.", "[2.0, -1.0]")


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
    """Negate; integers wrap.

    Shape and dtype stay. PyTorch: neg; NumPy: negative.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, -2]).neg().tolist()
    [-1, 2]
    """
    if self.dtype.kind == BOOL:
        raise DTypeError(
            "neg: not defined for bool", rule="a bool has no sign", fix="use logical_not or ~"
        )
    return self._new(-self.uop)


def positive(self: Tensor) -> Tensor:
    """Return the tensor itself."""
    return self


def ceil(self: Tensor) -> Tensor:
    """Round up to an integral value.

    Integers stay as they are; so do shape and dtype. PyTorch and NumPy: ceil.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.2, -1.2]).ceil().tolist()
    [2.0, -1.0]
    """
    require_real(self, "ceil")
    return self._same() if self.dtype.kind != FLOAT else -(-self).floor()


def frac(self: Tensor) -> Tensor:
    """Return the fractional part, with the sign of the value.

    x - trunc(x). Shape and dtype stay. PyTorch: frac; NumPy: modf.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.75, -1.25]).frac().tolist()
    [0.75, -0.25]
    """
    return self - self.trunc()


def abs_(self: Tensor) -> Tensor:
    """Return the magnitude; the least integer wraps to itself.

    Shape and dtype stay; of complex numbers it is real. PyTorch and NumPy: abs.

    >>> from weft.tensor import Tensor
    >>> Tensor([-2, 3]).abs().tolist()
    [2, 3]
    """
    if self.dtype.kind == COMPLEX:
        return magnitude(self)
    if self.dtype.kind in (BOOL, UINT):
        return self._same()
    greater = self.maximum(-self)
    # Of -0.0 and 0.0 a machine may call either the greater; their sum with 0.0 is 0.0.
    return greater + 0.0 if self.dtype.kind == FLOAT else greater


def bitwise_not(self: Tensor) -> Tensor:
    """Invert every bit; of a bool, negate it.

    -x - 1 for signed integers. Shape and dtype stay. PyTorch: bitwise_not; NumPy: invert.

    >>> from weft.tensor import Tensor
    >>> Tensor([0, 5]).bitwise_not().tolist()
    [-1, -6]
    """
    if self.dtype.is_inexact:
        raise DTypeError(
            f"bitwise_not: not defined for {self.dtype.name}",
            rule="bitwise_not takes bools and integers",
            fix="use logical_not, or bitcast to an integer dtype",
        )
    return self._new(~self.uop)


def logical_not(self: Tensor) -> Tensor:
    """Tell where the value is zero.

    A bool for each element. PyTorch and NumPy: logical_not.

    >>> from weft.tensor import Tensor
    >>> Tensor([0, 2]).logical_not().tolist()
    [True, False]
    """
    return self._new(~self.bool().uop)


def square(self: Tensor) -> Tensor:
    """Return the value times itself.

    Shape and dtype stay. PyTorch and NumPy: square.

    >>> from weft.tensor import Tensor
    >>> Tensor([3, -2]).square().tolist()
    [9, 4]
    """
    return self * self


def reciprocal(self: Tensor) -> Tensor:
    """Return one over the value.

    Integers and bools become the default float. PyTorch and NumPy: reciprocal.

    >>> from weft.tensor import Tensor
    >>> Tensor([2.0, -4.0]).reciprocal().tolist()
    [0.5, -0.25]
    """
    return 1 / as_float(self)


@rounded_once
@built_once
def rsqrt(self: Tensor) -> Tensor:
    """Return one over the square root.

    Integers and bools become the default float. PyTorch: rsqrt.

    >>> from weft.tensor import Tensor
    >>> Tensor([4.0, 0.25]).rsqrt().tolist()
    [0.5, 2.0]
    """
    return 1 / self.sqrt()


def sign(self: Tensor) -> Tensor:
    """Return -1, 0 or 1 with the sign of the value; 0 for NaN, as in PyTorch.

    The zero is what TRUNC makes of the value, so that the gradient is zeros, not none at all.
    Shape and dtype stay.

    >>> from weft.tensor import Tensor
    >>> Tensor([-3.0, 0.0, 2.0]).sign().tolist()
    [-1.0, 0.0, 1.0]
    """
    require_real(self, "sign")
    if self.dtype.kind == BOOL:
        return self._same()
    one = lift(self, 1, "sign").cast(self.dtype)
    zero = (self.abs() < 0.5).where(self, 0).trunc() + 0 if self.dtype.kind == FLOAT else 0
    above = (self > 0).where(one, zero)
    return above if self.dtype.kind == UINT else (self < 0).where(-one, above)


def isnan(self: Tensor) -> Tensor:
    """Tell where the value is not a number.

    A bool for each element. PyTorch and NumPy: isnan.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, float("nan")]).isnan().tolist()
    [False, True]
    """
    return self != self


def isinf(self: Tensor, detect_positive: bool = True, detect_negative: bool = True) -> Tensor:
    """Tell where the value is infinite.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, float("-inf")]).isinf().tolist()
    [False, True]
    """
    if self.dtype.kind == COMPLEX:
        return isinf(real(self)) | isinf(imag(self))
    if self.dtype.kind != FLOAT:
        return self.zeros_like(dtype=dtypes.bool)
    above = (self == math.inf) & detect_positive
    return above | ((self == -math.inf) & detect_negative)


def isfinite(self: Tensor) -> Tensor:
    """Tell where the value is neither infinite nor NaN.

    A bool for each element. PyTorch and NumPy: isfinite.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, float("inf")]).isfinite().tolist()
    [True, False]
    """
    if self.dtype.kind == COMPLEX:
        return isfinite(real(self)) & isfinite(imag(self))
    if self.dtype.kind != FLOAT:
        return self.ones_like(dtype=dtypes.bool)
    return self.abs() < math.inf


def is_negative(self: Tensor) -> Tensor:
    """Tell where the sign bit is set; -0.0 and NaN with a sign count.

    A bool for each element. PyTorch and NumPy: signbit.

    >>> from weft.tensor import Tensor
    >>> Tensor([-0.0, 2.0]).signbit().tolist()
    [True, False]
    """
    require_real(self, "signbit")
    if self.dtype.kind != FLOAT:
        return self < 0 if self.dtype.kind != BOOL else self.zeros_like()
    bits = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}
    return self.bitcast(bits[self.dtype.bits]) < 0


def copysign(self: Tensor, other: Any) -> Tensor:
    """Return the magnitude of this with the sign of the other, whose zero has one too.

    Operands broadcast, and their dtypes are promoted. PyTorch and NumPy: copysign.

    >>> from weft.tensor import Tensor
    >>> Tensor([3.0, 4.0]).copysign(Tensor([-1.0, 1.0])).tolist()
    [-3.0, 4.0]
    """
    left, right = float_pair(self, other, "copysign")
    magnitude = left.abs()
    result = right.signbit().where(-magnitude, magnitude)
    # The slope of the sign is 0, not none at all; what is added keeps every number, -0.0 too.
    return result + right.sign().abs() * -0.0


@rounded_once
@built_once
def log10(self: Tensor) -> Tensor:
    """Return the logarithm to base 10.

    Integers and bools become the default float. PyTorch and NumPy: log10.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 1000.0]).log10().tolist()
    [0.0, 3.0]
    """
    return self.log2() * math.log10(2)


@rounded_once
@built_once
def log1p(self: Tensor) -> Tensor:
    """Return log(1 + x), accurate for small x.

    What 1 + x loses by rounding is added with the slope of the logarithm. Integers and bools
    become the default float. PyTorch and NumPy: log1p.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0, 1e-6]).log1p().tolist()]
    [0.0, 0.0]
    """
    x = as_float(self)
    total = 1 + x
    is_exact = (total == 1) | (total == math.inf) | (total == 0)
    lost = is_exact.where(0.0, x - (total - 1)) / is_exact.where(1.0, total)
    return (total == 1).where(x, total.log() + lost)


@rounded_once
@built_once
def expm1(self: Tensor) -> Tensor:
    """Return exp(x) - 1, accurate for small x.

    exp(x) - 1 = tanh(x / 2) (exp(x) + 1), which cancels nothing. Integers and bools become the
    default float. PyTorch and NumPy: expm1.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0, 1e-6]).expm1().tolist()]
    [0.0, 0.0]
    """
    x = as_float(self)
    small = x.abs() < 1
    return small.where((small.where(x, 0.0) / 2).tanh() * (x.exp() + 1), x.exp() - 1)

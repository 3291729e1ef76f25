"""Functions of two or three operands that are made of the operators: logic, limits, angles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import FLOAT, dtypes, promote
from weft.support.errors import ArgumentError, DTypeError
from weft.tensor.methods.elementwise import lift
from weft.tensor.methods.unary import as_float, float_pair

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def logical_and(self: Tensor, other: Any) -> Tensor:
    """Tell where neither value is zero. PyTorch and NumPy: logical_and.

    >>> from weft.tensor import Tensor
    >>> Tensor([0, 2]).logical_and(Tensor([1.0, 0.5])).tolist()
    [False, True]
    """
    return self.bool() & lift(self, other, "logical_and").bool()


def logical_or(self: Tensor, other: Any) -> Tensor:
    """Tell where a value is not zero. PyTorch and NumPy: logical_or.

    >>> from weft.tensor import Tensor
    >>> Tensor([0, 2]).logical_or(0).tolist()
    [False, True]
    """
    return self.bool() | lift(self, other, "logical_or").bool()


def logical_xor(self: Tensor, other: Any) -> Tensor:
    """Tell where exactly one of two values is zero. PyTorch and NumPy: logical_xor.

    >>> from weft.tensor import Tensor
    >>> Tensor([0, 2]).logical_xor(1).tolist()
    [True, False]
    """
    return self.bool() ^ lift(self, other, "logical_xor").bool()


def clamp_min(self: Tensor, min: Any) -> Tensor:
    """Limit from below, `clamp(min_=min)`. PyTorch: clamp_min.

    >>> from weft.tensor import Tensor
    >>> Tensor([-3, 5]).clamp_min(0).tolist()
    [0, 5]
    """
    return self.clamp(min_=min)


def clamp_max(self: Tensor, max: Any) -> Tensor:
    """Limit from above, `clamp(max_=max)`. PyTorch: clamp_max.

    >>> from weft.tensor import Tensor
    >>> Tensor([-3, 5]).clamp_max(0).tolist()
    [-3, 0]
    """
    return self.clamp(max_=max)


def addcmul(self: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """Return self + value * tensor1 * tensor2; halves are rounded once. PyTorch: addcmul.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).addcmul(Tensor([2.0]), Tensor([3.0]), value=0.5).tolist()
    [4.0]
    """
    left, right = lift(self, tensor1, "addcmul"), lift(self, tensor2, "addcmul")
    dtype = promote(self.dtype, left.dtype, right.dtype)
    if dtype.kind != FLOAT and isinstance(value, float):
        raise DTypeError(
            f"addcmul: the value {value} is a float and the tensors are {dtype.name}",
            law="integers are scaled by an int",
        )
    x, a, b = (_precise(each.cast(dtype)) for each in (self, left, right))
    product = a * b if value == 1 else a * value * b
    return (x + product).cast(dtype)


def addcdiv(self: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """Return self + value * tensor1 / tensor2; halves are rounded once. PyTorch: addcdiv.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).addcdiv(Tensor([3.0]), Tensor([2.0]), value=2).tolist()
    [4.0]
    """
    left, right = lift(self, tensor1, "addcdiv"), lift(self, tensor2, "addcdiv")
    dtype = promote(self.dtype, left.dtype, right.dtype)
    dtype = dtype if dtype.kind == FLOAT else dtypes.default_float
    x, a, b = (_precise(each.cast(dtype)) for each in (self, left, right))
    return (x + (a if value == 1 else a * value) / b).cast(dtype)


def _precise(x: Tensor) -> Tensor:
    """Small floats in float32."""
    return x.float() if x.dtype.kind == FLOAT and x.dtype.bits < 32 else x


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
    ratio = short / is_origin.where(1.0, long)
    angle = is_corner.where(1.0, ratio).atan()
    angle = steep.where(math.pi / 2 - angle, angle)
    angle = left.where(math.pi - angle, angle)
    return below.where(-angle, angle)


def hypot(self: Tensor, other: Any) -> Tensor:
    """Return sqrt(x² + y²) without overflow; infinite where a side is. PyTorch, NumPy: hypot.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([3e30]).hypot(4e30).item() / 5e30, 6)
    1.0
    """
    x, y = (each.abs() for each in float_pair(self, other, "hypot"))
    is_less = x < y
    short, long = is_less.where(x, y), is_less.where(y, x)
    is_plain = (long == 0) | (long == math.inf)
    ratio = short / is_plain.where(1.0, long)
    length = is_plain.where(long + short, long * (1 + ratio * ratio).sqrt())
    return ((x == math.inf) | (y == math.inf)).where(math.inf, length)


def heaviside(self: Tensor, values: Any) -> Tensor:
    """Return 0 below 0, 1 above, and `values` at 0. PyTorch and NumPy: heaviside.

    >>> from weft.tensor import Tensor
    >>> Tensor([-2.0, 0.0, 3.0]).heaviside(0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    at_zero = lift(self, values, "heaviside")
    dtype = promote(self.dtype, at_zero.dtype)
    return (self == 0).where(at_zero.cast(dtype), (self > 0).cast(dtype))


def nan_to_num(
    self: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace NaN and infinities; these by the limits of the dtype unless told otherwise.

    PyTorch and NumPy: nan_to_num.

    >>> from weft.tensor import Tensor
    >>> Tensor([float("nan"), float("inf"), 1.0]).nan_to_num(posinf=9.0).tolist()
    [0.0, 9.0, 1.0]
    """
    if self.dtype.kind != FLOAT:
        return self._same()
    top = dtypes.finfo(self.dtype).max if posinf is None else posinf
    bottom = -dtypes.finfo(self.dtype).max if neginf is None else neginf
    found = self.isnan().where(nan, self)
    return (self == math.inf).where(top, (self == -math.inf).where(bottom, found))


def fmax(self: Tensor, other: Any) -> Tensor:
    """Return the greater of two values; a number rather than NaN. PyTorch and NumPy: fmax.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, float("nan")]).fmax(0.5).tolist()
    [1.0, 0.5]
    """
    y = lift(self, other, "fmax")
    return ((self >= y) | y.isnan()).where(self, y)


def fmin(self: Tensor, other: Any) -> Tensor:
    """Return the lesser of two values; a number rather than NaN. PyTorch and NumPy: fmin.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, float("nan")]).fmin(0.5).tolist()
    [0.5, 0.5]
    """
    y = lift(self, other, "fmin")
    return ((self <= y) | y.isnan()).where(self, y)


def float_power(self: Tensor, exponent: Any) -> Tensor:
    """Raise to a power in float64. PyTorch and NumPy: float_power.

    >>> from weft.tensor import Tensor
    >>> Tensor([4]).float_power(-0.5).tolist()
    [0.5]
    """
    right = lift(self.double(), exponent, "float_power")
    result: Tensor = self.double() ** right.double()
    return result


def ldexp(self: Tensor, other: Any) -> Tensor:
    """Return x * 2 ** other. PyTorch and NumPy: ldexp.

    >>> from weft.tensor import Tensor
    >>> Tensor([3.0]).ldexp(Tensor([4])).tolist()
    [48.0]
    """
    x = as_float(self)
    power = as_float(lift(x, other, "ldexp")).exp2()
    return x * power


def logaddexp2(self: Tensor, other: Any) -> Tensor:
    """Return log2(2 ** x + 2 ** y) without overflow. PyTorch and NumPy: logaddexp2.

    >>> from weft.tensor import Tensor
    >>> Tensor([2000.0]).logaddexp2(Tensor([2000.0])).tolist()
    [2001.0]
    """
    x, y = float_pair(self, other, "logaddexp2")
    gap = (x == y).where(0.0, (x < y).where(x - y, y - x))
    return x.maximum(y) + gap.exp2().log1p() * (1 / math.log(2))


def deg2rad(self: Tensor) -> Tensor:
    """Convert degrees to radians. PyTorch and NumPy: deg2rad.

    >>> from weft.tensor import Tensor
    >>> Tensor([180.0]).deg2rad().tolist()
    [3.1415927410125732]
    """
    return as_float(self) * (math.pi / 180)


def rad2deg(self: Tensor) -> Tensor:
    """Convert radians to degrees. PyTorch and NumPy: rad2deg.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([0.5]).rad2deg().item(), 3)
    28.648
    """
    return as_float(self) * (180 / math.pi)


def isposinf(self: Tensor) -> Tensor:
    """Tell where the value is infinity. PyTorch and NumPy: isposinf.

    >>> from weft.tensor import Tensor
    >>> Tensor([float("inf"), float("-inf")]).isposinf().tolist()
    [True, False]
    """
    return self.isinf(detect_negative=False)


def isneginf(self: Tensor) -> Tensor:
    """Tell where the value is minus infinity. PyTorch and NumPy: isneginf.

    >>> from weft.tensor import Tensor
    >>> Tensor([float("inf"), float("-inf")]).isneginf().tolist()
    [False, True]
    """
    return self.isinf(detect_positive=False)


def rsub(self: Tensor, other: Any, alpha: float = 1) -> Tensor:
    """Return other - alpha * self. PyTorch: rsub.

    >>> from weft.tensor import Tensor
    >>> Tensor([2]).rsub(10, alpha=3).tolist()
    [4]
    """
    if alpha != 1 and self.dtype.kind != FLOAT and isinstance(alpha, float):
        raise ArgumentError(f"rsub: alpha {alpha} for {self.dtype.name}", law="it is an int here")
    result: Tensor = (self if alpha == 1 else self * alpha).sub(other, reverse=True)
    return result

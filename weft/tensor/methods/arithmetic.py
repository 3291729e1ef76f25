"""Functions of two or three operands that are made of the operators: logic, limits, angles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import FIXED, DType, dtypes, promote
from weft.support.errors import ArgumentError, DTypeError
from weft.tensor.methods.elementwise import lift
from weft.tensor.methods.unary import float_pair
from weft.tensor.small_floats import rounded_once

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


@rounded_once
def addcmul(self: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """Return self + value * tensor1 * tensor2; halves are rounded once. PyTorch: addcmul.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).addcmul(Tensor([2.0]), Tensor([3.0]), value=0.5).tolist()
    [4.0]
    """
    left, right = lift(self, tensor1, "addcmul"), lift(self, tensor2, "addcmul")
    dtype = promote(self.dtype, left.dtype, right.dtype)
    if not dtype.is_inexact and isinstance(value, float):
        raise DTypeError(
            f"addcmul: the value {value} is a float and the tensors are {dtype.name}",
            rule="integers are scaled by an int",
        )
    x, a, b = (each.cast(dtype) for each in (self, left, right))
    product = a * b if value == 1 else a * value * b
    return x + product


@rounded_once
def addcdiv(self: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """Return self + value * tensor1 / tensor2; halves are rounded once. PyTorch: addcdiv.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).addcdiv(Tensor([3.0]), Tensor([2.0]), value=2).tolist()
    [4.0]
    """
    left, right = lift(self, tensor1, "addcdiv"), lift(self, tensor2, "addcdiv")
    dtype = promote(self.dtype, left.dtype, right.dtype)
    dtype = dtype if dtype.is_inexact else dtypes.default_float
    x, a, b = (each.cast(dtype) for each in (self, left, right))
    return x + (a if value == 1 else a * value) / b


def float_power(self: Tensor, exponent: Any) -> Tensor:
    """Raise to a power in float64. PyTorch and NumPy: float_power.

    >>> from weft.tensor import Tensor
    >>> Tensor([4]).float_power(-0.5).tolist()
    [0.5]
    """
    right = lift(self, exponent, "float_power")
    is_complex = promote(self.dtype, right.dtype).is_complex
    wide = dtypes.complex128 if is_complex else dtypes.float64
    result: Tensor = self.cast(wide) ** right.cast(wide)
    return result


def ldexp(self: Tensor, other: Any) -> Tensor:
    """Return x * 2 ** other. PyTorch and NumPy: ldexp.

    >>> from weft.tensor import Tensor
    >>> Tensor([3.0]).ldexp(Tensor([4])).tolist()
    [48.0]
    """
    x, power = float_pair(self, other, "ldexp")
    # In three steps: a power by itself may be out of range where the result is not.
    most = 3 * (int(math.log2(dtypes.finfo(x.dtype).max)) - 1)
    power = power.clamp(-most, most)
    third = (power * (1 / 3)).trunc()
    step = third.exp2()
    return x * step * step * (power - 2 * third).exp2()


@rounded_once
def logaddexp2(self: Tensor, other: Any) -> Tensor:
    """Return log2(2 ** x + 2 ** y) without overflow. PyTorch and NumPy: logaddexp2.

    >>> from weft.tensor import Tensor
    >>> Tensor([2000.0]).logaddexp2(Tensor([2000.0])).tolist()
    [2001.0]
    """
    x, y = float_pair(self, other, "logaddexp2")
    gap = (x == y).where(0.0, (x < y).where(x - y, y - x))
    return x.maximum(y) + gap.exp2().log1p() * (1 / math.log(2))


@rounded_once
def rsub(self: Tensor, other: Any, alpha: float = 1) -> Tensor:
    """Return other - alpha * self. PyTorch: rsub.

    >>> from weft.tensor import Tensor
    >>> Tensor([2]).rsub(10, alpha=3).tolist()
    [4]
    """
    if alpha != 1 and not self.dtype.is_inexact and isinstance(alpha, float):
        raise ArgumentError(f"rsub: alpha {alpha} for {self.dtype.name}", rule="it is an int here")
    result: Tensor = (self if alpha == 1 else self * alpha).sub(other, reverse=True)
    return result


def gcd(self: Tensor, other: Any) -> Tensor:
    """Return the greatest common divisor of two integers; 0 of 0 and 0. PyTorch and NumPy: gcd.

    >>> from weft.tensor import Tensor
    >>> Tensor([12, -18, 0]).gcd(Tensor([8, 27, 5])).tolist()
    [4, 9, 5]
    """
    x, y = _integer_pair(self, other, "gcd")
    for _ in range(_most_divisions(x.dtype)):
        ends = y == 0
        x, y = ends.where(x, y), ends.where(0, x % ends.where(1, y))
    return x


def lcm(self: Tensor, other: Any) -> Tensor:
    """Return the least common multiple of two integers; 0 if one is 0. PyTorch and NumPy: lcm.

    >>> from weft.tensor import Tensor
    >>> Tensor([4, -6, 0]).lcm(Tensor([6, 9, 5])).tolist()
    [12, 18, 0]
    """
    x, y = _integer_pair(self, other, "lcm")
    divisor = gcd(x, y)
    return x // (divisor == 0).where(1, divisor) * y


def _integer_pair(self: Tensor, other: Any, name: str) -> tuple[Tensor, Tensor]:
    """Two operands without their signs, in one dtype of integers."""
    right = lift(self, other, name)
    dtype = promote(self.dtype, right.dtype)
    if not dtype.kind & FIXED:
        raise DTypeError(
            f"{name}: expected integers, got {self.dtype.name} and {right.dtype.name}",
            rule="divisors are those of integers",
        )
    return self.cast(dtype).abs(), right.cast(dtype).abs()


def _most_divisions(dtype: DType) -> int:
    """How many divisions Euclid's algorithm takes at most: neighboring Fibonacci numbers do."""
    small, large, count = 1, 2, 1
    while large <= dtype.max:
        small, large, count = large, small + large, count + 1
    return count

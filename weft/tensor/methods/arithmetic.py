"""Functions of two or three operands that are made of the operators: logic, limits, angles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import dtypes, promote
from weft.support.errors import ArgumentError, DTypeError
from weft.tensor.methods.elementwise import lift
from weft.tensor.methods.unary import as_float, float_pair, precise

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


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
    x, a, b = (precise(each.cast(dtype)) for each in (self, left, right))
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
    dtype = dtype if dtype.is_inexact else dtypes.default_float
    x, a, b = (precise(each.cast(dtype)) for each in (self, left, right))
    return (x + (a if value == 1 else a * value) / b).cast(dtype)


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

"""Truth values: logic of two operands, and tests of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import promote
from weft.tensor.methods.elementwise import lift

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


def heaviside(self: Tensor, values: Any) -> Tensor:
    """Return 0 below 0, 1 above, and `values` at 0. PyTorch and NumPy: heaviside.

    >>> from weft.tensor import Tensor
    >>> Tensor([-2.0, 0.0, 3.0]).heaviside(0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    at_zero = lift(self, values, "heaviside")
    dtype = promote(self.dtype, at_zero.dtype)
    return (self == 0).where(at_zero.cast(dtype), (self > 0).cast(dtype))


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

"""Functions of the normal distribution, and the scaled complement of erf."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.tensor.autodiff.tangent import Tensors, with_tangent
from weft.tensor.methods.special import in_precise_floats, scaled_erfc
from weft.tensor.methods.unary import as_float, float_pair
from weft.tensor.small_floats import rounded_once

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


@in_precise_floats
def erfcx(self: Tensor) -> Tensor:
    """Return exp(x²) erfc(x). PyTorch and SciPy: special.erfcx.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([1.0]).erfcx().item(), 5)
    0.42758
    """
    size = (self < 0).where(-self, self)  # with a slope at 0, which abs has not
    found = (size == math.inf).where(0.0, scaled_erfc((size == math.inf).where(0.0, size)))
    negative = (self < 0).where(self, 0.0)
    return (self < 0).where(2 * negative.square().exp() - found, found)


@in_precise_floats
def ndtr(self: Tensor) -> Tensor:
    """Return the share of the normal distribution below x. PyTorch and SciPy: special.ndtr.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0]).ndtr().item()
    0.5
    """
    return (self * -math.sqrt(0.5)).erfc() * 0.5


@in_precise_floats
def log_ndtr(self: Tensor) -> Tensor:
    """Return log(ndtr(x)), far below 0 too. PyTorch and SciPy: special.log_ndtr.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([-20.0]).log_ndtr().item(), 3)
    -203.917
    """
    is_low = self < -1
    low = is_low.where(self.maximum(-1e30), -1.0)
    high = is_low.where(0.0, self)
    tail = (scaled_erfc(low * -math.sqrt(0.5)) * 0.5).log() - low.square() * 0.5
    found = is_low.where(tail, ((high * math.sqrt(0.5)).erfc() * -0.5).log1p())
    return (self == -math.inf).where(-math.inf, found)


@in_precise_floats
def ndtri(self: Tensor) -> Tensor:
    """Return x with ndtr(x) = p: infinite at 0 and 1. PyTorch and SciPy: special.ndtri.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.5]).ndtri().item()
    0.0
    """
    is_low = (self > 0) & (self < 0.05)
    middle = (is_low.where(0.5, self) * 2 - 1).erfinv() * math.sqrt(2)
    goal = is_low.where(self, 0.01).log()
    x = -(-2 * goal).sqrt()
    for _ in range(5):  # Newton on the logarithm, which is nearly a parabola
        slope = math.sqrt(2 / math.pi) / scaled_erfc(-x * math.sqrt(0.5))
        x = x - (log_ndtr(x) - goal) / slope
    return is_low.where(x, middle)


@in_precise_floats
def entr(self: Tensor) -> Tensor:
    """Return -x log(x): 0 at 0, -inf below. PyTorch and SciPy: special.entr.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0, 1.0]).entr().tolist()
    [0.0, -0.0]
    """
    is_positive = self > 0
    x = is_positive.where(self, 1.0)
    other = (self == 0).where(0.0, self.isnan().where(math.nan, -math.inf))
    found = is_positive.where(-x * x.log(), other).detach()
    return with_tangent((found,), (self,), _entropy_tangent)[0]


def _entropy_tangent(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    (x,), (change,) = inputs, changes
    return (change * (-1 - x.log()),)


@rounded_once
def xlog1py(self: Tensor, other: Any) -> Tensor:
    """Return x log(1 + y), and 0 where x is 0. PyTorch and SciPy: special.xlog1py.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0]).xlog1py(Tensor([-1.0])).tolist()
    [0.0]
    """
    x, y = float_pair(self, other, "xlog1py")
    is_zero = (x == 0) & ((y <= -1) | (y == math.inf))  # where the product is not 0
    return is_zero.where(0.0, x * is_zero.where(0.0, y).log1p())


@rounded_once
def multigammaln(self: Tensor, p: int) -> Tensor:
    """Return log Γ of dimension p. PyTorch: mvlgamma, special.multigammaln.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([3.0]).mvlgamma(2).item(), 4)
    1.5502
    """
    x = as_float(self)
    total = x.zeros_like() + p * (p - 1) / 4 * math.log(math.pi)
    for k in range(p):
        total = total + (x - k / 2).lgamma()
    return total

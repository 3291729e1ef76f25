"""Activation functions, all made of elementwise ops.

They are written so that neither a value nor its gradient overflows where the function does not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import BOOL
from weft.support.errors import ArgumentError, DTypeError, ShapeError
from weft.tensor.checks import axis_of, known
from weft.tensor.methods.elementwise import lift
from weft.tensor.methods.unary import as_float, float_pair
from weft.tensor.small_floats import rounded_once
from weft.tensor.trace.built_once import built_once

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def relu(self: Tensor) -> Tensor:
    """Replace what is below 0 by 0; NaN stays.

    >>> from weft.tensor import Tensor
    >>> Tensor([-1.0, 2.0]).relu().tolist()
    [0.0, 2.0]
    """
    return (self <= 0).where(0, self)


def relu6(self: Tensor) -> Tensor:
    """Clamp to 0 … 6.

    Shape and dtype stay. PyTorch: nn.functional.relu6.

    >>> from weft.tensor import Tensor
    >>> Tensor([-1.0, 3.0, 9.0]).relu6().tolist()
    [0.0, 3.0, 6.0]
    """
    return self.hardtanh(0, 6)


def hardtanh(self: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    """Clamp to `min_val` … `max_val`.

    Shape and dtype stay. PyTorch: nn.functional.hardtanh.

    >>> from weft.tensor import Tensor
    >>> Tensor([-4.0, 0.5, 4.0]).hardtanh().tolist()
    [-1.0, 0.5, 1.0]
    """
    inside = (self > min_val) & (self < max_val)
    return inside.where(self, self.clamp(min_val, max_val).detach())  # no slope at the bounds


@rounded_once
@built_once
def hardsigmoid(self: Tensor, alpha: float = 1 / 6, beta: float = 0.5) -> Tensor:
    """Return alpha x + beta, clamped to 0 … 1.

    Shapes stay, and integers become the default float. PyTorch: nn.functional.hardsigmoid.

    >>> from weft.tensor import Tensor
    >>> Tensor([-4.0, 0.0, 4.0]).hardsigmoid().tolist()
    [0.0, 0.5, 1.0]
    """
    if alpha <= 0:
        return (alpha * self + beta).hardtanh(0, 1)
    # The ends are where x is, not where a rounded product is.
    return (self + beta / alpha).hardtanh(0, 1 / alpha) * alpha


@rounded_once
@built_once
def hardswish(self: Tensor) -> Tensor:
    """Return x relu6(x + 3) / 6.

    Shapes stay, and integers become the default float. PyTorch: nn.functional.hardswish.

    >>> from weft.tensor import Tensor
    >>> Tensor([-4.0, 0.0, 4.0]).hardswish().tolist()
    [-0.0, 0.0, 4.0]
    """
    return self * (self + 3).relu6() * (1 / 6)


@rounded_once
@built_once
def leaky_relu(self: Tensor, neg_slope: float = 0.01) -> Tensor:
    """Scale what is below 0.

    Shapes stay, and integers become the default float. PyTorch: nn.functional.leaky_relu.

    >>> from weft.tensor import Tensor
    >>> Tensor([-2.0, 2.0]).leaky_relu(0.5).tolist()
    [-1.0, 2.0]
    """
    return (self > 0).where(self, self * neg_slope)  # whose slope at 0 is neg_slope


def _minus_magnitude(x: Tensor) -> Tensor:
    """-|x|, whose gradient at 0 is that of -x."""
    return (x < 0).where(x, -x)


@rounded_once
@built_once
def sigmoid(self: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)).

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0, 1000.0, -1000.0]).sigmoid().tolist()
    [0.5, 1.0, 0.0]
    """
    x = as_float(self)
    small = _minus_magnitude(x).exp()
    return (x < 0).where(small, 1.0) * (1 / (1 + small))


@rounded_once
@built_once
def logsigmoid(self: Tensor) -> Tensor:
    """Return log(sigmoid(x)).

    Shapes stay, and integers become the default float. PyTorch: nn.functional.logsigmoid.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0]).logsigmoid().tolist()]
    [-0.6931]
    """
    return -((-as_float(self)).softplus())


@rounded_once
@built_once
def softplus(self: Tensor, beta: float = 1.0, threshold: float | None = None) -> Tensor:
    """Return log(1 + exp(beta x)) / beta; x itself where beta x is above a threshold.

    Shapes stay, and integers become the default float. PyTorch: nn.functional.softplus.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0]).softplus().tolist()]
    [0.6931]
    """
    if threshold is not None:
        is_far = self * beta > threshold
        return is_far.where(self, is_far.where(0.0, self).softplus(beta))
    x = as_float(self) * beta
    return ((x < 0).where(0.0, x) + _minus_magnitude(x).exp().log1p()) * (1 / beta)


@rounded_once
@built_once
def silu(self: Tensor) -> Tensor:
    """Return x sigmoid(x); also called swish.

    Shapes stay, and integers become the default float. PyTorch: nn.functional.silu.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([-1.0, 2.0]).silu().tolist()]
    [-0.2689, 1.7616]
    """
    x = as_float(self)
    return x * x.sigmoid()


@rounded_once
@built_once
def elu(self: Tensor, alpha: float = 1.0) -> Tensor:
    """Return alpha (exp(x) - 1) below 0.

    Shapes stay, and integers become the default float. PyTorch: nn.functional.elu.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([-1.0, 2.0]).elu().tolist()]
    [-0.6321, 2.0]
    """
    x = as_float(self)
    return (x <= 0).where(alpha * (x <= 0).where(x, 0.0).expm1(), x)


@rounded_once
@built_once
def celu(self: Tensor, alpha: float = 1.0) -> Tensor:
    """Return alpha (exp(x / alpha) - 1) below 0.

    Shapes stay, and integers become the default float. PyTorch: celu.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([-1.0, 2.0]).celu().tolist()]
    [-0.6321, 2.0]
    """
    x = as_float(self)
    return (x <= 0).where(alpha * ((x <= 0).where(x, 0.0) / alpha).expm1(), x)


@rounded_once
@built_once
def selu(self: Tensor, alpha: float = 1.67326, gamma: float = 1.0507) -> Tensor:
    """Return gamma elu(x, alpha).

    Shapes stay, and integers become the default float. PyTorch: selu.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([-1.0, 2.0]).selu().tolist()]
    [-1.1113, 2.1014]
    """
    return gamma * self.elu(alpha)


@rounded_once
@built_once
def gelu(self: Tensor, approximate: str = "tanh") -> Tensor:
    """Return x Φ(x), with Φ by a tanh formula, or by erf where `approximate` is "none".

    Shapes stay, and integers become the default float. PyTorch: nn.functional.gelu.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([-1.0, 2.0]).gelu().tolist()]
    [-0.1588, 1.9546]
    """
    x = as_float(self)
    if approximate == "none":
        return 0.5 * x * (1 + (x / math.sqrt(2)).erf())
    if approximate != "tanh":
        raise ArgumentError(
            f"gelu: unknown approximation {approximate!r}", rule='approximate is "tanh" or "none"'
        )
    return 0.5 * x * (1 + (math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)).tanh())


@rounded_once
@built_once
def quick_gelu(self: Tensor) -> Tensor:
    """Return x sigmoid(1.702 x).

    Shapes stay, and integers become the default float.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([-1.0, 2.0]).quick_gelu().tolist()]
    [-0.1542, 1.9357]
    """
    x = as_float(self)
    return x * (x * 1.702).sigmoid()


@rounded_once
@built_once
def mish(self: Tensor) -> Tensor:
    """Return x tanh(softplus(x)).

    Shapes stay, and integers become the default float. PyTorch: nn.functional.mish.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([-1.0, 2.0]).mish().tolist()]
    [-0.3034, 1.944]
    """
    x = as_float(self)
    return x * x.softplus().tanh()


@rounded_once
@built_once
def softsign(self: Tensor) -> Tensor:
    """Return x / (1 + |x|).

    Shapes stay, and integers become the default float. PyTorch: nn.functional.softsign.

    >>> from weft.tensor import Tensor
    >>> Tensor([-1.0, 3.0]).softsign().tolist()
    [-0.5, 0.75]
    """
    x = as_float(self)
    return x / (1 + x.abs())


def clamp(self: Tensor, min_: Any = None, max_: Any = None) -> Tensor:
    """Limit to `min_` … `max_`, each a number, a tensor or None; NaN stays.

    >>> from weft.tensor import Tensor
    >>> Tensor([-3, 0, 5]).clamp(-1, 2).tolist()
    [-1, 0, 2]
    """
    if min_ is None and max_ is None:
        raise ArgumentError("clamp: neither limit is given", rule="clamp needs min_, max_ or both")
    result = self
    for limit, is_lower in ((min_, True), (max_, False)):
        if limit is None:
            continue
        # A choice passes the gradient on at the limit itself, as PyTorch does.
        beyond = result < limit if is_lower else result > limit
        if isinstance(limit, self.__class__) and limit.dtype.is_float:
            beyond = beyond | limit.isnan()
        result = beyond.where(limit, result)
    return result


@rounded_once
@built_once
def lerp(self: Tensor, end: Any, weight: Any) -> Tensor:
    """Return self + weight (end - self), linear interpolation.

    Operands broadcast, and their dtypes are promoted. PyTorch: lerp.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0, 10.0]).lerp(Tensor([4.0, 20.0]), 0.25).tolist()
    [1.0, 12.5]
    """
    right = lift(self, end, "lerp")
    result: Tensor = self + (right - self) * weight
    return result


@rounded_once
@built_once
def logaddexp(self: Tensor, other: Any) -> Tensor:
    """Return log(exp(self) + exp(other)) without overflow.

    Operands broadcast, and their dtypes are promoted. PyTorch and NumPy: logaddexp.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0]).logaddexp(Tensor([0.0])).tolist()]
    [0.6931]
    """
    left, right = float_pair(self, other, "logaddexp")
    top = left.maximum(right)
    gap = (left == right).where(0.0, _minus_magnitude(left - right))
    return top + gap.exp().log1p()


def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Put a value where the mask holds; the dtype stays.

    The mask is bool and broadcasts with the tensor. PyTorch: masked_fill.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).masked_fill(Tensor([True, False, True]), 0).tolist()
    [0, 2, 0]
    """
    if mask.dtype.kind != BOOL:
        raise DTypeError(
            f"masked_fill: the mask is {mask.dtype.name}",
            rule="a mask is bool",
            fix="compare it: x.masked_fill(mask != 0, value)",
        )
    return mask.where(lift(self, value, "masked_fill").cast(self.dtype), self)


def isclose(
    self: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Tell where |self - other| <= atol + rtol |other|.

    A bool for each element. PyTorch and NumPy: isclose.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).isclose(Tensor([1.0, 2.5])).tolist()
    [True, False]
    """
    right = lift(self, other, "isclose")
    if not (self.is_floating_point() or right.is_floating_point()):
        self, right = self.double(), right.double()
    near = right.isfinite() & ((self - right).abs() <= atol + rtol * right.abs())
    result = near | (self == right)
    return result | (self.isnan() & right.isnan()) if equal_nan else result


def allclose(
    self: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Tell whether all elements are close; this reads the values.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).allclose(Tensor([1.0, 2.000001]))
    True
    """
    return bool(self.isclose(other, rtol, atol, equal_nan).all().item())


@rounded_once
@built_once
def glu(self: Tensor, dim: int = -1) -> Tensor:
    """Return the first half of an axis times the sigmoid of the second. PyTorch: glu.

    >>> from weft.tensor import Tensor
    >>> Tensor([4.0, 0.0]).glu().tolist()
    [2.0]
    """
    axis = axis_of("glu", dim, self.ndim)
    if not self.ndim or known(self.shape[axis]) % 2:
        raise ShapeError(
            "glu: expected an axis of even size",
            facts=[("shape", self.shape), ("axis", axis)],
            rule="glu splits the axis into two halves",
        )
    half = known(self.shape[axis]) // 2
    value, gate = self.split([half, half], axis)
    return value * gate.sigmoid()


def threshold(self: Tensor, threshold: float, value: float) -> Tensor:
    """Keep what is above the threshold and replace the rest; NaN stays. PyTorch: threshold.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 3.0]).threshold(2.0, -1.0).tolist()
    [-1.0, 3.0]
    """
    return (self <= threshold).where(lift(self, value, "threshold").cast(self.dtype), self)


@rounded_once
@built_once
def tanhshrink(self: Tensor) -> Tensor:
    """Return x - tanh(x). PyTorch: tanhshrink.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0]).tanhshrink().tolist()
    [0.0]
    """
    x = as_float(self)
    return x - x.tanh()


@rounded_once
@built_once
def softshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    """Move towards 0 by `lambd`, and no further than 0. PyTorch: softshrink.

    >>> from weft.tensor import Tensor
    >>> Tensor([-2.0, 0.25]).softshrink().tolist()
    [-1.5, 0.0]
    """
    x = as_float(self)
    rest = ((x >= -lambd) & (x <= lambd)).where(0.0 * x, x)
    return (x > lambd).where(x - lambd, (x < -lambd).where(x + lambd, rest))


def hardshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    """Replace what is from -lambd to lambd by 0. PyTorch: hardshrink.

    >>> from weft.tensor import Tensor
    >>> Tensor([-2.0, 0.25]).hardshrink().tolist()
    [-2.0, 0.0]
    """
    x = as_float(self)
    return ((x >= -lambd) & (x <= lambd)).where(0.0, x)


@rounded_once
@built_once
def prelu(self: Tensor, weight: Tensor) -> Tensor:
    """Scale what is below 0 by a weight, or by one for each channel (axis 1). PyTorch: prelu.

    >>> from weft.tensor import Tensor
    >>> Tensor([[-2.0, -2.0, 2.0]]).prelu(Tensor([0.5, 1.0, 3.0])).tolist()
    [[-1.0, -2.0, 2.0]]
    """
    count = weight.numel()
    if count == 1:
        scale = weight.reshape(())
    else:
        axis = min(1, self.ndim - 1)
        if weight.ndim != 1 or not self.ndim or self.shape[axis] != count:
            raise ShapeError(
                "prelu: the weights do not fit",
                facts=[("input", self.shape), ("weight", weight.shape)],
                rule="there is one weight, or a vector with one for each channel (axis 1)",
            )
        scale = weight.reshape((count, *[1] * (self.ndim - axis - 1)))
    return (self > 0).where(self, self * scale)

"""Reductions, and what is made of them: statistics, softmax, normalizations.

Sums and products of bools and integers are int64, as in PyTorch (uint64 stays); halves are summed
in float32 and rounded once. `mean`, `var` and `std` of integers are computed in the default float,
where PyTorch refuses them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from weft.ir.build import Size, reduce_axes
from weft.ir.dtypes import BOOL, FLOAT, DType, Scalar, dtypes
from weft.ir.ops import Op
from weft.ir.sizes import least, times
from weft.ir.uop import make
from weft.support.errors import ShapeError
from weft.tensor import nodes
from weft.tensor.checks import Axes, axes_of, axis_of, size_node
from weft.tensor.host.convert import dtype_of
from weft.tensor.methods.examples import with_example
from weft.tensor.methods.pairs import Extremes
from weft.tensor.methods.unary import as_float

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

DTypeLike = DType | str | None


def fold(self: Tensor, op: int, axis: Axes, keepdim: bool, name: str) -> Tensor:
    """The fold over some axes, which go unless they are kept."""
    axes = axes_of(name, axis, self.ndim)
    if not axes:
        return self._same()
    reduced = self._new(reduce_axes(self.uop, op, axes))
    if keepdim:
        return reduced
    rest = [size for i, size in enumerate(self.shape) if i not in axes]
    return reduced._new(nodes.reshape(reduced.uop, rest))


def accumulated_dtype(dtype: DType) -> DType:
    """The dtype of a sum."""
    return dtype if dtype.kind == FLOAT or dtype is dtypes.uint64 else dtypes.int64


def widened(self: Tensor) -> Tensor:
    """Small floats in float32, in which they are summed."""
    return self.float() if self.dtype.kind == FLOAT and self.dtype.bits < 32 else self


def _accumulate(
    self: Tensor, op: int, axis: Axes, keepdim: bool, dtype: DTypeLike, name: str
) -> Tensor:
    target = dtype_of(dtype, accumulated_dtype(self.dtype))
    if target.kind == BOOL:
        return fold(self.bool(), op, axis, keepdim, name)
    return fold(widened(self.cast(target)), op, axis, keepdim, name).cast(target)


def sum_(
    self: Tensor, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike = None
) -> Tensor:
    """Add up all elements, or those along some axes.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).sum(axis=0).tolist()
    [4, 6]
    """
    return _accumulate(self, Op.ADD, axis, keepdim, dtype, "sum")


def prod(
    self: Tensor, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike = None
) -> Tensor:
    """Multiply all elements, or those along some axes.

    Integers and bools give int64. Without an axis all elements count; keepdim leaves axes of size
    1. PyTorch and NumPy: prod.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).prod(axis=1).tolist()
    [2, 12]
    """
    return _accumulate(self, Op.MUL, axis, keepdim, dtype, "prod")


def _require_elements(self: Tensor, axis: Axes, name: str) -> None:
    axes = axes_of(name, axis, self.ndim)
    if any(least(self.shape[i]) == 0 for i in axes):
        is_empty = any(self.shape[i] == 0 for i in axes)
        raise ShapeError(
            f"{name}: an empty axis has no {name}"
            if is_empty
            else f"{name}: an axis can be empty, and has no {name} then",
            facts=[("shape", self.shape), ("axes", axes)],
            law=f"{name} needs at least one element along its axes",
            fix="" if is_empty else "give the Variable a min of 1",
        )


def max_(self: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Return the greatest element; NaN if there is one.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 5], [3, 4]]).max(axis=1).tolist()
    [5, 4]
    """
    _require_elements(self, axis, "max")
    return fold(self, Op.MAX, axis, keepdim, "max")


def min_(self: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Return the least element; NaN if there is one.

    Without an axis all elements count; keepdim leaves axes of size 1. PyTorch and NumPy: min.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 5], [7, 0]]).min(axis=0).tolist()
    [1, 0]
    """
    _require_elements(self, axis, "min")
    return fold(self, Op.MIN, axis, keepdim, "min")


def amax(self: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """Return the greatest element along axes. PyTorch and NumPy: amax.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 5], [3, 4]]).amax((0, 1)).item()
    5
    """
    return self.max(dim, keepdim)


def amin(self: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """Return the least element along axes. PyTorch and NumPy: amin.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 5], [3, 4]]).amin(0).tolist()
    [1, 4]
    """
    return self.min(dim, keepdim)


def count_nonzero(self: Tensor, dim: Axes = None) -> Tensor:
    """Return how many elements are not zero, as int64. PyTorch and NumPy: count_nonzero.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 0], [3, 4]]).count_nonzero(0).tolist()
    [2, 1]
    """
    return self.bool().sum(dim)


def aminmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Extremes:
    """Return the least and the greatest element, of all or along an axis; NaN if there is one.

    As `torch.aminmax`.

    >>> from weft.tensor import Tensor
    >>> low, high = Tensor([3, 1, 2]).aminmax()
    >>> low.item(), high.item()
    (1, 3)
    """
    return Extremes(self.min(dim, keepdim), self.max(dim, keepdim))


def nansum(
    self: Tensor, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike = None
) -> Tensor:
    """Add up elements as `sum` does, with NaN as 0.

    As `numpy.nansum` and `torch.nansum`.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, float("nan"), 2.0]).nansum().item()
    3.0
    """
    return self.isnan().where(0, self).sum(axis, keepdim, dtype)


def nanmean(
    self: Tensor, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike = None
) -> Tensor:
    """Return the mean of the elements that are not NaN; NaN where there are none.

    As `numpy.nanmean` and `torch.nanmean`.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, float("nan"), 2.0]).nanmean().item()
    1.5
    """
    x = as_float(self) if dtype is None else self.cast(dtype_of(dtype, self.dtype))
    wide = widened(x)
    count = (~wide.isnan()).sum(axis, keepdim).cast(wide.dtype)
    return (nansum(wide, axis, keepdim) / count).cast(x.dtype)


def any_(self: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Tell whether an element is not zero.

    The result is bool. Without an axis all elements count; keepdim leaves axes of size 1. PyTorch
    and NumPy: any.

    >>> from weft.tensor import Tensor
    >>> Tensor([[True, False], [False, False]]).any(axis=1).tolist()
    [True, False]
    """
    return fold(self.bool(), Op.OR, axis, keepdim, "any")


def all_(self: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Tell whether no element is zero.

    The result is bool. Without an axis all elements count; keepdim leaves axes of size 1. PyTorch
    and NumPy: all.

    >>> from weft.tensor import Tensor
    >>> Tensor([[True, False], [True, True]]).all(axis=1).tolist()
    [False, True]
    """
    return fold(self.bool(), Op.AND, axis, keepdim, "all")


def _arg_extreme(op: int, name: str, which: str, shown: str) -> Callable[..., Tensor]:
    def function(self: Tensor, axis: int | None = None, keepdim: bool = False) -> Tensor:
        if axis is None:
            flat = function(self.flatten(), 0)
            return flat.reshape((1,) * self.ndim) if keepdim else flat
        number = axis_of(name, axis, self.ndim)
        if not self.ndim:
            return self._new(nodes.filled(dtypes.int64, 0, ()))
        _require_elements(self, number, name)
        extreme = fold(self, op, number, True, name)
        found = (self == extreme) | self.isnan()
        position = nodes.positions(self.shape, number)
        beyond = size_node(self.shape[number], position.dtype)
        first = self._new(make(Op.WHERE, position.dtype, (found.uop, position, beyond)))
        return fold(first, Op.MIN, number, keepdim, name).cast(dtypes.int64)

    function.__name__ = function.__qualname__ = name
    summary = f"Return the first position of the {which} element as int64; NaN counts."
    more = f"\n\nWithout an axis it is that in the flat tensor. PyTorch and NumPy: {name}."
    call = f"Tensor([[1, 5, 2], [7, 0, 7]]).{name}(axis=1).tolist()"
    function.__doc__ = with_example(summary, call, shown, more)
    return function


argmax: Final = _arg_extreme(Op.MAX, "argmax", "greatest", "[1, 0]")
argmin: Final = _arg_extreme(Op.MIN, "argmin", "least", "[0, 1]")


def _count(self: Tensor, axis: Axes, name: str) -> Size:
    return times(*(self.shape[i] for i in axes_of(name, axis, self.ndim)))


def mean(self: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Return the average; of integers in the default float.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0, 6.0]).mean().item()
    3.0
    """
    x = as_float(self)
    total = fold(widened(x), Op.ADD, axis, keepdim, "mean")
    return (total / _count(self, axis, "mean")).cast(x.dtype)


def var(self: Tensor, axis: Axes = None, keepdim: bool = False, correction: Scalar = 1) -> Tensor:
    """Return the variance: squared distances from the mean over the count less `correction`.

    Correction 1 is Bessel's. Without an axis all elements count; keepdim leaves axes of size 1.
    PyTorch and NumPy: var.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0, 3.0]).var().tolist()
    1.0
    """
    x = as_float(self)
    wide = widened(x)
    centered = wide - wide.mean(axis, keepdim=True)
    total = fold(centered * centered, Op.ADD, axis, keepdim, "var")
    count = _count(self, axis, "var")
    if isinstance(count, int):
        return (total / max(0, count - correction)).cast(x.dtype)
    left = x._new(size_node(count, wide.dtype)) - correction
    return (total / left.maximum(0)).cast(x.dtype)


def std(self: Tensor, axis: Axes = None, keepdim: bool = False, correction: Scalar = 1) -> Tensor:
    """Return the standard deviation, the square root of the variance.

    Without an axis all elements count; keepdim leaves axes of size 1. PyTorch and NumPy: std.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0, 3.0]).std().tolist()
    1.0
    """
    return self.var(axis, keepdim, correction).sqrt()


def var_mean(
    self: Tensor, axis: Axes = None, keepdim: bool = False, correction: Scalar = 1
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean.

    Without an axis all elements count; keepdim leaves axes of size 1. PyTorch: var_mean.

    >>> from weft.tensor import Tensor
    >>> [each.tolist() for each in Tensor([1.0, 2.0, 3.0]).var_mean()]
    [1.0, 2.0]
    """
    return self.var(axis, keepdim, correction), self.mean(axis, keepdim)


def std_mean(
    self: Tensor, axis: Axes = None, keepdim: bool = False, correction: Scalar = 1
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean.

    Without an axis all elements count; keepdim leaves axes of size 1. PyTorch: std_mean.

    >>> from weft.tensor import Tensor
    >>> [each.tolist() for each in Tensor([1.0, 2.0, 3.0]).std_mean()]
    [1.0, 2.0]
    """
    return self.std(axis, keepdim, correction), self.mean(axis, keepdim)


def _shifted(self: Tensor, axis: Axes, dtype: DTypeLike) -> Tensor:
    """The values less their greatest, so that no exponential overflows.

    The greatest is a constant to the gradient: softmax does not change when all values shift.
    """
    x = as_float(self if dtype is None else self.cast(dtype))
    if 0 in x.shape:
        return x
    return x - fold(x, Op.MAX, axis, True, "softmax").detach()


def softmax(self: Tensor, axis: int = -1, dtype: DTypeLike = None) -> Tensor:
    """Return exponentials that add up to 1 along an axis.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0, 0.0]).softmax().tolist()
    [0.5, 0.5]
    """
    weights = _shifted(self, axis, dtype).exp()
    return weights / weights.sum(axis, keepdim=True)


def log_softmax(self: Tensor, axis: int = -1, dtype: DTypeLike = None) -> Tensor:
    """Return the logarithm of softmax.

    y = x - log Σ exp(x), without overflow; shapes stay. PyTorch: log_softmax.

    >>> from weft.tensor import Tensor
    >>> [round(y, 4) for y in Tensor([0.0, 0.0]).log_softmax().tolist()]
    [-0.6931, -0.6931]
    """
    shifted = _shifted(self, axis, dtype)
    return shifted - shifted.exp().sum(axis, keepdim=True).log()


def softmin(self: Tensor, axis: int = -1, dtype: DTypeLike = None) -> Tensor:
    """Return the softmax of the negated values.

    y = exp(-x) / Σ exp(-x); shapes stay. PyTorch: nn.functional.softmin.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 1.0]).softmin().tolist()
    [0.5, 0.5]
    """
    return (-self).softmax(axis, dtype)


def logsumexp(self: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Return the logarithm of the sum of exponentials, without overflow.

    Without an axis all elements count; keepdim leaves axes of size 1. Integers and bools become
    the default float. PyTorch: logsumexp.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([0.0, 0.0]).logsumexp().item(), 4)
    0.6931
    """
    x = as_float(self)
    if any(x.shape[i] == 0 for i in axes_of("logsumexp", axis, x.ndim)):
        return fold(x, Op.ADD, axis, keepdim, "logsumexp") - math.inf
    top = fold(x, Op.MAX, axis, True, "logsumexp").detach()
    top = (top.abs() == math.inf).where(0.0, top)
    total = (x - top).exp().sum(axis, keepdim=True).log() + top
    axes = axes_of("logsumexp", axis, x.ndim)
    return total if keepdim else total.squeeze(axes) if axes else total


def layernorm(self: Tensor, axis: Axes = -1, eps: float = 1e-5) -> Tensor:
    """Shift and scale to mean 0 and variance 1 along axes.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 3.0]).layernorm(eps=0).tolist()
    [-1.0, 1.0]
    """
    x = as_float(self)
    axis = axes_of("layernorm", axis, x.ndim)
    wide = widened(x)
    centered = wide - wide.mean(axis, keepdim=True)
    scale = (centered * centered).mean(axis, keepdim=True) + eps
    return (centered * scale.rsqrt()).cast(x.dtype)


def normalize(self: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide by the p-norm along an axis, which is at least `eps`.

    PyTorch: nn.functional.normalize.

    >>> from weft.tensor import Tensor
    >>> [round(x, 4) for x in Tensor([3.0, 4.0]).normalize(dim=0).tolist()]
    [0.6, 0.8]
    """
    x = as_float(self)
    return x / x.norm(p, dim, keepdim=True).clamp(min_=eps)

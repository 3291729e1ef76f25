"""Statistics made of sums: mean, variance, standard deviation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.ir.build import Size
from weft.ir.dtypes import Scalar
from weft.ir.ops import Op
from weft.ir.sizes import times
from weft.tensor.checks import Axes, axes_of, size_node
from weft.tensor.host.convert import dtype_of
from weft.tensor.methods.reduce import DTypeLike, nansum, reduction
from weft.tensor.methods.unary import as_float
from weft.tensor.small_floats import widened

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


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


def _count(self: Tensor, axis: Axes, name: str) -> Size:
    return times(*(self.shape[i] for i in axes_of(name, axis, self.ndim)))


def mean(self: Tensor, axis: Axes = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """Return the average; of integers in the default float, or in a dtype that is given.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0, 6.0]).mean().item()
    3.0
    """
    x = as_float(self if dtype is None else self.cast(dtype))
    total = reduction(widened(x), Op.ADD, axis, keepdim, "mean")
    return (total / _count(self, axis, "mean")).cast(x.dtype)


def _spread(
    axis: Any, keepdim: Any, correction: Any, unbiased: bool | None
) -> tuple[Any, bool, Any]:
    """The arguments, where PyTorch's older ones were given.

    Those are var(unbiased), var(dim, unbiased, keepdim) and unbiased= by name. Two bools in a row
    are told from keepdim and correction, because no correction is a bool.
    """
    if isinstance(axis, bool):
        axis, unbiased = None, axis
    elif isinstance(correction, bool):
        keepdim, unbiased, correction = correction, keepdim, 1
    correction = 1 if correction is None else correction
    return axis, keepdim, correction if unbiased is None else int(unbiased)


def var(
    self: Tensor,
    axis: Axes = None,
    keepdim: bool = False,
    correction: Scalar = 1,
    *,
    unbiased: bool | None = None,
) -> Tensor:
    """Return the variance: squared distances from the mean over the count less `correction`.

    Correction 1 is Bessel's. Without an axis all elements count; keepdim leaves axes of size 1.
    PyTorch and NumPy: var.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0, 3.0]).var().tolist()
    1.0
    """
    axis, keepdim, correction = _spread(axis, keepdim, correction, unbiased)
    x = as_float(self)
    wide = widened(x)
    centered = wide - wide.mean(axis, keepdim=True)
    squares = centered * centered if not x.dtype.is_complex else (centered * centered.conj()).real
    total = reduction(squares, Op.ADD, axis, keepdim, "var")
    count = _count(self, axis, "var")
    if isinstance(count, int):
        return (total / max(0, count - correction)).cast(x.dtype.part)
    left = x._new(size_node(count, squares.dtype)) - correction
    return (total / left.maximum(0)).cast(x.dtype.part)


def std(
    self: Tensor,
    axis: Axes = None,
    keepdim: bool = False,
    correction: Scalar = 1,
    *,
    unbiased: bool | None = None,
) -> Tensor:
    """Return the standard deviation, the square root of the variance.

    Without an axis all elements count; keepdim leaves axes of size 1. PyTorch and NumPy: std.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0, 3.0]).std().tolist()
    1.0
    """
    axis, keepdim, correction = _spread(axis, keepdim, correction, unbiased)
    variance = self.var(axis, keepdim, correction)
    # Equal values have no spread and no slope, as in PyTorch; a root alone has an infinite one.
    is_zero = variance == 0
    return is_zero.where(0.0, is_zero.where(1.0, variance).sqrt())


def var_mean(
    self: Tensor,
    axis: Axes = None,
    keepdim: bool = False,
    correction: Scalar = 1,
    *,
    unbiased: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean.

    Without an axis all elements count; keepdim leaves axes of size 1. PyTorch: var_mean.

    >>> from weft.tensor import Tensor
    >>> [each.tolist() for each in Tensor([1.0, 2.0, 3.0]).var_mean()]
    [1.0, 2.0]
    """
    axis, keepdim, correction = _spread(axis, keepdim, correction, unbiased)
    return self.var(axis, keepdim, correction), self.mean(axis, keepdim)


def std_mean(
    self: Tensor,
    axis: Axes = None,
    keepdim: bool = False,
    correction: Scalar = 1,
    *,
    unbiased: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean.

    Without an axis all elements count; keepdim leaves axes of size 1. PyTorch: std_mean.

    >>> from weft.tensor import Tensor
    >>> [each.tolist() for each in Tensor([1.0, 2.0, 3.0]).std_mean()]
    [1.0, 2.0]
    """
    axis, keepdim, correction = _spread(axis, keepdim, correction, unbiased)
    return self.std(axis, keepdim, correction), self.mean(axis, keepdim)

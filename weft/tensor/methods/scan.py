"""Scans: reductions of all prefixes along an axis, and differences of neighbors.

Sums and products of bools and integers are int64, as in PyTorch; halves are added in float32. A
scan of rows is one kernel; a long one is cut into blocks and takes two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.gradient.settled import settled
from weft.ir import movement
from weft.ir.build import scan_axis
from weft.ir.dtypes import BOOL, DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import make
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import axis_of, known
from weft.tensor.complexes.functions import products
from weft.tensor.complexes.parts import require_real
from weft.tensor.host.convert import dtype_of
from weft.tensor.methods.elementwise import lift
from weft.tensor.methods.pairs import Picked
from weft.tensor.methods.reduce import accumulated_dtype
from weft.tensor.methods.unary import as_float
from weft.tensor.small_floats import rounded_once, widened

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

DTypeLike = DType | str | None


def scan(self: Tensor, op: int, axis: int, name: str) -> Tensor:
    """The reductions of all prefixes along an axis."""
    number = axis_of(name, axis, self.ndim)
    if self.dtype.is_complex and op != Op.ADD:
        require_real(self, name)
    return self._new(scan_axis(self.uop, op, number)) if self.ndim else self._same()


def _accumulate(self: Tensor, op: int, axis: int, dtype: DTypeLike, name: str) -> Tensor:
    target = dtype_of(dtype, accumulated_dtype(self.dtype))
    if target.kind == BOOL:
        return scan(self.bool(), op, axis, name)
    if target.is_complex and op == Op.MUL and self.ndim:
        return products(self.cast(target), axis_of(name, axis, self.ndim))
    return scan(widened(self.cast(target)), op, axis, name).cast(target)


def cumsum(self: Tensor, axis: int = 0, dtype: DTypeLike = None) -> Tensor:
    """Add up each element and those before it along an axis; same shape.

    y[i] = x[0] + ... + x[i]. Integers and bools give int64. As `numpy.cumsum` and
    `torch.cumsum`.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2, 3], [4, 5, 6]]).cumsum(1).tolist()
    [[1, 3, 6], [4, 9, 15]]
    """
    return _accumulate(self, Op.ADD, axis, dtype, "cumsum")


def cumprod(self: Tensor, axis: int, dtype: DTypeLike = None) -> Tensor:
    """Multiply each element with those before it along an axis; same shape.

    y[i] = x[0] * ... * x[i]. Integers and bools give int64. As `numpy.cumprod` and
    `torch.cumprod`, gradients at zeros included.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3, 4]).cumprod(0).tolist()
    [1, 2, 6, 24]
    """
    return _accumulate(self, Op.MUL, axis, dtype, "cumprod")


def cummax(self: Tensor, axis: int = 0) -> Picked:
    """Return the greatest element so far along an axis, and where it is.

    Of equal elements the last one counts, and NaN is greater than all. The positions are int64.
    As `torch.cummax`; `numpy.maximum.accumulate` gives the values.

    >>> from weft.tensor import Tensor
    >>> values, positions = Tensor([1, 3, 2, 3]).cummax(0)
    >>> values.tolist(), positions.tolist()
    ([1, 3, 3, 3], [0, 1, 1, 3])
    """
    return _extremes(self, Op.MAX, axis, "cummax")


def cummin(self: Tensor, axis: int = 0) -> Picked:
    """Return the least element so far along an axis, and where it is.

    Of equal elements the last one counts, and NaN is less than all. The positions are int64. As
    `torch.cummin`; `numpy.minimum.accumulate` gives the values.

    >>> from weft.tensor import Tensor
    >>> values, positions = Tensor([3.0, 1.0, 2.0]).cummin(0)
    >>> values.tolist(), positions.tolist()
    ([3.0, 1.0, 1.0], [0, 1, 1])
    """
    return _extremes(self, Op.MIN, axis, "cummin")


def _extremes(self: Tensor, op: int, axis: int, name: str) -> Picked:
    values = scan(self, op, axis, name)
    number = axis_of(name, axis, self.ndim)
    if not self.ndim:
        return Picked(values, self._new(movement.full(dtypes.int64, 0, ())))
    kept = settled(self.uop)
    greatest = values.uop if kept is self.uop else scan_axis(kept, op, number)
    sets = kept.equal(greatest) | ~kept.equal(kept)
    position = movement.positions(self.shape, number)
    latest = make(Op.WHERE, position.dtype, (sets, position, position.const_like(0)))
    indices = scan(self._new(latest), Op.MAX, number, name).cast(dtypes.int64)
    return Picked(values, indices)


def logcumsumexp(self: Tensor, axis: int = 0) -> Tensor:
    """Return the logarithm of the sum of exponentials up to each element, without overflow.

    y[i] = log(e ** x[0] + ... + e ** x[i]). As `torch.logcumsumexp` and
    `numpy.logaddexp.accumulate`.

    >>> from weft.tensor import Tensor
    >>> [round(y, 3) for y in Tensor([1000.0, 1000.0]).logcumsumexp(0).tolist()]
    [1000.0, 1000.693]
    """
    x = as_float(self)
    return scan(widened(x), Op.LOGADD, axis, "logcumsumexp").cast(x.dtype)


def diff(
    self: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Return the differences of neighbors along an axis, `n` times over.

    y[i] = x[i + 1] - x[i], so the axis gets shorter by `n`; of bools, whether they differ. As
    `numpy.diff` and `torch.diff`.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 4, 9, 16]).diff().tolist(), Tensor([1, 4, 9, 16]).diff(2).tolist()
    ([3, 5, 7], [2, 2])
    """
    if not self.ndim:
        raise ShapeError(
            "diff: expected at least one axis, got a scalar",
            rule="diff subtracts neighbors along an axis",
        )
    if n == 0:
        return self._same()  # nothing is joined either, as in PyTorch
    if n < 0:
        raise ArgumentError(f"diff: {n} times", rule="n is an int from 0 on")
    axis = axis_of("diff", dim, self.ndim)
    parts = [part for part in (prepend, self, append) if part is not None]
    value = parts[0].cat(*parts[1:], dim=axis) if len(parts) > 1 else self
    for _ in range(min(n, known(value.shape[axis]))):
        value = _neighbors(value, axis)
    return value._same() if value is self else value


def _neighbors(value: Tensor, axis: int) -> Tensor:
    size = known(value.shape[axis])
    after = _cut(value, axis, 1, size)
    before = _cut(value, axis, 0, size - 1)
    return after != before if value.dtype.kind == BOOL else after - before


def _cut(value: Tensor, axis: int, start: int, stop: int) -> Tensor:
    box: list[Any] = [(0, size) for size in value.shape]
    box[axis] = (start, stop)
    return value.shrink(box)


@rounded_once
def cumulative_trapezoid(
    self: Tensor, x: Any = None, dx: float | None = None, dim: int = -1
) -> Tensor:
    """Integrate along an axis by the trapezoidal rule, keeping every step.

    z[i] is the sum up to i of (y[i] + y[i + 1]) / 2 times the spacing, which is `dx` or the
    differences of `x`; the axis gets shorter by 1. As `torch.cumulative_trapezoid` and
    `scipy.integrate.cumulative_trapezoid`.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 3.0, 5.0]).cumulative_trapezoid().tolist()
    [2.0, 6.0]
    """
    if x is not None and dx is not None:
        raise ArgumentError(
            "cumulative_trapezoid: both x and dx are given", rule="the spacing is x or dx, or 1"
        )
    axis = axis_of("cumulative_trapezoid", dim, self.ndim)
    size = known(self.shape[axis]) if self.ndim else 0
    if size < 1:
        return self._same()
    y = as_float(self)
    sides = (_cut(y, axis, 0, size - 1) + _cut(y, axis, 1, size)) / 2
    if x is None:
        return scan(sides * (1.0 if dx is None else dx), Op.ADD, axis, "cumulative_trapezoid")
    points = lift(self, x, "cumulative_trapezoid")
    if points.ndim == 1 and self.ndim > 1:
        points = points.reshape([size if i == axis else 1 for i in range(self.ndim)])
    steps = points.diff(dim=axis if points.ndim == self.ndim else axis - self.ndim)
    return scan(sides * steps, Op.ADD, axis, "cumulative_trapezoid")

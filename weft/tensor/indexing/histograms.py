"""Histograms, buckets, runs of equal elements, and further statistics of an order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError
from weft.tensor.checks import axis_of, known
from weft.tensor.indexing.order_statistics import shared_slope
from weft.tensor.methods.pairs import Picked
from weft.tensor.methods.unary import as_float
from weft.tensor.small_floats import rounded_once

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


class Histogram(NamedTuple):
    """How many elements, or what weight, each bin has; and where bins begin and end."""

    hist: Tensor
    bin_edges: Any


def bucketize(
    self: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Return the number of the interval between sorted boundaries for each element.

    PyTorch: bucketize.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 5]).bucketize(Tensor([2, 4])).tolist()
    [0, 2]
    """
    values = boundaries.__class__(self) if isinstance(self, (int, float)) else self
    return boundaries.searchsorted(values, right=right, out_int32=out_int32)


def _edges(self: Tensor, bins: Any, range_: Any) -> Tensor:
    if isinstance(bins, self.__class__):
        return bins
    if range_ is None:
        flat = self.flatten()
        if not self.numel():
            low, high = 0.0, 1.0
        else:
            low, high = float(flat.min().item()), float(flat.max().item())
    else:
        low, high = map(float, range_)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return self.linspace(low, high, bins + 1, dtype=self.dtype, device=self.device)


def _numbers(values: Tensor, edges: Tensor) -> Tensor:
    """The bin of each element; -1 outside. The last bin has its end too."""
    count = known(edges.shape[0]) - 1
    number = edges.searchsorted(values, right=True) - 1
    number = (values == edges[-1]).where(count - 1, number)
    return ((values >= edges[0]) & (values <= edges[-1])).where(number, -1)


def _scaled(counts: Tensor, density: bool, volumes: Tensor) -> Tensor:
    return counts / counts.sum() / volumes if density else counts


def histogram(
    self: Tensor,
    bins: Any,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """Return how many elements are in each bin, and the edges of the bins. PyTorch: histogram.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0, 1.0]).histogram(4, range=(0.0, 3.0)).hist.tolist()
    [0.0, 2.0, 1.0, 0.0]
    """
    edges = _edges(self, bins, range)
    count = known(edges.shape[0]) - 1
    number = _numbers(self.flatten().detach(), edges)
    weights = (number * 0 + 1).cast(self.dtype) if weight is None else weight.flatten()
    counts = _summed(number, weights, count)
    return Histogram(_scaled(counts, density, edges.diff()), edges)


def _summed(number: Tensor, weights: Tensor, bins: int) -> Tensor:
    start = weights.zeros((bins + 1,), dtype=weights.dtype, device=weights.device)
    index = (number < 0).where(bins, number)
    return start.scatter_add(0, index, weights)[:bins]


def histogramdd(
    self: Tensor,
    bins: Any,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """Return how many rows are in each box of bins, and the edges. PyTorch: histogramdd.

    >>> from weft.tensor import Tensor
    >>> Tensor([[0.0, 1.0], [1.0, 0.0]]).histogramdd([2, 2]).hist.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    size = known(self.shape[-1])
    rows = self.reshape((-1, size))
    each = [bins] * size if isinstance(bins, (int, self.__class__)) else list(bins)
    limits: list[Any] = [None] * size
    if range is not None:
        limits = [tuple(range[2 * axis : 2 * axis + 2]) for axis in np.arange(size)]
    edges = [
        _edges(rows[:, axis], count, limit)
        for axis, (count, limit) in enumerate(zip(each, limits, strict=True))
    ]
    counts = [known(edge.shape[0]) - 1 for edge in edges]
    number: Any = 0
    inside: Any = None
    for axis, edge in enumerate(edges):
        own = _numbers(rows[:, axis].detach(), edge)
        inside = (own >= 0) if inside is None else inside & (own >= 0)
        number = number * counts[axis] + own
    number = inside.where(number, -1)
    weights = (number * 0 + 1).cast(self.dtype) if weight is None else weight.flatten()
    found = _summed(number, weights, math.prod(counts)).reshape(tuple(counts))
    volumes: Any = 1.0
    for axis, edge in enumerate(edges):
        volumes = volumes * edge.diff().reshape([-1] + [1] * (len(edges) - axis - 1))
    return Histogram(_scaled(found, density, volumes), edges)


def unique_consecutive(
    self: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the first of each run of equal elements, or of equal slices along an axis.

    Their number is computed now, which runs what is lazy. PyTorch: unique_consecutive.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 1, 2, 1]).unique_consecutive().tolist()
    [1, 2, 1]
    """
    axis = 0 if dim is None else axis_of("unique_consecutive", dim, self.ndim)
    rows = self.flatten() if dim is None else self.movedim(axis, 0)
    size = known(rows.shape[0])
    flat = rows.reshape((size, -1)) if rows.numel() else rows.reshape((size, 0))
    starts = (flat[1:] != flat[:-1]).any(1).pad((1, 0), value=True) if size else flat.any(1)
    return _runs(self, rows, starts, return_inverse, return_counts, None if dim is None else axis)


def _runs(
    self: Tensor, rows: Tensor, starts: Tensor, inverse: bool, counts: bool, axis: int | None
) -> Any:
    """The rows that start a run, and what else is asked for."""
    first = starts.nonzero().squeeze(1)
    found = rows[first]
    results = [found if axis is None else found.movedim(0, axis)]
    if inverse:
        number = starts.cast(dtypes.int64).cumsum(0) - 1
        results.append(number.reshape(self.shape) if axis is None else number)
    if counts:
        last = first.__class__([known(rows.shape[0])], dtype=dtypes.int64, device=first.device)
        results.append(first.cat(last).diff() if known(first.shape[0]) else first)
    return tuple(results) if len(results) > 1 else results[0]


def unique_rows(self: Tensor, dim: int, return_inverse: bool, return_counts: bool) -> Any:
    """The different slices along an axis, in the order of their elements."""
    axis = axis_of("unique", dim, self.ndim)
    rows = self.movedim(axis, 0)
    size = known(rows.shape[0])
    flat = rows.reshape((size, -1)) if rows.numel() else rows.reshape((size, 0))
    order = self.__class__.arange(size, dtype=dtypes.int64, device=self.device)
    for column in reversed(range(known(flat.shape[1]))):  # each sort keeps the order of equals
        step = flat[:, column][order].argsort()
        order = order[step]
    ordered = rows[order]
    lines = flat[order]
    starts = (lines[1:] != lines[:-1]).any(1).pad((1, 0), value=True) if size else lines.any(1)
    found = _runs(self, ordered, starts, return_inverse, return_counts, axis)
    if return_inverse:
        values, number, *rest = found
        found = (values, number[order.argsort()], *rest)
    return found


def nanmedian(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of the elements that are not NaN. PyTorch and NumPy: nanmedian.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, float("nan"), 3.0]).nanmedian().item()
    1.0
    """
    if dim is None:
        return shared_slope(self, nanmedian(self.flatten(), 0)[0])
    axis = axis_of("nanmedian", dim, self.ndim)
    rows = self.movedim(axis, -1) if self.ndim else self.reshape((1,))
    values, order = rows.sort(-1)  # NaN comes last
    count = (~rows.isnan()).sum(-1, keepdim=True)
    middle = ((count - 1) // 2).clamp(min_=0)
    found = Picked(values.gather(-1, middle), order.gather(-1, middle))
    if not self.ndim:
        return Picked(*(each.reshape(()) for each in found))
    if keepdim:
        return Picked(*(each.movedim(-1, axis) for each in found))
    return Picked(*(each.squeeze(-1) for each in found))


def nanquantile(
    self: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return quantiles of the elements that are not NaN. PyTorch and NumPy: nanquantile.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, float("nan"), 3.0]).nanquantile(0.5).item()
    2.0
    """
    x = self.flatten() if dim is None else self
    axis = 0 if dim is None else axis_of("nanquantile", dim, self.ndim)
    rows = x.movedim(axis, -1) if x.ndim else x.reshape((1,))
    share = q if isinstance(q, self.__class__) else self.__class__(q, dtype=self.dtype)
    values = rows.sort(-1).values
    count = (~rows.isnan()).sum(-1, keepdim=True)
    position = share.flatten().cast(self.dtype) * (count - 1).clamp(min_=0).cast(self.dtype)
    low, high = position.floor(), position.ceil()
    choices = {"lower": low, "higher": high, "nearest": position.round(), "linear": position,
               "midpoint": (low + high) / 2}  # fmt: skip
    if interpolation not in choices:
        raise ArgumentError(f"nanquantile: unknown interpolation {interpolation!r}")
    at = choices[interpolation]
    below = at.floor()
    one = values.gather(-1, below.cast(dtypes.int64))
    two = values.gather(-1, at.ceil().cast(dtypes.int64))
    found = one.lerp(two, at - below)
    if keepdim and dim is None:
        found = found.reshape((*[1] * self.ndim, found.shape[-1]))
    elif keepdim and x.ndim:
        found = found.unsqueeze(axis)
    return found.movedim(-1, 0) if share.ndim else found.squeeze(-1)


def msort(self: Tensor) -> Tensor:
    """Return the elements sorted along the first axis. PyTorch: msort.

    >>> from weft.tensor import Tensor
    >>> Tensor([3, 1]).msort().tolist()
    [1, 3]
    """
    return self.sort(0).values


def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """Return the positions of `size` elements that are not 0. PyTorch: nonzero_static.

    >>> from weft.tensor import Tensor
    >>> Tensor([0, 3]).nonzero_static(size=2).tolist()
    [[1], [-1]]
    """
    return self.nonzero(size=size, fill_value=fill_value)  # type: ignore[no-any-return]


def index_reduce(
    self: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Reduce slices into those that an index names: prod, mean, amax or amin. PyTorch has it too.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).index_reduce(0, Tensor([1, 1]), Tensor([5, 4]), "amax").tolist()
    [1, 5]
    """
    axis = axis_of("index_reduce", dim, self.ndim)
    shape = [1] * max(self.ndim, 1)
    shape[axis] = -1
    x = self if self.ndim else self.reshape((1,))
    values = source if source.ndim else source.reshape((1,))
    wide = index.reshape(shape).expand(values.shape)
    found = x.scatter_reduce(axis, wide, values, reduce, include_self)
    return found.reshape(self.shape)


@rounded_once
def renorm(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Return the tensor with slices along an axis shrunk to a greatest p-norm. PyTorch: renorm.

    >>> from weft.tensor import Tensor
    >>> Tensor([[3.0, 4.0]]).renorm(2, 0, 10.0).tolist()
    [[3.0, 4.0]]
    """
    axis = axis_of("renorm", dim, self.ndim)
    axes = tuple(other for other in range(self.ndim) if other != axis)
    length = self.norm(p, axes, keepdim=True)
    return (length > maxnorm).where(self * (maxnorm / (length + 1e-7)), self)


@rounded_once
def trapezoid(self: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """Return the integral along an axis by the trapezoidal rule. PyTorch: trapezoid, trapz.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 3.0]).trapezoid().item()
    2.0
    """
    y = as_float(self).movedim(dim, -1)
    means = (y[..., 1:] + y[..., :-1]) / 2
    if x is None:
        return (means * dx).sum(-1)
    steps = (x if x.ndim == 1 else x.movedim(dim, -1)).diff()
    return (means * steps).sum(-1)

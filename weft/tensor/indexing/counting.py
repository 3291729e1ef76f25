"""Finding and counting elements: searchsorted, nonzero, masked_select, unique, bincount, isin.

Shapes are known before values are computed, so an operation whose size depends on the data
computes that size first: `nonzero` and `masked_select` without `size`, `unique`, and `bincount`.
Their docstrings say so. Everything else is lazy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft.ir import movement
from weft.ir.build import scatter, where
from weft.ir.dtypes import BOOL, INTEGER, dtypes
from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import Shape
from weft.ir.uop import UOp, make
from weft.support.errors import ArgumentError, DTypeError, ShapeError
from weft.tensor.checks import broadcast_shape, known, require_one_device
from weft.tensor.indexing.histograms import unique_rows
from weft.tensor.indexing.order_statistics import operand_of, starts_of_runs
from weft.tensor.indexing.sorting import positions_in_order
from weft.tensor.methods.elementwise import lift

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# Against so few numbers every element is compared; more are sorted and searched.
MOST_COMPARED: Final = 64


def searchsorted(
    self: Tensor,
    values: Any,
    right: bool = False,
    side: str | None = None,
    *,
    out_int32: bool = False,
    sorter: Tensor | None = None,
) -> Tensor:
    """Find where values belong in this sorted tensor, as int64.

    The result i has self[i - 1] < v <= self[i], and self[i - 1] <= v < self[i] with `right` or
    `side="right"`. A tensor of several axes has a sorted row for each row of values. As
    `torch.searchsorted(self, values)` and `numpy.searchsorted(self, values)`. A `sorter` names the
    elements in order, where they are not; `out_int32` asks for int32.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 3, 5, 7]).searchsorted(Tensor([3, 6, 9])).tolist()
    [1, 3, 4]
    """
    if side not in (None, "left", "right"):
        raise ArgumentError(f"searchsorted: side is {side!r}", rule='side is "left" or "right"')
    wanted = operand_of(self, values, "searchsorted")
    require_one_device("searchsorted", self, wanted)
    if self.ndim != 1 and self.shape[:-1] != wanted.shape[:-1]:
        raise ShapeError(
            f"searchsorted: rows of shape {self.shape} and values of shape {wanted.shape}",
            rule="the tensor has one axis, or all its sizes but the last are those of the values",
        )
    is_right = right or side == "right"
    ordered = self if sorter is None else self.gather(-1, sorter)
    rows, wanted = _in_one_dtype(ordered, wanted)
    found = self._new(_search(rows.detach(), wanted.detach(), is_right))
    return found.cast(dtypes.int32 if out_int32 else dtypes.int64)


def _in_one_dtype(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    if left.dtype is right.dtype:
        return left, right
    zero = left.flatten()[:0].sum() + right.flatten()[:0].sum()
    return left.cast(zero.dtype), right.cast(zero.dtype)


def _search(rows: Tensor, wanted: Tensor, is_right: bool) -> UOp:
    """How many elements of its row come before each wanted one."""
    size = known(rows.shape[-1])
    shape = wanted.shape
    counter = dtypes.int32 if size * max(rows.numel() // max(size, 1), 1) < 2**31 else dtypes.int64
    found = movement.full(counter, 0, shape)
    if not size or 0 in shape:
        return found
    flat = _in_memory(rows.flatten())
    start = _row_numbers(shape, rows.ndim, counter) * size
    step = 1 << size.bit_length() - 1
    while step:
        more = found + step
        fits = more <= size
        here = make(Op.INDEX, flat.dtype, (flat, fits, start + more + -1))
        reaches = (wanted.uop < here) if is_right else (wanted.uop <= here)
        found = where(fits & ~reaches, more, found)
        step //= 2
    return found


def _in_memory(rows: Tensor) -> UOp:
    """A value that is read many times, as one that is computed once."""
    base = rows.uop
    while base.op in MOVEMENT or base.op == Op.DETACH:
        base = base.src[0]
    return rows.uop if base.op in (Op.BUFFER, Op.PARAM, Op.AFTER) else rows.contiguous().uop


def _row_numbers(shape: Shape, rank: int, dtype: Any) -> UOp:
    """For each element of a shape the number of its row; there is one row for rank 1."""
    number = movement.full(dtype, 0, shape)
    for axis in range(len(shape) - 1) if rank > 1 else ():
        number = number * known(shape[axis]) + movement.positions(shape, axis, dtype)
    return number


def _selected(mask: Tensor, size: int | None) -> tuple[Tensor, Tensor, int]:
    """The flat positions of the true elements of a mask, whether they are there, and how many.

    Without a size the number of true elements is computed now.
    """
    flat = mask.flatten()
    count = flat.cumsum(0, dtype=dtypes.int32)
    if size is None:
        size = int(flat.sum().item())
    number = mask._new(movement.iota(size))
    indices = count.searchsorted(number, right=True)
    return indices, indices < known(flat.shape[0]), size


def nonzero(
    self: Tensor, size: int | None = None, fill_value: int = 0, *, as_tuple: bool = False
) -> Any:
    """Return the positions of the elements that are not zero, a row of int64 for each.

    Without `size` their number is computed now, which runs what is lazy. With it there are that
    many rows, further ones are left out, and missing ones are filled with `fill_value`. With
    `as_tuple` there is a vector for each axis instead. As
    `torch.nonzero` and `numpy.argwhere`.

    >>> from weft.tensor import Tensor
    >>> Tensor([[0, 3], [5, 0]]).nonzero().tolist()
    [[0, 1], [1, 0]]
    >>> Tensor([0, 3, 5]).nonzero(size=3, fill_value=-1).tolist()
    [[1], [2], [-1]]
    """
    if as_tuple:
        whole = self if self.ndim else self.reshape((1,))
        return nonzero(whole, size, fill_value).unbind(1)
    indices, is_there, size = _selected(self.bool(), size)
    columns, rest = [], indices
    for extent in reversed(self.shape):
        columns.append(rest % known(extent) if extent else rest)
        rest = rest // known(extent) if extent else rest
    if not columns:
        return self._new(movement.full(dtypes.int64, 0, (size, 0)))
    rows = columns[-1].stack(*reversed(columns[:-1]), dim=1)
    return is_there.unsqueeze(1).where(rows, fill_value)


def argwhere(self: Tensor) -> Tensor:
    """Return the positions of the elements that are not zero, a row of int64 for each.

    Their number is computed now, which runs what is lazy. As `torch.argwhere` and
    `numpy.argwhere`.

    >>> from weft.tensor import Tensor
    >>> Tensor([0, 7, 8]).argwhere().tolist()
    [[1], [2]]
    """
    return nonzero(self)  # type: ignore[no-any-return]


def masked_select(
    self: Tensor, mask: Tensor, size: int | None = None, fill_value: Any = 0
) -> Tensor:
    """Return the elements where a mask holds, one after the other.

    The two are broadcast. Without `size` the number of elements is computed now, which runs what
    is lazy. With it there are that many, further ones are left out, and missing ones are
    `fill_value`. As `torch.masked_select` and `x[mask]` in NumPy.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([1, 2, 3, 4])
    >>> x.masked_select(x > 2).tolist(), x.masked_select(x > 2, size=3).tolist()
    ([3, 4], [3, 4, 0])
    """
    if mask.dtype.kind != BOOL:
        raise DTypeError(
            f"masked_select: the mask is {mask.dtype.name}", rule="a mask holds bools"
        )
    require_one_device("masked_select", self, mask)
    shape = broadcast_shape("masked_select", self.shape, mask.shape)
    indices, is_there, size = _selected(mask.broadcast_to(shape), size)
    flat = self.broadcast_to(shape).flatten()
    return is_there.where(flat.gather(0, indices), fill_value).cast(self.dtype)


def unique(
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the different elements in order, and what else is asked for.

    `return_inverse` adds for each element the number of its value, in the shape of the tensor;
    `return_counts` adds how often each value occurs; both are int64. The number of values is
    computed now, which runs what is lazy. They are in order, also where `sorted` does not ask
    for it; every NaN is different. With `dim` the different slices along it are meant. As
    `torch.unique` and `numpy.unique`.

    >>> from weft.tensor import Tensor
    >>> values, counts = Tensor([3, 1, 3, 2]).unique(return_counts=True)
    >>> values.tolist(), counts.tolist()
    ([1, 2, 3], [1, 1, 2])
    """
    if dim is not None:
        return unique_rows(self, dim, return_inverse, return_counts)
    flat = self.flatten()
    size = known(flat.shape[0])
    order = positions_in_order(flat.detach())
    ordered = flat.gather(0, order)
    starts = starts_of_runs(ordered) if size else ordered.bool()
    indices, _, count = _selected(starts, None)
    results = [ordered.gather(0, indices)]
    if return_inverse:
        number = (starts.cumsum(0) - 1).gather(0, positions_in_order(order))
        results.append(number.reshape(self.shape))
    if return_counts:
        ends = indices.cat(indices._new(movement.full(dtypes.int64, size, (1,))))
        results.append(ends.diff() if count else indices)
    return tuple(results) if len(results) > 1 else results[0]


def _counted(number: Tensor, bins: int, weights: Tensor | None) -> Tensor:
    """How often each of the numbers 0 to below `bins` occurs, or the sum of its weights."""
    if weights is None:
        weights = number._new(movement.full(dtypes.int64, 1, number.shape))
    none = movement.full(weights.dtype, 0, (bins,))
    counts = scatter(none, weights.uop, (number >= 0).uop, [number.uop], Op.ADD)
    return number._new(counts)


def bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Count how often each number from 0 to the greatest occurs in a vector of integers.

    With `weights` their sums come instead, in float64 unless they are float32. The greatest
    number is computed now, which runs what is lazy; the numbers must not be negative. As
    `torch.bincount` and `numpy.bincount`.

    >>> from weft.tensor import Tensor
    >>> Tensor([0, 1, 1, 3]).bincount().tolist()
    [1, 2, 0, 1]
    """
    if self.ndim != 1 or not self.dtype.kind & INTEGER:
        raise ShapeError(
            f"bincount: a {self.dtype.name} of shape {self.shape}",
            rule="bincount takes a vector of integers",
        )
    low, high = (int(each.item()) for each in self.aminmax()) if self.shape[0] else (0, -1)
    if low < 0:
        raise ArgumentError(f"bincount: {low} is negative", rule="bincount counts from 0")
    bins = max(high + 1, minlength)
    if weights is not None:
        wide = weights.dtype is dtypes.float32
        weights = weights if wide else weights.cast(dtypes.float64)
    return _counted(self, bins, weights)


def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Count the elements in bins of equal width from `min` to `max`.

    Elements outside are left out; the last bin holds `max` too. Where the two are equal they are
    the least and the greatest element. As `torch.histc` and `numpy.histogram`.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0, 1.0]).histc(bins=4, min=0, max=3).tolist()
    [0.0, 2.0, 1.0, 0.0]
    """
    if bins < 1 or max < min:
        raise ArgumentError(
            f"histc: {bins} bins from {min} to {max}", rule="histc needs bins >= 1 and min <= max"
        )
    flat = self.flatten().detach()
    if not flat.shape[0]:
        return self._new(movement.full(self.dtype, 0, (bins,)))
    low, high = (
        lift(flat, min, "histc").cast(flat.dtype),
        lift(flat, max, "histc").cast(flat.dtype),
    )
    if min == max:
        low, high = flat.aminmax()
        is_flat = low == high
        low, high = is_flat.where(low - 1, low), is_flat.where(high + 1, high)
    number = ((flat - low) / (high - low) * bins).cast(dtypes.int32)
    number = (flat == high).where(bins - 1, number)
    inside = (flat >= low) & (flat <= high)
    return _counted(inside.where(number, -1), bins, None).cast(self.dtype)


def isin(
    self: Tensor, test_elements: Any, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Tell of each element whether it is among some others.

    `assume_unique` changes nothing. As `torch.isin` and `numpy.isin`.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).isin([2, 5]).tolist()
    [False, True, False]
    """
    others = operand_of(self, test_elements, "isin")
    x, others = _in_one_dtype(self, others.flatten())
    count = known(others.shape[0])
    if count <= MOST_COMPARED:
        found = (x.unsqueeze(-1) == others).any(-1)
    else:
        ordered = others.gather(0, positions_in_order(others))
        index = ordered.searchsorted(x)
        inside = index < count
        at = inside.where(index, 0).flatten()
        found = inside & (ordered.gather(0, at).reshape(x.shape) == x)
    return ~found if invert else found

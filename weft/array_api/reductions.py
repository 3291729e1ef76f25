"""Statistics, searching, sorting and sets."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.array_api.manipulation import Axes, axis_of
from weft.array_api.promotion import DEFAULT_INTEGER, INDEX, promoted
from weft.ir.dtypes import DType, dtypes
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Tensor
    inverse_indices: Tensor


def _accumulated(x: Tensor, dtype: DType | None) -> Tensor:
    """Integers in the dtype that sums of them have: the default one, if that is wider."""
    if dtype is not None:
        return x.cast(dtype)
    if x.dtype.is_inexact:
        return x
    return x.cast(dtypes.uint64 if x.dtype.is_unsigned else DEFAULT_INTEGER)


def sum(
    x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """The sum over axes."""
    x = _accumulated(x, dtype)
    return x if axis == () else x.sum(axis, keepdims, dtype=x.dtype)


def prod(
    x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """The product over axes."""
    x = _accumulated(x, dtype)
    return x if axis == () else x.prod(axis, keepdims, dtype=x.dtype)


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The average over axes."""
    return x if axis == () else x.mean(axis, keepdims)


def var(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The variance over axes, divided by the count less `correction`."""
    return x.var(axis, keepdims, correction)


def std(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The root of the variance."""
    return x.std(axis, keepdims, correction)


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest over axes."""
    return x if axis == () else x.max(axis=axis, keepdim=keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The least over axes."""
    return x if axis == () else x.min(axis=axis, keepdim=keepdims)


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether all over axes are true, or other than zero."""
    x = x.cast(dtypes.bool)
    return x if axis == () else x.all(axis, keepdims)


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether one over axes is true, or other than zero."""
    x = x.cast(dtypes.bool)
    return x if axis == () else x.any(axis, keepdims)


def _with_initial(x: Tensor, axis: int, value: int) -> Tensor:
    shape = [*x.shape]
    shape[axis] = 1
    first = Tensor.full(tuple(shape), value, dtype=x.dtype, device=x.device)
    return first.cat(x, dim=axis)


def _scanned(
    name: str, x: Tensor, axis: int | None, dtype: DType | None, include_initial: bool
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(f"{name}: no axis for {x.ndim} axes", rule="name one")
        axis = 0
    axis = axis_of(name, axis, x.ndim)
    x = _accumulated(x, dtype)
    is_sum = name == "cumulative_sum"
    found = x.cumsum(axis) if is_sum else x.cumprod(axis)
    return _with_initial(found, axis, 0 if is_sum else 1) if include_initial else found


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None,
    include_initial: bool = False,
) -> Tensor:  # fmt: skip
    """The sums of all prefixes along an axis."""
    return _scanned("cumulative_sum", x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None,
    include_initial: bool = False,
) -> Tensor:  # fmt: skip
    """The products of all prefixes along an axis."""
    return _scanned("cumulative_prod", x, axis, dtype, include_initial)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The differences of neighbors along an axis, `n` times."""
    axis = axis_of("diff", axis, x.ndim)
    parts = [each for each in (prepend, x, append) if each is not None]
    x = parts[0].cat(*parts[1:], dim=axis) if len(parts) > 1 else x
    for _ in range(n):
        later, earlier = x.slice(axis, 1, None), x.slice(axis, 0, -1)
        x = later ^ earlier if x.dtype is dtypes.bool else later - earlier
    return x


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first greatest."""
    return _position(x, x.argmax(axis), axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first least."""
    return _position(x, x.argmin(axis), axis, keepdims)


def _position(x: Tensor, found: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    found = found.cast(INDEX)
    if not keepdims:
        return found
    return found.reshape((1,) * x.ndim) if axis is None else found.unsqueeze(axis % x.ndim)


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """How many elements are other than zero."""
    return sum((x != 0).cast(INDEX), axis=axis, keepdims=keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The positions of what is other than zero, an array for each axis."""
    if not x.ndim:
        raise ArgumentError("nonzero: an array without axes has no positions")
    return tuple(each.cast(INDEX) for each in x.nonzero(as_tuple=True))


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Elements of the first where the condition holds, else of the second."""
    first, second = promoted("where", x1, x2)
    return condition.where(first, second)


def searchsorted(
    x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where elements go in an array that is sorted, or is so by `sorter`."""
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: unknown side {side!r}", rule="left or right")
    row = x1 if sorter is None else x1.index_select(0, sorter)
    row, values = promoted("searchsorted", row, x2)
    flat: Tensor = row.searchsorted(values.flatten(), right=side == "right")
    return flat.reshape(x2.shape).cast(INDEX)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis."""
    found: Tensor = x.sort(axis_of("sort", axis, x.ndim), descending)[0]
    return found


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The positions of the elements in order; equal ones keep their order."""
    return x.sort(axis_of("argsort", axis, x.ndim), descending)[1].cast(INDEX)


def unique_all(x: Tensor, /) -> UniqueAll:
    """Different elements, where each comes first, which one each element is, and counts."""
    flat = x.flatten()
    values, inverse, counts = flat.unique(return_inverse=True, return_counts=True)
    inverse = inverse.cast(INDEX)
    count = int(flat.shape[0])
    positions = Tensor.arange(count, dtype=INDEX, device=x.device)
    first = Tensor.full((int(values.shape[0]),), count, dtype=INDEX, device=x.device)
    first = first.scatter_reduce(0, inverse, positions, "amin") if count else first
    return UniqueAll(values, first, inverse.reshape(x.shape), counts.cast(INDEX))


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Different elements, and how many of each there are."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Different elements, and which of them each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """Different elements."""
    found: Tensor = x.flatten().unique()
    return found

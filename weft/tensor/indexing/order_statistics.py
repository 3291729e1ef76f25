"""What is read off a sorted axis: median, kthvalue, mode, quantile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft.ir import movement
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.support.errors import ArgumentError, DTypeError, ShapeError
from weft.tensor.checks import axis_of, known
from weft.tensor.indexing.sorting import positions_in_order
from weft.tensor.methods.elementwise import lift
from weft.tensor.methods.pairs import Picked
from weft.tensor.methods.scan import scan

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def operand_of(self: Tensor, value: Any, name: str) -> Tensor:
    """Another operand as a tensor on this tensor's device; a list is one too."""
    if isinstance(value, (list, tuple)):
        return self.__class__(value, device=self.device)
    return lift(self, value, name)


def _rows(name: str, self: Tensor, dim: int) -> tuple[Tensor, int]:
    """The tensor with an axis last, and the number of that axis; there must be elements."""
    axis = axis_of(name, dim, self.ndim)
    rows = self.movedim(axis, -1) if self.ndim else self.reshape(1)
    if rows.shape[-1] == 0:
        raise ShapeError(
            f"{name}: an empty axis has no {name}",
            facts=[("shape", self.shape), ("axis", axis)],
            rule=f"{name} needs at least one element along its axis",
        )
    return rows, axis


def _picked(self: Tensor, rows: Tensor, indices: Tensor, axis: int, keepdim: bool) -> Picked:
    """Elements at indices (…, 1) of rows, and the indices, each with the axis gone or kept."""
    values = rows.gather(-1, indices)
    if not self.ndim:
        return Picked(values.reshape(()), indices.reshape(()))
    if keepdim:
        return Picked(values.movedim(-1, axis), indices.movedim(-1, axis))
    return Picked(values.squeeze(-1), indices.squeeze(-1))


def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Picked:
    """Return the k-th least element along an axis, counted from 1, and its position as int64.

    NaN is greater than every number. As `torch.kthvalue`; NumPy has `numpy.partition`.

    >>> from weft.tensor import Tensor
    >>> value, position = Tensor([5.0, 1.0, 3.0]).kthvalue(2)
    >>> value.item(), position.item()
    (3.0, 2)
    """
    rows, axis = _rows("kthvalue", self, dim)
    size = known(rows.shape[-1])
    if not 1 <= k <= size:
        raise ArgumentError(
            f"kthvalue: element {k} of {size}", rule="k is from 1 to the size of the axis"
        )
    order = positions_in_order(rows.detach(), k)
    return _picked(self, rows, order[..., k - 1 : k], axis, keepdim)


def median(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the middle element in order, the lesser of two; NaN if there is one.

    Without `dim` it is that of all elements; with it, the pair of the values along the axis and
    their positions as int64. As `torch.median`; `numpy.median` takes the mean of two.

    >>> from weft.tensor import Tensor
    >>> Tensor([4.0, 1.0, 3.0, 2.0]).median().item()
    2.0
    """
    if dim is None:
        return shared_slope(self, median(self.flatten(), 0)[0])
    rows, axis = _rows("median", self, dim)
    size = known(rows.shape[-1])
    order = positions_in_order(rows.detach())
    if not self.dtype.is_float:
        middle = (size - 1) // 2
        return _picked(self, rows, order[..., middle : middle + 1], axis, keepdim)
    nans = rows.isnan().sum(-1, keepdim=True)
    index = (nans == 0).where((size - 1) // 2, -nans + size)
    return _picked(self, rows, order.gather(-1, index), axis, keepdim)


def shared_slope(self: Tensor, value: Tensor) -> Tensor:
    """One of all elements; those that are equal to it share its slope, as in PyTorch."""
    if not self.dtype.is_float:
        return value
    middle = value.detach()
    is_equal = (self == middle) & middle.isfinite()
    count = is_equal.sum().maximum(1)
    differences = is_equal.where(self - middle, 0.0)  # zeros that have a slope
    return is_equal.any().where(middle + differences.sum() / count, value)


def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> Picked:
    """Return the most frequent element along an axis, and the last position of it as int64.

    Of elements that are equally frequent it is the least. As `torch.mode`.

    >>> from weft.tensor import Tensor
    >>> value, position = Tensor([3, 1, 2, 1, 2]).mode()
    >>> value.item(), position.item()
    (1, 3)
    """
    rows, axis = _rows("mode", self, dim)
    order = positions_in_order(rows.detach())
    length = _indices_in_runs(rows.detach().gather(-1, order))
    index = order.gather(-1, length.argmax(-1, keepdim=True))
    return _picked(self, rows, index, axis, keepdim)


def starts_of_runs(ordered: Tensor) -> Tensor:
    """Where an element along the last axis differs from the one before it; the first does."""
    size = known(ordered.shape[-1])
    lead: list[Any] = [(0, each) for each in ordered.shape[:-1]]
    changes = ordered.shrink([*lead, (1, size)]) != ordered.shrink([*lead, (0, size - 1)])
    room: list[Any] = [(0, 0)] * (ordered.ndim - 1)
    return changes.pad([*room, (1, 0)], value=True)


def _indices_in_runs(ordered: Tensor) -> Tensor:
    """For each element of sorted rows how many equal ones there are up to it."""
    position = ordered._new(movement.positions(ordered.shape, ordered.ndim - 1))
    start = scan(starts_of_runs(ordered).where(position, 0), Op.MAX, -1, "mode")
    return position - start + 1


_INTERPOLATIONS: Final = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(
    self: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Tensor:
    """Return the element below which a share `q` of all lies, between neighbors if need be.

    The index is q * (n - 1) in order; `interpolation` is linear, lower, higher, midpoint or
    nearest. Several shares give an axis in front. NaN if there is one. As `torch.quantile` and
    `numpy.quantile`.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0, 3.0, 4.0]).quantile(0.5).item()
    2.5
    """
    if interpolation not in _INTERPOLATIONS:
        raise ArgumentError(
            f"quantile: unknown interpolation {interpolation!r}",
            rule="interpolation is " + ", ".join(_INTERPOLATIONS),
        )
    if self.dtype not in (dtypes.float32, dtypes.float64):
        raise DTypeError(
            f"quantile: of {self.dtype.name}", rule="quantile takes float32 and float64"
        )
    share = operand_of(self, q, "quantile").cast(self.dtype)
    if share.ndim > 1:
        raise ShapeError(f"quantile: q has shape {share.shape}", rule="q is a number or a vector")
    flat = self.flatten() if dim is None else self
    rows, axis = _rows("quantile", flat, 0 if dim is None else dim)
    found = _between(rows, share.flatten(), interpolation)  # (…, shares)
    if keepdim and dim is None:
        found = found.reshape((*[1] * self.ndim, found.shape[-1]))
    elif keepdim and flat.ndim:
        found = found.unsqueeze(axis)
    return found.movedim(-1, 0) if share.ndim else found.squeeze(-1)


def _between(rows: Tensor, share: Tensor, interpolation: str) -> Tensor:
    """The quantiles of rows, one for each share."""
    size = known(rows.shape[-1])
    order = positions_in_order(rows.detach())
    # Where there is a NaN the last in order is one, and both neighbors are it.
    has_nan = rows.isnan().any(-1, keepdim=True)
    index = has_nan.where(size - 1, share * (size - 1))
    if interpolation != "linear":
        rounded = {"lower": index.floor, "higher": index.ceil, "nearest": index.round}
        index = rounded[interpolation]() if interpolation in rounded else _midpoint(index)
    below = index.floor()

    def at(number: Tensor) -> Tensor:
        chosen = order.gather(-1, number.cast(dtypes.int64))
        return rows.gather(-1, chosen)

    low = at(below)
    found = low if interpolation in ("lower", "higher", "nearest") else None
    if found is None:
        high = at(index.ceil())
        found = low.lerp(high, index - below)
    return found


def _midpoint(index: Tensor) -> Tensor:
    """An index between two elements moved to the middle of them."""
    return (index.floor() + index.ceil()) / 2

"""Scatters along an axis: values put, or reduced, where an index of their shape says.

Each returns a new value. A number outside its axis writes nothing, as in `indexing.py`. Values
come in the order of the index, also those for one element.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weft.ir import movement
from weft.ir.build import scatter as scatter_nodes
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.reduction.reductions import identity
from weft.ir.uop import UOp, const
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import known
from weft.tensor.indexing.indexing import in_axis, require_index
from weft.tensor.indexing.inside import require_inside
from weft.tensor.methods.elementwise import lift

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

_REDUCTIONS: Final = {
    "sum": Op.ADD,
    "prod": Op.MUL,
    "mean": Op.ADD,
    "amax": Op.MAX,
    "amin": Op.MIN,
}


class _Updates(NamedTuple):
    """Values for elements of a tensor: the axis, the values, and where each goes, if anywhere."""

    axis: int
    values: Tensor
    mask: UOp
    indices: list[UOp]

    def into(self, value: UOp, updates: UOp, op: int) -> UOp:
        """Updates instead of the values, reduced into a value."""
        return scatter_nodes(value, updates, self.mask, self.indices, op)


def scatter(self: Tensor, dim: int, index: Tensor, src: Any, reduce: str | None = None) -> Tensor:
    """Put values where an index says along an axis; of several for one element the last stays.

    `reduce` is None, "add" or "multiply".

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).scatter(0, Tensor([2, 0]), Tensor([8, 9])).tolist()
    [9, 2, 8]
    """
    if reduce is not None:
        names = {"add": "sum", "multiply": "prod"}
        if reduce not in names:
            raise ArgumentError(
                f"scatter: unknown reduce {reduce!r}", rule='reduce is None, "add" or "multiply"'
            )
        return self.scatter_reduce(dim, index, src, names[reduce])
    if not self.ndim:
        return _of_one("scatter", self, dim, index, src)
    made = _updates("scatter", self, dim, index, src)
    order = movement.positions(index.shape, made.axis)
    none = movement.full(order.dtype, -1, self.shape)
    last = self._new(made.into(none, order, Op.MAX))  # the value that each index gets
    box = [(0, size) for size in index.shape]
    box[made.axis] = (0, self.shape[made.axis])
    inside = last.shrink(box)
    picked = made.values.gather(made.axis, (inside < 0).where(0, inside))
    room = [(0, known(a) - known(b)) for a, b in zip(self.shape, picked.shape, strict=True)]
    return (last < 0).where(self, picked.pad(room))


def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Any, reduce: str, include_self: bool = True
) -> Tensor:
    """Reduction values into where an index says along an axis: sum, prod, mean, amax or amin.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 1]).scatter_reduce(0, Tensor([0, 0]), Tensor([5, 6]), "sum").tolist()
    [12, 1]
    """
    if reduce not in _REDUCTIONS:
        raise ArgumentError(
            f"scatter_reduce: unknown reduce {reduce!r}",
            rule="reduce is " + ", ".join(_REDUCTIONS),
        )
    if not self.ndim:
        return _of_one("scatter_reduce", self, dim, index, src, reduce, include_self)
    made = _updates("scatter_reduce", self, dim, index, src)
    op, old = _REDUCTIONS[reduce], self
    if not include_self:
        nothing = movement.full(dtypes.bool, False, self.shape)
        hits = movement.full(dtypes.bool, True, made.values.shape)
        touched = self._new(made.into(nothing, hits, Op.OR))
        neutral = const(self.dtype, identity(op, self.dtype))
        old = touched.where(self._new(neutral), self)
    reduced = self._new(made.into(old.uop, made.values.uop, op))
    if reduce != "mean":
        return reduced
    ones = movement.full(dtypes.int32, 1, made.values.shape)
    start = movement.full(dtypes.int32, int(include_self), self.shape)
    count = self._new(made.into(start, ones, Op.ADD))
    rounding = None if self.dtype.is_float else "floor"
    return reduced.div(count.maximum(1).cast(self.dtype), rounding_mode=rounding)


def _of_one(name: str, self: Tensor, dim: int, index: Tensor, src: Any, *how: Any) -> Tensor:
    """The scatter of a tensor without axes, as one of an axis of one element."""
    require_index(name, self, dim, index)
    source = lift(self, src, name).reshape(1)
    made: Tensor = getattr(self.reshape(1), name)(0, index.reshape(1), source, *how)
    return made.reshape(())


def _updates(name: str, self: Tensor, dim: int, index: Tensor, src: Any) -> _Updates:
    axis = require_index(name, self, dim, index)
    values = lift(self, src, name).cast(self.dtype)
    if values.ndim == 0:
        values = values.expand(index.shape) if index.ndim else values
    if values.ndim != index.ndim or any(
        known(a) < known(b) for a, b in zip(values.shape, index.shape, strict=True)
    ):
        raise ShapeError(
            f"{name}: values of shape {values.shape} for an index of shape {index.shape}",
            facts=[("tensor", self.shape), ("index", index.shape), ("values", values.shape)],
            rule="there is a value for each element of the index",
        )
    values = values.shrink([(0, size) for size in index.shape])
    require_inside(name, index, self.shape[axis])
    number, mask = in_axis(index.uop, self.shape[axis], False)
    others = [movement.positions(index.shape, i) for i in range(self.ndim) if i != axis]
    mask = const(dtypes.bool, True) if mask is None else mask
    return _Updates(axis, values, mask, [*others[:axis], number, *others[axis:]])

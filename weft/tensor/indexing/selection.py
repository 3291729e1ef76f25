"""Selection and writes by number as functions: each returns a new value and changes no tensor.

Numbers outside an axis read 0 and write nothing, as in `indexing.py`. Values that are added to one
target are all added; of several that replace it, one stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from weft.ir import movement
from weft.ir.build import scatter as scatter_nodes
from weft.ir.dtypes import BOOL, INTEGER, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, const
from weft.support.errors import ArgumentTypeError, DTypeError, IndexOutOfRange, ShapeError
from weft.tensor.checks import (
    axis_of,
    broadcast_shape,
    known,
    require_broadcast_to,
    require_one_device,
)
from weft.tensor.indexing.indexing import in_axis, index_node
from weft.tensor.indexing.inside import require_inside
from weft.tensor.methods.elementwise import lift

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# Slices that are written one by one, in order.
FEW: Final = 16


def _require_integers(name: str, index: Tensor) -> None:
    if not index.dtype.kind & INTEGER:
        raise DTypeError(
            f"{name}: the index is {index.dtype.name}",
            rule="an index tensor holds integers",
            fix="cast it: index.int()",
        )


def take(self: Tensor, index: Tensor) -> Tensor:
    """Pick elements by their number in the flat tensor. PyTorch and NumPy: take.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).take(Tensor([3, 0])).tolist()
    [4, 1]
    """
    _require_integers("take", index)
    return self.flatten()[index]


def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Pick along an axis by an index that broadcasts with the tensor; without one, flat.

    PyTorch: take_along_dim; NumPy: take_along_axis.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).take_along_dim(Tensor([[1], [0]]), 1).tolist()
    [[2], [3]]
    """
    _require_integers("take_along_dim", indices)
    if dim is None:
        return self.flatten().gather(0, indices.flatten())
    axis = axis_of("take_along_dim", dim, self.ndim)
    if indices.ndim != self.ndim:
        raise ShapeError(
            f"take_along_dim: {indices.ndim} axes of the index for {self.ndim} of the tensor",
            facts=[("tensor", self.shape), ("index", indices.shape)],
            rule="the index has as many axes as the tensor",
        )
    rest = [
        [1 if i == axis else size for i, size in enumerate(each.shape)] for each in (self, indices)
    ]
    shape = list(broadcast_shape("take_along_dim", *(tuple(each) for each in rest)))
    shape[axis] = self.shape[axis]
    wide = self.expand(shape)
    shape[axis] = indices.shape[axis]
    return wide.gather(axis, indices.expand(shape))


def select(self: Tensor, dim: int, index: int) -> Tensor:
    """Return the view at one index of an axis, without it. PyTorch: select.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).select(1, 0).tolist()
    [1, 3]
    """
    axis = axis_of("select", dim, self.ndim)
    return self[(*(slice(None),) * axis, index)]


def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a view of a part of an axis. PyTorch: narrow.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3, 4]).narrow(0, 1, 2).tolist()
    [2, 3]
    """
    axis = axis_of("narrow", dim, self.ndim)
    size = known(self.shape[axis]) if self.ndim else 0
    first = start + size if start < 0 else start
    if length < 0 or not 0 <= first <= first + length <= size:
        raise IndexOutOfRange(
            f"narrow: {length} elements from {start} on are not inside axis {axis} of size {size}",
            facts=[("shape", self.shape)],
            rule="narrow needs 0 <= start and start + length <= size",
        )
    box: list[Any] = [None] * self.ndim
    box[axis] = (first, first + length)
    return self.shrink(box)


def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """Pick along an axis by a vector of numbers. PyTorch: index_select; NumPy: take.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2, 3]]).index_select(1, Tensor([2, 2, 0])).tolist()
    [[3, 3, 1]]
    """
    axis, vector = _axis_and_vector("index_select", self, dim, index)
    if not self.ndim:
        return self._same()
    return self[(*(slice(None),) * axis, vector)]


def _axis_and_vector(name: str, self: Tensor, dim: int, index: Tensor) -> tuple[int, Tensor]:
    axis = axis_of(name, dim, self.ndim)
    _require_integers(name, index)
    require_one_device(name, self, index)
    if index.ndim > 1:
        raise ShapeError(
            f"{name}: the index has {index.ndim} axes",
            facts=[("index", index.shape)],
            rule="the index is a vector",
        )
    return axis, index.reshape(-1)


def _sources(name: str, self: Tensor, axis: int, index: Tensor, source: Any) -> Tensor:
    """The values for an axis that is indexed, with that axis in front."""
    values = lift(self, source, name)
    shape = list(self.shape) or [1]
    shape[axis] = index.shape[0]
    if list(values.shape or (1,)) != shape:
        raise ShapeError(
            f"{name}: values of shape {values.shape} do not fit",
            facts=[("tensor", self.shape), ("index", index.shape), ("values", values.shape)],
            rule=f"the values have the shape of the tensor, with {index.shape[0]} on axis {axis}",
        )
    return values.reshape(shape).movedim(axis, 0)


def index_add(self: Tensor, dim: int, index: Tensor, source: Any, *, alpha: float = 1) -> Tensor:
    """Add slices to those that an index names along an axis. PyTorch: index_add.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 1]).index_add(0, Tensor([0, 0, 1]), Tensor([1, 2, 5])).tolist()
    [4, 6]
    """
    axis, vector = _axis_and_vector("index_add", self, dim, index)
    values = _sources("index_add", self, axis, vector, source).movedim(0, axis)
    values = (values if alpha == 1 else values * alpha).cast(self.dtype)
    whole = self.reshape(self.shape or (1,))
    lead = (*whole.shape[:axis], vector.shape[0])
    require_inside("index_add", vector, whole.shape[axis])
    number, mask = in_axis(movement.broadcast(vector.uop, lead), whole.shape[axis], False)
    indices = [*(movement.positions(lead, i) for i in range(axis)), number]
    mask = const(dtypes.bool, True) if mask is None else mask
    added = scatter_nodes(whole.uop, values.uop, mask, indices, Op.ADD)
    return self._new(added).reshape(self.shape)


def index_copy(self: Tensor, dim: int, index: Tensor, source: Any) -> Tensor:
    """Replace the slices that an index names along an axis. PyTorch: index_copy.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).index_copy(0, Tensor([2, 0]), Tensor([8, 9])).tolist()
    [9, 2, 8]
    """
    axis, vector = _axis_and_vector("index_copy", self, dim, index)
    values = _sources("index_copy", self, axis, vector, source)
    moved = self.reshape(self.shape or (1,)).movedim(axis, 0)
    return _replaced(moved, [vector], values).movedim(0, axis).reshape(self.shape)


def index_copy_(self: Tensor, dim: int, index: Tensor, source: Any) -> Tensor:
    """Replace the slices that an index names along an axis, here. PyTorch: index_copy_.

    A few slices are written one after the other, and all else stays untouched.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).index_copy_(0, Tensor([2, 0]), Tensor([8, 9])).tolist()
    [9, 2, 8]
    """
    axis, vector = _axis_and_vector("index_copy", self, dim, index)
    count = vector.shape[0]
    if not self.ndim or not isinstance(count, int) or not 0 < count <= FEW:
        return self._update(self.index_copy(dim, index, source), "index_copy")
    values = _sources("index_copy", self, axis, vector, source)
    self[(*(slice(None),) * axis, vector)] = values.movedim(0, axis)
    return self


def index_put(
    self: Tensor, indices: Sequence[Tensor], values: Any, accumulate: bool = False
) -> Tensor:
    """Put values where index tensors say, one for each of the first axes, or one bool mask.

    With `accumulate` the values are added. PyTorch: index_put; NumPy: put, add.at.

    >>> from weft.tensor import Tensor
    >>> x, i = Tensor([[1, 2], [3, 4]]), Tensor([0, 0])
    >>> x.index_put((i, i), Tensor([10, 20]), accumulate=True).tolist()
    [[31, 2], [3, 4]]
    """
    if not isinstance(indices, (tuple, list)) or not all(
        isinstance(each, self.__class__) for each in indices
    ):
        raise ArgumentTypeError(
            "index_put: expected a tuple of index tensors",
            rule="there is an index tensor for each of the first axes",
            fix="write x.index_put((index,), values)",
        )
    new = lift(self, values, "index_put").cast(self.dtype)
    if len(indices) == 1 and indices[0].dtype.kind == BOOL:
        return _put_by_mask(self, indices[0], new, accumulate)
    for each in indices:
        _require_integers("index_put", each)
    if len(indices) > self.ndim:
        raise IndexOutOfRange(
            f"index_put: {len(indices)} indices for {self.ndim} axes",
            facts=[("shape", self.shape)],
            rule="an index names an axis",
        )
    if accumulate:
        return _added(self, list(indices), new, "index_put")
    return _replaced(self, list(indices), new)


def _put_by_mask(self: Tensor, mask: Tensor, values: Tensor, accumulate: bool) -> Tensor:
    if accumulate:
        rest = self.ndim - mask.ndim
        if mask.shape != self.shape[: mask.ndim] or values.ndim > rest:
            raise ShapeError(
                "index_put: values to be added through a mask do not fit",
                facts=[("tensor", self.shape), ("mask", mask.shape), ("values", values.shape)],
                rule="the mask has the leading sizes of the tensor, the value those after them",
            )
        wide = mask.reshape((*mask.shape, *[1] * rest))
        return self + wide.where(values, 0)
    x = self.clone()
    x[mask] = values
    return x


def _added(self: Tensor, numbers: list[Tensor], values: Tensor, name: str) -> Tensor:
    """The tensor with values added where the indices of its first axes say."""
    target, _ = index_node(self, list(range(len(numbers))), list(numbers))
    shape = shape_of(target)
    require_broadcast_to(name, values.shape, shape)
    node = movement.broadcast(values.cast(self.dtype).uop, shape)
    memory, mask, *indices = target.src
    return self._new(scatter_nodes(memory, node, mask, indices, Op.ADD))


def _replaced(self: Tensor, indices: list[Tensor], values: Tensor) -> Tensor:
    """The tensor with values at the indices of its first axes; of several the last stays.

    Updates are numbered, and each element takes the update with the greatest number. So this is a
    value and no write: its graph stays for gradients when it is realized.
    """
    target, count = index_node(self, list(range(len(indices))), list(indices))
    shape = shape_of(target)
    require_broadcast_to("index", values.shape, shape)
    _, mask, *positions = target.src
    updates = math.prod(map(known, shape[:count]))
    if updates == 1 and len(indices):
        rows = values.cast(self.dtype).expand(shape)
        rows = rows.reshape((*[1] * len(indices), *shape[count:]))
        return _replaced_once(self, [mask, *positions], rows)
    number = self.__class__.arange(updates, dtype=dtypes.int32, device=self.device)
    number = number.reshape((*shape[:count], *[1] * (len(shape) - count))).expand(shape)
    none = movement.full(dtypes.int32, -1, self.shape)
    last = self._new(scatter_nodes(none, number.uop, mask, positions, Op.MAX))
    rest = shape[count:]
    rows = values.cast(self.dtype).expand(shape).reshape((updates, *rest))
    if not updates:
        return self._same()
    chosen = last.clamp(min_=0).reshape((-1, *rest)) if rest else last.clamp(min_=0).flatten()
    return (last < 0).where(self, rows.gather(0, chosen).reshape(self.shape))


def _replaced_once(self: Tensor, where: Sequence[UOp], value: Tensor) -> Tensor:
    """The tensor with one element, or one slice of its last axes, replaced.

    `where` says whether that is inside, and its position on each of the first axes.
    """
    mask, *positions = [self._new(node).reshape(()) for node in where]
    for axis, position in enumerate(positions):
        number = self._new(movement.positions(self.shape, axis).cast(position.dtype))
        mask = mask & (number == position)
    return mask.where(value, self)


def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Put values at numbers of the flat tensor, or add them there. PyTorch and NumPy: put.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).put(Tensor([3, 0]), Tensor([8, 9])).tolist()
    [[9, 2], [3, 8]]
    """
    _require_integers("put", index)
    values = lift(self, source, "put")
    if values.numel() != index.numel():
        raise ShapeError(
            f"put: {values.numel()} values for {index.numel()} indices",
            facts=[("index", index.shape), ("values", values.shape)],
            rule="there is a value for each index",
        )
    flat = self.flatten()
    return flat.index_put((index.flatten(),), values.flatten(), accumulate).reshape(self.shape)


def scatter_add(self: Tensor, dim: int, index: Tensor, src: Any) -> Tensor:
    """Add values where an index of their shape says along an axis. PyTorch: scatter_add.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 1]).scatter_add(0, Tensor([0, 0]), Tensor([5, 6])).tolist()
    [12, 1]
    """
    return self.scatter_reduce(dim, index, src, "sum")


def index_fill(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Put one value in the slices that an index names along an axis. PyTorch: index_fill.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).index_fill(0, Tensor([0, 2]), 7).tolist()
    [7, 2, 7]
    """
    axis, vector = _axis_and_vector("index_fill", self, dim, index)
    new = lift(self, value, "index_fill").cast(self.dtype)
    moved = self.reshape(self.shape or (1,)).movedim(axis, 0)
    return _replaced(moved, [vector], new).movedim(0, axis).reshape(self.shape)


def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Put the elements of `source`, in order, where the mask holds; the dtype stays.

    The tensor and the mask broadcast. Where the source has no more elements 0 is put, because how
    many are needed is not known before the mask is; `torch.masked_scatter` raises. NumPy: place.

    >>> from weft.tensor import Tensor
    >>> x, mask = Tensor([1, 2, 3, 4]), Tensor([True, False, True, False])
    >>> x.masked_scatter(mask, Tensor([8, 9])).tolist()
    [8, 2, 9, 4]
    """
    require_one_device("masked_scatter", self, mask, source)
    if mask.dtype.kind != BOOL:
        raise DTypeError(
            f"masked_scatter: the mask is {mask.dtype.name}",
            rule="a mask is bool",
            fix="compare it: x.masked_scatter(mask != 0, source)",
        )
    shape = broadcast_shape("masked_scatter", self.shape, mask.shape)
    whole = mask.broadcast_to(shape)
    # The number of those before: an element takes what comes next.
    index = whole.flatten().cumsum(0).reshape(shape) - 1
    return whole.where(source.flatten().cast(self.dtype)[index], self.broadcast_to(shape))

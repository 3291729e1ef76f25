"""Indexing: views by basic keys, gathers by index tensors, and the writes through both.

An index tensor may count from the end with negative numbers. What it holds is not known when the
graph is built, so a number outside its axis raises nothing: it reads 0 and writes nothing. Numbers
that the host knows are checked at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.ir import movement
from weft.ir.build import Size
from weft.ir.dtypes import BOOL, INTEGER, UINT, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.sizes import least, minus, times
from weft.ir.uop import UOp, const, make
from weft.support.errors import DTypeError, ShapeError
from weft.tensor.checks import (
    axis_of,
    broadcast_shape,
    known,
    require_broadcast_to,
    require_one_device,
    size_node,
    without_leading_ones,
)
from weft.tensor.indexing.inside import require_inside
from weft.tensor.indexing.keys import Inside, read_key
from weft.tensor.methods.elementwise import lift

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def getitem(self: Tensor, key: Any) -> Tensor:
    """Return a view for ints, slices, None and Ellipsis; a new value for index tensors.

    A bool tensor picks the elements where it holds. Their number is computed at once, which runs
    what is lazy; `masked_select` with a size stays lazy.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([[1, 2, 3], [4, 5, 6]])
    >>> x[:, ::-2].tolist(), x[1, [0, 2]].tolist()
    ([[3, 1], [6, 4]], [4, 6])
    """
    if self._pair is not None and key.__class__ is int and -2 <= key < 2:
        return _pair(self)[key]  # type: ignore[no-any-return]
    found = read_key(self.shape, key, self.__class__)
    view = self._view(*found.steps) if found.steps else self._of(self._storage, self._steps)
    if not found.advanced:
        return view
    axes = list(found.advanced)
    target, count = index_node(view, axes, list(found.advanced.values()))
    if axes == list(range(axes[0], axes[0] + len(axes))):  # neighbors: the result stays there
        rank = len(shape_of(target))
        first = axes[0]
        order = [*range(count, count + first), *range(count), *range(count + first, rank)]
        target = movement.permute(target, order) if order != sorted(order) else target
    return self._new(target)


def index_node(view: Tensor, axes: list[int], indices: list[Any]) -> tuple[UOp, int]:
    """INDEX of the view, indexed axes in front; and how many axes the indices have."""
    rest = [axis for axis in range(view.ndim) if axis not in axes]
    order = [*axes, *rest]
    memory = view.uop if order == sorted(order) else movement.permute(view.uop, order)
    tensors = [_index_tensor(view, index) for index in indices]
    shape = broadcast_shape("index", *(each.shape for each in tensors))
    masks, numbers = [], []
    for axis, tensor, index in zip(axes, tensors, indices, strict=True):
        is_checked = isinstance(index, (np.ndarray, Inside))
        if not is_checked:
            require_inside("index", tensor, view.shape[axis])
        number, mask = in_axis(tensor.uop, view.shape[axis], is_checked)
        numbers.append(number if not shape_of(number) else movement.broadcast(number, shape))
        masks += [mask] if mask is not None and not shape else []
        masks += [movement.broadcast(mask, shape)] if mask is not None and shape else []
    mask = masks[0] if masks else const(dtypes.bool, True)
    for other in masks[1:]:
        mask = mask & other
    if shape and not any(shape_of(each) for each in numbers):
        numbers[0] = movement.broadcast(numbers[0], shape)
    return make(Op.INDEX, memory.dtype, (memory, mask, *numbers)), len(shape)


def _index_tensor(view: Tensor, index: Any) -> Tensor:
    if isinstance(index, np.ndarray):
        dtype = dtypes.int32 if index.size == 0 or index.max() < 2**31 else dtypes.int64
        return view.__class__(index, device=view.device, dtype=dtype)
    tensor: Tensor = index.tensor if isinstance(index, Inside) else index
    require_one_device("index", view, tensor)
    return tensor


def in_axis(index: UOp, size: Size, is_checked: bool) -> tuple[UOp, UOp | None]:
    """An index counted from 0, and where it is inside its axis."""
    if is_checked:
        return index, None
    if index.dtype.kind == UINT:
        fits = index.dtype.max < least(size)
        return index, None if fits else index < size_node(size, index.dtype)
    if index.dtype.bits < 32:
        index = index.cast(dtypes.int32)
    count = size_node(size, index.dtype)
    counted = (index < 0).where(index + count, index)
    return counted, (index < count) & (size_node(times(size, -1), index.dtype) <= index)


def _only_mask(self: Tensor, key: Any) -> Tensor | None:
    """The bool tensor that a key consists of, if it is one that has the leading sizes."""
    part = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if not isinstance(part, self.__class__) or part.dtype.kind != BOOL or not part.ndim:
        return None
    return part if part.shape == self.shape[: part.ndim] else None


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """Write to the elements that the key names; the value is cast and broadcast.

    >>> from weft.tensor import Tensor
    >>> x = Tensor.zeros(4, dtype="int32")
    >>> x[1:3] = 7
    >>> x.tolist()
    [0, 7, 7, 0]
    """
    self._require_writable()
    mask = _only_mask(self, key)
    if mask is not None:
        _set_by_mask(self, mask, value)
        return
    found = read_key(self.shape, key, self.__class__)
    view = self._view(*found.steps) if found.steps else self._of(self._storage, self._steps)
    if not found.advanced:
        view._write(value, "index")
        return
    _set_by_tensors(view, found.advanced, value)


def _set_by_mask(self: Tensor, mask: Tensor, value: Any) -> None:
    """Write where a mask holds: one value for all, or one for each element, in their order.

    Only a value with an element for each needs their number, which is computed then.
    """
    new = lift(self, value, "index").cast(self.dtype)
    rest = self.shape[mask.ndim :]
    if new.ndim > len(rest):
        count = int(mask.sum().item())
        require_broadcast_to("index", new.shape, (count, *rest))
        if new.shape[0] != 1:
            number = (mask.flatten().cumsum(0, dtype=dtypes.int32) - 1).reshape(mask.shape)
            new = new[mask.where(number, 0)] if count else self
        else:
            new = new.squeeze(0)
    wide = mask.reshape((*mask.shape, *[1] * len(rest)))
    self._write(wide.where(new, self), "index")


def _set_by_tensors(view: Tensor, advanced: dict[int, Any], value: Any) -> None:
    """Write through INDEX, which needs memory; the last of several values for an element stays."""
    axes = list(advanced)
    view._require_no_expand("index")
    view._storage.take_memory()
    steps = [step for step in view._steps if step[0] != Op.DETACH]
    # A strided view has no target of its own, nor has one that mixes what several devices have.
    if any(step[0] == Op.PAD for step in steps) or view._storage.mixes_parts(steps):
        whole = view.clone()
        _set_by_tensors(whole, advanced, value)
        view._write(whole, "index")
        return
    plain = view._of(view._storage, tuple(steps))
    target, count = index_node(plain, axes, list(advanced.values()))
    shape = shape_of(target)
    new = lift(view, value, "index")
    if axes == list(range(axes[0], axes[0] + len(axes))) and axes[0]:
        # The value has the indices' axes where they were; the target has them in front.
        first = axes[0]
        shown = shape[count : count + first] + shape[:count] + shape[count + first :]
        new = without_leading_ones(new, len(shown))
        require_broadcast_to("index", new.shape, shown)
        order = [*range(first, first + count), *range(first), *range(first + count, len(shown))]
        node = movement.permute(movement.broadcast(new.cast(view.dtype).uop, shown), order)
    else:
        new = without_leading_ones(new, len(shape))
        require_broadcast_to("index", new.shape, shape)
        node = movement.broadcast(new.cast(view.dtype).uop, shape)
    view._storage.write_at(target, node)


def _pair(self: Tensor) -> Any:
    from weft.tensor.indexing.extremes import pair_of

    return pair_of(self)


def iterate(self: Tensor) -> Iterator[Tensor]:
    """Yield views along the first axis; of `max` along an axis its values, then its indices."""
    if self._pair is not None:
        yield from _pair(self)
        return
    for position in range(known(self.shape[0]) if self.shape else len(self)):
        yield self[position]


def require_index(name: str, self: Tensor, dim: int, index: Tensor) -> int:
    axis = axis_of(name, dim, self.ndim)
    if not index.dtype.kind & INTEGER:
        raise DTypeError(
            f"{name}: the index is {index.dtype.name}",
            rule="an index tensor holds integers",
            fix="cast it: index.int()",
        )
    require_one_device(name, self, index)
    sizes = zip(index.shape, self.shape, strict=False)
    fits = index.ndim == self.ndim and all(
        least(minus(b, a)) >= 0 for i, (a, b) in enumerate(sizes) if i != axis
    )
    if not fits:
        raise ShapeError(
            f"{name}: an index of shape {index.shape} for a tensor of shape {self.shape}",
            rule=f"the index has as many axes, and no size is greater but that of axis {axis}",
        )
    return axis


def gather(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """Pick along an axis by an index of the result's shape.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).gather(1, Tensor([[0, 0], [1, 0]])).tolist()
    [[1, 1], [4, 3]]
    """
    if index.shape and 0 in index.shape:  # of no elements any shape is right, as in PyTorch
        return self.zeros(index.shape, dtype=self.dtype, device=self.device)
    if not self.ndim and index.ndim == 1:
        return self.expand(index.shape)._same()
    axis = require_index("gather", self, dim, index)
    if not self.ndim:
        return self.expand(index.shape)._same() if index.ndim else self._same()
    require_inside("gather", index, self.shape[axis])
    number, mask = in_axis(index.uop, self.shape[axis], False)
    indices = [
        number if i == axis else movement.positions(index.shape, i) for i in range(self.ndim)
    ]
    mask = const(dtypes.bool, True) if mask is None else mask
    return self._new(make(Op.INDEX, self.dtype, (self.uop, mask, *indices)))

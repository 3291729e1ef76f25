"""Shapes by name: rows and columns, stacks, diagonals, rotations; made of movement and joining.

What only moves elements returns a view, as in `movement.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from weft.ir import movement
from weft.ir.ops import Op
from weft.ir.uop import make
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import axis_of, ints_of, known
from weft.tensor.methods.examples import with_example
from weft.tensor.methods.joining import listed

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def _require_axes(name: str, self: Tensor, count: int) -> None:
    if self.ndim < count:
        raise ShapeError(
            f"{name}: {self.ndim} axes are too few",
            facts=[("shape", self.shape)],
            rule=f"{name} needs {count} or more axes",
        )


def fliplr(self: Tensor) -> Tensor:
    """Read the second axis backwards: left and right are swapped. PyTorch, NumPy: fliplr.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).fliplr().tolist()
    [[2, 1], [4, 3]]
    """
    _require_axes("fliplr", self, 2)
    return self.flip(1)


def flipud(self: Tensor) -> Tensor:
    """Read the first axis backwards: up and down are swapped. PyTorch, NumPy: flipud.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).flipud().tolist()
    [[3, 4], [1, 2]]
    """
    _require_axes("flipud", self, 1)
    return self.flip(0)


def rot90(self: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turn a plane by 90 degrees `k` times, from the first axis of `dims` to the second.

    PyTorch and NumPy: rot90.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).rot90().tolist()
    [[2, 4], [1, 3]]
    """
    _require_axes("rot90", self, 2)
    if len(dims) != 2:
        raise ArgumentError(f"rot90: {len(dims)} axes", rule="a plane has two axes")
    a, b = (axis_of("rot90", axis, self.ndim) for axis in dims)
    if a == b:
        raise ArgumentError("rot90: both axes are the same", rule="a plane has two axes")
    rotated = {0: self, 1: self.flip(b).transpose(a, b), 2: self.flip(a, b)}
    return rotated.get(k % 4, self.flip(a).transpose(a, b))


def tile(self: Tensor, dims: Any, *args: Any) -> Tensor:
    """Repeat the whole tensor; counts that are left out are 1. PyTorch and NumPy: tile.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2]]).tile(2).tolist()
    [[1, 2, 1, 2]]
    """
    counts = ints_of("tile", dims, args)
    return self.repeat((*(1,) * (self.ndim - len(counts)), *counts))


def _atleast(rank: int, shape: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Any:
    def function(self: Any, *others: Tensor) -> Any:
        tensors = listed(f"atleast_{rank}d", self, others)
        made = [x if x.ndim >= rank else x.reshape(shape(x.shape)) for x in tensors]
        return tuple(made) if others or isinstance(self, (tuple, list)) else made[0]

    function.__name__ = function.__qualname__ = f"atleast_{rank}d"
    summary = f"Give tensors of fewer axes {rank}, of size 1. PyTorch and NumPy: atleast_{rank}d."
    call = f"Tensor(7).atleast_{rank}d().shape"
    function.__doc__ = with_example(summary, call, repr((1,) * rank))
    return function


atleast_1d = _atleast(1, lambda shape: (1,))
atleast_2d = _atleast(2, lambda shape: (1, *shape, *(1,) * (1 - len(shape))))
atleast_3d = _atleast(
    3,
    lambda shape: (1, *shape, 1) if len(shape) == 1 else (*shape, *(1,) * (3 - len(shape))),
)


def hstack(self: Any, *args: Tensor) -> Tensor:
    """Join along the second axis; vectors along their one. PyTorch and NumPy: hstack.

    >>> from weft.tensor import Tensor
    >>> Tensor.hstack(Tensor([1, 2]), Tensor([3])).tolist()
    [1, 2, 3]
    """
    tensors = [atleast_1d(each) for each in listed("hstack", self, args)]
    first: Tensor = tensors[0]
    return first.cat(*tensors[1:], dim=0 if first.ndim == 1 else 1)


def vstack(self: Any, *args: Tensor) -> Tensor:
    """Join along the first axis; vectors are rows. PyTorch and NumPy: vstack.

    >>> from weft.tensor import Tensor
    >>> Tensor.vstack(Tensor([1, 2]), Tensor([3, 4])).tolist()
    [[1, 2], [3, 4]]
    """
    tensors = [atleast_2d(each) for each in listed("vstack", self, args)]
    first: Tensor = tensors[0]
    return first.cat(*tensors[1:])


def dstack(self: Any, *args: Tensor) -> Tensor:
    """Join along the third axis. PyTorch and NumPy: dstack.

    >>> from weft.tensor import Tensor
    >>> Tensor.dstack(Tensor([1, 2]), Tensor([3, 4])).tolist()
    [[[1, 3], [2, 4]]]
    """
    tensors = [atleast_3d(each) for each in listed("dstack", self, args)]
    first: Tensor = tensors[0]
    return first.cat(*tensors[1:], dim=2)


def column_stack(self: Any, *args: Tensor) -> Tensor:
    """Join along the second axis; vectors are columns. PyTorch and NumPy: column_stack.

    >>> from weft.tensor import Tensor
    >>> Tensor.column_stack(Tensor([1, 2]), Tensor([3, 4])).tolist()
    [[1, 3], [2, 4]]
    """
    tensors = [
        each if each.ndim > 1 else each.reshape((each.numel(), 1))
        for each in listed("column_stack", self, args)
    ]
    return tensors[0].cat(*tensors[1:], dim=1)


def tensor_split(
    self: Tensor, indices_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Cut into so many parts, the first ones greater by one; or before each index of a list.

    PyTorch: tensor_split; NumPy: array_split.

    >>> from weft.tensor import Tensor
    >>> [part.tolist() for part in Tensor([1, 2, 3, 4]).tensor_split((1, 3))]
    [[1], [2, 3], [4]]
    """
    axis = axis_of("tensor_split", dim, self.ndim)
    _require_axes("tensor_split", self, 1)
    size = known(self.shape[axis])
    if isinstance(indices_or_sections, self.__class__):  # its values are computed now
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count < 1:
            raise ArgumentError(f"tensor_split: {count} parts", rule="there is at least 1 part")
        starts = [n * (size // count) + min(n, size % count) for n in range(count + 1)]
        pairs = list(pairwise(starts))
    else:
        cuts = [0, *indices_or_sections, size]
        pairs = [slice(a, b).indices(size)[:2] for a, b in pairwise(cuts)]
    parts = []
    for start, stop in pairs:
        box: list[Any] = [None] * self.ndim
        box[axis] = (start, max(start, stop))
        parts.append(self.shrink(box))
    return tuple(parts)


def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the views along an axis, without it. PyTorch: unbind; NumPy: unstack.

    >>> from weft.tensor import Tensor
    >>> [part.tolist() for part in Tensor([[1, 2], [3, 4]]).unbind(1)]
    [[1, 3], [2, 4]]
    """
    _require_axes("unbind", self, 1)
    axis = axis_of("unbind", dim, self.ndim)
    return tuple(self.select(axis, i) for i in range(known(self.shape[axis])))


def diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Put the last axis on a diagonal of two new axes, with zeros beside it.

    PyTorch: diag_embed.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).diag_embed().tolist()
    [[1, 0], [0, 2]]
    """
    _require_axes("diag_embed", self, 1)
    rank = self.ndim + 1
    a, b = axis_of("diag_embed", dim1, rank), axis_of("diag_embed", dim2, rank)
    if a == b:
        raise ArgumentError("diag_embed: dim1 and dim2 are the same axis")
    count = known(self.shape[-1])
    size = count + abs(offset)
    top, left = max(-offset, 0), max(offset, 0)
    rows = self.pad([*[(0, 0)] * (self.ndim - 1), (top, size - count - top)])
    wide = rows.unsqueeze(-1).expand((*self.shape[:-1], size, size))
    row = movement.positions(wide.shape, rank - 2)
    column = movement.positions(wide.shape, rank - 1)
    hit = column.equal(row + (left - top))
    made = self._new(make(Op.WHERE, self.dtype, (hit, wide.uop, self.uop.const_like(0))))
    return made.movedim((-2, -1), (a, b))


def diag(self: Tensor, diagonal: int = 0) -> Tensor:
    """Return a diagonal of a matrix, or a matrix with the vector on it. PyTorch, NumPy: diag.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).diag().tolist(), Tensor([[1, 2], [3, 4]]).diag().tolist()
    ([[1, 0], [0, 2]], [1, 4])
    """
    if self.ndim not in (1, 2):
        raise ShapeError(
            f"diag: there are {self.ndim} axes",
            facts=[("shape", self.shape)],
            rule="diag takes a vector or a matrix",
            fix="use diagonal or diag_embed for more axes",
        )
    return self.diag_embed(diagonal) if self.ndim == 1 else self.diagonal(diagonal)


def diagflat(self: Tensor, offset: int = 0) -> Tensor:
    """Return a matrix with all elements on a diagonal. PyTorch and NumPy: diagflat.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1], [2]]).diagflat().tolist()
    [[1, 0], [0, 2]]
    """
    return self.flatten().diag_embed(offset)

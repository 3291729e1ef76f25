"""Parts of a tensor written with other values, and tensors cut along axes.

Each returns a new value. `as_strided` reads memory positions of the tensor as it would lie
without gaps.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.support.errors import ArgumentError
from weft.tensor.checks import axis_of, broadcast_shape, known
from weft.tensor.methods.examples import with_example

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def _with_part(self: Tensor, part: Tensor, mask: Any) -> Tensor:
    """The tensor with another value, already of its shape, where a mask of the host holds."""
    return self.__class__(np.asarray(mask), device=self.device).where(part, self)


def slice_(
    self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return x[start:end:step] along an axis.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).slice(0, 1).tolist()
    [2, 3]
    """
    axis = axis_of("slice", dim, self.ndim)
    return self[(*[slice(None)] * axis, slice(start, end, step))]


def slice_scatter(
    self: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Return the tensor with other values in x[start:end:step]. PyTorch: slice_scatter.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).slice_scatter(Tensor([9]), 0, 1, 2).tolist()
    [1, 9, 3]
    """
    axis = axis_of("slice_scatter", dim, self.ndim)
    size = known(self.shape[axis])
    numbers = np.arange(size)[slice(start, end, step)]
    number_of = np.zeros(size, np.int32)
    number_of[numbers] = np.arange(len(numbers))
    mask = np.isin(np.arange(size), numbers).reshape([-1] + [1] * (self.ndim - axis - 1))
    if not len(numbers):
        return self._same()
    wide = src.index_select(axis, self.__class__(number_of, device=self.device))
    return _with_part(self, wide, mask)


def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return the tensor with other values at one number of an axis. PyTorch: select_scatter.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).select_scatter(Tensor([8, 9]), 0, 1).tolist()
    [[1, 2], [8, 9]]
    """
    axis = axis_of("select_scatter", dim, self.ndim)
    size = known(self.shape[axis])
    mask = (np.arange(size) == index % size).reshape([-1] + [1] * (self.ndim - axis - 1))
    return _with_part(self, src.unsqueeze(axis).expand(self.shape), mask)


def diagonal_scatter(
    self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Return the tensor with other values on a diagonal. PyTorch: diagonal_scatter.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).diagonal_scatter(Tensor([8, 9])).tolist()
    [[8, 2], [3, 9]]
    """
    first, second = (axis_of("diagonal_scatter", dim, self.ndim) for dim in (dim1, dim2))
    rows, columns = known(self.shape[first]), known(self.shape[second])
    mask = np.eye(rows, columns, offset, dtype=bool)
    low, left = max(-offset, 0), max(offset, 0)
    count = known(src.shape[-1])
    square = src.diag_embed()  # (…, count, count)
    padded = square.pad((left, columns - left - count, low, rows - low - count))
    others = [axis for axis in range(self.ndim) if axis not in (first, second)]
    order = [*others, first, second]
    back = [order.index(axis) for axis in range(self.ndim)]
    shape = [1] * self.ndim
    shape[first], shape[second] = rows, columns
    mask = mask if first < second else mask.T
    return _with_part(self, padded.permute(back), mask.reshape(shape))


def _positions(size: Sequence[int], stride: Sequence[int], offset: int) -> Any:
    numbers = np.full(tuple(size), offset, np.int64)
    for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
        numbers += (np.arange(count) * step).reshape([-1] + [1] * (len(size) - axis - 1))
    return numbers


def as_strided(
    self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Return the elements at offset + Σ index · stride of the flat tensor, as a new value.

    PyTorch: as_strided, which gives a view.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3, 4]).as_strided((2, 2), (1, 2)).tolist()
    [[1, 3], [2, 4]]
    """
    numbers = _positions(size, stride, storage_offset or 0)
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < self.numel():
        raise ArgumentError(
            f"as_strided: elements {numbers.min()} to {numbers.max()} of {self.numel()}",
            rule="every element is inside of the tensor",
        )
    index = self.__class__(numbers.reshape(-1).astype(np.int32), device=self.device)
    return self.flatten()[index].reshape(tuple(size))


def as_strided_scatter(
    self: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """Return the tensor with other values where `as_strided` would read. PyTorch has it too.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).as_strided_scatter(Tensor([8, 9]), (2,), (2,)).tolist()
    [8, 2, 9]
    """
    numbers = _positions(size, stride, storage_offset or 0).reshape(-1)
    index = self.__class__(numbers.astype(np.int32), device=self.device)
    flat = self.flatten().put(index, src.expand(tuple(size)).flatten())
    return flat.reshape(self.shape)


def split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> Any:
    """Cut into pieces of these sizes along an axis. PyTorch: split_with_sizes.

    >>> from weft.tensor import Tensor
    >>> [each.tolist() for each in Tensor([1, 2, 3]).split_with_sizes([1, 2])]
    [[1], [2, 3]]
    """
    return self.split(list(split_sizes), dim)


def _split_along(axis_of_rank: Any, name: str) -> Any:
    def function(self: Tensor, indices_or_sections: Any) -> Any:
        return self.tensor_split(indices_or_sections, axis_of_rank(self.ndim))

    function.__name__ = function.__qualname__ = name
    summary = f"Cut into pieces, as `tensor_split` does. PyTorch and NumPy: {name}."
    function.__doc__ = with_example(summary, f"len(Tensor.ones(2, 2, 2).{name}(2))", "2")
    return function


hsplit = _split_along(lambda rank: 0 if rank == 1 else 1, "hsplit")
vsplit = _split_along(lambda rank: 0, "vsplit")
dsplit = _split_along(lambda rank: 2, "dsplit")


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors expanded to one shape. PyTorch and NumPy have it too.

    >>> from weft.tensor import Tensor
    >>> [each.tolist() for each in broadcast_tensors(Tensor([1, 2]), Tensor([[3]]))]
    [[[1, 2]], [[3, 3]]]
    """
    listed: Any = (
        tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    )
    shape = broadcast_shape("broadcast_tensors", *(each.shape for each in listed))
    return tuple(each.expand(shape) for each in listed)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape that these broadcast to. PyTorch and NumPy have it too.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    listed = [(each,) if isinstance(each, int) else tuple(each) for each in shapes]
    return tuple(known(size) for size in broadcast_shape("broadcast_shapes", *listed))


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of an element of each vector, as rows. PyTorch: cartesian_prod.

    >>> from weft.tensor import Tensor
    >>> cartesian_prod(Tensor([1, 2]), Tensor([3])).tolist()
    [[1, 3], [2, 3]]
    """
    if len(tensors) == 1:
        return tensors[0]._same()
    columns = tensors[0].meshgrid(*tensors[1:])
    flat = [each.flatten() for each in columns]
    return flat[0].stack(*flat[1:], dim=1)


def combinations(self: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all combinations of r elements of a vector, as rows. PyTorch: combinations.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).combinations().tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    choose = (
        itertools.combinations_with_replacement if with_replacement else itertools.combinations
    )
    rows = list(choose(range(known(self.shape[0])), r))
    if r == 0 or not rows:
        return self.zeros((0, r) if r else (0,), dtype=self.dtype, device=self.device)
    return self[self.__class__(np.array(rows, np.int32), device=self.device)]

"""Further methods: a filled diagonal, functions for each element, other spellings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.support.errors import ShapeError
from weft.tensor.checks import known

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write one value to the diagonal; with `wrap`, of tall matrices again below it.

    PyTorch: fill_diagonal_; NumPy: fill_diagonal.

    >>> from weft.tensor import Tensor
    >>> Tensor.zeros(2, 2).fill_diagonal_(5).tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """
    sizes = tuple(map(known, self.shape))
    if len(sizes) < 2 or (len(sizes) > 2 and len(set(sizes)) > 1):
        raise ShapeError(
            f"fill_diagonal_: a tensor of shape {sizes}",
            rule="it has two axes, or more of one size",
        )
    numbers = [np.arange(size).reshape([-1] + [1] * (len(sizes) - i - 1)) for i, size in
               enumerate(sizes)]  # fmt: skip
    if len(sizes) == 2:
        rows, columns = numbers
        # Below the square part of a tall matrix comes a row of others, and then it begins again.
        period = sizes[1] + 1 if wrap else max(sizes[0], 1)
        mask = (rows % period) == columns
    else:
        mask = np.ones(sizes, bool)
        for each in numbers[1:]:
            mask = mask & (each == numbers[0])
    cls = self.__class__
    chosen = cls(np.broadcast_to(mask, sizes).copy(), device=self.device)
    return self._update(self.masked_fill(chosen, fill_value), "fill_diagonal_")


def ger(self: Tensor, vec2: Tensor) -> Tensor:
    """Return the outer product of two vectors. PyTorch: ger, outer.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).ger(Tensor([3.0])).tolist()
    [[3.0], [6.0]]
    """
    for each in (self, vec2):
        if each.ndim != 1:
            raise ShapeError(
                f"ger: a tensor with {each.ndim} axes",
                facts=[("shape", each.shape)],
                rule="both are vectors",
            )
    return self.outer(vec2)


def _written(self: Tensor, found: Any) -> Tensor:
    made = self.__class__(np.asarray(found), dtype=self.dtype, device=self.device)
    return self.assign(made.reshape(self.shape))


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Write a Python function of each element: values are read, and it is called for each.

    PyTorch: apply_.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).apply_(lambda x: x + 1).tolist()
    [2.0, 3.0]
    """
    return _written(self, [callable(each) for each in self.flatten().tolist()])


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Write a Python function of each element and that of another tensor. PyTorch: map_.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).map_(Tensor([3.0]), lambda x, y: x * y).tolist()
    [3.0, 6.0]
    """
    other = tensor.expand(self.shape).flatten().tolist()
    pairs = zip(self.flatten().tolist(), other, strict=True)
    return _written(self, [callable(x, y) for x, y in pairs])


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Write a Python function of each element and those of two other tensors. PyTorch: map2_.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).map2_(Tensor([3.0]), Tensor([4.0]), lambda a, b, c: a + b * c).tolist()
    [13.0]
    """
    others = [each.expand(self.shape).flatten().tolist() for each in (x, y)]
    found = zip(self.flatten().tolist(), *others, strict=True)
    return _written(self, [callable(*each) for each in found])


def new(self: Tensor, *data: Any, **options: Any) -> Tensor:
    """Create a tensor of this dtype and device: of a shape, or of data. PyTorch: new.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).new([2, 3]).tolist(), Tensor([1.0]).new(2, 3).shape
    ([2.0, 3.0], (2, 3))
    """
    if not data:
        return self.new_empty(0, **options)
    if all(isinstance(each, int) and not isinstance(each, bool) for each in data):
        return self.new_empty(*data, **options)
    if type(data[0]).__name__ == "Size":
        return self.new_empty(*data[0], **options)
    return self.new_tensor(data[0], **options)


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return this tensor, which is dense, or a cast of it. PyTorch: to_dense.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).to_dense().tolist()
    [1.0]
    """
    return self if dtype is None else self.cast(dtype)

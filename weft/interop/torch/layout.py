"""How PyTorch has the elements of a tensor in memory, and what of that is shared.

Weft's memory has no strides. A tensor of PyTorch whose axes are only in another order is shared as
what lies in memory, and permuted on either side; of an expanded axis there is one row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.interop.torch.sizes import Sizes, hint
from weft.tensor.tensor import Tensor


class Layout(NamedTuple):
    """The order of axes in memory, which of them are expanded, and sizes, which may vary."""

    order: tuple[int, ...]
    expanded: tuple[int, ...] = ()
    shape: tuple[Any, ...] = ()

    @property
    def is_plain(self) -> bool:
        return not self.expanded and self.order == tuple(range(len(self.order)))

    @property
    def inverse(self) -> tuple[int, ...]:
        return tuple(sorted(range(len(self.order)), key=self.order.__getitem__))

    def packed(self, value: Tensor) -> Tensor:
        """The elements of a result in the order in which they are in memory."""
        for axis in self.expanded:
            value = value.slice(axis, 0, 1)
        return value if self.is_plain else value.permute(self.order)

    def shown(self, memory: Any, sizes: Sizes) -> Any:
        """A tensor of PyTorch over such memory, with the strides that were asked for."""
        if self.is_plain:
            return memory
        found = memory.permute(self.inverse)
        return found.expand(sizes(self.shape)) if self.expanded else found


def order_of(shape: Any, strides: Any) -> tuple[int, ...] | None:
    """The order of axes in which elements follow each other in memory; None if there are gaps."""
    order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis))
    expected = 1
    for axis in reversed(order):
        if shape[axis] != 1:
            if strides[axis] != expected:
                return None
            expected *= shape[axis]
    return tuple(order)


def layout_of(meta: Any) -> Layout:
    """The layout of a result; one with gaps is packed."""
    shape, strides = [hint(each) for each in meta.shape], [hint(each) for each in meta.stride()]
    expanded = tuple(axis for axis, size in enumerate(shape) if size > 1 and strides[axis] == 0)
    plain = tuple(range(len(shape)))
    if meta.is_contiguous():
        return Layout(plain)
    reduced = [1 if axis in expanded else size for axis, size in enumerate(shape)]
    found = order_of(reduced, strides)
    return Layout(plain) if found is None else Layout(found, expanded, tuple(meta.shape))

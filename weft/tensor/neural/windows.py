"""Sliding windows by movement ops alone: what convolutions and pools are made of.

A window axis of `kernel` taps is made by skewing. The axis of size n is repeated once per tap and
laid out flat; reading the copies in rows of n + dilation elements starts row j at element
j * dilation of copy j. Every step of the row that lies inside its copy is then the tap j of the
window at that position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.ir import movement
from weft.ir.ops import Op
from weft.tensor.checks import known

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def window_count(size: int, kernel: int, stride: int, dilation: int) -> int:
    """How many windows fit; below 1 for none."""
    return (size - dilation * (kernel - 1) - 1) // stride + 1


def windows_along(self: Tensor, axis: int, kernel: int, stride: int, dilation: int) -> Tensor:
    """All windows along an axis, with their taps in a new last axis."""
    size = known(self.shape[axis])
    count = window_count(size, kernel, stride, dilation)
    last = self.permute([*(i for i in range(self.ndim) if i != axis), axis])
    lead = last.shape[:-1]
    order = [*range(axis), self.ndim - 1, *range(axis, self.ndim - 1), self.ndim]
    if stride == kernel and dilation == 1:  # windows side by side: every element is in one
        keep = [(0, extent) for extent in lead]
        whole = last.shrink((*keep, (0, count * kernel)))
        apart = whole.reshape((*lead, count, kernel))
        return apart._view((Op.PERMUTE, tuple(order), ()))
    copies = last.reshape((*lead, 1, size)).expand((*lead, kernel, size))
    flat = copies.reshape((*lead, kernel * size)).pad((0, kernel * dilation))
    rows = flat.reshape((*lead, kernel, size + dilation))
    keep = [(0, extent) for extent in (*lead, kernel)]
    starts = rows.shrink((*keep, (0, (count - 1) * stride + 1)))
    if stride > 1:
        starts = starts._view(*movement.strided_steps(starts.shape, starts.ndim - 1, stride))
    # (other axes…, tap, window) to the axes in their old order, with the taps last.
    rank = self.ndim
    order = [*range(axis), rank, *range(axis, rank - 1), rank - 1]
    return starts._view((Op.PERMUTE, tuple(order), ()))


def windows(
    self: Tensor, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> Tensor:
    """Windows over the last axes: (…, positions…, taps…)."""
    first = self.ndim - len(kernel)
    result = self
    for number in range(len(kernel)):
        result = windows_along(
            result, first + number, kernel[number], stride[number], dilation[number]
        )
    return result

"""Sliding windows by movement ops alone: what convolutions and pools are made of.

A window axis of `kernel` taps is made by skewing. The axis of size n is repeated once per tap and
laid out flat; reading the copies in rows of n + dilation elements starts row j at element
j * dilation of copy j. Every step of the row that lies inside its copy is then the tap j of the
window at that position.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.ir import movement
from weft.ir.ops import Op
from weft.ir.sizes import ceil_quotient, floor_quotient, least, minus, plus, times
from weft.ir.uop import UOp

if TYPE_CHECKING:
    from weft.ir.build import Size
    from weft.tensor.tensor import Tensor

# Windows of more taps are added up by a loop, and not in one expression.
_MOST_TAPS: Final = 64


def window_count(size: Size, kernel: int, stride: int, dilation: int) -> Size:
    """How many windows fit; below 1 for none."""
    return plus(floor_quotient(minus(size, dilation * (kernel - 1) + 1), stride), 1)


def windows_along(self: Tensor, axis: int, kernel: int, stride: int, dilation: int) -> Tensor:
    """All windows along an axis, with their taps in a new last axis."""
    size = self.shape[axis]
    count = window_count(size, kernel, stride, dilation)
    last = self.permute([*(i for i in range(self.ndim) if i != axis), axis])
    lead = last.shape[:-1]
    order = [*range(axis), self.ndim - 1, *range(axis, self.ndim - 1), self.ndim]
    if stride == kernel and dilation == 1:  # windows side by side: every element is in one
        keep = [(0, extent) for extent in lead]
        whole = last.shrink((*keep, (0, times(count, kernel))))
        apart = whole.reshape((*lead, count, kernel))
        return apart._view((Op.PERMUTE, tuple(order), ()))
    copies = last.reshape((*lead, 1, size)).expand((*lead, kernel, size))
    flat = copies.reshape((*lead, times(kernel, size)))
    edges = [*((0, 0) for _ in lead), (0, kernel * dilation)]
    flat = flat._view(movement.boxed_step(Op.PAD, edges))
    rows = flat.reshape((*lead, kernel, plus(size, dilation)))
    keep = [(0, extent) for extent in (*lead, kernel)]
    starts = rows.shrink((*keep, (0, plus(times(minus(count, 1), stride), 1))))
    if stride > 1:
        starts = starts._view(*movement.strided_steps(starts.shape, starts.ndim - 1, stride))
    # (other axes…, tap, window) to the axes in their old order, with the taps last.
    rank = self.ndim
    order = [*range(axis), rank, *range(axis, rank - 1), rank - 1]
    return starts._view((Op.PERMUTE, tuple(order), ()))


class Frame(NamedTuple):
    """Windows over the last axes of a value, all per axis; `before` are elements of padding."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]

    @property
    def is_shared(self) -> bool:
        """Whether windows have elements in common; not so many that a loop adds them up better."""
        reaches = [gap * (size - 1) for size, gap in zip(self.kernel, self.dilation, strict=True)]
        overlap = any(map(int.__ge__, reaches, self.stride))
        return overlap and math.prod(self.kernel) <= _MOST_TAPS


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


def summed_windows(taps: Tensor, shape: Sequence[Size], frame: Frame) -> Tensor:
    """Windows (…, positions…, taps…) added up where they were taken from, a value of a shape.

    Elements whose positions are the same but for a multiple of the stride meet the same taps, and
    no others. So each such phase is a sum of a few shifted values, without zeros and remainders.
    In memory the phases are vectors.
    """
    rank = len(frame.kernel)
    sizes = shape[len(shape) - rank :]
    counts = [ceil_quotient(size, step) for size, step in zip(sizes, frame.stride, strict=True)]
    total: Tensor | None = None
    for starts in itertools.product(*map(range, frame.stride)):
        part = _phase(taps, starts, counts, frame)
        if part is not None and max(frame.stride) > 1:
            part = apart(part.contiguous(), frame.stride, starts)
        if part is not None:
            total = part if total is None else total + part
    assert total is not None, "a window has taps"
    lead = [None] * (total.ndim - rank)
    return total.shrink((*lead, *((0, size) for size in sizes)))


def _phase(
    taps: Tensor, starts: Sequence[int], counts: Sequence[Size], frame: Frame
) -> Tensor | None:
    """The sums for the elements at start + stride * i; None where they meet no tap."""
    met: list[list[tuple[int, int]]] = []  # along each axis: a tap, and how far it is behind
    for start, size, step, gap, low in zip(starts, *frame, strict=True):
        offsets = [(tap, gap * tap - start - low) for tap in range(size)]
        met.append([(tap, by // step) for tap, by in offsets if by % step == 0])
    total: Tensor | None = None
    for pairs in itertools.product(*met):
        term = _shifted(taps, pairs, counts)
        total = term if total is None else total + term
    return total


def _shifted(taps: Tensor, pairs: Sequence[tuple[int, int]], counts: Sequence[Size]) -> Tensor:
    """One tap of all windows: along each axis behind so many others, `counts` elements long."""
    rank = len(counts)
    lead = taps.ndim - 2 * rank
    box = [None] * (taps.ndim - rank) + [(tap, tap + 1) for tap, _ in pairs]
    value = taps.shrink(tuple(box)).reshape(taps.shape[: taps.ndim - rank])
    room: list[tuple[int, Size]] = [(0, 0)] * lead
    for axis, ((_, shift), count) in enumerate(zip(pairs, counts, strict=True)):
        room.append((shift, minus(minus(count, shift), value.shape[lead + axis])))
    return pad_or_cut(value, room)


def pad_or_cut(x: Tensor, pairs: Sequence[tuple[int, Size]]) -> Tensor:
    """Padding whose symbolic amounts, all behind, may be below 0 for some values: that cuts."""
    spare = [min(least(after), 0) if isinstance(after, UOp) else 0 for _, after in pairs]
    room = [(low, minus(high, less)) for (low, high), less in zip(pairs, spare, strict=True)]
    padded = x.pad(room)
    if not any(spare):
        return padded
    shape = zip(padded.shape, spare, strict=True)
    return padded.shrink(tuple([(0, plus(size, less)) for size, less in shape]))


def apart(phase: Tensor, steps: Sequence[int], starts: Sequence[int]) -> Tensor:
    """The elements of a phase where they belong on the last axes, with zeros between them."""
    first = phase.ndim - len(steps)
    for number, (step, start) in enumerate(zip(steps, starts, strict=True)):
        axis = first + number
        room = [(0, 0)] * (phase.ndim + 1)
        room[axis + 1] = (start, step - 1 - start)
        phase = phase.unsqueeze(axis + 1).pad(room).flatten(axis, axis + 1)
    return phase

"""Padding in its four modes: constant, reflect, replicate, circular."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.ir import movement
from weft.ir.build import Size
from weft.ir.dtypes import Scalar, dtypes
from weft.ir.ops import Op
from weft.ir.sizes import least, minus, most, plus
from weft.ir.uop import UOp, const
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import known, least_fix, require_number_fits, size_of, symbolic_number

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

MODES = ("constant", "reflect", "replicate", "circular")


def pad(
    self: Tensor, padding: Sequence[Any], mode: str = "constant", value: Scalar = 0.0
) -> Tensor:
    """Add elements around axes; negative amounts cut some off.

    `padding` is flat with the last axis first, as in PyTorch, or has a pair or None for each axis.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2, 3]).pad((1, 2)).tolist()
    [0, 1, 2, 3, 0, 0]
    >>> Tensor([1, 2, 3]).pad((2, 0), mode="reflect").tolist()
    [3, 2, 1, 2, 3]
    """
    pairs = _pairs(self, padding)
    if mode == "replicate" and any(isinstance(a, int) and a < 0 for pair in pairs for a in pair):
        return _clamped(self, pairs)
    if mode not in MODES:
        raise ArgumentError(
            f"pad: unknown mode {mode!r}", rule="the modes are " + ", ".join(MODES)
        )
    inner = [(_cut(a), minus(n, _cut(b))) for (a, b), n in zip(pairs, self.shape, strict=True)]
    if any(least(minus(stop, start)) < 0 for start, stop in inner):
        raise ShapeError(
            f"pad: more is cut off than there is ({tuple(pairs)})", facts=[("shape", self.shape)]
        )
    kept = self.shrink(inner)
    grown = [(_grown(a), _grown(b)) for a, b in pairs]
    if mode == "constant":
        return _with_constant(kept, grown, value)
    for axis, (before, after) in enumerate(grown):
        if before != 0 or after != 0:
            kept = _continued(kept, axis, known(before), known(after), mode)
    return kept


def _clamped(self: Tensor, pairs: list[tuple[Size, Size]]) -> Tensor:
    """Padding by the nearest element of what there was before anything is cut off."""
    result = self
    for axis, (before, after) in enumerate(pairs):
        if before != 0 or after != 0:
            low = known(before)
            last = minus(self.shape[axis], 1)
            count = plus(last, low + known(after) + 1)
            count = max(count, 0) if isinstance(count, int) else count
            number = self.__class__.arange(count, device=self.device) - low
            result = result.index_select(axis, number.maximum(0).minimum(last))
    return result


def _cut(amount: Size) -> int:
    """What a negative amount cuts off."""
    if isinstance(amount, int):
        return max(-amount, 0)
    if least(amount) < 0:
        raise ShapeError(
            f"pad: {amount} can be below 0",
            facts=[("least", least(amount)), ("greatest", most(amount))],
            rule="a symbolic amount of padding is 0 or more for every value of its variables",
        )
    return 0


def _grown(amount: Size) -> Size:
    return max(amount, 0) if isinstance(amount, int) else amount


def _pairs(self: Tensor, padding: Sequence[Any]) -> list[tuple[Size, Size]]:
    if any(isinstance(part, (tuple, list)) or part is None for part in padding):
        if len(padding) != self.ndim:
            raise ShapeError(
                f"pad: {len(padding)} pairs for {self.ndim} axes",
                facts=[("shape", self.shape), ("padding", tuple(padding))],
                rule="padding has a pair for each axis, or is flat with the last axis first",
            )
        return [
            (0, 0) if pair is None else (size_of("pad", pair[0]), size_of("pad", pair[1]))
            for pair in padding
        ]
    if len(padding) % 2 or len(padding) > 2 * self.ndim:
        raise ShapeError(
            f"pad: {len(padding)} amounts for {self.ndim} axes",
            facts=[("shape", self.shape), ("padding", tuple(padding))],
            rule="padding has two amounts for each of the last axes",
        )
    amounts = [size_of("pad", each) for each in padding]
    ends = list(zip(amounts[::2], amounts[1::2], strict=True))
    return [(0, 0)] * (self.ndim - len(ends)) + ends[::-1]


def _with_constant(self: Tensor, pairs: list[tuple[Size, Size]], value: Scalar) -> Tensor:
    if all(a == 0 and b == 0 for a, b in pairs):
        return self._same()
    if isinstance(value, UOp):
        filling = symbolic_number("pad", value, self.dtype)
    else:
        require_number_fits("pad", value, self.dtype)
        filling = const(self.dtype, value)
    padded = movement.pad(self.uop, pairs)
    if filling.op == Op.CONST and filling.arg == 0:
        return self._new(padded)
    inside = movement.pad(movement.full(dtypes.bool, True, self.shape), pairs)
    return self._new(inside.where(padded, filling))


def _continued(self: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """One axis, continued past its ends by what the mode says."""
    size = self.shape[axis]
    lowest = least(size)
    limit = {"reflect": lowest - 1, "circular": lowest, "replicate": before + after}[mode]
    if max(before, after) > limit or (mode == "replicate" and not lowest and before + after):
        raise ShapeError(
            f"pad: mode {mode!r} cannot add {max(before, after)} to axis {axis} of size {size}",
            rule=f"{mode} adds at most {max(limit, 0)} on each side here",
            fix=least_fix(size),
        )

    def part(start: Size, stop: Size) -> Tensor:
        box: list[Any] = [None] * self.ndim
        box[axis] = (start, stop)
        return self.shrink(box)

    def edge(position: Size, count: int) -> Tensor:
        shape = [*self.shape]
        shape[axis] = count
        return part(position, plus(position, 1)).expand(shape)

    if mode == "reflect":
        last = minus(size, 1)
        ends = part(1, before + 1).flip(axis), part(minus(last, after), last).flip(axis)
    elif mode == "circular":
        ends = part(minus(size, before), size), part(0, after)
    elif before + after:
        ends = edge(0, before), edge(minus(size, 1), after)
    else:
        return self
    parts = [each for each in (ends[0], self, ends[1]) if least(each.shape[axis])]
    return parts[0].cat(*parts[1:], dim=axis) if len(parts) > 1 else self

"""Views whose elements lie side by side in their memory, in order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from weft.ir.build import Size
from weft.ir.movement import Movement, step_pairs, step_sizes
from weft.ir.ops import Op
from weft.ir.shapes import Shape
from weft.ir.sizes import minus, plus, times


def first_element(shape: Shape, steps: Iterable[Movement]) -> Size | None:
    """Where a view begins in memory of that shape, or None where its elements have gaps.

    With symbolic sizes it has none only if that is so for every value of their variables.

    >>> from weft.ir.movement import boxed_step
    >>> first_element((4, 3), [boxed_step(Op.SHRINK, [(1, 3), (0, 3)])])
    3
    >>> first_element((4, 3), [boxed_step(Op.SHRINK, [(1, 3), (0, 2)])])
    """
    first: Size = 0
    for step in steps:
        if step[0] == Op.RESHAPE:
            shape = step_sizes(step)
        elif step[0] == Op.SHRINK:
            pairs = step_pairs(step)
            lengths = tuple([minus(stop, start) for start, stop in pairs])
            if not _is_one_piece(lengths, shape):
                return None
            stride: Size = 1
            for (start, _), size in zip(reversed(pairs), reversed(shape), strict=True):
                first = plus(first, times(start, stride))
                stride = times(stride, size)
            shape = lengths
        elif step[0] == Op.PERMUTE:
            order = cast(tuple[int, ...], step[1])
            long = [axis for axis in order if not _is(shape[axis], 1)]
            if long != sorted(long):
                return None
            shape = tuple([shape[axis] for axis in order])
        elif step[0] != Op.DETACH:
            return None
    return first


def _is_one_piece(lengths: Shape, shape: Shape) -> bool:
    """Whether a box has one element along every axis before the last one that it cuts."""
    cut = [axis for axis, size in enumerate(shape) if not _is(lengths[axis], size)]
    return not cut or all(_is(length, 1) for length in lengths[: cut[-1]])


def _is(size: Size, other: Size) -> bool:
    return size is other or (isinstance(size, int) and size == other)

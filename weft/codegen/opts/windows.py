"""Overlapping windows: a value that depends on two ranges only by their sum, a position and a tap.

A stage of such a value has each value of the sum once, and who reads it adds them.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.codegen.analysis.loops import extent_of
from weft.ir.build import range_
from weft.ir.linear import linear
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import substitute, topological
from weft.rules.simplify import simplify

# Pairs of ranges, a position and a tap, that a value depends on by a sum.
Windows = tuple[tuple[int, int], ...]


class Window(NamedTuple):
    """A value over one range instead of two, and what a position is worth in taps."""

    value: UOp
    step: int


def windowed(value: UOp, position: UOp, tap: UOp, number: int) -> Window | None:
    """A value that depends on two ranges by their sum alone, over one range with this number.

    None where it depends on them in another way, or where windows leave something out between.
    """
    positions, taps = extent_of(position) or 0, extent_of(tap) or 0
    step = _step(value, position, tap)
    if not 0 < step <= taps:
        return None
    whole = range_(number, (positions - 1) * step + taps)
    made = simplify(substitute(value, {tap: whole + position * -step}))
    return None if made.ranges >> position.arg & 1 else Window(made, step)


def _step(value: UOp, position: UOp, tap: UOp) -> int:
    """What a position is worth in taps in the first sum of both; 0 if nothing adds them."""
    for node in topological(value):
        if node.op == Op.ADD and node.ranges >> position.arg & node.ranges >> tap.arg & 1:
            factors = dict(linear(node)[1])
            step, rest = divmod(factors.get(position, 0), factors.get(tap, 0) or 1)
            return 0 if rest or tap not in factors else step
    return 0

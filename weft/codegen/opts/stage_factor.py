"""The rewrites behind the opts Stage and Epilogue: a value is computed ahead and kept near.

The value is copied over fresh ranges, in the order that is its layout, into a STAGE; who uses it
reads it there. Where the stage is filled follows from what it still depends on: all ranges that
are not copied. A factor of a contraction is a packed panel on a CPU and a tile in the memory of
the group on a GPU; a whole fold is the tile of accumulators that the store then walks over.

Windows overlap: where a value depends on two ranges only by a sum of theirs, a position and a tap,
the stage keeps each value of the sum once, and who reads it adds them.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.codegen.analysis.contraction import factors_of, with_factor
from weft.codegen.analysis.loops import (
    LOOP,
    extent_of,
    kinds_of,
    nodes_of,
    own_ranges,
    ranges_of,
    with_loops,
)
from weft.ir.build import range_, true
from weft.ir.linear import linear
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute, topological
from weft.rules.simplify import simplify

# Pairs of ranges, a position and a tap, that a value depends on by a sum.
Windows = tuple[tuple[int, int], ...]


def fold_over(kernel: UOp, number: int) -> UOp | None:
    """The fold that closes a range, if it is the only node that does."""
    found = [n for n in nodes_of(kernel) if any(r.arg == number for r in own_ranges(n))]
    return found[0] if len(found) == 1 and found[0].op == Op.REDUCE else None


def stage_factor(
    kernel: UOp, number: int, which: int, numbers: tuple[int, ...], windows: Windows = ()
) -> UOp:
    """The kernel with a factor of the fold over a range staged, over the next free ranges."""
    fold = fold_over(kernel, number)
    assert fold is not None
    factors = factors_of(fold)
    assert factors is not None
    stage, fresh = _staged(kernel, factors[which], numbers, windows)
    return _with(kernel, {fold: with_factor(fold, which, stage)}, fresh)


def stage_fold(kernel: UOp, number: int, numbers: tuple[int, ...]) -> UOp:
    """The kernel with the fold over a range staged, over the next free ranges."""
    fold = fold_over(kernel, number)
    assert fold is not None
    stage, fresh = _staged(kernel, fold, numbers, ())
    return _with(kernel, {fold: stage}, fresh)


class Window(NamedTuple):
    """A value over one range in the place of two, and what a position is worth in taps."""

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


def _staged(
    kernel: UOp, value: UOp, numbers: tuple[int, ...], windows: Windows
) -> tuple[UOp, list[UOp]]:
    """The READ of a stage with a value, and the ranges that fill it."""
    ranges = ranges_of(kernel)
    first = 1 + max(kinds_of(kernel))
    taps = {position: ranges[tap] for position, tap in windows}
    copy, places, fresh = value, [ranges[number] for number in numbers], []
    for i, old in enumerate(places):
        number, extent = first + i, extent_of(old) or 1
        if old.arg in taps:
            tap = taps[old.arg]
            window = windowed(copy, old, tap, number)
            assert window is not None
            copy, places[i] = window.value, simplify(old * window.step + tap)
            extent = (extent - 1) * window.step + (extent_of(tap) or 1)
        fresh.append(range_(number, extent))
        copy = substitute(copy, {old: fresh[-1]})
    sizes = tuple(extent_of(r) or 1 for r in fresh)
    stage = make(Op.STAGE, copy.dtype, (copy, *fresh, *fresh), ("local", sizes))
    return make(Op.READ, value.dtype, (stage, true(), *places)), fresh


def _with(kernel: UOp, replaced: dict[UOp, UOp], fresh: list[UOp]) -> UOp:
    loops = [*kinds_of(kernel).items(), *((r.arg, LOOP) for r in fresh)]
    return with_loops(substitute(kernel, replaced), loops)

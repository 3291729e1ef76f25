"""The rewrites behind the opts Stage and Epilogue: a value is computed ahead and kept near.

The value is copied over fresh ranges, in the order that is its layout, into a STAGE; who uses it
reads it there. Where the stage is filled follows from what it still depends on: all ranges that
are not copied. A factor of a contraction is a packed panel on a CPU and a tile in the memory of
the group on a GPU; a whole fold is the tile of accumulators that the store then walks over.
"""

from __future__ import annotations

from weft.codegen.contraction import factors_of, with_factor
from weft.codegen.loops import (
    LOOP,
    extent_of,
    kinds_of,
    nodes_of,
    own_ranges,
    ranges_of,
    with_loops,
)
from weft.ir.build import range_, true
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute


def fold_over(kernel: UOp, number: int) -> UOp | None:
    """The fold that closes a range, if it is the only node that does."""
    found = [n for n in nodes_of(kernel) if any(r.arg == number for r in own_ranges(n))]
    return found[0] if len(found) == 1 and found[0].op == Op.REDUCE else None


def stage_factor(kernel: UOp, number: int, which: int, numbers: tuple[int, ...]) -> UOp:
    """The kernel with a factor of the fold over a range staged, over the next free ranges."""
    fold = fold_over(kernel, number)
    assert fold is not None
    factors = factors_of(fold)
    assert factors is not None
    stage, fresh = _staged(kernel, factors[which], numbers)
    return _with(kernel, {fold: with_factor(fold, which, stage)}, fresh)


def stage_fold(kernel: UOp, number: int, numbers: tuple[int, ...]) -> UOp:
    """The kernel with the fold over a range staged, over the next free ranges."""
    fold = fold_over(kernel, number)
    assert fold is not None
    stage, fresh = _staged(kernel, fold, numbers)
    return _with(kernel, {fold: stage}, fresh)


def _staged(kernel: UOp, value: UOp, numbers: tuple[int, ...]) -> tuple[UOp, list[UOp]]:
    """The READ of a stage with a value, and the ranges that fill it."""
    ranges = ranges_of(kernel)
    old = [ranges[each] for each in numbers]
    first = 1 + max(kinds_of(kernel))
    fresh = [range_(first + i, extent_of(r) or 1) for i, r in enumerate(old)]
    copy = substitute(value, dict(zip(old, fresh, strict=True)))
    sizes = tuple(extent_of(r) or 1 for r in old)
    stage = make(Op.STAGE, copy.dtype, (copy, *fresh, *fresh), ("local", sizes))
    return make(Op.READ, value.dtype, (stage, true(), *old)), fresh


def _with(kernel: UOp, replaced: dict[UOp, UOp], fresh: list[UOp]) -> UOp:
    loops = [*kinds_of(kernel).items(), *((r.arg, LOOP) for r in fresh)]
    return with_loops(substitute(kernel, replaced), loops)

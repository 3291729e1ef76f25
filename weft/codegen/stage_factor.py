"""The rewrite behind the opt Stage: a factor of a contraction is computed ahead and kept near.

The factor is copied over fresh ranges, in the order that is its layout, into a STAGE; the fold
reads it there. Where the stage is filled follows from what it still depends on: all ranges that
are not copied. On a CPU that is a packed panel, on a GPU a tile in the memory of the group.
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
    ranges, kinds = ranges_of(kernel), kinds_of(kernel)
    old = [ranges[each] for each in numbers]
    first = 1 + max(kinds)
    fresh = [range_(first + i, extent_of(r) or 1) for i, r in enumerate(old)]
    value = substitute(factors[which], dict(zip(old, fresh, strict=True)))
    sizes = tuple(extent_of(r) or 1 for r in old)
    stage = make(Op.STAGE, value.dtype, (value, *fresh, *fresh), ("local", sizes))
    read = make(Op.READ, value.dtype, (stage, true(), *old))
    loops = [*kinds.items(), *((r.arg, LOOP) for r in fresh)]
    return with_loops(substitute(kernel, {fold: with_factor(fold, which, read)}), loops)

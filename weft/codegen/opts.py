"""Opts: the recipe of a kernel, as data. Each row is one rewrite of the kernel's loops.

`apply_opts(kernel, opts)` applies them in order. An opt names ranges by their numbers in the
kernel as the opts before it have left it, and a kernel together with its opts says everything: no
opt looks at the target. What is not legal is refused, with the reason. The docstring of each opt
shows a kernel before and after; the tests run them.

Rows to come stand here too: Group (threads fold together), TensorCore and Pad.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from weft.codegen import opt_laws
from weft.codegen.accumulate import accumulate, nest_folds
from weft.codegen.loops import (
    GRID,
    LOOP,
    THREAD,
    UNROLL,
    VECTOR,
    kinds_of,
    ranges_of,
    replace_ranges,
    with_loops,
)
from weft.codegen.share_values import share_value, shared_value
from weft.codegen.split_range import split_range
from weft.codegen.stage_factor import stage_factor, stage_fold
from weft.ir.build import range_
from weft.ir.uop import UOp
from weft.rules.simplify import simplify
from weft.support.errors import OptRefused
from weft.support.source_line import NOWHERE

TAILS: Final = ("clamp", "mask")
BOUND: Final = (LOOP, GRID, THREAD)


@dataclass(frozen=True)
class Opt:
    """One step of a recipe: a pure rewrite of a kernel."""

    def reasons(self, kernel: UOp) -> Iterable[str]:
        """Why this is not legal, each reason in words; none if it is."""
        raise NotImplementedError

    def rewritten(self, kernel: UOp) -> UOp:
        """The kernel after this opt, which is legal."""
        raise NotImplementedError

    def apply(self, kernel: UOp) -> UOp:
        for reason in self.reasons(kernel):
            raise OptRefused(f"{self} refused: {reason}", where=NOWHERE)
        return self.rewritten(kernel)


@dataclass(frozen=True)
class Split(Opt):
    """Make two loops of one, the inner with `factor` turns.

    The outer loop keeps the number and the inner takes the next free one.

    opt: Split(0, 4)
    before:
        p0 = param 0: float32[8]
        p1 = param 1: float32[8]
        r0 < 8
        kernel "k" r0 loop:
          store p0[r0] = load p1[r0] for r0
    after:
        p0 = param 0: float32[8]
        p1 = param 1: float32[8]
        r0 < 2
        r1 < 4
        v0 = r0 * 4 + r1
        kernel "k" r0 loop, r1 loop:
          store p0[v0] = load p1[v0] for r0, r1

    Where the factor does not divide, stores are gated, folds get their identity past the end, and
    loads are clamped or, for lanes of vectors, masked.

    opt: Split(0, 4, "mask")
    before:
        p0 = param 0: float32[6]
        p1 = param 1: float32[6]
        r0 < 6
        kernel "k" r0 loop:
          store p0[r0] = load p1[r0] for r0
    after:
        p0 = param 0: float32[6]
        p1 = param 1: float32[6]
        r0 < 2
        r1 < 4
        v0 = r0 * 4 + r1
        v1 = v0 < 6
        kernel "k" r0 loop, r1 loop:
          store p0[v0 if v1] = load p1[v0 if v1] for r0, r1
    """

    range: int
    factor: int
    tail: str = "clamp"

    def reasons(self, kernel: UOp) -> Iterable[str]:
        yield from opt_laws.known_range(kernel, self.range)
        yield from opt_laws.can_be_split(kernel, self.range, self.factor, self.tail)
        if self.tail not in TAILS:
            yield f"a tail is one of {', '.join(TAILS)}, not {self.tail!r}"

    def rewritten(self, kernel: UOp) -> UOp:
        return split_range(kernel, self.range, self.factor, self.tail)


@dataclass(frozen=True)
class Merge(Opt):
    """Make one loop of two, the inverse of Split; it keeps the number of the outer.

    opt: Merge(0, 1)
    before:
        p0 = param 0: float32[3, 4]
        r0 < 3
        r1 < 4
        kernel "k" r0 loop, r1 loop:
          store p0[r0, r1] = float32(r0 * 4 + r1) for r0, r1
    after:
        p0 = param 0: float32[3, 4]
        r0 < 12
        kernel "k" r0 loop:
          store p0[r0 // 4, r0 % 4] = float32(r0) for r0

    Memory of several axes is flattened later, and the quotient and the remainder meet again.
    """

    outer: int
    inner: int

    def reasons(self, kernel: UOp) -> Iterable[str]:
        yield from opt_laws.known_range(kernel, self.outer)
        yield from opt_laws.known_range(kernel, self.inner)
        yield from opt_laws.can_be_merged(kernel, self.outer, self.inner)

    def rewritten(self, kernel: UOp) -> UOp:
        ranges = ranges_of(kernel)
        outer, inner = ranges[self.outer], ranges[self.inner]
        merged = range_(self.outer, simplify(outer.src[0] * inner.src[0]))
        values = {
            outer: simplify(merged // inner.src[0]),
            inner: simplify(merged % inner.src[0]),
        }
        loops = [(n, kind) for n, kind in kinds_of(kernel).items() if n != self.inner]
        return replace_ranges(kernel, values, {outer: (merged,), inner: ()}, loops)


@dataclass(frozen=True)
class Order(Opt):
    """Put some loops in this order, outermost first, on the places that they have together.

    opt: Order((1, 0))
    before:
        p0 = param 0: float32[3, 4]
        r0 < 3
        r1 < 4
        kernel "k" r0 loop, r1 loop:
          store p0[r0, r1] = 1.0 for r0, r1
    after:
        p0 = param 0: float32[3, 4]
        r0 < 3
        r1 < 4
        kernel "k" r1 loop, r0 loop:
          store p0[r0, r1] = 1.0 for r0, r1
    """

    ranges: tuple[int, ...]

    def reasons(self, kernel: UOp) -> Iterable[str]:
        for number in self.ranges:
            yield from opt_laws.known_range(kernel, number)
        if len(set(self.ranges)) != len(self.ranges):
            yield "a range is named twice"
        yield from opt_laws.keeps_extents_outside(kernel, self._loops(kernel))
        yield from opt_laws.keeps_scans_inside(kernel, self._loops(kernel))
        yield from opt_laws.keeps_turns(kernel, self._loops(kernel))

    def _loops(self, kernel: UOp) -> list[tuple[int, str]]:
        kinds = kinds_of(kernel)
        turn = iter(self.ranges)
        order = [next(turn) if number in self.ranges else number for number in kinds]
        return [(number, kinds[number]) for number in order]

    def rewritten(self, kernel: UOp) -> UOp:
        return with_loops(kernel, self._loops(kernel))


@dataclass(frozen=True)
class Bind(Opt):
    """Spread a loop over groups ("grid") or over the threads of a group ("thread"), or undo that.

    opt: Bind(0, "grid")
    before:
        p0 = param 0: float32[8]
        r0 < 8
        kernel "k" r0 loop:
          store p0[r0] = 1.0 for r0
    after:
        p0 = param 0: float32[8]
        r0 < 8
        kernel "k" r0 grid:
          store p0[r0] = 1.0 for r0
    """

    range: int
    kind: str

    def reasons(self, kernel: UOp) -> Iterable[str]:
        yield from opt_laws.known_range(kernel, self.range)
        if self.kind not in BOUND:
            yield f"a loop is bound to one of {', '.join(BOUND)}, not to {self.kind!r}"
        yield from opt_laws.is_plain_loop(kernel, self.range, (LOOP, GRID, THREAD))
        if self.kind != LOOP:
            yield from opt_laws.is_independent(kernel, self.range)
            yield from opt_laws.can_be_spread(kernel, self.range, self.kind)

    def rewritten(self, kernel: UOp) -> UOp:
        return _with_kind(kernel, self.range, self.kind)


@dataclass(frozen=True)
class Vectorize(Opt):
    """Make the turns of a loop the lanes of vectors.

    opt: Vectorize(0)
    before:
        p0 = param 0: float32[4]
        r0 < 4
        kernel "k" r0 loop:
          store p0[r0] = 1.0 for r0
    after:
        p0 = param 0: float32[4]
        r0 < 4
        kernel "k" r0 vector:
          store p0[r0] = 1.0 for r0
    """

    range: int

    def reasons(self, kernel: UOp) -> Iterable[str]:
        yield from opt_laws.known_range(kernel, self.range)
        yield from opt_laws.is_plain_loop(kernel, self.range, (LOOP,))
        yield from opt_laws.can_be_lanes(kernel, self.range)
        yield from opt_laws.can_be_copied(kernel, self.range)

    def rewritten(self, kernel: UOp) -> UOp:
        return _with_kind(kernel, self.range, VECTOR)


@dataclass(frozen=True)
class Unroll(Opt):
    """Write out every turn of a loop.

    opt: Unroll(0)
    before:
        p0 = param 0: float32[4]
        r0 < 4
        kernel "k" r0 loop:
          store p0[r0] = 1.0 for r0
    after:
        p0 = param 0: float32[4]
        r0 < 4
        kernel "k" r0 unroll:
          store p0[r0] = 1.0 for r0
    """

    range: int

    def reasons(self, kernel: UOp) -> Iterable[str]:
        yield from opt_laws.known_range(kernel, self.range)
        yield from opt_laws.is_plain_loop(kernel, self.range, (LOOP,))
        yield from opt_laws.can_be_unrolled(kernel, self.range)
        yield from opt_laws.can_be_copied(kernel, self.range)

    def rewritten(self, kernel: UOp) -> UOp:
        return _with_kind(kernel, self.range, UNROLL)


@dataclass(frozen=True)
class Stage(Opt):
    """Compute a factor of a contraction ahead, over some of its ranges, and keep it near.

    `fold` is a range that the contraction folds over, `factor` is 0 for the left one and 1 for the
    right. The order of `ranges` is the layout, the last one contiguous. The ranges that fill the
    stage take the next free numbers in that order, to be shaped by opts of their own. It is filled
    once for all the loops that it does not depend on, if they stand inside the others.

    opt: Stage(2, 1, (2, 1))
    before:
        p0 = param 0: float32[8, 4]
        p1 = param 1: float32[8, 3]
        p2 = param 2: float32[4, 3]
        r0 < 8
        r1 < 4
        r2 < 3
        kernel "k" r0 loop, r1 loop, r2 loop:
          v0 = reduce ADD over r2: load p1[r0, r2] * load p2[r1, r2]
          store p0[r0, r1] = v0 for r0, r1
    after:
        p0 = param 0: float32[8, 4]
        p1 = param 1: float32[8, 3]
        p2 = param 2: float32[4, 3]
        r0 < 8
        r1 < 4
        r2 < 3
        r3 < 3
        r4 < 4
        kernel "k" r0 loop, r1 loop, r2 loop, r3 loop, r4 loop:
          s0 = stage local[r3 of 3, r4 of 4] = load p2[r4, r3] for r3, r4
          v0 = reduce ADD over r2: load p1[r0, r2] * read s0[r2, r1]
          store p0[r0, r1] = v0 for r0, r1
    """

    fold: int
    factor: int
    ranges: tuple[int, ...]

    def reasons(self, kernel: UOp) -> Iterable[str]:
        for number in (self.fold, *self.ranges):
            yield from opt_laws.known_range(kernel, number)
        yield from opt_laws.can_be_staged(kernel, self.fold, self.factor, self.ranges)

    def rewritten(self, kernel: UOp) -> UOp:
        return stage_factor(kernel, self.fold, self.factor, self.ranges)


@dataclass(frozen=True)
class Epilogue(Opt):
    """Keep a tile of a fold before the store, which then walks over it with loops of its own.

    What is done with the result is then written once, and not for each accumulator. The ranges
    that compute the tile take the next free numbers.

    opt: Epilogue(2, (1,))
    before:
        p0 = param 0: float32[8, 4]
        p1 = param 1: float32[8, 4, 3]
        r0 < 8
        r1 < 4
        r2 < 3
        kernel "k" r0 loop, r1 loop, r2 loop:
          v0 = reduce ADD over r2: load p1[r0, r1, r2]
          store p0[r0, r1] = exp(v0) for r0, r1
    after:
        p0 = param 0: float32[8, 4]
        p1 = param 1: float32[8, 4, 3]
        r0 < 8
        r1 < 4
        r2 < 3
        r3 < 4
        kernel "k" r0 loop, r1 loop, r2 loop, r3 loop:
          v0 = reduce ADD over r2: load p1[r0, r3, r2]
          s0 = stage local[r3 of 4] = v0 for r3
          store p0[r0, r1] = exp(read s0[r1]) for r0, r1
    """

    fold: int
    ranges: tuple[int, ...]

    def reasons(self, kernel: UOp) -> Iterable[str]:
        for number in (self.fold, *self.ranges):
            yield from opt_laws.known_range(kernel, number)
        yield from opt_laws.can_be_kept(kernel, self.fold, self.ranges)

    def rewritten(self, kernel: UOp) -> UOp:
        return stage_fold(kernel, self.fold, self.ranges)


@dataclass(frozen=True)
class Accumulate(Opt):
    """Move a range of a fold out to the loops of its store, which then goes on in its memory.

    opt: Accumulate(1)
    before:
        p0 = param 0: float32[8]
        p1 = param 1: float32[8, 4, 3]
        r0 < 8
        r1 < 4
        r2 < 3
        kernel "k" r0 loop, r1 loop, r2 loop:
          v0 = reduce ADD over r1, r2: load p1[r0, r1, r2]
          store p0[r0] = v0 for r0
    after:
        p0 = param 0: float32[8]
        p1 = param 1: float32[8, 4, 3]
        r0 < 8
        r1 < 4
        r2 < 3
        v0 = p0[r0 if ~(r1 < 1)]
        kernel "k" r0 loop, r1 "ordered", r2 loop:
          v1 = reduce ADD over r2: load p1[r0, r1, r2]
          store p0[r0] = v1 + load v0 for r0, r1

    What the store does with the finished fold, it does in the last turn only.
    """

    range: int

    def reasons(self, kernel: UOp) -> Iterable[str]:
        yield from opt_laws.known_range(kernel, self.range)
        yield from opt_laws.is_plain_loop(kernel, self.range, (LOOP,))
        yield from opt_laws.can_be_accumulated(kernel, self.range)

    def rewritten(self, kernel: UOp) -> UOp:
        return accumulate(kernel, self.range)


@dataclass(frozen=True)
class Share(Opt):
    """Keep what a fold computes in each turn for a loop that would compute it again.

    opt: Share(1, 2)
    before:
        p0 = param 0: float32[4, 8]
        p1 = param 1: float32[4, 8]
        r0 < 4
        r1 < 8
        r2 < 8
        kernel "k" r0 loop, r1 loop, r2 loop:
          v0 = reduce ADD over r1: exp(load p1[r0, r1])
          store p0[r0, r2] = exp(load p1[r0, r2]) / v0 for r0, r2
    after:
        p0 = param 0: float32[4, 8]
        p1 = param 1: float32[4, 8]
        r0 < 4
        r1 < 8
        r2 < 8
        v0 = exp(load p1[r0, r1])
        kernel "k" r0 loop, r1 loop, r2 loop:
          s0 = stage local[r1 of 8] = v0 for r1
          v1 = reduce ADD over r1: v0
          store p0[r0, r2] = read s0[r2] / v1 for r0, r2
    """

    fold: int
    again: int

    def reasons(self, kernel: UOp) -> Iterable[str]:
        yield from opt_laws.known_range(kernel, self.fold)
        yield from opt_laws.known_range(kernel, self.again)
        yield from opt_laws.is_plain_loop(kernel, self.fold, (LOOP,))
        yield from opt_laws.is_plain_loop(kernel, self.again, (LOOP,))
        value = shared_value(kernel, self.fold, self.again)
        if value is None:
            yield f"no value of the fold over {self.fold} is computed again over {self.again}"
        else:
            yield from opt_laws.is_for_all_copies(kernel, value, (self.fold,))

    def rewritten(self, kernel: UOp) -> UOp:
        return share_value(kernel, self.fold, self.again)


@dataclass(frozen=True)
class Nest(Opt):
    """Fold over one range first, and over the others what comes of it: a sum of sums.

    A long sum of floats is rounded less if it is one of short sums.

    opt: Nest(2)
    before:
        p0 = param 0: float32[8]
        p1 = param 1: float32[8, 4, 3]
        r0 < 8
        r1 < 4
        r2 < 3
        kernel "k" r0 loop, r1 loop, r2 loop:
          v0 = reduce ADD over r1, r2: load p1[r0, r1, r2]
          store p0[r0] = v0 for r0
    after:
        p0 = param 0: float32[8]
        p1 = param 1: float32[8, 4, 3]
        r0 < 8
        r1 < 4
        r2 < 3
        kernel "k" r0 loop, r1 loop, r2 loop:
          v0 = reduce ADD over r2: load p1[r0, r1, r2]
          v1 = reduce ADD over r1: v0
          store p0[r0] = v1 for r0
    """

    range: int

    def reasons(self, kernel: UOp) -> Iterable[str]:
        yield from opt_laws.known_range(kernel, self.range)
        yield from opt_laws.is_plain_loop(kernel, self.range, (LOOP,))
        yield from opt_laws.can_be_nested(kernel, self.range)

    def rewritten(self, kernel: UOp) -> UOp:
        return nest_folds(kernel, self.range)


OPTS: Final = (
    *(Split, Merge, Order, Bind, Vectorize, Unroll),
    *(Stage, Epilogue, Accumulate, Share, Nest),
)


def _with_kind(kernel: UOp, number: int, kind: str) -> UOp:
    kinds = kinds_of(kernel)
    return with_loops(kernel, {**kinds, number: kind}.items())


def apply_opts(kernel: UOp, opts: Iterable[Opt]) -> UOp:
    """The kernel after these opts, in order; raises OptRefused at the first that is not legal."""
    for opt in opts:
        kernel = opt.apply(kernel)
    return kernel

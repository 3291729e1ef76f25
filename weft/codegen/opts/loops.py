"""Opts that shape loops: split, merged, ordered, bound to the machine, made lanes or copies.

The docstring of each opt shows a kernel before and after; the tests run them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from weft.codegen.analysis.loops import (
    GRID,
    LOOP,
    SEQUENTIAL,
    THREAD,
    UNROLL,
    VECTOR,
    kinds_of,
    ranges_of,
    replace_ranges,
    with_loops,
)
from weft.codegen.opts import legality
from weft.codegen.opts.narrow import faults_of_narrow, narrow_range
from weft.codegen.opts.opt import Opt
from weft.codegen.opts.split_range import split_range
from weft.ir.build import range_
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.rules.simplify import simplify

TAILS: Final = ("clamp", "mask")
BOUND: Final = (LOOP, GRID, THREAD)


@dataclass(frozen=True)
class Split(Opt):
    """Make two loops of one, the inner with `factor` iterations.

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

    Where the factor does not divide, stores are masked, reductions get their identity past the
    end, and loads are clamped or, for lanes of vectors, masked.

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
        yield from legality.known_range(kernel, self.range)
        yield from legality.keeps_tiles(kernel, self.range)
        yield from legality.can_be_split(kernel, self.range, self.factor, self.tail)
        if self.tail not in TAILS:
            yield f"a tail is one of {', '.join(TAILS)}, not {self.tail!r}"

    def rewritten(self, kernel: UOp) -> UOp:
        return split_range(kernel, self.range, self.factor, self.tail)


@dataclass(frozen=True)
class Narrow(Opt):
    """Give a loop the length of the window that a mask leaves to an iteration of another one.

    opt: Narrow(1, 0, 4)
    before:
        p0 = param 0: float32[64]
        p1 = param 1: float32[64]
        r0 < 64
        r1 < 64
        v0 = reduce ADD over r1: where(~(r0 < r1) & (r0 < r1 + 3), load p1[r1], 0.0)
        kernel "k" r0 loop, r1 loop:
          store p0[r0] = v0 for r0
    after:
        p0 = param 0: float32[64]
        p1 = param 1: float32[64]
        r0 < 64
        r1 < 4
        v0 = min(max(r0 + -2, 0), 60)
        v1 = r0 + v0 * -1 + r1 * -1
        v2 = reduce ADD over r1: where(~(v1 < 0) & (v1 < 3), load p1[v0 + r1], 0.0)
        kernel "k" r0 loop, r1 loop:
          store p0[r0] = v2 for r0

    What the mask leaves out is not looked at, as behind the end of a loop that it ends.
    """

    range: int
    around: int
    length: int

    def reasons(self, kernel: UOp) -> Iterable[str]:
        yield from legality.known_range(kernel, self.range)
        yield from legality.known_range(kernel, self.around)
        yield from faults_of_narrow(kernel, self.range, self.around, self.length)

    def rewritten(self, kernel: UOp) -> UOp:
        return narrow_range(kernel, self.range, self.around, self.length)


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
        yield from legality.known_range(kernel, self.outer)
        yield from legality.known_range(kernel, self.inner)
        yield from legality.keeps_tiles(kernel, self.outer, self.inner)
        yield from legality.can_be_merged(kernel, self.outer, self.inner)

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
    """Put some loops in this order, outermost first, in the positions that they have together.

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
            yield from legality.known_range(kernel, number)
        if len(set(self.ranges)) != len(self.ranges):
            yield "a range is named twice"
        yield from legality.keeps_extents_outside(kernel, self._loops(kernel))
        yield from legality.keeps_scans_inside(kernel, self._loops(kernel))
        yield from legality.keeps_iterations(kernel, self._loops(kernel))
        yield from legality.keeps_thread_order(kernel, self._loops(kernel))

    def _loops(self, kernel: UOp) -> list[tuple[int, str]]:
        kinds = kinds_of(kernel)
        iteration = iter(self.ranges)
        order = [next(iteration) if number in self.ranges else number for number in kinds]
        return [(number, kinds[number]) for number in order]

    def rewritten(self, kernel: UOp) -> UOp:
        return with_loops(kernel, self._loops(kernel))


@dataclass(frozen=True)
class Bind(Opt):
    """Run iterations of a loop in groups ("grid") or threads of a group ("thread"), or undo that.

    Threads may share the loop of a reduction: each reduces a part, and then they join the parts.
    A store that is not inside a loop of the grid is done by the first group.

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
        yield from legality.known_range(kernel, self.range)
        if kernel.ops >> Op.CONTRACT & 1:
            yield "the loops of a kernel of tiles are bound"
        if self.kind not in BOUND:
            yield f"a loop is bound to one of {', '.join(BOUND)}, not to {self.kind!r}"
        yield from legality.is_plain_loop(kernel, self.range, (LOOP, GRID, THREAD))
        if self.kind != LOOP:
            yield from legality.is_independent(kernel, self.range)
            yield from legality.can_be_bound(kernel, self.range, self.kind)

    def rewritten(self, kernel: UOp) -> UOp:
        return _with_kind(kernel, self.range, self.kind)


@dataclass(frozen=True)
class Vectorize(Opt):
    """Make the iterations of a loop the lanes of vectors.

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
        yield from legality.known_range(kernel, self.range)
        yield from legality.is_plain_loop(kernel, self.range, (LOOP,))
        yield from legality.can_be_lanes(kernel, self.range)
        yield from legality.can_be_copied(kernel, self.range)

    def rewritten(self, kernel: UOp) -> UOp:
        return _with_kind(kernel, self.range, VECTOR)


@dataclass(frozen=True)
class Unroll(Opt):
    """Write out every iteration of a loop.

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

    A reduction gets an accumulator for each iteration, so that they do not wait for each other.
    Where enough accumulators stand side by side anyway, the iterations of a reduction are better
    taken sequentially by one.

    opt: Unroll(2, sequential=True)
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
        kernel "k" r0 loop, r1 loop, r2 "sequential":
          v0 = reduce ADD over r1, r2: load p1[r0, r1, r2]
          store p0[r0] = v0 for r0
    """

    range: int
    sequential: bool = False

    def reasons(self, kernel: UOp) -> Iterable[str]:
        yield from legality.known_range(kernel, self.range)
        yield from legality.is_plain_loop(kernel, self.range, (LOOP,))
        yield from legality.can_be_unrolled(kernel, self.range)
        yield from legality.can_be_copied(kernel, self.range)
        if self.sequential:
            yield from legality.is_reduced(kernel, self.range)

    def rewritten(self, kernel: UOp) -> UOp:
        return _with_kind(kernel, self.range, SEQUENTIAL if self.sequential else UNROLL)


def _with_kind(kernel: UOp, number: int, kind: str) -> UOp:
    kinds = kinds_of(kernel)
    return with_loops(kernel, {**kinds, number: kind}.items())

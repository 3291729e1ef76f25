"""Opts that decide where values are: staged near the core, continued in memory, nested.

The docstring of each opt shows a kernel before and after; the tests run them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft.codegen.analysis.loops import LOOP, ORDERED, THREAD, kinds_of, with_loops
from weft.codegen.opts import legality
from weft.codegen.opts.accumulate import accumulate, nest_reductions
from weft.codegen.opts.join import join_reductions
from weft.codegen.opts.opt import Opt
from weft.codegen.opts.stage_value import Layout, Node, Ranges, stage_value
from weft.ir.ops import Op
from weft.ir.uop import UOp


@dataclass(frozen=True)
class Stage(Opt):
    """Compute a value ahead, over some of its ranges, and materialize it near.

    `node` says which: ("factor", f, 0) is the left factor of the contraction that reduces over
    range f, and 1 the right one. The order of `ranges` is that of the memory, the last one
    contiguous. The ranges that fill the stage take the next free numbers in that order, to be
    shaped by opts of their own. It is filled once for all the loops that it does not depend on, if
    they stand inside the others.

    opt: Stage(("factor", 2, 1), (2, 1))
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

    A range may be a window: a position and a tap, that the value depends on by a sum alone. What
    overlapping windows have in common is then computed once.

    opt: Stage(("factor", 2, 1), ((1, 2),))
    before:
        p0 = param 0: float32[8, 4]
        p1 = param 1: float32[8, 3]
        p2 = param 2: float32[9]
        r0 < 8
        r1 < 4
        r2 < 3
        kernel "k" r0 loop, r1 loop, r2 loop:
          v0 = reduce ADD over r2: load p1[r0, r2] * load p2[r1 * 2 + r2]
          store p0[r0, r1] = v0 for r0, r1
    after:
        p0 = param 0: float32[8, 4]
        p1 = param 1: float32[8, 3]
        p2 = param 2: float32[9]
        r0 < 8
        r1 < 4
        r2 < 3
        r3 < 9
        kernel "k" r0 loop, r1 loop, r2 loop, r3 loop:
          s0 = stage local[r3 of 9] = load p2[r3] for r3
          v0 = reduce ADD over r2: load p1[r0, r2] * read s0[r1 * 2 + r2]
          store p0[r0, r1] = v0 for r0, r1

    ("reduction", f) is the whole reduction over range f: a tile of it before the store, which then
    walks over it with loops of its own. What is done with the result is written once, and not for
    each accumulator.

    opt: Stage(("reduction", 2), (1,))
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

    ("again", f, r) is what a reduction over f computes in each iteration and the loop over r would
    compute again. The loop of the reduction fills the stage.

    opt: Stage(("again", 1, 2), (1,))
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

    ("load", s) is what the kernel loads from argument s, which it does not write.

    opt: Stage(("load", 1), (0, 1))
    before:
        p0 = param 0: float32[4, 8]
        p1 = param 1: float32[8, 4]
        r0 < 4
        r1 < 8
        kernel "k" r0 loop, r1 loop:
          store p0[r0, r1] = load p1[r1, r0] for r0, r1
    after:
        p0 = param 0: float32[4, 8]
        p1 = param 1: float32[8, 4]
        r0 < 4
        r1 < 8
        r2 < 4
        r3 < 8
        kernel "k" r0 loop, r1 loop, r2 loop, r3 loop:
          s0 = stage local[r2 of 4, r3 of 8] = load p1[r3, r2] for r2, r3
          store p0[r0, r1] = read s0[r0, r1] for r0, r1

    `layout` is an index expression for each axis of the memory, over the positions i0, i1, … in
    the ranges. Writer and reader take their indices from it, so that a swizzle is said once.

    opt: Stage(("factor", 2, 1), (2, 1), "local", ("i0", "i0 ^ i1"))
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
          s0 = stage local[r3 of 3, r3 ^ r4 of 4] = load p2[r4, r3] for r3, r4
          v0 = reduce ADD over r2: load p1[r0, r2] * read s0[r2, r1 ^ r2]
          store p0[r0, r1] = v0 for r0, r1
    """

    node: Node
    ranges: Ranges
    space: str = "local"
    layout: Layout = ()

    def reasons(self, kernel: UOp) -> Iterable[str]:
        if kernel.ops >> Op.CONTRACT & 1:
            yield "the local memory of a kernel of tiles is taken"
        yield from legality.can_be_staged(kernel, self.node, self.ranges, self.space, self.layout)

    def rewritten(self, kernel: UOp) -> UOp:
        return stage_value(kernel, self.node, self.ranges, self.space, self.layout)


@dataclass(frozen=True)
class Accumulate(Opt):
    """Move a range of a reduction out to the loops of its store, which then goes on in its memory.

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

    What the store does with the finished reduction, it does in the last iteration only.
    """

    range: int

    def reasons(self, kernel: UOp) -> Iterable[str]:
        yield from legality.known_range(kernel, self.range)
        yield from legality.is_plain_loop(kernel, self.range, (LOOP,))
        yield from legality.can_be_accumulated(kernel, self.range)

    def rewritten(self, kernel: UOp) -> UOp:
        return accumulate(kernel, self.range)


@dataclass(frozen=True)
class Carry(Opt):
    """Keep a loop of reductions where it stands, outside of loops that they depend on.

    Each iteration of those has an accumulator then, in an array that goes on from block to block.
    So several reductions share blocks of data that are near, whatever else they depend on.

    opt: Carry(2)
    before:
        p0 = param 0: float32[8, 4]
        p1 = param 1: float32[8, 4, 3]
        r0 < 8
        r1 < 4
        r2 < 3
        kernel "k" r0 loop, r2 loop, r1 loop:
          v0 = reduce ADD over r2: load p1[r0, r1, r2]
          store p0[r0, r1] = v0 for r0, r1
    after:
        p0 = param 0: float32[8, 4]
        p1 = param 1: float32[8, 4, 3]
        r0 < 8
        r1 < 4
        r2 < 3
        kernel "k" r0 loop, r2 "ordered", r1 loop:
          v0 = reduce ADD over r2: load p1[r0, r1, r2]
          store p0[r0, r1] = v0 for r0, r1
    """

    range: int

    def reasons(self, kernel: UOp) -> Iterable[str]:
        yield from legality.known_range(kernel, self.range)
        yield from legality.is_plain_loop(kernel, self.range, (LOOP,))
        yield from legality.can_be_carried(kernel, self.range)

    def rewritten(self, kernel: UOp) -> UOp:
        return with_loops(kernel, {**kinds_of(kernel), self.range: ORDERED}.items())


@dataclass(frozen=True)
class Nest(Opt):
    """Reduction over one range first, and over the others what comes of it: a sum of sums.

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
        yield from legality.known_range(kernel, self.range)
        yield from legality.is_plain_loop(kernel, self.range, (LOOP,))
        yield from legality.can_be_nested(kernel, self.range)

    def rewritten(self, kernel: UOp) -> UOp:
        return nest_reductions(kernel, self.range)


@dataclass(frozen=True)
class Join(Opt):
    """Reduce blocks by themselves and join them in one loop, where reductions need each other.

    `ranges` are the outer ranges of the reductions, one or more of each, which become those of the
    outermost. Threads may share them. The other ranges of each are those of a block. How blocks
    are joined follows from the bodies: what was summed relative to the greatest of a block is
    scaled to the greatest of all.

    opt: Join((1, 3))
    before:
        p0 = param 0: float32[8]
        p1 = param 1: float32[8, 12]
        r0 < 8
        r1 < 3
        r2 < 4
        r3 < 3
        r4 < 4
        kernel "k" r0 loop, r1 loop, r2 loop, r3 loop, r4 loop:
          v0 = reduce MAX over r3, r4: load p1[r0, r3 * 4 + r4]
          v1 = reduce ADD over r1, r2: exp(load p1[r0, r1 * 4 + r2] - v0)
          store p0[r0] = v1 for r0
    after:
        def f0:
          p2 = param 2: float32[]
          p4 = param 4: float32[]
          p0 = param 0: float32[]
          v0 = -p4
          v1 = where(p2 == p4, p0, where(p2 == -inf, 0.0, p0 * exp(p2 + v0)))
          p3 = param 3: float32[]
          p1 = param 1: float32[]
          v2 = where(p3 == p4, p1, where(p3 == -inf, 0.0, p1 * exp(p3 + v0)))
          return v1 + v2
        kernel "k" r0 loop, r1 loop, r2 loop, r4 loop:
          p0 = param 0: float32[8]
          p1 = param 1: float32[8, 12]
          r0 < 8
          r1 < 3
          r2 < 4
          r4 < 4
          v0 = reduce MAX over r4: load p1[r0, r1 * 4 + r4]
          v1 = reduce ADD over r2: exp(load p1[r0, r1 * 4 + r2] - v0)
          v2 = reduce MAX over r1: v0
          v3 = reduce f0 from 0.0 with v2 over r1: v1
          store p0[r0] = v3 for r0
    """

    ranges: tuple[int, ...]

    def reasons(self, kernel: UOp) -> Iterable[str]:
        for number in self.ranges:
            yield from legality.known_range(kernel, number)
            yield from legality.is_plain_loop(kernel, number, (LOOP, THREAD))
        yield from legality.can_be_joined(kernel, self.ranges)

    def rewritten(self, kernel: UOp) -> UOp:
        return join_reductions(kernel, self.ranges)

"""Opts that decide where values are kept: staged near the core, continued in memory, shared.

The docstring of each opt shows a kernel before and after; the tests run them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft.codegen.analysis.loops import LOOP
from weft.codegen.opts import legality as opt_laws
from weft.codegen.opts.accumulate import accumulate, nest_folds
from weft.codegen.opts.opt import Opt
from weft.codegen.opts.share_values import share_value, shared_value
from weft.codegen.opts.stage_factor import Windows, stage_factor, stage_fold
from weft.ir.uop import UOp


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

    `windows` are pairs of ranges, one of the layout and a tap, that the factor depends on by a
    sum alone. What overlapping windows have in common is then kept once.

    opt: Stage(2, 1, (1,), ((1, 2),))
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
    """

    fold: int
    factor: int
    ranges: tuple[int, ...]
    windows: Windows = ()

    def reasons(self, kernel: UOp) -> Iterable[str]:
        pairs = [number for window in self.windows for number in window]
        for number in (self.fold, *self.ranges, *pairs):
            yield from opt_laws.known_range(kernel, number)
        yield from opt_laws.can_be_staged(
            kernel, self.fold, self.factor, self.ranges, self.windows
        )

    def rewritten(self, kernel: UOp) -> UOp:
        return stage_factor(kernel, self.fold, self.factor, self.ranges, self.windows)


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

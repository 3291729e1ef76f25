"""Opts for the obvious cases, from the kernel and the target's data alone.

Loops that walk memory together are merged. The loop that most accesses walk contiguously becomes
lanes; reductions get several accumulators, and a contraction a tile of registers. The loops on
which everything in the kernel depends become the grid, or on a GPU the grid and the threads.
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.analysis.accesses import NEAR, Access, accesses_of, is_looked_up, nearby_span
from weft.codegen.analysis.estimate import estimate
from weft.codegen.analysis.loops import (
    GRID,
    ORDERED,
    THREAD,
    VECTOR,
    kinds_of,
    nodes_of,
    own_ranges,
)
from weft.codegen.choose.chooser import Chooser, width
from weft.codegen.choose.simd.accumulators import add_accumulators
from weft.codegen.choose.simd.chain import tile_chain
from weft.codegen.choose.simd.contraction import tile_contraction
from weft.codegen.choose.simd.joins import join_long_rows
from weft.codegen.choose.simd.products import tile_products
from weft.codegen.choose.simd.reductions import (
    nest_long_sums,
    read_in_order,
    streamed_lanes,
    tile_rows,
    unroll_short_reductions,
    walk_row_by_row,
)
from weft.codegen.choose.simd.streams import stream_contraction
from weft.codegen.choose.simt.choose_for_threads import choose_for_threads
from weft.codegen.lower.hardware import MOST_AXES
from weft.codegen.lower.scalarize import is_scalar
from weft.codegen.opts.stage_value import value_again
from weft.codegen.opts.table import Bind, Merge, Opt, Stage, Unroll, Vectorize
from weft.ir.ops import TRANSCENDENTAL, Op
from weft.ir.uop import UOp, range_ids
from weft.target.compute import Simt
from weft.target.memory import GLOBAL
from weft.target.target import Target

# Slow ops of a kernel that is still worth two copies: they share constants and fill the pipes.
FEW_TRANSCENDENTAL: Final = 2
# Iterations of the grid per thread, so that a slow thread does not hold up the others.
ITERATIONS_PER_THREAD: Final = 4
# Nodes of a body whose copies take longer to compile than they save in a run, and the nanoseconds
# of a run from which on they are worth that: they save some 10 % of it.
LONG_BODY: Final = 128
LONG_WORK: Final = 1_000_000
# Iterations that make a loop worth having for itself: shorter ones are unrolled anyway.
LEAST_PART: Final = 8


def choose_opts(kernel: UOp, target: Target) -> tuple[tuple[Opt, ...], UOp]:
    """The opts of a normalized kernel for a target, and the kernel after them."""
    chooser = _Chooser(kernel, target)
    chooser.take_apart(LEAST_PART)
    chooser.merge_loops()
    compute = target.compute
    if is_scalar(target) and choose_for_threads(chooser, target):
        return tuple(chooser.opts), chooser.kernel
    if not (target.access_bits and (tile_chain(chooser) or tile_products(chooser))):
        chooser.shape_loops()
    if isinstance(compute, Simt):
        chooser.bind_threads(compute)
    else:
        chooser.parallelize_over_cores()
    return tuple(chooser.opts), chooser.kernel


class _Chooser(Chooser):
    """The parts of the heuristic that look at one loop at a time."""

    def shape_loops(self) -> None:
        """Join long rows; lanes, accumulators and tiles for the rest."""
        join_long_rows(self)
        self.share_values()
        if not self.target.access_bits:
            return
        if stream_contraction(self):
            nest_long_sums(self)
        elif not tile_contraction(self):
            self.vectorize_around_reductions()
            tile_rows(self)
            walk_row_by_row(self)
            nest_long_sums(self)

    def merge_loops(self) -> None:
        """Merge neighbors that every access walks as one."""
        tried: set[tuple[int, int]] = set()
        for _, own in self.closers():
            for i in range(len(own) - 1, 0, -1):
                pair = own[i - 1], own[i]
                if pair not in tried and self.take(Merge(*pair)):
                    own[i - 1 : i + 1] = [pair[0]]
                tried.add(pair)

    def share_values(self) -> None:
        """Keep slow values that a reduction computed, where a row of them stays in the cache."""
        if not any(self.kernel.ops >> op & 1 for op in TRANSCENDENTAL):
            return
        reductions = [(node, own) for node, own in self.closers() if node.op == Op.REDUCE]
        for node, own in reductions:
            extent = self.extent(own[0]) or 1 << 60
            is_near = extent * node.dtype.itemsize <= self.target.caches[0].size // 2
            if len(own) != 1 or not is_near or not self.is_contiguous(own[0]):
                continue
            for _, others in self.closers():
                for number in others:
                    value = value_again(self.kernel, own[0], number)
                    if value is not None and any(value.ops >> op & 1 for op in TRANSCENDENTAL):
                        self.take(Stage(("again", own[0], number), (own[0],)))

    def vectorize_around_reductions(self) -> None:
        """Lanes along the stores where reductions are short; along any loop where that fails."""
        mark = self.mark()
        if unroll_short_reductions(self):
            self.vectorize()
            if any(kind == VECTOR for kind in kinds_of(self.kernel).values()):
                return
            self.undo_to(mark)
        self.vectorize()
        unroll_short_reductions(self)

    def is_contiguous(self, number: int) -> bool:
        """Whether something lies in memory along a range; else another range has the lanes."""
        return any(a.stride(number) == 1 for a in self.accesses() if a.node.op == Op.INDEX)

    def vectorize(self) -> None:
        """Make lanes of the loop in each nest that most accesses walk contiguously."""
        if self.transpose_squares():
            return
        tried: set[int] = set()
        while True:
            best = self.best_lanes(tried)
            if best is None:
                return
            number, lanes, is_reduction = best
            tried.add(number)
            lanes = streamed_lanes(self, lanes) if is_reduction else lanes
            has_tail = (self.extent(number) or 0) % lanes != 0
            inner = self.split_and(number, lanes, "mask", Vectorize)
            tried.add(inner)
            if inner < 0 or read_in_order(self, number, is_reduction):
                continue
            is_short = (self.extent(number) or 0) <= self.target.compute.copies
            if inner != number and has_tail and is_short:
                self.take(Unroll(number))  # the mask of each copy is a constant
            elif inner != number:
                self.unroll(number, is_reduction)
            if is_reduction:
                add_accumulators(self, inner)

    def transpose_squares(self) -> bool:
        """Read along one loop and write along another: squares are transposed in registers.

        Where something is read along the loop of the stores too, that one has the lanes, and what
        lies along the other one is transposed when it is loaded.
        """
        stores = self.stores()
        reductions = 1 << Op.REDUCE | 1 << Op.SCAN
        is_sequential = any(kind == ORDERED for _, kind in self.loops())
        if len(stores) != 1 or self.kernel.ops & reductions or is_sequential:
            return False
        accesses = self.accesses()
        own = [r.arg for r in own_ranges(stores[0])]
        written = next(a for a in accesses if a.node is stores[0].src[0])
        reads = [a for a in accesses if a.node.op == Op.INDEX and a is not written]
        rows = [n for n in own if written.stride(n) == 1]
        columns = [n for n in own if n not in rows and any(a.stride(n) == 1 for a in reads)]
        if not rows or not columns:
            return False
        across, along = rows[0], columns[-1]
        is_mixed = any(a.stride(across) == 1 for a in reads)
        if is_mixed and not self.is_worth_squares(reads, across, along):
            return False
        lanes = self.target.access_bits // max(width(a) for a in [written, *reads])
        while lanes > 1 and any((self.extent(n) or 1) % lanes for n in (across, along)):
            lanes //= 2
        if lanes < 4:
            return False
        mark = self.mark()
        across, along = (along, across) if is_mixed else (across, along)
        vector, copies = self.split(along, lanes), self.split(across, lanes)
        outer = [n for n in kinds_of(self.kernel) if n not in (along, across, vector, copies)]
        both = (along, across) if is_mixed else (across, along)
        squares = [n for n in both if n not in (vector, copies)]
        if self.order([*outer, *squares, vector, copies]) and self.take(
            Vectorize(vector), Unroll(copies)
        ):
            return True
        self.undo_to(mark)
        return False

    def is_worth_squares(self, reads: list[Access], lanes: int, copies: int) -> bool:
        """Whether lanes along a loop scatter what lies along another, and its copies are few."""
        far = [a for a in reads if abs(a.stride(lanes) or 0) > NEAR]
        scattered = [a for a in far if a.stride(copies) == 1]
        copied = [node for node in nodes_of(self.kernel) if node.ranges >> copies & 1]
        is_slow = any(node.op in TRANSCENDENTAL for node in copied)
        is_short = not is_slow and len(copied) <= LONG_BODY
        return bool(scattered) and is_short and not self.target.has_groups

    def best_lanes(self, tried: set[int]) -> tuple[int, int, bool] | None:
        accesses = accesses_of(self.kernel)
        kinds = kinds_of(self.kernel)
        iterations = self.iterations_of([access.node for access in accesses])
        best: tuple[float, int, int, bool] | None = None
        for node, own in self.closers():
            if any(kinds[r.arg] == VECTOR for r in own_ranges(node)):
                continue
            for position, number in enumerate(own):
                lanes = self.lanes(number, accesses)
                if number in tried or lanes < 2 or not self.can_be_lanes(number):
                    continue
                extent = self.extent(number) or 1
                score = sum(
                    _merit(access, number, lanes, extent) * iterations.get(access.node, 1)
                    for access in accesses
                )
                if score > 0 and (best is None or (score, position) > best[:2]):
                    is_reduction = node.op == Op.REDUCE
                    best = (score, position, number, is_reduction)
        if best is None:
            return None
        return best[2], self.lanes(best[2], accesses), best[3]

    def iterations_of(self, nodes: list[UOp]) -> dict[UOp, int]:
        """How often each of these is evaluated: once for each iteration of what it depends on."""
        extents = {number: self.extent(number) or 1 for number in kinds_of(self.kernel)}
        return {node: math.prod([extents[n] for n in range_ids(node.ranges)]) for node in nodes}

    def can_be_lanes(self, number: int) -> bool:
        """Whether no value that depends on a range has lanes already."""
        kinds = kinds_of(self.kernel)
        vectors = sum(1 << n for n, kind in kinds.items() if kind == VECTOR)
        for node in nodes_of(self.kernel):
            if node.ranges >> number & 1 and (node.ranges & vectors or node.op == Op.STAGE):
                return False
        return True

    def lanes(self, number: int, accesses: list[Access]) -> int:
        """How many lanes fit: of the widest dtype that the loop touches, and of the loop."""
        extent = self.extent(number) or 0
        widths = [width(a) for a in accesses if a.stride(number) != 0]
        lanes = self.target.access_bits // max(widths, default=32)
        while lanes > extent:
            lanes //= 2
        return max(lanes, 1)

    def unroll(self, number: int, is_reduction: bool) -> None:
        """A few copies of a loop: independent accumulators, or stores that overlap.

        Lanes at addresses that were read are as many instructions, which overlap without copies.
        """
        if not is_reduction and any(map(is_looked_up, nodes_of(self.kernel))):
            return
        is_long = len(nodes_of(self.kernel)) > LONG_BODY
        if is_long and not is_reduction and self.work() < LONG_WORK:
            return
        extent = self.extent(number) or 1
        transcendental = sum(node.op in TRANSCENDENTAL for node in nodes_of(self.kernel))
        most = self.target.compute.copies
        if transcendental and not is_reduction:
            most = min(most, 2) if transcendental <= FEW_TRANSCENDENTAL else 1
        for copies in (most, most // 2):
            if copies > 1 and extent % copies == 0 and extent > copies:
                self.split_and(number, copies, "clamp", Unroll)
                return

    def parallelize_over_cores(self) -> None:
        """Outer loops become the grid, as many as keep every thread busy."""
        if self.target.units < 2 or self.work() < 2 * self.target.costs.launch:
            return
        iterations = 1
        for number in self.common_loops():
            if iterations >= ITERATIONS_PER_THREAD * self.target.units:
                return
            if self.take(Bind(number, GRID)):
                iterations *= self.extent(number) or 1 << 30

    def work(self) -> float:
        """Nanoseconds that one core needs, roughly."""
        cost, costs = estimate(self.original), self.target.costs
        moved = cost.moved * self.target.memory(GLOBAL).cost
        return cost.operations * costs.op + moved

    def bind_threads(self, compute: Simt) -> None:
        """The innermost loop of the stores goes to threads, the others to groups."""
        loops = self.common_loops()
        most = min(compute.group_threads, self.target.grid.group_threads)
        tail = self.safe_tail()
        for number in loops[: -MOST_AXES - 1 : -1]:
            extent = self.extent(number)
            if not extent or most < 2:
                continue
            count = 1 << int(math.log2(min(extent, most)))
            if count > 1 and self.split_and(number, count, tail, _to_thread) >= 0:
                most //= count
        for number in self.common_loops():
            self.take(Bind(number, GRID))


def _to_thread(number: int) -> Opt:
    return Bind(number, THREAD)


def _merit(access: Access, number: int, lanes: int, extent: int) -> float:
    """What lanes along a range do for an access: which share of its instructions they save.

    Whole vectors are good, addresses near each other take two instructions for each vector that
    they lie in, scattered ones as many as without lanes, and more to put them together.
    """
    if access.node.op not in (Op.INDEX, Op.READ, Op.STAGE):
        return 0.0
    stride = access.stride(number)
    if stride == 0:
        return 0.0
    filled = extent / -(-extent // lanes)
    if stride == 1:
        return 1 - 1 / filled
    span = lanes if stride == -1 else nearby_span(access, number, lanes)
    return max(1 - 2 * -(-span // lanes) / filled, -1.0) if span else -1.0

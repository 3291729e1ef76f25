"""Reductions and scans become accumulators: memory with a first value and a store that updates it.

In: a kernel with flat memory, in which REDUCEs close loops only. Out: no REDUCE and no SCAN. A
reduction is

    reduce ADD over k: v   ->   a = memory "acc0" register: float32[1]
                                s = store a[0] = 0.0
                                u = store a.after(s)[0] = load a.after(s)[0] + v for k
                                load a.after(u)[0]

The store `s` depends on no range. Linearize runs it where the loop of `u` starts. Ranges of kind
"sequential" are not loops: the update takes all their iterations, one behind the other. A scan is
read in every iteration of a loop that stays open, and its accumulator is carried from iteration to
iteration:

    scan ADD over i: v     ->   c = a.after(s, i)
                                u = store c[0] = load c[0] + v
                                load a.after(u)[0]

Here linearize runs `s` before the loop `i`.

A joined reduction goes on together with those that it refers to. The updates of all of them see
what the iteration before has left, and whoever reads one of them waits for all:

    reduce f from 0.0 with m over k: v   ->   c = a.after(s), and cm, um of m
                                              u = store c[0] = f(load c[0], v, load cm[0], …) for k
                                              load a.after(u, um)[0]

Where parts are products on matrix units, a part is computed relative to what its reference has
become, which costs nothing, and is added as it is: `c0 * scale + part` instead of `f`.

A loop of kind "ordered" that is reduced over stays where it stands. Reductions that depend on
loops inside of it have an accumulator for each of their iterations, all in one array:

    reduce ADD over k: v(j), k outside of j   ->   s = store a[j] = 0.0 for j
                                                   u = store a.after(s)[j] = … + v for k, j
                                                   load a.after(u)[j]
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Final

from weft.codegen.analysis.loops import (
    ORDERED,
    SEQUENTIAL,
    THREAD,
    extent_of,
    loops_of,
    own_ranges,
    ranges_of,
    rebuilt,
    with_loops,
)
from weft.codegen.context import CodegenContext
from weft.codegen.lower.flatten_memory import flat_index
from weft.ir.build import load, store, true
from weft.ir.dtypes import FLOAT, dtypes
from weft.ir.ops import Op
from weft.ir.reduction.joined import applied, is_joined, references, scale_of, start_of
from weft.ir.uop import UOp, const, make
from weft.ir.walk import map_graph, substitute, topological
from weft.rules.simplify import simplify

REDUCTIONS: Final = frozenset((Op.REDUCE, Op.SCAN))
# From this many elements on a scan adds in float64: in float32 its last sums would lose more than
# some ten bits of their twenty-four.
LONG_SCAN: Final = 1024


def widen_reductions(kernel: UOp, context: CodegenContext) -> UOp:
    """Reduction small floats in float32 and round once, at the end or for each prefix.

    A long scan adds in the order of its elements, and its error grows with their number, so it
    adds in float64 where the target has that.
    """
    has_doubles = dtypes.float64 in context.target.native_dtypes

    def widened(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = rebuilt(node, made, {})
        if new.op not in REDUCTIONS or new.dtype.kind != FLOAT or is_joined(new):
            return new
        to = dtypes.float32
        if has_doubles and _is_long_scan(new):
            to = dtypes.float64
        if new.dtype.bits >= to.bits:
            return new
        wide = make(Op.CAST, to, (new.src[0],))
        reduced = make(new.op, to, (wide, *new.src[1:]), new.arg)
        return make(Op.CAST, new.dtype, (reduced,))

    return map_graph(kernel, widened)


def _is_long_scan(node: UOp) -> bool:
    if node.op != Op.SCAN or node.arg[0] != Op.ADD or node.src[1].op != Op.RANGE:
        return False
    return (extent_of(node.src[1]) or LONG_SCAN) >= LONG_SCAN


def lower_reductions(kernel: UOp, context: CodegenContext) -> UOp:
    """Make the accumulator of every REDUCE and SCAN explicit."""
    iterations = _Iterations(kernel)
    accumulators = _Accumulators(kernel)

    def lowered(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        if node.op not in REDUCTIONS:
            return rebuilt(node, made, {})
        if is_joined(node):
            return accumulators.joined(node, made)
        if node in accumulators.known:
            return accumulators.known[node].after()
        values, ranges = iterations.of(node)
        own = accumulators.of(node, [made[v] for v in values], [made[r] for r in ranges])
        accumulators.known[node] = own
        return own.after()

    for node in accumulators.moving:  # a tile holds parts of several rows, and all of them move
        map_graph(node, lowered, sources=iterations.sources)
        own = accumulators.known[node]
        accumulators.moves[own.part] = own.total
    result = map_graph(kernel, lowered, sources=iterations.sources)
    loops = [(number, kind) for number, kind in loops_of(kernel) if kind != SEQUENTIAL]
    return with_loops(result, loops) if iterations.mask else result


class _Iterations:
    """The iterations of reductions that are written out; nodes that several share are copied once.

    They are written out before anything below them is lowered: a reduction inside one that is
    written out is another reduction in each iteration, with an accumulator of its own.
    """

    def __init__(self, kernel: UOp) -> None:
        self.mask = sum(1 << number for number, kind in loops_of(kernel) if kind == SEQUENTIAL)
        self.made: dict[tuple[tuple[UOp, int], ...], dict[UOp, UOp]] = {}
        self.reductions: dict[UOp, tuple[list[UOp], list[UOp]]] = {}

    def of(self, reduction: UOp) -> tuple[list[UOp], list[UOp]]:
        """The values that a reduction takes in each iteration of its loops, and those loops."""
        known = self.reductions.get(reduction)
        if known is None:
            known = self.reductions[reduction] = self.written_out(reduction)
        return known

    def sources(self, node: UOp) -> Sequence[UOp]:
        """What a node is computed from, once its iterations are written out."""
        if node.op not in REDUCTIONS or is_joined(node):
            return node.src
        values, ranges = self.of(node)
        return (*values, *ranges)

    def written_out(self, reduction: UOp) -> tuple[list[UOp], list[UOp]]:
        value, *ranges = reduction.src
        written = [r for r in ranges if self.mask >> r.arg & 1]
        if not written:
            return [value], ranges
        iterations = itertools.product(*(range(extent_of(r) or 1) for r in written))
        values = [
            self.at(value, tuple(zip(written, iteration, strict=True))) for iteration in iterations
        ]
        return values, [r for r in ranges if r not in written]

    def at(self, value: UOp, iteration: tuple[tuple[UOp, int], ...]) -> UOp:
        made = self.made.setdefault(iteration, {r: r.const_like(at) for r, at in iteration})

        def enter(node: UOp) -> bool:
            return node not in made and bool(node.ranges & self.mask)

        for node in topological(value, enter=enter):
            if node not in made:
                made[node] = rebuilt(node, made, {}) if node.ranges & self.mask else node
        return made[value]


class _Accumulator:
    """Memory of one reduction: what it held before an iteration, and what that makes of it."""

    def __init__(
        self, node: UOp, number: int, carried: Sequence[UOp], inner: Sequence[UOp] = ()
    ) -> None:
        self.dtype = dtype = node.dtype
        self.inner = inner  # loops of which each iteration has one of its own
        sizes = [int(r.src[0].arg) for r in inner]
        self.at = simplify(flat_index(inner, sizes) * dtype.lanes)
        size = math.prod(sizes) * dtype.lanes
        self.memory = make(Op.MEMORY, dtype.scalar, (), (f"acc{number}", "register", size))
        start = store(self.element(self.memory), const(dtype, start_of(node)), inner)
        self.started = make(Op.AFTER, self.memory.dtype, (self.memory, start, *carried))
        self.before = load(self.element(self.started))

    def element(self, version: UOp) -> UOp:
        return make(Op.INDEX, self.dtype, (version, true(), self.at))

    def update(self, part: UOp, total: UOp, ranges: Sequence[UOp]) -> None:
        self.part, self.total = part, total
        self.stored = store(self.element(self.started), total, [*ranges, *self.inner])

    def after(self, *others: _Accumulator) -> UOp:
        """What it holds once its loop has ended, and the loops of others with it."""
        updates = [each.stored for each in (self, *others)]
        return load(self.element(make(Op.AFTER, self.memory.dtype, (self.memory, *updates))))


class _Accumulators:
    """The accumulators of a kernel. Joined reductions share those of what they refer to."""

    def __init__(self, kernel: UOp) -> None:
        self.count = itertools.count()
        self.known: dict[UOp, _Accumulator] = {}
        self.near: dict[tuple[UOp, tuple[UOp, ...]], _Accumulator] = {}  # those in other loops
        self.loops, self.ranges = loops_of(kernel), ranges_of(kernel)
        # References that parts on matrix units are relative to, and what becomes of them.
        self.moving: list[UOp] = []
        self.moves: dict[UOp, UOp] = {}
        if kernel.ops >> Op.CONTRACT & 1:
            joins = [node for node in topological(kernel) if is_joined(node)]
            found = [references(node) for node in joins if scale_of(node.arg[0]) is not None]
            self.moving = list(dict.fromkeys(each for (each, *more) in found if not more))
        threads = [number for number, kind in self.loops if kind == THREAD]
        self.threads = sum(1 << number for number in threads)

    def inner(self, node: UOp) -> list[UOp]:
        """The loops inside of an ordered one of a reduction, on which the reduction depends."""
        own = {r.arg for r in own_ranges(node)}
        is_outside = lambda loop: loop[0] not in own or loop[1] != ORDERED  # noqa: E731
        inside = itertools.dropwhile(is_outside, self.loops)
        return [self.ranges[n] for n, _ in inside if node.ranges >> n & 1 and n not in own]

    def of(self, node: UOp, values: Sequence[UOp], ranges: Sequence[UOp]) -> _Accumulator:
        """The accumulator of a reduction or scan that takes some values in each iteration."""
        is_scan = node.op == Op.SCAN
        inner = () if is_scan else self.inner(node)
        return self.updated(node, values, ranges, inner, ranges if is_scan else ())

    def updated(
        self,
        node: UOp,
        values: Sequence[UOp],
        ranges: Sequence[UOp],
        inner: Sequence[UOp],
        carried: Sequence[UOp] = (),
    ) -> _Accumulator:
        made = _Accumulator(node, next(self.count), carried, inner)
        total = made.before
        for value in values:
            total = make(node.arg[0], node.dtype, (total, value))
        made.update(values[0], total, () if carried else ranges)
        return made

    def joined(self, node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        ranges = [made[r] for r in own_ranges(node)]
        inner = self.inner(node)
        refers = [self.beside(node, each, made, ranges, inner) for each in references(node)]
        own = _Accumulator(node, next(self.count), (), inner)
        part = made[node.src[0]]
        values = [own.before, part]
        for each in refers:
            values += [each.before, each.part, each.total]
        total = self.scaled(node, own, refers[0], part) if self.moves else None
        own.update(part, applied(node.arg[0], values) if total is None else total, ranges)
        if total is not None:  # a tile holds rows of other references, which go on with it
            refers = list(dict.fromkeys([*refers, *(self.known[each] for each in self.moving)]))
        return own.after(*refers)

    def scaled(self, node: UOp, own: _Accumulator, refer: _Accumulator, part: UOp) -> UOp | None:
        """What a part makes of an accumulator, once it is relative to the new reference."""
        scale = scale_of(node.arg[0]) if len(references(node)) == 1 else None
        if scale is None:
            return None
        moved = substitute(part, self.moves)
        slots = [own.before, own.before, refer.before, refer.total, refer.total]
        return own.before * applied(scale, slots) + moved

    def beside(
        self,
        node: UOp,
        refers: UOp,
        made: Mapping[UOp, UOp],
        ranges: Sequence[UOp],
        inner: Sequence[UOp],
    ) -> _Accumulator:
        """The accumulator of a reference; one more where its own one runs in another loop."""
        known = self.known[refers]
        # Threads of several loops are the same ones: they have the same references.
        is_together = not (refers.ranges ^ node.ranges) & ~self.threads
        if is_together:
            return known
        key = (refers, tuple(inner))
        if key not in self.near:
            self.near[key] = self.updated(refers, [made[refers.src[0]]], ranges, inner)
        return self.near[key]

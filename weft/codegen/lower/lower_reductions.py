"""Reductions and scans become accumulators: memory with a first value and a store that updates it.

In: a kernel with flat memory, in which REDUCEs close loops only. Out: no REDUCE and no SCAN. A
fold is

    reduce ADD over k: v   ->   a = memory "acc0" register: float32[1]
                                s = store a[0] = 0.0
                                u = store a.after(s)[0] = load a.after(s)[0] + v for k
                                load a.after(u)[0]

The store `s` depends on no range. Linearize runs it where the loop of `u` starts. Ranges of kind
"in turn" are no loops: the update takes all their turns, one behind the other. A scan is read in
every turn of a loop that stays open, and its accumulator is carried from turn to turn:

    scan ADD over i: v     ->   c = a.after(s, i)
                                u = store c[0] = load c[0] + v
                                load a.after(u)[0]

Here linearize runs `s` before the loop `i`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

from weft.codegen.analysis.loops import IN_TURN, extent_of, loops_of, rebuilt, with_loops
from weft.codegen.context import Context
from weft.ir.build import index, load, store, true
from weft.ir.dtypes import FLOAT, dtypes
from weft.ir.folds import identity
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.ir.walk import map_graph, topological

FOLDS: Final = frozenset((Op.REDUCE, Op.SCAN))


def widen_reductions(kernel: UOp, context: Context) -> UOp:
    """Fold small floats in float32 and round once, at the end or for each prefix."""

    def widened(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = rebuilt(node, made, {})
        if new.op not in FOLDS or new.dtype.kind != FLOAT or new.dtype.bits >= 32:
            return new
        wide = make(Op.CAST, dtypes.float32, (new.src[0],))
        folded = make(new.op, dtypes.float32, (wide, *new.src[1:]), new.arg)
        return make(Op.CAST, new.dtype, (folded,))

    return map_graph(kernel, widened)


def lower_reductions(kernel: UOp, context: Context) -> UOp:
    """Make the accumulator of every REDUCE and SCAN explicit."""
    turns = _Turns(kernel)
    numbers = itertools.count()

    def lowered(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        if node.op not in FOLDS:
            return rebuilt(node, made, {})
        values, ranges = turns.of(node)
        return _accumulated(
            node, [made[v] for v in values], [made[r] for r in ranges], next(numbers)
        )

    result = map_graph(kernel, lowered, sources=turns.sources)
    loops = [(number, kind) for number, kind in loops_of(kernel) if kind != IN_TURN]
    return with_loops(result, loops) if turns.mask else result


class _Turns:
    """The iterations of reductions that are written out; nodes that several share are copied once.

    They are written out before anything below them is lowered: a reduction inside one that is
    written out is another reduction in each iteration, with an accumulator of its own.
    """

    def __init__(self, kernel: UOp) -> None:
        self.mask = sum(1 << number for number, kind in loops_of(kernel) if kind == IN_TURN)
        self.made: dict[tuple[tuple[UOp, int], ...], dict[UOp, UOp]] = {}
        self.folds: dict[UOp, tuple[list[UOp], list[UOp]]] = {}

    def of(self, fold: UOp) -> tuple[list[UOp], list[UOp]]:
        """The values that a fold takes in each turn of its loops, and those loops."""
        known = self.folds.get(fold)
        if known is None:
            known = self.folds[fold] = self.written_out(fold)
        return known

    def sources(self, node: UOp) -> Sequence[UOp]:
        """What a node is computed from, once its iterations are written out."""
        if node.op not in FOLDS:
            return node.src
        values, ranges = self.of(node)
        return (*values, *ranges)

    def written_out(self, fold: UOp) -> tuple[list[UOp], list[UOp]]:
        value, *ranges = fold.src
        written = [r for r in ranges if self.mask >> r.arg & 1]
        if not written:
            return [value], ranges
        turns = itertools.product(*(range(extent_of(r) or 1) for r in written))
        values = [self.at(value, tuple(zip(written, turn, strict=True))) for turn in turns]
        return values, [r for r in ranges if r not in written]

    def at(self, value: UOp, turn: tuple[tuple[UOp, int], ...]) -> UOp:
        made = self.made.setdefault(turn, {r: r.const_like(at) for r, at in turn})

        def enter(node: UOp) -> bool:
            return node not in made and bool(node.ranges & self.mask)

        for node in topological(value, enter=enter):
            if node not in made:
                made[node] = rebuilt(node, made, {}) if node.ranges & self.mask else node
        return made[value]


def _accumulated(node: UOp, values: list[UOp], ranges: list[UOp], number: int) -> UOp:
    dtype, op = node.dtype, node.arg[0]
    memory = make(Op.MEMORY, dtype.scalar, (), (f"acc{number}", "register", dtype.lanes))

    def place(version: UOp) -> UOp:
        return make(Op.INDEX, dtype, (version, true(), index(0)))

    start = store(place(memory), const(dtype, identity(op, dtype.scalar)))
    is_scan = node.op == Op.SCAN
    started = make(Op.AFTER, memory.dtype, (memory, start, *(ranges if is_scan else ())))
    total = load(place(started))
    for value in values:
        total = make(op, dtype, (total, value))
    update = store(place(started), total, () if is_scan else ranges)
    return load(place(make(Op.AFTER, memory.dtype, (memory, update))))

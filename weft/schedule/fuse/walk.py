"""Rangeify and fuse in one walk: which values live in memory, and in which kernel.

In: a SINK of STOREs and AFTERs over PARAMs (TENSOR_SPEC). Out: `Fused`: kernels with their stores,
and for each value that is materialized where it is. `emit` makes the ranged graph of it.

Each edge of the graph is a use: a kernel, an address, the loops around it. When the walk comes to
a node, all its uses are known. Movement ops only move the address. A store, or a value that is
cheaper to materialize than to compute again, gets a kernel; everything else is computed where it
is used. Nodes that are stored and also used at the ranges of a kernel are stored by that kernel on
its way.

The walk visits; `Decisions` decide by cost; `Inliner`, `Materializer`, `Calls` and `Writes` each
carry out their part.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.decision import Decision
from weft.schedule.fuse.calls import Calls
from weft.schedule.fuse.candidates import Candidates
from weft.schedule.fuse.chains.chains import find_chains
from weft.schedule.fuse.chains.pairs import ChainPairs
from weft.schedule.fuse.code_size import CodeSize
from weft.schedule.fuse.cost import ElementCost, ValueReads
from weft.schedule.fuse.decisions import Decisions
from weft.schedule.fuse.epilogues import Epilogues
from weft.schedule.fuse.inline import LEAVES, Inliner, Reductions
from weft.schedule.fuse.kernel import Kernel
from weft.schedule.fuse.materialize import Materializer
from weft.schedule.fuse.recompute import Revised, memory_time, recomputed, reduced_first
from weft.schedule.fuse.uses import Materialized, Use
from weft.schedule.fuse.writes import Writes
from weft.schedule.memory import CALLS, MEMORY, VIEWS, target_of
from weft.target.target import Target


class Fused(NamedTuple):
    """What the walk decided, for `hazards` and `emit`."""

    kernels: list[Kernel]
    materialized: dict[UOp, Materialized]
    reductions: Reductions
    writes: Writes
    log: list[Decision]


def fuse(
    sink: UOp,
    target: Target,
    first_placeholder: int,
    alone: frozenset[UOp] = frozenset(),
    decisions: type[Decisions] = Decisions,
) -> Fused:
    """Walk a graph. `alone` is memory whose writes get kernels of their own.

    Where some of the values that got memory follow from others, it is walked again without those.
    """
    first = _walked(sink, target, first_placeholder, alone, decisions)
    if first.revised == Revised():
        return first.fused
    second = _walked(sink, target, first_placeholder, alone, decisions, first.revised)
    return second.fused if second.time < first.time else first.fused


class _Walked(NamedTuple):
    """What a walk decided, the time that its values take, and what had better be otherwise."""

    fused: Fused
    time: float
    revised: Revised


def _walked(
    sink: UOp,
    target: Target,
    first_placeholder: int,
    alone: frozenset[UOp],
    decisions: type[Decisions],
    revised: Revised = Revised(),  # noqa: B008 -- it never changes
) -> _Walked:
    order = topological(sink)
    work, reads, code, writes = ElementCost(target), ValueReads(order), CodeSize(order), Writes()
    chains = find_chains(sink, order, target)
    inliner = Inliner(code, chains)
    epilogues = Epilogues(target, reads) if target.matrix_units else None
    candidates = Candidates(work, reads, inliner, code, epilogues)
    pairs = ChainPairs(chains)
    materializer = Materializer(inliner, candidates, writes, first_placeholder, alone, pairs)
    calls = Calls(order, candidates, materializer, writes)
    decided = decisions(work, reads, inliner, code, chains, epilogues, revised)
    walk = _Walk(inliner, materializer, calls, writes, decided)
    for node in reversed(order):
        walk.visit(node)
    values, read = materializer.values, materializer.reads
    fused = Fused(candidates.kernels, values, inliner.reductions, writes, decided.log)
    if revised == Revised():
        again = recomputed(order, values, read, work, inliner.computed, chains.of)
        first = reduced_first(order, values, chains.of)
        revised = Revised(again | frozenset(first), frozenset(first.values()))
    time = memory_time(values, read, len(candidates.kernels), target)
    return _Walked(fused, time, revised)


class _Walk:
    """Visits each node after all its users."""

    def __init__(
        self,
        inliner: Inliner,
        materializer: Materializer,
        calls: Calls,
        writes: Writes,
        decisions: Decisions,
    ) -> None:
        self._inliner = inliner
        self._materializer = materializer
        self._calls = calls
        self._writes = writes
        self._decisions = decisions
        self._stores: defaultdict[UOp, list[UOp]] = defaultdict(list)  # value -> STOREs of it

    def visit(self, node: UOp) -> None:
        if node.op == Op.STORE:
            self._visit_store(node)
            return
        stores = self._stores.pop(node, [])
        if stores and (node.op in MEMORY | CALLS or node.op == Op.STAGE or not shape_of(node)):
            for store in stores:
                self._materializer.store(node, store)
            stores = []
        uses = self._inliner.take(node) + self._calls.uses_of(node)
        if node.op in CALLS:
            self._calls.visit(node, uses)
            return
        if node.op in MEMORY:
            self._writes.see_version(node, uses)
        is_whole = node.op == Op.STAGE or self._calls.needs_whole(node)
        if stores or (uses and is_whole):
            self._materializer.materialize(node, uses, stores)
        elif node.op == Op.SCAN and uses and not self._can_run_scan(node, uses):
            self._materializer.materialize(node, uses, [])
        elif not uses or node.op in MEMORY or node.op in LEAVES:
            return
        elif node.op in MOVEMENT:
            self._inliner.move(node, uses)
        elif self._decisions.wants_memory(node, uses):
            self._materializer.materialize(node, uses, [])
        else:
            self._inliner.inline(node, uses)

    def _visit_store(self, store: UOp) -> None:
        self._writes.see_store(store)
        if self._calls.fills(store):
            return
        if store.src[1].op == Op.SCATTER:
            self._materializer.scatter(store)
        elif self._materializer.is_alone(store) or _is_placed_by_its_value(store):
            self._materializer.store(store.src[1], store)
        else:
            self._stores[store.src[1]].append(store)

    def _can_run_scan(self, node: UOp, uses: list[Use]) -> bool:
        """Whether one kernel uses a scan, at one address, in a loop along it."""
        (use, *others) = uses
        return not others and self._inliner.is_along(node, use)


def _is_placed_by_its_value(store: UOp) -> bool:
    """Whether indices of a store are computed from the value that it writes.

    They are visited before the value then, so they must have their uses before that.
    """
    value, view = store.src[1], target_of(store)
    indices: list[UOp] = []
    while view.op in VIEWS:
        indices += view.src[1:] if view.op == Op.INDEX else ()
        view = view.src[0]
    return bool(indices) and value in set(topological(*indices))

"""The loop tree: which loops there are, and which store runs in which of them.

A store that others wait for (the fill of a stage, the update of an accumulator) is placed once per
value of the ranges it depends on: in the shortest prefix of its reader's loops that covers them.
Its own loops open there. The tree is made from the root down: a block first finds all that belongs
to it, then opens its loops, each with all nests over this range that do not wait for each other.
A value is made in the run of a loop that uses it; where two runs of the same loop use it, in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from weft.codegen.analysis.loops import loops_of
from weft.codegen.linear.store_order import (
    LoopNest,
    NestOrder,
    Path,
    Waits,
    carried_by,
    in_order,
    starts_of,
    stores_of,
)
from weft.ir.ops import Op
from weft.ir.uop import UOp, range_ids
from weft.ir.views import behind
from weft.ir.walk import topological
from weft.support.errors import InternalError


@dataclass(eq=False)
class StoreGroup:
    """Stores that run together: all their values are computed before any of them writes."""

    stores: tuple[UOp, ...]
    parent: LoopBody | None = None
    completes: list[UOp] = field(default_factory=list)


@dataclass(eq=False)
class LoopBody:
    """A loop with what runs in it, in order; the root has no range.

    `completes` are the stores that have written all they write once this item has run.
    """

    range: UOp | None = None
    items: list[LoopBody | StoreGroup] = field(default_factory=list)
    parent: LoopBody | None = None
    completes: list[UOp] = field(default_factory=list)

    def add(
        self, item: LoopBody | StoreGroup, before: LoopBody | StoreGroup | None = None
    ) -> None:
        item.parent = self
        self.items.insert(len(self.items) if before is None else self.items.index(before), item)


def place_stores(kernel: UOp) -> LoopBody:
    """The loop tree of a kernel whose memory is flat and whose reductions are stores.

    Its items do not know their parents any more, so that it is freed when nobody holds it.
    """
    root = _Placer(kernel).root
    waiting: list[LoopBody | StoreGroup] = [root]
    while waiting:
        item = waiting.pop()
        item.parent = None
        if isinstance(item, LoopBody):
            waiting += item.items
    return root


class _Placer:
    def __init__(self, kernel: UOp) -> None:
        self.position = {number: i for i, (number, _) in enumerate(loops_of(kernel))}
        nodes = topological(kernel)
        self.ranges = {node.arg: node for node in nodes if node.op == Op.RANGE}
        versions = [node for node in nodes if node.op == Op.AFTER]
        self.placed: dict[UOp, LoopBody | None] = {}  # the block that a store is in, or a loop of
        awaited = {store for version in versions for store in stores_of(version)}
        groups: dict[Path, list[UOp]] = {}
        for store in kernel.src:
            if store not in awaited:
                groups.setdefault(self.path(store), []).append(store)
        ordered, overwritten = in_order(list(groups.values()))
        self.waits = Waits(nodes, versions, overwritten)
        if versions:
            for group in ordered:
                _verify_no_late_reads(group)
        self.root = LoopBody()
        nests = [LoopNest(tuple(group), self.path(group[0]), False) for group in ordered]
        self.fill(self.root, (), nests, 0)

    def path(self, store: UOp) -> Path:
        """The loops around a store of the kernel, outermost first."""
        outer = [self.ranges[number] for number in range_ids(store.ranges)]
        return self.sorted(dict.fromkeys([*outer, *store.src[2:]]))

    def sorted(self, ranges: Iterable[UOp]) -> Path:
        return tuple(sorted(ranges, key=lambda node: self.position[node.arg]))

    def fill(self, block: LoopBody, path: Path, nests: Sequence[LoopNest], reached: int) -> None:
        """Put nests into a block, and all they wait for that no block around it has."""
        level = NestOrder(self.collect(path, nests, reached), self.waits, reached)
        for group in level.groups():
            self.open(block, path, group, reached | level.awaited)

    def collect(self, path: Path, nests: Sequence[LoopNest], reached: int) -> list[LoopNest]:
        """The nests of a block: these, each behind what it waits for at the depth of the block."""
        found: list[LoopNest] = []
        seen = reached
        for nest in nests:
            for store in nest.stores:
                seen = self.collect_needs(store, path + nest.loops, len(path), seen, found)
            found.append(nest)
        return found

    def collect_needs(
        self, user: UOp, loops: Path, depth: int, seen: int, found: list[LoopNest]
    ) -> int:
        """Find what a store in some loops waits for, but for stores in `seen`; those seen then."""
        for store in self.waits.needs_of(user):
            if seen & self.waits.bit[store]:
                continue
            group = self.waits.group(store)
            for each in group:
                seen |= self.waits.bit[each]
            prefix = _shortest(loops, store.ranges)
            own = self.sorted(store.src[2:])
            for each in group:
                seen = self.collect_needs(each, prefix + own, depth, seen, found)
            if len(prefix) == depth:
                found.append(LoopNest(group, own, True))
        return seen

    def open(self, block: LoopBody, path: Path, group: Sequence[LoopNest], reached: int) -> None:
        """Run nests in the loop that all of them enter next, or one that has no more to enter."""
        first, *_ = group
        item: LoopBody | StoreGroup
        if first.loops:
            loop = first.loops[0]
            block.add(item := LoopBody(loop))
            inner = [LoopNest(nest.stores, nest.loops[1:], False) for nest in group]
            self.fill(item, (*path, loop), inner, reached)
        else:
            block.add(item := StoreGroup(first.stores))
        for nest in group:
            for store in nest.stores if nest.is_awaited else ():
                self.finish(store, item)
                self.start(store, block, item)

    def start(self, store: UOp, block: LoopBody, first: LoopBody | StoreGroup) -> None:
        """Run the first stores of an accumulator before its loop, one that it closes or not."""
        carried = carried_by(store)
        while carried and block.range in carried:
            assert block.parent is not None
            block, first = block.parent, block
        if any(each.range in carried for each in _around(block)):
            what = "a scan depends on a loop inside the one that it runs over"
            raise InternalError(what, pass_name="linearize")
        for start in starts_of(store):
            if self.placed.get(start) is block:
                continue  # something else in the loop reads what the iteration before has left
            begin: LoopBody | StoreGroup = StoreGroup((start,))
            for loop in reversed(self.sorted(start.src[2:])):
                around = LoopBody(loop)
                around.add(begin)
                begin = around
            block.add(begin, before=first)
            self.finish(start, begin)

    def finish(self, store: UOp, item: LoopBody | StoreGroup) -> None:
        """Note where a store is complete. Memory inside the kernel may be filled in each run."""
        if store in self.placed and behind(store.src[0].src[0]).op != Op.MEMORY:
            what = "two runs of a loop wait for the same write"
            raise InternalError(what, pass_name="linearize", facts=[("store", repr(store))])
        self.placed[store] = item.parent
        item.completes.append(store)


def _verify_no_late_reads(group: Sequence[UOp]) -> None:
    """Raise where stores read, themselves, old contents of memory that is written before them."""
    direct = topological(*group, enter=lambda node: node.op != Op.AFTER)
    old = {node.src[0] for node in direct if node.op == Op.INDEX}
    below = topological(*[node for node in direct if node.op == Op.AFTER])
    written = {behind(node.src[0].src[0]) for node in below if node.op == Op.STORE}
    if not old.isdisjoint(written):
        what = "a store reads the old contents of memory that is written before it"
        raise InternalError(what, pass_name="linearize")


def _around(block: LoopBody | None) -> Iterator[LoopBody]:
    """A block and those that hold it."""
    while block is not None:
        yield block
        block = block.parent


def _shortest(path: Path, free: int) -> Path:
    """The shortest prefix of the loops that covers a set of ranges."""
    depth = 0
    for position, loop in enumerate(path):
        if free >> loop.arg & 1:
            depth = position + 1
    return path[:depth]

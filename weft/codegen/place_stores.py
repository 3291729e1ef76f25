"""The loop tree: which loops there are, and which store runs in which of them.

A store that others wait for (the fill of a stage, the update of an accumulator) is placed once per
value of the ranges it depends on: in the shortest prefix of its reader's loops that covers them.
Its own loops open there. Outer stores are placed before inner ones, so a value never has to cross
from one run of a loop to another. Two nests share a loop exactly when they hold the same range and
nothing that the second needs comes after the loop or out of it; else the loop is opened again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from weft.codegen.loops import loops_of
from weft.ir.ops import Op
from weft.ir.spec_kernel import behind
from weft.ir.uop import UOp, range_ids
from weft.ir.walk import topological
from weft.support.errors import InternalError

Path = tuple[UOp, ...]


@dataclass(eq=False)
class Task:
    """Stores that run together: all their values are computed before any of them writes."""

    stores: tuple[UOp, ...]
    parent: Block | None = None
    completes: list[UOp] = field(default_factory=list)


@dataclass(eq=False)
class Block:
    """A loop with what runs in it, in order; the root has no range.

    `completes` are the stores that have written all they write once this item has run.
    """

    range: UOp | None = None
    items: list[Block | Task] = field(default_factory=list)
    parent: Block | None = None
    completes: list[UOp] = field(default_factory=list)

    def add(self, item: Block | Task, before: Block | Task | None = None) -> None:
        item.parent = self
        self.items.insert(len(self.items) if before is None else self.items.index(before), item)

    def child_holding(self, item: Block | Task) -> Block | Task | None:
        """The item of this block that is, or holds, another item."""
        below: Block | Task | None = item
        while below is not None and below.parent is not self:
            below = below.parent
        return below


def place_stores(kernel: UOp) -> Block:
    """The loop tree of a kernel whose memory is flat and whose folds are stores."""
    return _Placer(kernel).root


class _Placer:
    def __init__(self, kernel: UOp) -> None:
        self.position = {number: i for i, (number, _) in enumerate(loops_of(kernel))}
        self.root = Block()
        # The item after which what a store writes is complete.
        self.done: dict[UOp, Block | Task] = {}
        self.needs: dict[UOp, list[UOp]] = {}
        nodes = topological(kernel)
        self.ranges = {node.arg: node for node in nodes if node.op == Op.RANGE}
        self.versions = versions = [node for node in nodes if node.op == Op.AFTER]
        self.waits = _waits(nodes, versions)
        awaited = {store for version in versions for store in stores_of(version)}
        self.readers = _readers_before(versions)
        stores = [node for node in kernel.src if node not in awaited]
        groups: dict[Path, list[UOp]] = {}
        for store in stores:
            groups.setdefault(self.path(store), []).append(store)
        for group in _in_order(list(groups.values())):
            if versions:
                _verify_no_late_reads(group)
            path = self.path(group[0])
            self.place([(store, path) for store in group])
            needed = [need for store in group for need in self.needs_of(store)]
            block = self.block(self.root, path, needed)
            self.verify_reach(needed, block)
            block.add(Task(tuple(group)))

    def path(self, store: UOp) -> Path:
        """The loops around a store of the kernel, outermost first."""
        outer = [self.ranges[number] for number in range_ids(store.ranges)]
        return self.sorted(dict.fromkeys([*outer, *store.src[2:]]))

    def sorted(self, ranges: Iterable[UOp]) -> Path:
        return tuple(sorted(ranges, key=lambda node: self.position[node.arg]))

    def needs_of(self, store: UOp) -> list[UOp]:
        """The stores that this one waits for, but not those below them."""
        found = self.needs.get(store)
        if found is None:
            place, value = store.src[:2]
            waits = range_ids(self.waits[place] | self.waits[value])
            found = [need for number in waits for need in stores_of(self.versions[number])]
            found += self.readers.get(store, ())
            found = self.needs[store] = list(dict.fromkeys(found))
        return found

    def place(self, users: Sequence[tuple[UOp, Path]]) -> None:
        """Place everything that these stores, with their loops, wait for."""
        waiting = self.collect(users)
        outer: list[tuple[UOp, Path]] = []  # what the users need from around their loops
        while waiting:
            together = self.together(waiting)
            prefix, own = waiting[0][1], self.sorted(waiting[0][0].src[2:])
            self.place([(store, prefix + own) for store in together])
            before = [store for store, path in outer if len(path) < len(prefix)]
            for store in together:
                if store not in self.done:
                    self.place_one(store, prefix, own, before)
            outer += [(store, prefix) for store in together]
            waiting = [pair for pair in waiting if pair[0] not in self.done]

    def place_one(self, store: UOp, prefix: Path, own: Path, before: Sequence[UOp]) -> None:
        """Place a store, behind what its user needs before the innermost of these loops begins."""
        needed = [need for need in self.needs_of(store) if need in self.done]
        outer = self.block(self.root, prefix, [*needed, *before])
        task = Task((store,))
        inner = self.block(outer, own, needed)
        self.verify_reach(needed, inner)
        inner.add(task)
        first = outer.child_holding(task)
        assert first is not None
        self.finish(store, first)
        self.start(store, outer, first)

    def together(self, waiting: Sequence[tuple[UOp, Path]]) -> list[UOp]:
        """The first store, with those that run in the same loops and do not need each other.

        What any of them needs from around these loops is placed before the loops begin, so that
        all of them find room in one run.
        """
        (first, prefix), *others = waiting
        own = self.sorted(first.src[2:])
        found = [first]
        for store, path in others:
            is_alike = path == prefix and own and self.sorted(store.src[2:]) == own
            if is_alike and self.all_needs(store).isdisjoint(found):
                found.append(store)
        return found

    def all_needs(self, store: UOp) -> set[UOp]:
        """The stores that this one waits for, and those that they wait for."""
        found: set[UOp] = set()
        waiting = [store]
        while waiting:
            new = [need for need in self.needs_of(waiting.pop()) if need not in found]
            found.update(new)
            waiting += new
        return found

    def verify_reach(self, needed: Sequence[UOp], block: Block) -> None:
        """Raise where a value would cross from one run of a loop to another."""
        around = list(_around(block))
        for need in needed:
            if self.done[need].parent not in around:
                what = "a value is made in one run of a loop and used in another"
                raise InternalError(what, pass_name="linearize", facts=[("store", repr(need))])

    def start(self, store: UOp, block: Block, first: Block | Task) -> None:
        """Run the first stores of an accumulator before its loop, one that it closes or not."""
        carried = carried_by(store)
        while carried and block.range in carried:
            assert block.parent is not None
            block, first = block.parent, block
        if any(each.range in carried for each in _around(block)):
            what = "a scan depends on a loop inside the one that it runs over"
            raise InternalError(what, pass_name="linearize")
        for start in starts_of(store):
            begin = Task((start,))
            block.add(begin, before=first)
            self.finish(start, begin)

    def finish(self, store: UOp, item: Block | Task) -> None:
        self.done[store] = item
        item.completes.append(store)

    def collect(self, users: Sequence[tuple[UOp, Path]]) -> list[tuple[UOp, Path]]:
        """The stores that are not placed yet, with the loops around them, outer ones first."""
        found: list[tuple[UOp, Path]] = []
        seen: set[UOp] = set()

        def visit(user: UOp, path: Path) -> None:
            starts = starts_of(user)
            for store in self.needs_of(user):
                if store in seen or store in self.done or store in starts:
                    continue
                seen.add(store)
                prefix = _shortest(path, store.ranges)
                visit(store, prefix + self.sorted(store.src[2:]))
                found.append((store, prefix))

        for user, path in users:
            visit(user, path)
        return sorted(found, key=lambda pair: len(pair[1]))

    def block(self, start: Block, path: Path, needed: Sequence[UOp]) -> Block:
        """The block of these loops, opened anew where what is needed is not complete before."""
        block = start
        for loop in path:
            block = self.loop(block, loop, needed)
        return block

    def loop(self, block: Block, loop: UOp, needed: Sequence[UOp]) -> Block:
        last = 0
        ends: set[Block | Task] = set()
        inside: Block | None = None  # the run of this loop in which something needed is made
        for need in needed:
            end = self.done[need]
            ends.add(end)
            holder = block.child_holding(end)
            if holder is not None:
                last = max(last, block.items.index(holder))
                if isinstance(holder, Block) and holder is not end and holder.range is loop:
                    inside = holder
        if inside is not None and block.items.index(inside) == last:
            return inside
        for item in reversed(block.items[last:]):
            if isinstance(item, Block) and item.range is loop and item not in ends:
                return item
        made = Block(loop)
        block.add(made)
        return made


def _readers_before(versions: Sequence[UOp]) -> dict[UOp, list[UOp]]:
    """For each store into an argument that is waited for, the awaited stores that read it before.

    They see the contents from before it, so it waits for them.
    """
    found: dict[UOp, list[UOp]] = {}
    awaited = {store: version for version in versions for store in stores_of(version)}
    for writer, version in awaited.items():
        memory = behind(writer.src[0].src[0])
        if memory.op == Op.MEMORY:
            continue
        for other in awaited.keys() - version.src:
            parts = topological(*other.src[:2], enter=lambda node: node.op != Op.AFTER)
            if any(part.op == Op.INDEX and part.src[0] is memory for part in parts):
                found.setdefault(writer, []).append(other)
    return found


def _waits(nodes: list[UOp], versions: list[UOp]) -> dict[UOp, int]:
    """For each node the versions that it reads, but not those below them, as bits."""
    waits = {version: 1 << number for number, version in enumerate(versions)}
    for node in nodes:
        if node not in waits:
            bits = 0
            for source in node.src:
                bits |= waits[source]
            waits[node] = bits
    return waits


def _verify_no_late_reads(group: Sequence[UOp]) -> None:
    """Raise where stores read, themselves, old contents of memory that is written before them."""
    direct = topological(*group, enter=lambda node: node.op != Op.AFTER)
    old = {node.src[0] for node in direct if node.op == Op.INDEX}
    below = topological(*[node for node in direct if node.op == Op.AFTER])
    written = {behind(node.src[0].src[0]) for node in below if node.op == Op.STORE}
    if not old.isdisjoint(written):
        what = "a store reads the old contents of memory that is written before it"
        raise InternalError(what, pass_name="linearize")


def starts_of(store: UOp) -> tuple[UOp, ...]:
    """The stores that give an accumulator its first value, for the store that updates it."""
    memory = store.src[0].src[0]
    if memory.op != Op.AFTER or behind(memory).op != Op.MEMORY:
        return ()
    return stores_of(memory)


def stores_of(version: UOp) -> tuple[UOp, ...]:
    """The stores that an AFTER follows; it may also name a loop that carries the memory on."""
    return tuple([source for source in version.src[1:] if source.op != Op.RANGE])


def carried_by(store: UOp) -> tuple[UOp, ...]:
    """The loops from turn to turn of which a store hands its accumulator on."""
    memory = store.src[0].src[0]
    if memory.op != Op.AFTER:
        return ()
    return tuple([source for source in memory.src[1:] if source.op == Op.RANGE])


def _around(block: Block | None) -> Iterator[Block]:
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


def _in_order(groups: list[list[UOp]]) -> list[list[UOp]]:
    """The groups, those that read the old contents of memory before those that write it."""
    if len(groups) == 1:
        return groups
    written = [{behind(store.src[0].src[0]) for store in group} for group in groups]
    read = [
        {node.src[0] for node in topological(*group) if node.op == Op.INDEX} for group in groups
    ]
    result: list[list[UOp]] = []
    waiting = list(range(len(groups)))
    while waiting:
        ready = next(
            (i for i in waiting if not any(j != i and written[i] & read[j] for j in waiting)), None
        )
        if ready is None:
            what = "stores of one kernel overwrite what each other's loops still read"
            raise InternalError(what, pass_name="linearize")
        waiting.remove(ready)
        result.append(groups[ready])
    return result

"""What stores wait for, and the order in which a block of the loop tree opens its loops.

`place_stores` asks. A store needs the values of others; some only have to come before it, because
they read what it overwrites. Sets of stores, and of the nests of a block, are bits of an int.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from weft.ir.ops import Op
from weft.ir.uop import UOp, range_ids
from weft.ir.views import behind
from weft.ir.walk import topological
from weft.support.errors import InternalError

Path = tuple[UOp, ...]


class LoopNest(NamedTuple):
    """Stores that run together, with the loops that they still have to enter from some block."""

    stores: tuple[UOp, ...]
    loops: Path
    is_awaited: bool  # whether others wait for it, at this block or in it


class Waits:
    """What each store waits for, directly and in the end."""

    def __init__(
        self, nodes: list[UOp], versions: list[UOp], overwritten: Mapping[UOp, Sequence[UOp]]
    ) -> None:
        self.versions = versions
        self.read = _versions_read(nodes, versions)
        awaited = dict.fromkeys(store for version in versions for store in stores_of(version))
        self.bit = {store: 1 << number for number, store in enumerate(awaited)}
        self.together = _together(versions)
        self.readers = _readers_before(versions)
        # For the first store of a group, those of the groups that read what it overwrites.
        self.overwritten = overwritten
        self.direct: dict[UOp, list[UOp]] = {}
        self.indirect: dict[UOp, int] = {}
        self.has_order = bool(self.readers or overwritten)

    def needs_of(self, store: UOp) -> list[UOp]:
        """The stores whose values this one needs, but not those below them."""
        found = self.direct.get(store)
        if found is None:
            address, value = store.src[:2]
            waits = range_ids(self.read[address] | self.read[value])
            needs = [need for number in waits for need in stores_of(self.versions[number])]
            # What begins an accumulator comes with the stores that go on from there.
            group = self.group(store)
            starts = {start for each in group for start in starts_of(each)}
            found = [need for need in dict.fromkeys(needs) if need not in starts]
            self.direct[store] = found
        return found

    def group(self, store: UOp) -> tuple[UOp, ...]:
        """The stores that go on together with this one, which is among them."""
        return self.together.get(store, (store,))

    def all_needs(self, store: UOp) -> int:
        """The stores that this one needs, and those that they need."""
        found = self.indirect.get(store)
        if found is None:
            found = 0
            for need in self.needs_of(store):
                found |= self.bit[need] | self.all_needs(need)
            self.indirect[store] = found
        return found

    def needed_by(self, stores: Sequence[UOp]) -> int:
        """The stores that some of these need."""
        found = 0
        for store in stores:
            found |= self.all_needs(store)
        return found

    def needed_inside(self, stores: Sequence[UOp], elsewhere: int) -> int:
        """The stores that these need, but not those elsewhere, nor what only those need."""
        found, waiting = 0, list(stores)
        while waiting:
            for need in self.needs_of(waiting.pop()):
                if not self.bit[need] & (found | elsewhere):
                    found |= self.bit[need]
                    waiting.append(need)
        return found

    def read_before(self, stores: Sequence[UOp]) -> int:
        """The stores that read what these, or those that they need, overwrite."""
        if not self.readers:
            return 0
        needed = self.needed_by(stores)
        for store in stores:
            needed |= self.bit.get(store, 0)
        found = 0
        for writer, readers in self.readers.items():
            if needed & self.bit[writer]:
                for reader in readers:
                    found |= self.bit[reader]
        return found


class NestOrder:
    """The nests of one block, each behind what it needs, and the order in which they run.

    A nest that another one needs has ended before that begins. One that reads what another one
    overwrites begins before it, and may share its loop.
    """

    def __init__(self, nests: Sequence[LoopNest], waits: Waits, reached: int) -> None:
        self.nests = nests
        self.awaited = 0
        owner: dict[int, int] = {}
        for position, nest in enumerate(nests):
            for store in nest.stores if nest.is_awaited else ():
                bit = waits.bit[store]
                self.awaited |= bit
                owner[bit] = 1 << position
        needed = [waits.needed_by(nest.stores) for nest in nests]
        self.needs = [_united(owner, each & self.awaited) for each in needed]
        self.before = list(self.needs)
        self.has_order = waits.has_order
        if self.has_order:
            elsewhere = self.awaited | reached
            inside = [waits.needed_inside(nest.stores, elsewhere) for nest in nests]
            self.add_order(waits, owner, inside)
        self.waiting = (1 << len(nests)) - 1

    def add_order(self, waits: Waits, owner: Mapping[int, int], inside: Sequence[int]) -> None:
        """Add the nests that only have to begin before others, and what follows from all.

        `inside` are the stores that run in the loops of each nest.
        """
        first = {nest.stores[0]: 1 << number for number, nest in enumerate(self.nests)}
        for number, nest in enumerate(self.nests):
            readers = waits.read_before(nest.stores)
            found = _united(owner, readers & self.awaited)
            for other in range(len(self.nests)):
                if inside[other] & readers and other != number:
                    found |= 1 << other
            for store in waits.overwritten.get(nest.stores[0], ()):
                found |= first.get(store, 0)
            self.before[number] |= found & ~(1 << number)
        for middle in range(len(self.nests)):
            for number, before in enumerate(self.before):
                if before >> middle & 1:
                    self.before[number] |= self.before[middle]

    def groups(self) -> list[list[LoopNest]]:
        """The nests in order, those together that share their next loop."""
        found: list[list[LoopNest]] = []
        while self.waiting:
            self.run(range_ids(self.waiting)[0], 0, found)
        return found

    def run(self, number: int, blocked: int, found: list[list[LoopNest]]) -> None:
        """Add the group of a nest, behind those that have to come first."""
        group = self.together(number, blocked)
        before = 0
        for member in range_ids(group):
            before |= self.before[member]
        for other in range_ids(before & self.waiting & ~group):
            if blocked >> other & 1:
                raise InternalError("nests wait for each other", pass_name="linearize")
            if self.waiting >> other & 1:
                self.run(other, blocked | group, found)
        self.waiting &= ~group
        found.append([self.nests[member] for member in range_ids(group)])

    def together(self, number: int, blocked: int) -> int:
        """A nest, with those that enter the same loop next and need not wait for its end."""
        loops = self.nests[number].loops
        group = 1 << number
        if not loops:
            return group
        needed, before = self.needs[number], self.before[number]
        for other in range_ids(self.waiting & ~blocked & ~group):
            theirs = self.nests[other].loops
            if not theirs or theirs[0] is not loops[0] or self.before[other] & blocked:
                continue
            if self.needs[other] & group or needed >> other & 1:
                continue
            if self.has_order and self.is_apart(other, group, before):
                continue
            group |= 1 << other
            needed |= self.needs[other]
            before |= self.before[other]
        return group

    def is_apart(self, number: int, group: int, before: int) -> bool:
        """Whether something has to run between a nest and a group that follows `before`."""
        own = self.before[number]
        for other in range_ids(self.waiting & ~group & ~(1 << number) & (own | before)):
            if own >> other & 1 and self.before[other] & group:
                return True
            if before >> other & 1 and self.before[other] >> number & 1:
                return True
        return False


def _united(sets: Mapping[int, int], bits: int) -> int:
    """The union of the sets that stand for single bits."""
    found = 0
    while bits:
        low = bits & -bits
        found |= sets[low]
        bits ^= low
    return found


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
    """The loops from iteration to iteration of which a store hands its accumulator on."""
    memory = store.src[0].src[0]
    if memory.op != Op.AFTER:
        return ()
    return tuple([source for source in memory.src[1:] if source.op == Op.RANGE])


def _together(versions: Sequence[UOp]) -> dict[UOp, tuple[UOp, ...]]:
    """For each of several accumulators that go on together, the stores that update all of them.

    Versions list such stores, and those that share one are one group.
    """
    found: dict[UOp, tuple[UOp, ...]] = {}
    for version in versions:
        updates = [store for store in stores_of(version) if starts_of(store)]
        if len(updates) > 1:
            members = [each for store in updates for each in found.get(store, (store,))]
            group = tuple(dict.fromkeys(members))
            found.update(dict.fromkeys(group, group))
    return found


def _readers_before(versions: Sequence[UOp]) -> dict[UOp, list[UOp]]:
    """For each store into an argument that is waited for, the awaited stores that read it before.

    They see the contents from before it, so it comes after them.
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


def _versions_read(nodes: list[UOp], versions: list[UOp]) -> dict[UOp, int]:
    """For each node the versions that it reads, but not those below them, as bits."""
    read = {version: 1 << number for number, version in enumerate(versions)}
    for node in nodes:
        if node not in read:
            bits = 0
            for source in node.src:
                bits |= read[source]
            read[node] = bits
    return read


def in_order(groups: list[list[UOp]]) -> tuple[list[list[UOp]], dict[UOp, list[UOp]]]:
    """The groups, those that read the old contents of memory before those that write it.

    With them, for the first store of each group, those of the groups that it has to follow.
    """
    if len(groups) == 1:
        return groups, {}
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
    follows: dict[UOp, list[UOp]] = {}
    for i, group in enumerate(groups):
        readers = [groups[j][0] for j in range(len(groups)) if j != i and written[i] & read[j]]
        if readers:
            follows[group[0]] = readers
    return result, follows

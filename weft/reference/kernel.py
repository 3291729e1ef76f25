"""An interpreter for kernels: stores over ranges, with reductions and stages, in plain Python.

It runs a KERNEL, or a SINK of STOREs, at any point between rangeify and linearize: with stages or
with memory that stores fill, with ranges or with lanes, copies and hardware counters. The order
and the kinds of loops change nothing here, which makes it the oracle for opts and for lowering.
Stores with the same ranges run together: at each point all their values are computed, then all are
written. Any other read of what the kernel writes sees the contents from before the kernel, unless
it goes through an AFTER.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weft.ir.ops import Op, name
from weft.ir.uop import UOp, range_ids
from weft.ir.walk import topological
from weft.reference.fault import fault
from weft.reference.kernel_values import KernelFacts, KernelValues, Point, is_local, memory_below
from weft.reference.memory import Cell, ElementMemory, Value, store

_MEMORIES: Final = (Op.PARAM, Op.BUFFER)


def run_kernel(
    kernel: UOp,
    arguments: Sequence[ElementMemory],
    variables: Mapping[str, int] | None = None,
    buffers: Mapping[int, ElementMemory] | None = None,
) -> None:
    """Run a KERNEL or a SINK of STOREs; the memory it stores to is written in place.

    `arguments[slot]` is the memory of `PARAM(slot)`, `buffers[number]` that of a BUFFER.
    """
    if kernel.op not in (Op.KERNEL, Op.SINK):
        raise fault(f"a kernel is a KERNEL or a SINK of STOREs, not {name(kernel.op)}", kernel)
    memories = _memories(kernel, arguments, buffers or {})
    facts = KernelFacts(topological(kernel))
    stores = [node for node in topological(kernel) if _is_output(node)]
    targets = {memories[memory_below(node)] for node in stores}
    copies = {memory: memory.copy() for memory in targets}
    start = {node: copies.get(memory, memory) for node, memory in memories.items()}
    for group in _groups(stores):
        live = {memories[memory_below(node)] for node in group}
        seen = {n: memory if memory in live else start[n] for n, memory in memories.items()}
        _KernelRun(facts, variables or {}, seen, live, start).perform(group, memories, {})


def _is_output(node: UOp) -> bool:
    """Whether a node is a STORE into an argument, not into memory inside the kernel."""
    return node.op == Op.STORE and memory_below(node).op != Op.MEMORY


def _memories(
    kernel: UOp, arguments: Sequence[ElementMemory], buffers: Mapping[int, ElementMemory]
) -> dict[UOp, ElementMemory]:
    found: dict[UOp, ElementMemory] = {}
    for node in topological(kernel):
        if node.op == Op.PARAM and node.arg[0] < len(arguments):
            found[node] = arguments[node.arg[0]]
        elif node.op == Op.BUFFER and node.arg[0] in buffers:
            found[node] = buffers[node.arg[0]]
        elif node.op in _MEMORIES:
            raise fault(f"{name(node.op)} {node.arg[0]} stands for no memory", node)
        if node in found and found[node].dtype is not node.dtype:
            raise fault(f"{name(node.op)} {node.arg[0]} is {found[node].dtype.name}", node)
    return found


def _groups(stores: list[UOp]) -> list[list[UOp]]:
    """The stores that run together: over the same ranges, and after the same other stores."""
    groups: dict[object, list[UOp]] = {}
    for node in stores:
        earlier = frozenset(part for part in topological(node) if _is_output(part)) - {node}
        groups.setdefault((_loops(node), earlier), []).append(node)
    return list(groups.values())


def _loops(node: UOp) -> tuple[UOp, ...]:
    """The ranges a STORE runs over: those that it leaves to the kernel, then its own."""
    own = node.src[2:]
    free = 0
    for part in (*node.src[:2], *(range_.src[0] for range_ in own)):
        free |= part.ranges
    numbers = set(range_ids(free)) - {range_.arg for range_ in own}
    outer = [part for part in topological(node) if part.op == Op.RANGE and part.arg in numbers]
    return (*outer, *own)


class _KernelRun(KernelValues):
    """The stores of a kernel on some state of its memory; `start` is that from before it."""

    def __init__(
        self,
        facts: KernelFacts,
        variables: Mapping[str, int],
        memories: Mapping[UOp, ElementMemory],
        live: set[ElementMemory],
        start: Mapping[UOp, ElementMemory],
    ) -> None:
        super().__init__(facts, variables, memories, live)
        self.start = start
        # An accumulator that a loop hands on: how many iterations are done, and what it holds.
        self.carried: dict[tuple[UOp, tuple[int, ...]], tuple[int, ElementMemory | None]] = {}

    def perform(
        self, group: list[UOp], targets: Mapping[UOp, ElementMemory], outer: Point
    ) -> None:
        """Run the stores of a group, writing into `targets`."""
        loops = [
            part for part in (*_loops(group[0]), *self.facts.counters) if part.arg not in outer
        ]
        for point in self.points(loops, outer):
            writes: list[tuple[Cell, Value]] = []
            for node in group:
                index = node.src[0]
                if index.op != Op.INDEX:
                    raise fault("STORE takes an INDEX as its address", node)
                address = self.address(index, targets[memory_below(index)], point)
                writes.append((address, self.value(node.src[1], point)))
            for node, (address, value) in zip(group, writes, strict=True):
                store(address, value, node)

    def version(self, node: UOp, point: Point) -> ElementMemory:
        """The memory of an AFTER: a copy of what it follows, with its stores done."""
        first = node.src[0]
        memory = memory_below(first)
        stores = [part for part in node.src[1:] if part.op != Op.RANGE]
        is_continued = first is memory and stores[0].src[0].src[0].op == Op.AFTER
        for each in stores[: 1 if is_continued else None]:
            if each.op != Op.STORE or memory_below(each) is not memory:
                raise fault("AFTER in a kernel follows STOREs to the memory it reads", node)
        if is_local(node):
            point = {n: at for n, at in point.items() if n not in self.facts.threads}
        if is_continued:
            return self.continued(stores, point)
        after = self.contents(first, point).copy()
        for each in stores:
            self.on(memory, memory, after).perform([each], {memory: after}, point)
        return after

    def continued(self, updates: Sequence[UOp], point: Point) -> ElementMemory:
        """What memory holds after a STORE that goes on from a version of it, which it may read.

        Other STOREs go on together with it: each sees what the iteration before left of all.
        """
        update, *others = updates
        before = update.src[0].src[0]
        memory = memory_below(before)
        loop = next((part for part in before.src if part.op == Op.RANGE), None)
        if loop is None:
            together, states = self, {}
            for each in updates:
                version = each.src[0].src[0]
                states[memory_below(version)] = copy = self.memory(version, point).copy()
                together = together.on(memory_below(version), version, copy)
            together.perform(list(updates), states, point)
            return states[memory]
        if others:
            raise fault("STOREs that go on together close their loop", update)
        outside = {n: at for n, at in point.items() if n != loop.arg}
        key = (update, tuple(outside.values()))
        done, state = self.carried.get(key, (0, None))
        if state is None or done > point[loop.arg] + 1:
            done, state = 0, self.memory(before, point)
        after = state.copy()
        for iteration in range(done, point[loop.arg] + 1):
            run = self.on(memory, before, after)
            run.perform([update], {memory: after}, outside | {loop.arg: iteration})
        self.carried[key] = (point[loop.arg] + 1, after)
        return after

    def contents(self, version: UOp, point: Point) -> ElementMemory:
        """What a version of memory holds; memory inside the kernel has nothing to begin with."""
        if version.op == Op.MEMORY:
            title, _, size = version.arg
            return ElementMemory(version.dtype, size, name=title)
        return self.start[version] if version in self.start else self.memory(version, point)

    def on(self, memory: UOp, version: UOp, state: ElementMemory) -> _KernelRun:
        """A run that reads and writes a state of some memory.

        A version of an argument follows from the contents before the kernel. Memory inside it is
        a way to compute a value, which sees what the value would see.
        """
        is_inside = memory.op == Op.MEMORY
        seen = {**(self.memories if is_inside else self.start), memory: state, version: state}
        live = {*self.live, state} if is_inside else {state}
        return _KernelRun(self.facts, self.variables, seen, live, self.start)

"""An interpreter for kernels: stores over ranges, with reductions and stages, in plain Python.

It runs a KERNEL, or a SINK of STOREs, at any point between rangeify and the lowering of ranges to
loops. The order and the kinds of loops change nothing here, which makes it the oracle for opts.
Stores with the same ranges run together: at each point all their values are computed, then all are
written. Any other read of what the kernel writes sees the contents from before the kernel, unless
it goes through an AFTER.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weft.ir.ops import Op, name
from weft.ir.uop import UOp, range_ids
from weft.ir.views import memory_of
from weft.ir.walk import topological
from weft.reference.fault import fault
from weft.reference.kernel_values import KernelValues, Point
from weft.reference.memory import Memory, Place, Value, store

_MEMORIES: Final = (Op.PARAM, Op.BUFFER)


def run_kernel(
    kernel: UOp,
    arguments: Sequence[Memory],
    variables: Mapping[str, int] | None = None,
    buffers: Mapping[int, Memory] | None = None,
) -> None:
    """Run a KERNEL or a SINK of STOREs; the memory it stores to is written in place.

    `arguments[slot]` is the memory of `PARAM(slot)`, `buffers[number]` that of a BUFFER.
    """
    if kernel.op not in (Op.KERNEL, Op.SINK):
        raise fault(f"a kernel is a KERNEL or a SINK of STOREs, not {name(kernel.op)}", kernel)
    memories = _memories(kernel, arguments, buffers or {})
    stores = [node for node in topological(kernel) if node.op == Op.STORE]
    targets = {memories[_memory_below(node)] for node in stores}
    copies = {memory: memory.copy() for memory in targets}
    start = {node: copies.get(memory, memory) for node, memory in memories.items()}
    for group in _groups(stores):
        live = {memories[_memory_below(node)] for node in group}
        seen = {n: memory if memory in live else start[n] for n, memory in memories.items()}
        _Run(variables or {}, seen, live, start).perform(group, memories, {})


def _memories(
    kernel: UOp, arguments: Sequence[Memory], buffers: Mapping[int, Memory]
) -> dict[UOp, Memory]:
    found: dict[UOp, Memory] = {}
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


def _memory_below(place: UOp) -> UOp:
    """The PARAM or BUFFER that a STORE, an INDEX or a version of memory leads to."""
    place = memory_of(place.src[0] if place.op == Op.STORE else place)
    if place.op not in _MEMORIES:
        raise fault(f"STORE into {name(place.op)}, which is no memory of a kernel", place)
    return place


def _groups(stores: list[UOp]) -> list[list[UOp]]:
    """The stores that run together: over the same ranges, and after the same other stores."""
    groups: dict[object, list[UOp]] = {}
    for node in stores:
        earlier = frozenset(part for part in topological(node) if part.op == Op.STORE) - {node}
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


class _Run(KernelValues):
    """The stores of a kernel on some state of its memory; `start` is that from before it."""

    def __init__(
        self,
        variables: Mapping[str, int],
        memories: Mapping[UOp, Memory],
        live: set[Memory],
        start: Mapping[UOp, Memory],
    ) -> None:
        super().__init__(variables, memories, live)
        self.start = start

    def perform(self, group: list[UOp], targets: Mapping[UOp, Memory], outer: Point) -> None:
        """Run the stores of a group, writing into `targets`."""
        loops = [part for part in _loops(group[0]) if part.arg not in outer]
        for point in self.points(loops, outer):
            writes: list[tuple[Place, Value]] = []
            for node in group:
                index = node.src[0]
                if index.op != Op.INDEX:
                    raise fault("STORE takes an INDEX as its place", node)
                place = self.place(index, targets[_memory_below(index)], point)
                writes.append((place, self.value(node.src[1], point)))
            for node, (place, value) in zip(group, writes, strict=True):
                store(place, value, node)

    def version(self, node: UOp, point: Point) -> Memory:
        """The memory of an AFTER: a copy of what it follows, with its stores done."""
        first, *stores = node.src
        memory = _memory_below(first)
        before = self.start[memory] if first is memory else self.memory(first, point)
        after = before.copy()
        run = _Run(self.variables, {**self.start, memory: after}, {after}, self.start)
        for each in stores:
            if each.op != Op.STORE or _memory_below(each) is not memory:
                raise fault("AFTER in a kernel follows STOREs to the memory it reads", node)
            run.perform([each], {memory: after}, point)
        return after

"""Values in memory that their readers had better compute again, decided for all of them together.

The walk decides for one value after the other, and asks each time what it costs to go without its
memory: all that is below it would have to be computed again. Where several values of a kernel are
read elsewhere, as the parts of an activation by its gradient, most of them follow from one that is
kept anyway. With the decisions of a walk known, `recomputed` looks for values whose memory costs
more, written once and read by each reader, than computing them there from others in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from weft.ir.ops import ELEMENTWISE, MOVEMENT, Op
from weft.ir.uop import UOp
from weft.schedule.fuse.cost import ElementCost, bytes_cost, size_of
from weft.schedule.fuse.kernel import Kernel
from weft.schedule.fuse.uses import Materialized
from weft.schedule.memory import MEMORY
from weft.target.target import Target

# Ops of a value that is worth computing again.
MOST_OPS: Final = 32
# How many times fewer results a reduction has than it takes, if it is better kept than those.
FEWER: Final = 8
# And of memory that the graph changes: a weight of each column, and not one of each element.
FEWER_READ: Final = 64
_FREE: Final = frozenset((Op.CONST, Op.IOTA, Op.VARIABLE, Op.BIND))


class Reads(NamedTuple):
    """Who reads a value that is in memory: kernels, and whether each element once."""

    kernels: frozenset[Kernel]
    is_pointwise: bool


class Revised(NamedTuple):
    """What a second walk decides otherwise: values without memory, and reductions with it."""

    recomputed: frozenset[UOp] = frozenset()
    kept: frozenset[UOp] = frozenset()


class _Cone(NamedTuple):
    """What computes a value from memory: ops, and the values in memory that they read."""

    ops: list[UOp]
    leaves: list[UOp]


def recomputed(
    order: Sequence[UOp],
    values: Mapping[UOp, Materialized],
    reads: Mapping[UOp, Reads],
    work: ElementCost,
    computed: Mapping[Kernel, Collection[UOp]],
    kept: Collection[UOp],
) -> frozenset[UOp]:
    """The values that are cheaper without memory, and what is computed with them.

    `computed` is what kernels compute anyway.
    """
    written = {store.src[0] for store in order if store.op == Op.STORE}
    search = _Search(values, reads, work, computed, written)
    of_kernel: dict[Kernel, list[UOp]] = {}
    for node in reversed(order):
        is_temporary = node in values and values[node].effect is node
        if is_temporary and node.op in ELEMENTWISE and node not in kept:
            search.visit(node)
            of_kernel.setdefault(values[node].kernel, []).append(node)
    for nodes in of_kernel.values():
        search.cut(nodes)
    return frozenset(search.found)


def reduced_first(
    order: Sequence[UOp], values: Mapping[UOp, Materialized], kept: Collection[UOp]
) -> dict[UOp, UOp]:
    """Values in memory that one reduction alone takes, which has far fewer results, and that one.

    A reduction that a kernel computes in several loops is small work for each, but what it takes
    may hold others, and is not.
    """
    readers: dict[UOp, list[UOp]] = {}
    for node in order:
        for source in node.src:
            readers.setdefault(source, []).append(node)
    found: dict[UOp, UOp] = {}
    for node in order:
        if node not in values or values[node].effect is not node or node.op not in ELEMENTWISE:
            continue
        above = readers[node]
        while len(above) == 1 and (above[0].op in MOVEMENT or above[0].op == Op.CAST):
            above = readers[above[0]]
        (first, *others) = above
        is_alone = not others and first.op == Op.REDUCE and first not in values
        if is_alone and first not in kept and FEWER * size_of(first) <= size_of(node):
            found[node] = first
    return found


def memory_time(
    values: Mapping[UOp, Materialized], reads: Mapping[UOp, Reads], kernels: int, target: Target
) -> float:
    """Nanoseconds of values in memory, written once and read by each reader, and of launches."""
    moved = [
        bytes_cost(target, node) * (1 + len(reads[node].kernels))
        for node in values
        if node in reads
    ]
    return sum(moved) + kernels * target.costs.launch


class _Search:
    """Visits values in memory, users first, and drops those that follow from others."""

    def __init__(
        self,
        values: Mapping[UOp, Materialized],
        reads: Mapping[UOp, Reads],
        work: ElementCost,
        computed: Mapping[Kernel, Collection[UOp]],
        written: set[UOp],
    ) -> None:
        self._values = values
        self._work = work
        self._written = written
        self._reads = reads
        self._readers = {node: set(reads[node].kernels) for node in reads}
        self._dropped: set[UOp] = set()
        self._computed = {kernel: set(nodes) for kernel, nodes in computed.items()}
        self.found: set[UOp] = set()  # what is not to be in memory

    def visit(self, node: UOp) -> None:
        """Drop a value that follows from others in memory, if that is cheaper."""
        cone = self._cone(node) if self._is_candidate(node) else None
        if cone is not None and self._again(node, cone) < self._saved(node):
            self._drop(node, cone)

    def cut(self, nodes: list[UOp]) -> None:
        """Drop values of a kernel for one that they follow from, which gets memory instead."""
        nodes = [n for n in nodes if n not in self._dropped and self._is_candidate(n)]
        below: dict[UOp, int] = {}
        for node in nodes if len(nodes) > 1 else ():
            for part in self._below(node):
                below[part] = below.get(part, 0) + 1
        best, least = None, 0.0
        for part in [part for part, count in below.items() if count > 1]:
            found = {node: self._cone(node, part) for node in nodes if node is not part}
            cones = {n: c for n, c in found.items() if c is not None and part in c.leaves}
            readers = set().union(*(self._readers[node] for node in cones))
            gain = sum(self._saved(n) - self._again(n, c, part) for n, c in cones.items())
            gain -= (1 + len(readers)) * bytes_cost(self._work.target, part)
            if gain > least:
                best, least = (part, cones), gain
        if best is not None:
            for node, cone in best[1].items():
                self._drop(node, cone)
            self.found.discard(best[0])

    def _is_candidate(self, node: UOp) -> bool:
        """Whether a value has readers, and each of them reads an element once."""
        reads = self._reads.get(node)
        return reads is not None and reads.is_pointwise and bool(reads.kernels)

    def _below(self, node: UOp) -> list[UOp]:
        """What a value is computed from in its kernel, the nearest first."""
        found, stack = dict[UOp, None](), list(node.src)
        while stack and len(found) < MOST_OPS:
            part = stack.pop(0)
            if part.op in ELEMENTWISE and part not in self._values and part not in found:
                found[part] = None
                stack += part.src
        return list(found)

    def _drop(self, node: UOp, cone: _Cone) -> None:
        self._dropped.add(node)
        self.found |= {node, *(op for op in cone.ops if op not in self._values)}
        for kernel in self._readers[node]:
            self._computed.setdefault(kernel, set()).update(cone.ops)
            for leaf in cone.leaves:
                self._readers.setdefault(leaf, set()).add(kernel)

    def _saved(self, node: UOp) -> float:
        """What the memory of a value costs."""
        return (1 + len(self._readers[node])) * bytes_cost(self._work.target, node)

    def _again(self, node: UOp, cone: _Cone, given: UOp | None = None) -> float:
        """What readers need to compute a value: ops that they lack, and memory that is new."""
        target = self._work.target
        cost = 0.0
        for kernel in self._readers[node]:
            known = self._computed.get(kernel, ())
            ops = [op for op in cone.ops if op not in known]
            cost += sum(size_of(op) * self._work.of_one(op) for op in ops) / target.units
            fresh = [
                leaf
                for leaf in cone.leaves
                if leaf is not given and kernel not in self._readers.get(leaf, ())
            ]
            cost += sum(bytes_cost(target, leaf) for leaf in fresh)
        return cost

    def _cone(self, node: UOp, given: UOp | None = None) -> _Cone | None:
        """What a value is computed from; None where that is not memory that stays as it is.

        `given` is a value that would get memory.
        """
        ops, leaves, stack = [node], dict[UOp, None](), list(node.src)
        seen = {node}
        while stack:
            part = stack.pop()
            if part in seen or part.op in _FREE:
                continue
            seen.add(part)
            if part is given or (part in self._values and part not in self._dropped):
                leaves[part] = None
            elif part.op in MEMORY:
                is_changing = part.op == Op.AFTER or part in self._written
                if is_changing and FEWER_READ * size_of(part) > size_of(node):
                    return None  # it may have to be copied before it changes
                leaves[part] = None
            elif part.op in ELEMENTWISE or part.op in MOVEMENT:
                ops.append(part)
                stack += part.src[:1] if part.op in MOVEMENT else part.src
            else:
                return None
            if len(ops) > MOST_OPS:
                return None
        return _Cone(ops, list(leaves))

"""The value of an expression of a kernel at a point, that is, for given values of its ranges.

REDUCE and STAGE are evaluated when first needed, and remembered per value of the ranges they
depend on, as the compiled kernel computes them once per iteration of those loops. A SCAN is
continued from the iteration it was last asked for. Every index is checked against its axis, and
every read against what was written. In lowered kernels an address has one flat index, vectors are
tuples, and the counters of groups and threads are ranges like others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from weft.ir.dtypes import Scalar
from weft.ir.ops import Op, name
from weft.ir.reduction.contract import ContractParts, contract_parts
from weft.ir.reduction.joined import is_joined, references
from weft.ir.shapes import shape_of
from weft.ir.stage import is_global
from weft.ir.uop import UOp, first_closed, range_ids
from weft.ir.views import behind, memory_of
from weft.ir.walk import topological
from weft.reference import lanes
from weft.reference.fault import fault
from weft.reference.memory import Cell, ElementMemory, Value, load, store
from weft.reference.reductions import joined_value, prefixes, reduction
from weft.reference.tiles import Tiles, contract_value, is_shared_out, whole_tile

# The value of each range, by its number, and of each hardware counter, by its kind and axis.
Point = dict[int | tuple[str, int], int]

_COUNTERS: Final = (Op.RANGE, Op.SPECIAL)
_MEMORIES: Final = (Op.PARAM, Op.BUFFER)
# What an expression reads is evaluated on its own, at the same or at other points.
_READS: Final = (Op.LOAD, Op.INDEX, Op.READ, Op.REDUCE, Op.SCAN, Op.SHUFFLE, Op.CONTRACT)


class KernelFacts:
    """What all runs over one kernel share: its counters, and values of what no store changes."""

    def __init__(self, nodes: Sequence[UOp]) -> None:
        kinds: dict[int, str] = {}
        for kernel in nodes:
            if kernel.op == Op.KERNEL:
                kinds.update(kernel.arg[1])
        counters = {node.arg: node for node in nodes if node.op == Op.SPECIAL}
        self.counters = [counters[arg] for arg in sorted(counters)]
        # Threads of a group share its local memory, so each sees what all of them have stored.
        self.threads: set[int | tuple[str, int]] = {n for n, k in kinds.items() if k == "thread"}
        self.threads |= {arg for arg in counters if arg[0] == "thread"}
        # In a kernel of flat memory every address has one index, whatever the shape of its memory.
        self.is_flat = all(len(node.src) == 3 for node in nodes if node.op == Op.INDEX)
        self.remembered: dict[tuple[UOp, tuple[int, ...]], Value | ElementMemory] = {}
        self.orders: dict[UOp, list[UOp]] = {}
        self.tiles: Tiles = {}  # products of tiles, by what they are of
        self.reads: dict[UOp, list[UOp] | None] = {}

    def reads_of(self, node: UOp) -> list[UOp] | None:
        """The arguments that a value reads in their present state; None if it depends on more.

        A node that closes a range does not list the ranges on which the extent of that range
        depends. What goes through an AFTER of an argument reads a version, which never changes.
        """
        if node not in self.reads:
            parts = topological(node, enter=lambda part: not _is_settled(part))
            slanted = any(part.op == Op.RANGE and part.src[0].ranges for part in parts)
            found = [part for part in parts if part.op in _MEMORIES]
            self.reads[node] = None if slanted else found
        return self.reads[node]


def _is_settled(node: UOp) -> bool:
    """Whether a node is memory that stays as it is: a version of an argument, or a value that
    other kernels have materialized, as opposed to memory inside the kernel."""
    if is_global(node) or node.op in (Op.CALL, Op.ITEM):
        return True
    return node.op == Op.AFTER and memory_below(node).op != Op.MEMORY


def memory_below(address: UOp) -> UOp:
    """The memory that a STORE, an INDEX or a version of memory leads to."""
    address = memory_of(address.src[0] if address.op == Op.STORE else address)
    if address.op not in _MEMORIES and address.op != Op.MEMORY:
        raise fault(f"STORE: expected memory of a kernel, got {name(address.op)}", address)
    return address


class KernelValues:
    """Expressions over variables and memory; what reads `live` memory is never remembered."""

    def __init__(
        self,
        facts: KernelFacts,
        variables: Mapping[str, int],
        memories: Mapping[UOp, ElementMemory],
        live: set[ElementMemory],
    ) -> None:
        self.facts = facts
        self.variables = variables
        self.memories = memories
        self.live = live
        self._scans: dict[tuple[UOp, tuple[int, ...]], _Prefixes] = {}
        self._fixed: dict[UOp, bool] = {}
        self._tiles: dict[object, ElementMemory] = {}

    def points(self, ranges: Sequence[UOp], outer: Point) -> Iterator[Point]:
        """Every combination of the ranges, the last one fastest; extents may depend on others."""
        if not ranges:
            yield outer
            return
        first, *rest = ranges
        if first.op not in _COUNTERS:
            raise fault(f"{name(first.op)} stands where a RANGE is due", first)
        for count in range(self.number(first.src[0], outer)):
            yield from self.points(rest, outer | {first.arg: count})

    def number(self, node: UOp, point: Point) -> int:
        """The value of a scalar integer."""
        return int(cast("Scalar", self.value(node, point)))

    def value(self, root: UOp, point: Point) -> Value:
        """The value of an expression."""
        orders = self.facts.orders
        if root not in orders:
            orders[root] = topological(root, enter=lambda node: node.op not in _READS)
        known: dict[UOp, Value] = {}
        for node in orders[root]:
            known[node] = self._compute(node, known, point)
        return known[root]

    def _compute(self, node: UOp, known: Mapping[UOp, Value], point: Point) -> Value:
        if lanes.is_arithmetic(node.op):
            return lanes.apply(node, tuple([known[source] for source in node.src]))
        if node.op == Op.CONST:
            return lanes.constant(node.dtype, node.arg)
        if node.op in _COUNTERS:
            if node.arg not in point:
                raise fault(f"range {node.arg} is used outside its loop", node)
            return point[node.arg]
        if node.op == Op.VARIABLE:
            return lanes.variable_value(node, self.variables)
        if node.op == Op.BIND:
            return known[node.src[1]]
        if node.op == Op.REDUCE:
            return cast("Value", self._remember(node, point))
        if node.op == Op.SCAN:
            return self._scan(node, point)
        if node.op == Op.SHUFFLE:
            value, counter = node.src
            return self.value(value, point | {counter.arg: point[counter.arg] ^ node.arg[0]})
        if node.op == Op.CONTRACT:
            return self._contract(node, point)
        if node.op in _READS:  # an INDEX that nobody loads is a value itself
            index = node.src[0] if node.op == Op.LOAD else node
            return load(self.address(index, self.memory(index.src[0], point), point), node)
        raise fault(f"{name(node.op)} has no meaning in a kernel", node)

    def _contract(self, node: UOp, point: Point) -> Value:
        """An element of a product of tiles, or all that a thread has."""
        factors = {memory: self.memory(memory, point) for memory in node.src[:2]}
        parts = contract_parts(node)
        if is_shared_out(parts, factors[node.src[0]]):
            factors[node.src[0]] = self._left_tile(parts, point)
        tiles = self.facts.tiles if self.live.isdisjoint(factors.values()) else {}
        return contract_value(node, factors, lambda x: self.number(x, point), tiles)

    def _left_tile(self, parts: ContractParts, point: Point) -> ElementMemory:
        """A left factor that the threads of a group have computed: the rows of this thread.

        Its neighbors have the other columns of them, and what it knows of its rows they know too.
        """
        warp, lane, quad = parts.positions[:3]
        key = (parts.memories[0], *[at for n, at in point.items() if n != quad.arg])
        if key not in self._tiles:
            rows = self.number(warp, point), self.number(lane, point)
            owns = [
                ((*rows, at), self.memory(parts.memories[0], point | {quad.arg: at}))
                for at in range(self.number(quad.src[0], point))
            ]
            self._tiles[key] = whole_tile(parts, owns)
        return self._tiles[key]

    def memory(self, node: UOp, point: Point) -> ElementMemory:
        """The memory that an INDEX or READ reads."""
        if node in self.memories:
            return self.memories[node]
        if node.op not in (Op.STAGE, Op.AFTER):
            raise fault(f"expected memory, got {name(node.op)}", node)
        return cast("ElementMemory", self._remember(node, point))

    def address(self, index: UOp, memory: ElementMemory, point: Point) -> Cell:
        """Where an INDEX or READ points; where the mask is false it may be anywhere."""
        mask = self.value(index.src[1], point)
        if not (any(mask) if isinstance(mask, tuple) else mask):
            return Cell(memory, mask, 0)
        sizes = self._sizes(index.src[0], point)
        is_flat = index.op == Op.INDEX and self.facts.is_flat
        if is_flat and (len(sizes) != 1 or index.dtype.lanes > 1):
            # The memory itself knows its bounds, lane by lane.
            return Cell(memory, mask, self.number(index.src[2], point))
        return Cell(memory, mask, self.position(index, index.src[2:], sizes, point))

    def _sizes(self, memory: UOp, point: Point) -> Sequence[int]:
        memory = behind(memory)
        if memory.op == Op.MEMORY:
            return (memory.arg[2],)
        is_inside = memory.op == Op.STAGE and not is_global(memory)
        sizes = memory.arg[1] if is_inside else shape_of(memory)
        return [self.number(x, point) if isinstance(x, UOp) else x for x in sizes]

    def position(
        self, node: UOp, indices: Sequence[UOp], sizes: Sequence[int], point: Point
    ) -> int:
        """The row-major position of some indices, each inside its own axis."""
        if len(sizes) != len(indices):
            raise fault(f"{name(node.op)} has {len(indices)} indices for {len(sizes)} axes", node)
        position = 0
        for axis, (part, size) in enumerate(zip(indices, sizes, strict=True)):
            number = self.number(part, point)
            if not 0 <= number < size:
                what = f"{name(node.op)} is out of bounds at {number} on axis {axis}"
                raise fault(what, node, index=number, size=size)
            position = position * size + number
        return position

    def _remember(self, node: UOp, point: Point) -> Value | ElementMemory:
        """What a REDUCE, STAGE or AFTER makes, once per value of the ranges it depends on."""
        if not self._is_fixed(node):
            return self._materialize(node, point)
        key = (node, self.position_of(node, point))
        remembered = self.facts.remembered
        if key not in remembered:
            remembered[key] = self._materialize(node, point)
        return remembered[key]

    def position_of(self, node: UOp, point: Point) -> tuple[int, ...]:
        """The counters on which a value depends, at a point."""
        numbers = (*range_ids(node.ranges), *[counter.arg for counter in self.facts.counters])
        shared = self.facts.threads if is_local(node) else ()
        return tuple([point[number] for number in numbers if number not in shared])

    def _is_fixed(self, node: UOp) -> bool:
        """Whether the ranges are all that the value depends on while the kernel runs.

        A store can change what live memory holds, though never a version of it.
        """
        if node not in self._fixed:
            reads = self.facts.reads_of(node)
            memories = None if reads is None else [self.memories[part] for part in reads]
            self._fixed[node] = memories is not None and self.live.isdisjoint(memories)
        return self._fixed[node]

    def _materialize(self, node: UOp, point: Point) -> Value | ElementMemory:
        if node.op == Op.AFTER:
            return self.version(node, point)
        return (self._reduce if node.op == Op.REDUCE else self._stage)(node, point)

    def version(self, node: UOp, point: Point) -> ElementMemory:
        """The memory of an AFTER; whoever runs stores says what that is."""
        raise fault("AFTER: expected an expression, got a STORE", node)

    def _reduce(self, node: UOp, point: Point) -> Value:
        """The reduction of the value over the ranges; of a vector, lane by lane."""
        if is_joined(node):
            return self._joined(node, point)
        values = [self.value(node.src[0], inner) for inner in self.points(node.src[1:], point)]
        dtype = node.dtype.scalar
        rows = [lanes.lanes_of(value) for value in values]
        columns = [[row[lane] for row in rows] for lane in range(node.dtype.lanes)]
        reduced = tuple(reduction(node.arg[0], dtype, column) for column in columns)
        return reduced if node.dtype.lanes > 1 else reduced[0]

    def _joined(self, node: UOp, point: Point) -> Value:
        """The parts of a joined reduction and of its references, joined in a mixed-up order.

        Neighbors are joined, any two first: the order is not specified.
        """
        refers, ranges = references(node), node.src[first_closed(node) :]
        parts = [
            [lanes.lanes_of(self.value(each.src[0], inner)) for each in (node, *refers)]
            for inner in self.points(ranges, point)
        ]
        rows: list[Scalar] = []
        for lane in range(node.dtype.lanes):
            states = [[row[lane if len(row) > 1 else 0] for row in part] for part in parts]
            rows.append(joined_value(node, states))
        return tuple(rows) if node.dtype.lanes > 1 else rows[0]

    def _scan(self, node: UOp, point: Point) -> Value:
        """The reduction of the iterations up to this one; none is evaluated again."""
        loop = node.src[1].arg
        outer = [number for number in range_ids(node.ranges) if number != loop]
        key = (node, tuple([point[number] for number in outer]))
        if key not in self._scans:
            self._scans[key] = _Prefixes(node)
        known = self._scans[key]
        for iteration in range(len(known.values), point[loop] + 1):
            known.extend(self.value(node.src[0], point | {loop: iteration}))
        return known.values[point[loop]]

    def _stage(self, node: UOp, point: Point) -> ElementMemory:
        space, sizes = node.arg
        indices, ranges = node.src[1 : 1 + len(sizes)], node.src[1 + len(sizes) :]
        memory = ElementMemory(node.dtype.scalar, math.prod(sizes), name=f"{space} stage")
        for inner in self.points(ranges, point):
            position = self.position(node, indices, sizes, inner)
            store(Cell(memory, True, position), self.value(node.src[0], inner), node)
        return memory


def is_local(node: UOp) -> bool:
    """Whether a node is a version of memory that the threads of a group share."""
    if node.op != Op.AFTER:
        return False
    memory = memory_below(node)
    return memory.op == Op.MEMORY and bool(memory.arg[1] == "local")


class _Prefixes:
    """The values of a SCAN for its first iterations; of a vector, lane by lane."""

    def __init__(self, node: UOp) -> None:
        self.values: list[Value] = []
        self._next: list[Scalar] = []
        self._lanes = [self._reductions(node, lane) for lane in range(node.dtype.lanes)]

    def _reductions(self, node: UOp, lane: int) -> Iterator[Scalar]:
        return prefixes(node.arg[0], node.dtype.scalar, iter(lambda: self._next[lane], None))

    def extend(self, value: Value) -> None:
        self._next = list(lanes.lanes_of(value))
        reduced = tuple([next(each) for each in self._lanes])
        self.values.append(reduced if len(reduced) > 1 else reduced[0])

"""The value of an expression of a kernel at a point, that is, for given values of its ranges.

REDUCE and STAGE are evaluated when first needed, and remembered per value of the ranges they
depend on, as the compiled kernel computes them once per turn of those loops. A SCAN is continued
from the turn it was last asked for. Every index is checked against its axis, and every read
against what was written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from weft.ir.dtypes import Scalar
from weft.ir.ops import Op, name
from weft.ir.shapes import fill_sizes
from weft.ir.uop import UOp, range_ids
from weft.ir.views import behind
from weft.ir.walk import topological
from weft.reference import lanes
from weft.reference.fault import fault
from weft.reference.folds import fold, prefixes
from weft.reference.memory import Memory, Place, Value, load, store

# The value of each range, by its number.
Point = dict[int, int]

_MEMORIES: Final = (Op.PARAM, Op.BUFFER)
# What an expression reads is evaluated on its own, at the same or at other points.
_READS: Final = (Op.LOAD, Op.INDEX, Op.READ, Op.REDUCE, Op.SCAN)


class KernelValues:
    """Expressions over variables and memory; what reads `live` memory is never remembered."""

    def __init__(
        self, variables: Mapping[str, int], memories: Mapping[UOp, Memory], live: set[Memory]
    ) -> None:
        self.variables = variables
        self.memories = memories
        self.live = live
        self._remembered: dict[tuple[UOp, tuple[int, ...]], Value | Memory] = {}
        self._scans: dict[tuple[UOp, tuple[int, ...]], _Prefixes] = {}
        self._orders: dict[UOp, list[UOp]] = {}
        self._fixed: dict[UOp, bool] = {}

    def points(self, ranges: Sequence[UOp], outer: Point) -> Iterator[Point]:
        """Every combination of the ranges, the last one fastest; extents may depend on others."""
        if not ranges:
            yield outer
            return
        first, *rest = ranges
        if first.op != Op.RANGE:
            raise fault(f"{name(first.op)} stands where a RANGE is due", first)
        for count in range(self.number(first.src[0], outer)):
            yield from self.points(rest, outer | {first.arg: count})

    def number(self, node: UOp, point: Point) -> int:
        """The value of a scalar integer."""
        return int(cast("Scalar", self.value(node, point)))

    def value(self, root: UOp, point: Point) -> Value:
        """The value of an expression."""
        if root not in self._orders:
            self._orders[root] = topological(root, enter=lambda node: node.op not in _READS)
        known: dict[UOp, Value] = {}
        for node in self._orders[root]:
            known[node] = self._compute(node, known, point)
        return known[root]

    def _compute(self, node: UOp, known: Mapping[UOp, Value], point: Point) -> Value:
        if lanes.is_arithmetic(node.op):
            return lanes.apply(node, tuple([known[source] for source in node.src]))
        if node.op == Op.CONST:
            return lanes.constant(node.dtype, node.arg)
        if node.op == Op.RANGE:
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
        if node.op in _READS:  # an INDEX that nobody loads is a value itself
            index = node.src[0] if node.op == Op.LOAD else node
            return load(self.place(index, self.memory(index.src[0], point), point), node)
        raise fault(f"{name(node.op)} has no meaning in a kernel", node)

    def memory(self, node: UOp, point: Point) -> Memory:
        """The memory that an INDEX or READ reads."""
        if node.op in _MEMORIES:
            return self.memories[node]
        if node.op not in (Op.STAGE, Op.AFTER):
            raise fault(f"{name(node.op)} is no memory", node)
        return cast("Memory", self._remember(node, point))

    def place(self, index: UOp, memory: Memory, point: Point) -> Place:
        """Where an INDEX or READ points; behind a closed gate it may be anywhere."""
        gate = self.value(index.src[1], point)
        if not (any(gate) if isinstance(gate, tuple) else gate):
            return Place(memory, gate, 0)
        sizes = self._sizes(index.src[0], point)
        return Place(memory, gate, self._position(index, index.src[2:], sizes, point))

    def _sizes(self, memory: UOp, point: Point) -> Sequence[int]:
        memory = behind(memory)
        if memory.op == Op.STAGE:
            return cast("tuple[int, ...]", memory.arg[1])
        sizes = fill_sizes(memory, memory.arg[1], 0)
        return [self.number(x, point) if isinstance(x, UOp) else x for x in sizes]

    def _position(
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

    def _remember(self, node: UOp, point: Point) -> Value | Memory:
        """What a REDUCE, STAGE or AFTER makes, once per value of the ranges it depends on."""
        if not self._is_fixed(node):
            return self._materialize(node, point)
        key = (node, tuple([point[number] for number in range_ids(node.ranges)]))
        if key not in self._remembered:
            self._remembered[key] = self._materialize(node, point)
        return self._remembered[key]

    def _is_fixed(self, node: UOp) -> bool:
        """Whether `node.ranges` are all that the value depends on while the kernel runs.

        A store can change what live memory holds, though never a version of it. And a node that
        closes a range does not list the ranges on which the extent of that range depends.
        """
        if node not in self._fixed:
            parts = topological(node, enter=lambda part: part.op != Op.AFTER)
            memories = [self.memories[part] for part in parts if part.op in _MEMORIES]
            slanted = any(part.op == Op.RANGE and part.src[0].ranges for part in parts)
            self._fixed[node] = not slanted and self.live.isdisjoint(memories)
        return self._fixed[node]

    def _materialize(self, node: UOp, point: Point) -> Value | Memory:
        if node.op == Op.AFTER:
            return self.version(node, point)
        return (self._reduce if node.op == Op.REDUCE else self._stage)(node, point)

    def version(self, node: UOp, point: Point) -> Memory:
        """The memory of an AFTER; whoever runs stores says what that is."""
        raise fault("AFTER follows a STORE, which is no expression", node)

    def _reduce(self, node: UOp, point: Point) -> Value:
        """The fold of the value over the ranges; of a vector, lane by lane."""
        values = [self.value(node.src[0], inner) for inner in self.points(node.src[1:], point)]
        dtype = node.dtype.scalar
        rows = [lanes.lanes_of(value) for value in values]
        columns = [[row[lane] for row in rows] for lane in range(node.dtype.lanes)]
        folded = tuple(fold(node.arg[0], dtype, column) for column in columns)
        return folded if node.dtype.lanes > 1 else folded[0]

    def _scan(self, node: UOp, point: Point) -> Value:
        """The fold of the turns up to this one; those before it are not evaluated again."""
        loop = node.src[1].arg
        outer = [number for number in range_ids(node.ranges) if number != loop]
        key = (node, tuple([point[number] for number in outer]))
        if key not in self._scans:
            self._scans[key] = _Prefixes(node)
        known = self._scans[key]
        for turn in range(len(known.values), point[loop] + 1):
            known.extend(self.value(node.src[0], point | {loop: turn}))
        return known.values[point[loop]]

    def _stage(self, node: UOp, point: Point) -> Memory:
        space, sizes = node.arg
        indices, ranges = node.src[1 : 1 + len(sizes)], node.src[1 + len(sizes) :]
        memory = Memory(node.dtype.scalar, math.prod(sizes), name=f"{space} stage")
        for inner in self.points(ranges, point):
            position = self._position(node, indices, sizes, inner)
            store(Place(memory, True, position), self.value(node.src[0], inner), node)
        return memory


class _Prefixes:
    """The values of a SCAN for its first turns; of a vector, lane by lane."""

    def __init__(self, node: UOp) -> None:
        self.values: list[Value] = []
        self._next: list[Scalar] = []
        self._lanes = [self._folds(node, lane) for lane in range(node.dtype.lanes)]

    def _folds(self, node: UOp, lane: int) -> Iterator[Scalar]:
        return prefixes(node.arg[0], node.dtype.scalar, iter(lambda: self._next[lane], None))

    def extend(self, value: Value) -> None:
        self._next = list(lanes.lanes_of(value))
        folded = tuple([next(each) for each in self._lanes])
        self.values.append(folded if len(folded) > 1 else folded[0])

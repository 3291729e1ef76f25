"""Vector and unroll ranges become explicit vectors and repeated ops.

In: a kernel with flat memory, some of its ranges of kind "vector" or "unroll". Out: the same with
ranges of loops only. An unrolled range becomes a copy of each node that depends on it per value it
takes. A vector range becomes lanes: a value that depends on it is a vector, one that does not is a
scalar and is broadcast where it meets a vector. Loads and stores whose index grows by one with the
lane move whole vectors; a mask that differs between lanes is a vector of bools. A load or store
whose index grows by one with an unrolled range, not with the lanes, transposes squares of them.

A reduction keeps one accumulator per unrolled copy and lane, all in the same loop, and joins at
the end those of its own ranges. A scan has one accumulator per copy and lane of what it depends
on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final

from weft.codegen.analysis.loops import (
    THREAD,
    UPCAST,
    VECTOR,
    extent_of,
    is_index_arithmetic,
    kinds_of,
    own_ranges,
    ranges_of,
)
from weft.codegen.context import CodegenContext
from weft.codegen.lower.lanes import (
    across_lanes,
    broadcast,
    constant_lanes,
    joined,
    mask_of_addresses,
    neighbors,
    of_constants,
    pick,
    stride_of,
    transpose,
)
from weft.ir.ops import COMPARE, ELEMENTWISE, Op
from weft.ir.reduction.joined import is_joined, joined_parts, references
from weft.ir.uop import UOp, const, make
from weft.ir.walk import rebuild, topological
from weft.rules.simplify import simplify
from weft.support.errors import InternalError

# Lanes whose addresses are no further apart come with one masked load of all between them.
MOST_LANES: Final = 64

# The value of each range that is fixed, by number.
Point = Mapping[int, int]
Key = tuple[UOp, tuple[tuple[int, int], ...]]


def expand(kernel: UOp, context: CodegenContext) -> UOp:
    """Replace vector and unroll ranges by lanes and copies."""
    kinds = kinds_of(kernel)
    upcast = {number: kind for number, kind in kinds.items() if kind in UPCAST}
    if not upcast:
        return kernel
    expander = _Expander(kernel, upcast)
    stores: list[UOp] = []
    for node in kernel.src:
        stores += expander.stores(node, {}) if node.op == Op.STORE else [node]
    loops = tuple((number, kind) for number, kind in kinds.items() if number not in upcast)
    return make(Op.KERNEL, kernel.dtype, tuple(stores), (kernel.arg[0], loops))


class _Expander:
    def __init__(self, kernel: UOp, upcast: dict[int, str]) -> None:
        ranges = ranges_of(kernel)
        self.extents: dict[int, int] = {}
        for number in upcast:
            extent = extent_of(ranges[number])
            if extent is None:
                raise InternalError(f"range {number} is unrolled, and its extent is not known")
            self.extents[number] = extent
        self.upcast = sum(1 << number for number in upcast)
        self.vectors = sum(1 << n for n, kind in upcast.items() if kind == VECTOR)
        self.threads = {n for n, kind in kinds_of(kernel).items() if kind == THREAD}
        self.touched = self.find_touched(kernel)
        self.made: dict[Key, UOp] = {}

    def find_touched(self, kernel: UOp) -> set[UOp]:
        """The nodes below which an upcast range stands, free or closed."""
        touched: set[UOp] = set()
        for node in topological(kernel):
            is_upcast = node.op == Op.RANGE and self.upcast >> node.arg & 1
            if is_upcast or not touched.isdisjoint(node.src):
                touched.add(node)
        return touched

    def key(self, node: UOp, point: Point) -> Key:
        if not point or not node.ranges:
            return node, ()
        here: tuple[tuple[int, int], ...] = ()
        for pair in point.items():
            if node.ranges >> pair[0] & 1:
                here += (pair,)
        return node, here

    def vector_range(self, ranges: int, point: Point) -> int | None:
        """The range that is the lanes of a value; others stand for a single value at a point."""
        open_vectors = ranges & self.vectors
        for number in point:
            open_vectors &= ~(1 << number)
        if open_vectors & (open_vectors - 1):
            raise InternalError("a value has two vector ranges", pass_name="expand")
        return open_vectors.bit_length() - 1 if open_vectors else None

    def points(self, ranges: tuple[UOp, ...], point: Point) -> Iterator[Point]:
        """The values of the unrolled ranges among these, added to a point outside of them all."""
        numbers = [r.arg for r in ranges if self.is_unrolled(r)]
        closed = {r.arg for r in ranges}
        outer = {number: at for number, at in point.items() if number not in closed}
        for values in itertools.product(*(range(self.extents[n]) for n in numbers)):
            yield {**outer, **dict(zip(numbers, values, strict=True))}

    def is_unrolled(self, node: UOp) -> bool:
        return bool((self.upcast & ~self.vectors) >> node.arg & 1)

    def is_vector(self, node: UOp) -> bool:
        return bool(self.vectors >> node.arg & 1)

    def loops(self, ranges: tuple[UOp, ...]) -> tuple[UOp, ...]:
        return tuple([r for r in ranges if not self.upcast >> r.arg & 1])

    def value(self, root: UOp, point: Point) -> UOp:
        """A value at a point, a vector where a vector range is left open."""
        touched, made = self.touched, self.made
        if root not in touched:
            return root
        found = made.get(self.key(root, point))
        if found is not None:
            return found
        # What became of the nodes at this point: to ask `made` takes a key, which is dear.
        here: dict[UOp, UOp] = {}
        keys: dict[UOp, Key] = {}
        stack = [root]
        while stack:
            node = stack[-1]
            if node in here:
                stack.pop()
                continue
            if node not in keys:
                if node not in touched:
                    here[node] = node
                    continue
                key = keys[node] = self.key(node, point)
                found = made.get(key)
                if found is not None:
                    here[node] = found
                    continue
                if node.op in ELEMENTWISE:
                    stack += node.src[::-1]
                    continue
            made[keys[node]] = here[node] = self.expanded(node, point, here)
        return here[root]

    def expanded(self, node: UOp, point: Point, made: Mapping[UOp, UOp]) -> UOp:
        """A node at a point; `made` has what became of the sources of an elementwise op."""
        if node.op in COMPARE and node.ops >> Op.FLOORMOD & 1 and is_index_arithmetic(node):
            return self.comparison(node, point)
        if node.op in ELEMENTWISE:
            return self.elementwise(node, [made[source] for source in node.src])
        if node.op == Op.RANGE:
            return self.counter(node, point)
        if node.op == Op.LOAD:
            return self.load(node, point)
        if node.op == Op.REDUCE:
            return self.reduce(node, point)
        if node.op == Op.SCAN:
            part = self.value(node.src[0], point)
            return make(Op.SCAN, part.dtype, (part, *node.src[1:]), node.arg)
        if node.op == Op.AFTER:
            stores = [made for store in node.src[1:] for made in self.stores(store, point)]
            return make(Op.AFTER, node.dtype, (self.value(node.src[0], point), *stores))
        if node.op == Op.CONTRACT:  # of what other elements of a thread are made of
            return rebuild(node, tuple([self.value(source, point) for source in node.src]))
        raise InternalError("an op that cannot be expanded", facts=[("node", repr(node))])

    def elementwise(self, node: UOp, src: list[UOp]) -> UOp:
        lanes = max([source.dtype.lanes for source in src])
        if lanes > 1 and (known := constant_lanes(node, src, lanes)) is not None:
            return known
        made = make(
            node.op,
            node.dtype.vector(lanes),
            tuple([broadcast(source, lanes) for source in src]),
            node.arg,
        )
        if lanes > 1:
            return made
        is_known = is_index_arithmetic(made) or all(part.op == Op.CONST for part in made.src)
        return simplify(made) if is_known else made

    def comparison(self, node: UOp, point: Point) -> UOp:
        """Whether a remainder is this or that, which may differ from lane to lane only."""
        lane = self.vector_range(node.ranges, point)
        if lane is not None:
            each = [self.value(node, {**point, lane: at}) for at in range(self.extents[lane])]
            if all(made.op == Op.CONST for made in each):
                return of_constants(each)
        return self.elementwise(node, [self.value(source, point) for source in node.src])

    def counter(self, node: UOp, point: Point) -> UOp:
        if node.arg in point:
            return const(node.dtype, point[node.arg])
        if not self.is_vector(node):
            raise InternalError(f"range {node.arg} is unrolled outside what closes it")
        lanes = tuple([const(node.dtype, i) for i in range(self.extents[node.arg])])
        return make(Op.VECTOR, node.dtype.vector(len(lanes)), lanes)

    def load(self, node: UOp, point: Point) -> UOp:
        address = node.src[0]
        memory, mask, index = address.src
        lane = self.vector_range(index.ranges | mask.ranges, point)
        memory = self.value(memory, point)
        if lane is None:
            where = (memory, self.mask(mask, point), self.value(index, point))
            return make(Op.LOAD, node.dtype, (make(Op.INDEX, node.dtype, where),))
        count = self.extents[lane]
        dtype = node.dtype.vector(count)
        stride = stride_of(index, lane)
        if stride == 1 or (stride == -1 and not mask.ranges >> lane & 1):
            start = {**point, lane: 0 if stride == 1 else count - 1}
            where = (memory, self.mask(mask, point), self.value(index, start))
            made = make(Op.LOAD, dtype, (make(Op.INDEX, dtype, where),))
            backwards = tuple(range(count - 1, -1, -1))
            return made if stride == 1 else make(Op.LANES, dtype, (made,), backwards)
        offsets = self.lane_offsets(index, point, lane)
        if offsets is not None:
            return self.nearby_load(node, point, offsets)
        across = self.read_across(address, point, lane)
        if across is not None:
            return self.read_square(node, point, lane, across)
        lanes = [self.value(node, {**point, lane: at}) for at in range(count)]
        return make(Op.VECTOR, dtype, tuple(lanes))

    def read_across(self, address: UOp, point: Point, lane: int) -> int | None:
        """The unrolled range along which addresses are contiguous that lanes scatter."""
        memory, mask, index = address.src
        for number in point:
            is_like = self.extents[number] == self.extents[lane] and not self.vectors >> number & 1
            is_fixed = (memory.ranges | mask.ranges) & (1 << number | 1 << lane)
            if is_like and not is_fixed and stride_of(index, number) == 1:
                return number
        return None

    def read_square(self, node: UOp, point: Point, lane: int, across: int) -> UOp:
        """A load in lanes, of a square that is read across them for all copies at once."""
        memory, mask, index = node.src[0].src
        count = self.extents[lane]
        dtype = node.dtype.vector(count)
        rows: list[UOp] = []
        for at in range(count):
            start = {**point, lane: at, across: 0}
            where = (self.value(memory, point), self.mask(mask, start), self.value(index, start))
            rows.append(make(Op.LOAD, dtype, (make(Op.INDEX, dtype, where),)))
        for at, column in enumerate(transpose(rows)):
            self.made[self.key(node, {**point, across: at})] = column
        return self.made[self.key(node, point)]

    def lane_offsets(self, index: UOp, point: Point, lane: int) -> list[int] | None:
        """How far the address of each lane lies behind that of the first, where that is near.

        A read of x[i * 2] along i has the offsets 0, 2, 4, …, and one of x[i // 2] 0, 0, 1, 1, …
        """
        step, count = stride_of(index, lane), self.extents[lane]
        if step is not None:
            is_near = 0 < step * (count - 1) < MOST_LANES
            return [step * at for at in range(count)] if is_near else None
        first = self.value(index, {**point, lane: 0})
        offsets: list[int] = []
        for at in range(self.extents[lane]):
            apart = simplify(self.value(index, {**point, lane: at}) - first)
            if apart.op != Op.CONST or not 0 <= apart.arg < MOST_LANES:
                return None
            offsets.append(int(apart.arg))
        return offsets if any(offsets) else None

    def nearby_load(self, node: UOp, point: Point, offsets: list[int]) -> UOp:
        """One vector over the addresses of all lanes, masked between them, then each lane's."""
        memory, mask, index = node.src[0].src
        lane = self.vector_range(index.ranges | mask.ranges, point)
        assert lane is not None
        used = sorted(set(offsets))
        wide = node.dtype.vector(1 << (used[-1]).bit_length())
        chosen = self.mask(mask, point)
        wide_mask = chosen
        if chosen.dtype.lanes > 1 or len(used) < wide.lanes:
            wide_mask = mask_of_addresses(broadcast(chosen, len(offsets)), offsets, wide.lanes)
        start = self.value(index, {**point, lane: 0})
        address = make(Op.INDEX, wide, (self.value(memory, point), wide_mask, start))
        made = make(Op.LOAD, wide, (address,))
        result = make(Op.LANES, node.dtype.vector(len(offsets)), (made,), tuple(offsets))
        if chosen.dtype.lanes == 1 or len(used) == len(offsets):
            return result
        return make(Op.WHERE, result.dtype, (chosen, result, const(result.dtype, 0)))

    def mask(self, mask: UOp, point: Point) -> UOp:
        made = self.value(mask, point)
        if made.op == Op.CONST:
            return pick(made, 0)
        return simplify(made) if made.dtype.lanes == 1 else made

    def reduce(self, node: UOp, point: Point) -> UOp:
        if is_joined(node):
            return self.joined(node, point)
        op, own = node.arg[0], own_ranges(node)
        threads = tuple([r for r in own if r.arg in self.threads])
        loops = tuple([r for r in self.loops(own) if r not in threads])
        lanes = next((self.extents[r.arg] for r in own if self.is_vector(r)), 1)
        parts: list[UOp] = []
        for inner in self.points(own, point):
            part = self.value(node.src[0], inner)
            part = broadcast(part, lanes) if part.dtype.lanes == 1 else part
            if loops:
                part = make(Op.REDUCE, part.dtype, (part, *loops), node.arg)
            parts.append(part)
        total = joined(op, parts)
        total = across_lanes(op, total) if lanes > 1 else total
        # Threads join what each has of all copies and lanes.
        return make(Op.REDUCE, total.dtype, (total, *threads), node.arg) if threads else total

    def joined(self, node: UOp, point: Point) -> UOp:
        """A joined reduction: copies and lanes are parts, joined together with its references."""
        own, refers = own_ranges(node), references(node)
        threads = tuple([r for r in own if r.arg in self.threads])
        loops = tuple([r for r in self.loops(own) if r not in threads])
        lanes = next((self.extents[r.arg] for r in own if self.is_vector(r)), 1)
        states: list[dict[UOp, UOp]] = []
        for inner in self.points(own, point):
            state: dict[UOp, UOp] = {}
            for each in (*refers, node):
                part = self.value(each.src[0], inner)
                part = broadcast(part, lanes) if part.dtype.lanes == 1 else part
                state[each] = _over(each, part, state, loops)
            states.append(state)
        while len(states) > 1:
            pairs = zip(states[::2], states[1::2], strict=False)
            states = [joined_parts(node, *pair) for pair in pairs] + states[len(states) & ~1 :]
        state = states[0]
        while lanes > 1:
            lanes //= 2
            state = joined_parts(node, neighbors(state, 0, lanes), neighbors(state, lanes, lanes))
        shared: dict[UOp, UOp] = {}
        for each in (*refers, node):
            shared[each] = _over(each, state[each], shared, threads)
        return shared[node]

    def stores(self, node: UOp, point: Point) -> list[UOp]:
        """The stores that one STORE becomes, in the order of its ranges."""
        if node not in self.touched:
            return [node]
        own = own_ranges(node)
        if node.ranges & self.upcast:
            raise InternalError("memory would be shared by unrolled copies", pass_name="expand")
        made: list[UOp] = []
        if node.src[1].op == Op.CONTRACT:  # a tile is in registers, whatever its size
            return [rebuild(node, (node.src[0], self.value(node.src[1], point)))]
        across = self.across(node, point)
        walked = own if across is None else tuple([r for r in own if r.arg != across])
        for inner in self.points(walked, point):
            if across is None:
                made += self.store(node, inner, self.loops(own))
            else:
                made += self.transposed(node, inner, across, self.loops(own))
        return list(dict.fromkeys(made))

    def across(self, node: UOp, point: Point) -> int | None:
        """The unrolled range along which a store is contiguous, if it is not along its lanes."""
        address, value = node.src[:2]
        _, mask, index = address.src
        lane = self.vector_range(index.ranges, point)
        if lane is None or stride_of(index, lane) == 1 or mask.ranges >> lane & 1:
            return None
        for r in own_ranges(node):
            is_like = self.is_unrolled(r) and self.extents[r.arg] == self.extents[lane]
            is_free = not mask.ranges >> r.arg & 1 and value.ranges >> lane & 1
            if is_like and is_free and stride_of(index, r.arg) == 1:
                return int(r.arg)
        return None

    def transposed(
        self, node: UOp, point: Point, across: int, loops: tuple[UOp, ...]
    ) -> list[UOp]:
        """The stores of a square of values, computed along its lanes and written across them."""
        address, value = node.src[:2]
        memory, mask, index = address.src
        lane = self.vector_range(index.ranges, point)
        assert lane is not None
        count = self.extents[lane]
        rows = [broadcast(self.value(value, {**point, across: at}), count) for at in range(count)]
        made: list[UOp] = []
        dtype = address.dtype.vector(count)
        for at, column in enumerate(transpose(rows)):
            start = {**point, lane: at, across: 0}
            where = (self.value(memory, point), self.mask(mask, start), self.value(index, start))
            made.append(make(Op.STORE, node.dtype, (make(Op.INDEX, dtype, where), column, *loops)))
        return made

    def store(self, node: UOp, point: Point, loops: tuple[UOp, ...]) -> list[UOp]:
        address, value = node.src[:2]
        memory, mask, index = address.src
        lane = self.vector_range(index.ranges | mask.ranges | value.ranges, point)
        count = 1 if lane is None else self.extents[lane]
        if lane is None or stride_of(index, lane) == 1:
            dtype = address.dtype.vector(count)
            start = point if lane is None else {**point, lane: 0}
            where = (
                self.value(memory, point),
                self.mask(mask, point),
                self.value(index, start),
            )
            written = broadcast(self.value(value, point), count)
            return [make(Op.STORE, node.dtype, (make(Op.INDEX, dtype, where), written, *loops))]
        whole = self.value(value, point)
        made: list[UOp] = []
        for at in range(count):
            fixed = {**point, lane: at}
            where = (
                self.value(memory, point),
                self.mask(mask, fixed),
                self.value(index, fixed),
            )
            written = pick(whole, at) if whole.dtype.lanes > 1 else whole
            target = make(Op.INDEX, address.dtype, where)
            made.append(make(Op.STORE, node.dtype, (target, written, *loops)))
        return made


def _over(node: UOp, part: UOp, beside: Mapping[UOp, UOp], ranges: tuple[UOp, ...]) -> UOp:
    """A REDUCE of a part over ranges, beside those that it refers to; over none, the part."""
    refers = [beside[other] for other in references(node)]
    return make(Op.REDUCE, part.dtype, (part, *refers, *ranges), node.arg) if ranges else part

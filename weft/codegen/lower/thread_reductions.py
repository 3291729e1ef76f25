"""Reductions over threads: each reduces a part of its own, then the threads of a group join them.

In: a kernel with flat memory, no vector and no unroll range. Out: no REDUCE closes a thread range,
and every thread has the result. Threads of a warp exchange their parts by shuffles; warps, and
threads that do not lie in a warp as a power of two, by local memory.

    reduce ADD over k, t (64 threads): v   ->   p = reduce ADD over k: v
                                                q = p + p.shuffle(t, 16)   # and 8, 4, 2, 1
                                                s = store m[t // 32 if t % 32 == 0] = q for t
                                                load m.after(s)[0] + load m.after(s)[1]

A shuffle reads the register of another thread, so all threads of the group arrive at it: no loop
has a number of iterations that differs between them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from weft.codegen.analysis.loops import extent_of, nodes_of, own_ranges, ranges_of, rebuilt
from weft.codegen.context import CodegenContext
from weft.codegen.lower.lanes import across_lanes, joined
from weft.ir.build import all_of, index, load, store, true
from weft.ir.dtypes import DType
from weft.ir.ops import Op
from weft.ir.reduction.joined import is_joined, joined_parts, references
from weft.ir.uop import UOp, make, range_ids
from weft.ir.walk import map_graph
from weft.rules.simplify import simplify
from weft.target.compute import Simt
from weft.target.memory import LOCAL


def reduce_over_threads(kernel: UOp, context: CodegenContext) -> UOp:
    """Make the joint work of threads explicit in every REDUCE over a thread range."""
    axes = context.thread_axes
    reductions = [node for node in nodes_of(kernel) if node.op == Op.REDUCE]
    if not any(r.arg in axes for node in reductions for r in own_ranges(node)):
        return kernel
    group = _Group(kernel, context)

    def joined_by_threads(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        if is_joined(node):
            return group.joined(node, made)
        new = rebuilt(node, made, {})
        return group.reduced(new) if new.op == Op.REDUCE else new

    return map_graph(kernel, joined_by_threads)


class _Group:
    """The threads of a group: threads are counted along axis 0 first, and a warp are neighbors."""

    def __init__(self, kernel: UOp, context: CodegenContext) -> None:
        self.axes = context.thread_axes
        self.ranges = ranges_of(kernel)
        extents = {axis: _extent(self.ranges[n]) for n, axis in self.axes.items()}
        self.steps = {
            axis: math.prod(extents[lower] for lower in extents if lower < axis)
            for axis in extents
        }
        self.target = context.target
        compute = self.target.compute
        threads = math.prod(extents.values())
        has_shuffles = isinstance(compute, Simt) and compute.has_shuffles
        self.warp = compute.warp if isinstance(compute, Simt) and has_shuffles else 1
        if threads % self.warp:
            self.warp = 1  # a shuffle is for whole warps
        self.count = 0

    def reduced(self, node: UOp) -> UOp:
        """A REDUCE whose thread ranges are joined by the threads."""
        over = sorted(
            (r for r in node.src[1:] if r.arg in self.axes), key=lambda r: self.axes[r.arg]
        )
        if not over:
            return node
        own = tuple([r for r in node.src[1:] if r not in over])
        value = make(Op.REDUCE, node.dtype, (node.src[0], *own), node.arg) if own else node.src[0]
        left: list[tuple[UOp, int]] = []
        for r in over:
            together = self.shuffled(r, node.dtype)
            value = self.across(value, node.arg[0], r, together)
            if together < _extent(r):
                left.append((r, together))
        return self.through_memory(value, node.arg[0], over, left) if left else value

    def joined(self, node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        """A joined REDUCE: threads exchange their parts of it and of all that it refers to."""
        own = own_ranges(node)
        over = sorted((r for r in own if r.arg in self.axes), key=lambda r: self.axes[r.arg])
        if not over:
            return rebuilt(node, made, {})
        rest = tuple([r for r in own if r not in over])
        state: dict[UOp, UOp] = {}
        for each in (*references(node), node):
            refers = [state[other] for other in references(each)]
            src = (made[each.src[0]], *refers, *rest)
            state[each] = make(Op.REDUCE, each.dtype, src, each.arg) if rest else src[0]
        left: list[tuple[UOp, int]] = []
        for r in over:
            together = count = min(self.shuffled(r, part.dtype) for part in state.values())
            while count > 1:
                count //= 2
                others = {
                    each: make(Op.SHUFFLE, part.dtype, (part, r), (count,))
                    for each, part in state.items()
                }
                state = joined_parts(node, state, others)
            if together < _extent(r):
                left.append((r, together))
        if not left:
            return state[node]
        columns = {each: self.exchanged(part, over, left) for each, part in state.items()}
        states = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
        while len(states) > 1:
            pairs = zip(states[::2], states[1::2], strict=False)
            states = [joined_parts(node, *pair) for pair in pairs] + states[len(states) & ~1 :]
        result: UOp = states[0][node]
        return result

    def shuffled(self, r: UOp, dtype: DType) -> int:
        """How many neighbors along a range exchange their values by shuffles."""
        step, extent = self.steps[self.axes[r.arg]], _extent(r)
        is_even = step & (step - 1) == 0 and dtype.scalar in self.target.native_dtypes
        count = 1
        while is_even and extent % (2 * count) == 0 and 2 * count * step <= self.warp:
            count *= 2
        return count

    def across(self, value: UOp, op: int, r: UOp, count: int) -> UOp:
        """The value that so many neighbors have together."""
        while count > 1:
            count //= 2
            other = make(Op.SHUFFLE, value.dtype, (value, r), (count,))
            value = make(op, value.dtype, (value, other))
        return value

    def through_memory(
        self, value: UOp, op: int, over: list[UOp], left: list[tuple[UOp, int]]
    ) -> UOp:
        """The value of all threads, by local memory."""
        parts = self.exchanged(value, over, left)
        if value.dtype.lanes > 1 or parts[0].src[0].src[2].op != Op.CONST:
            return joined(op, parts)
        return self.neighbors(parts[0].src[0].src[0], op, len(parts))

    def exchanged(self, value: UOp, over: list[UOp], left: list[tuple[UOp, int]]) -> list[UOp]:
        """The values of all threads, loaded from local memory.

        There all parts of one result lie together. Threads beside those of the reduction have
        results of their own; those that neither share nor differ leave the store to the first of
        them.
        """
        dtype = value.dtype
        part, parts = index(0), 1
        for r, together in left:
            part = simplify(part + (r // together) * parts)
            parts *= _extent(r) // together
        beside, idle = self.others(value, over)
        result, results = index(0), 1
        for r in beside:
            result = simplify(result + r * results)
            results *= _extent(r)
        size = parts * results * dtype.lanes
        memory = make(Op.MEMORY, dtype.scalar, (), (f"threads{self.count}", LOCAL, size))
        self.count += 1
        first = [(r % together).equal(0) for r, together in self.firsts(over, left)]
        mask = simplify(all_of(true(), *first, *(r.equal(0) for r in idle)))
        where = simplify((part * results + result) * dtype.lanes)
        stored = store(_address(memory, dtype, where, mask), value, [*over, *beside, *idle])
        after = make(Op.AFTER, memory.dtype, (memory, stored))
        starts = [simplify((result + n * results) * dtype.lanes) for n in range(parts)]
        return [load(_address(after, dtype, start, true())) for start in starts]

    def firsts(self, over: list[UOp], left: list[tuple[UOp, int]]) -> list[tuple[UOp, int]]:
        """Of how many threads along each range one has the value of all."""
        found = {r: _extent(r) for r in over} | dict(left)
        return [(r, together) for r, together in found.items() if together > 1]

    def neighbors(self, memory: UOp, op: int, parts: int) -> UOp:
        """The reduction of all elements of some memory, read in the widest vectors."""
        scalar = memory.dtype.scalar
        width = max(self.target.memory(LOCAL).access_bits // scalar.bits, 1)
        found: list[UOp] = []
        start = 0
        while start < parts:
            lanes = 1 << (min(parts - start, width).bit_length() - 1)
            dtype = scalar.vector(lanes)
            part = load(_address(memory, dtype, index(start), true()))
            found.append(across_lanes(op, part))
            start += lanes
        return joined(op, found)

    def others(self, value: UOp, over: list[UOp]) -> tuple[list[UOp], list[UOp]]:
        """Of the other axes, a range of those that the value depends on, and of those that not."""
        taken = {self.axes[r.arg] for r in over}
        beside: dict[int, UOp] = {}
        for number in range_ids(value.ranges):
            if number in self.axes and self.axes[number] not in taken:
                beside[self.axes[number]] = self.ranges[number]
        idle: dict[int, UOp] = {}
        for number, axis in self.axes.items():
            if axis not in taken and axis not in beside:
                idle.setdefault(axis, self.ranges[number])
        return [beside[axis] for axis in sorted(beside)], list(idle.values())


def _extent(r: UOp) -> int:
    extent = extent_of(r)
    assert extent is not None  # a thread range is never symbolic
    return extent


def _address(memory: UOp, dtype: DType, where: UOp, mask: UOp) -> UOp:
    return make(Op.INDEX, dtype, (memory, mask, where))

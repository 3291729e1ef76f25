"""Long reductions with few results are done in two steps, so that all threads have work.

In and Out: a tensor graph. A reduction that is long and whose results are fewer than the threads
of the target, or than the groups of a GPU, first reduces equal parts into memory and then reduces
those. The parts are iterations of a range of the first kernel, and so they run in parallel over
threads. Sums come out more exact too. Results that lie inside the reduced axis count as one where
all of them fit into registers: one thread then reads whole rows, in the order of memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from weft.ir.build import global_stage, reduce_axes
from weft.ir.movement import reshape, shrink
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph, topological, with_sources
from weft.schedule.context import ScheduleContext
from weft.schedule.fuse.chains.chains import find_chains
from weft.schedule.reductions.joined_columns import parts_of_columns
from weft.schedule.reductions.split_joins import try_join_parts
from weft.schedule.reductions.split_products import in_parts, parts_of_product
from weft.support.settings import settings
from weft.target.compute import Simd, Simt
from weft.target.target import Target

# Parts for each thread, so that a slow one does not hold up the others.
PARTS_PER_THREAD: Final = 16
# Elements that parts of unequal reductions are multiples of, so that vectors of them are aligned.
ALIGNED_PART: Final = 128
# On a GPU a part may be one thread, so there are enough to fill some groups with them.
FILLED_GROUPS: Final = 4
# Rows of which a GPU could run so many times as many are enough for its memory.
FEWER_PARTS: Final = 4


def split_reductions(root: UOp, context: ScheduleContext) -> UOp:
    """Reduction in two steps where one would leave threads without work."""
    parts = wanted_parts(context.target)
    if parts < 2 or not root.ops >> Op.REDUCE & 1:
        return root
    is_joined = settings.JOIN != "never"
    is_threaded = isinstance(context.target.compute, Simt)
    # What ends two products in one kernel has no parts, or scores would be in memory after all.
    chains = find_chains(root, topological(root), context.target)
    columns = parts_of_columns(root, context.target) if is_joined and is_threaded else {}

    def split(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = with_sources(node, made)
        if new.op != Op.REDUCE or node in chains.results or node in chains.of:
            return new
        sizes = _known_sizes(new, context.target)
        product = parts_of_product(new, context.target) if sizes else None
        if product is not None:
            return in_parts(new, *product) if product[1] > 1 else new
        goal = parts // max(_independent_results(sizes, node, context.target), 1) if sizes else 0
        if goal < (FEWER_PARTS if is_threaded and len(sizes) - 1 in node.arg[1] else 2):
            return new
        if node in columns:
            joined = try_join_parts(node, node.arg[1][0], columns[node], made, node.arg[1][-1])
            return _merged(new, columns[node]) if joined is None else joined
        if is_threaded and 2 * max(sizes[axis] for axis in node.arg[1]) <= goal:
            merged = _try_merged(new, goal)
            if merged is not None:
                return merged
        for axis in node.arg[1]:
            count = _count_of_parts(sizes[axis], goal)
            if 2 * count > goal:
                joined = try_join_parts(node, axis, count, made) if is_joined else None
                return joined if joined is not None else _in_two_steps(new, axis, count)
        rest = _try_with_a_rest(new, goal, sizes) if is_threaded else None
        return new if rest is None else rest

    return map_graph(root, split)


def wanted_parts(target: Target) -> int:
    """How many independent parts keep a target busy."""
    compute = target.compute
    if isinstance(compute, Simt):
        return max(compute.resident_groups, FILLED_GROUPS * compute.group_threads)
    return compute.units * PARTS_PER_THREAD if compute.units > 1 else 1


def _known_sizes(node: UOp, target: Target) -> list[int]:
    """The sizes of what a reduction takes; none where they are symbolic, or not worth parts."""
    body = shape_of(node.src[0])
    sizes = [size for size in body if isinstance(size, int)]
    is_long = len(sizes) == len(body) and math.prod(sizes) >= target.costs.least_split
    return sizes if is_long else []


def _try_merged(node: UOp, goal: int) -> UOp | None:
    """The reduction in two steps along neighboring axes as one, each of which is too short.

    before: reduce ADD axes (0, 1, 2): x[128, 56, 56, 64]
    after:  that over axis 0 of x.reshape(401408, 64), in two steps
    """
    _, axes = node.arg
    shape = shape_of(node.src[0])
    sizes = [size for size in shape[axes[0] : axes[-1] + 1] if isinstance(size, int)]
    if list(axes) != list(range(axes[0], axes[-1] + 1)) or len(sizes) != len(axes):
        return None
    whole = math.prod(sizes)
    count = _count_of_parts(whole, goal)
    return _merged(node, count) if 2 * count > goal else None


def _merged(node: UOp, count: int) -> UOp:
    """The reduction along neighboring axes in `count` parts."""
    op, axes = node.arg
    shape = shape_of(node.src[0])
    whole = math.prod(size for size in shape[axes[0] : axes[-1] + 1] if isinstance(size, int))
    apart = (*shape[: axes[0]], count, whole // count, *shape[axes[-1] + 1 :])
    first = reduce_axes(reshape(node.src[0], apart), op, (axes[0] + 1,))
    return reshape(reduce_axes(global_stage(first), op, (axes[0],)), shape_of(node))


def _count_of_parts(size: int, goal: int) -> int:
    """How many equal parts there are, at most as many as wanted.

    Parts of whole vectors for all threads of a group need no masks, and are worth having fewer.

    >>> _count_of_parts(128 * 56 * 56, 1056), _count_of_parts(128 * 14 * 14, 528)
    (784, 392)
    >>> _count_of_parts(1000, 64)
    50
    """
    counts = [n for n in range(1, goal + 1) if size % n == 0]
    for line in (ALIGNED_PART, ALIGNED_PART // 2, ALIGNED_PART // 4):
        aligned = [n for n in counts if 2 * n > goal and size // n % line == 0]
        if aligned:
            return max(aligned)
    return max(counts)


def _try_with_a_rest(node: UOp, goal: int, sizes: list[int]) -> UOp | None:
    """The reduction of equal parts in two steps, and of the elements behind them.

    before: reduce ADD axes (0): x[1003]
    after:  (reduce ADD of x[:1000] in two steps) + reduce ADD axes (0): x[1000:]
    """
    op, axes = node.arg
    axis = max(axes, key=lambda each: sizes[each])
    length = -(-sizes[axis] // goal)
    length += -length % ALIGNED_PART
    count = sizes[axis] // length
    if count < 2:
        return None
    whole = count * length
    value = node.src[0]
    first = reduce_axes(_part(value, axis, 0, whole), op, axes)
    rest = reduce_axes(_part(value, axis, whole, sizes[axis]), op, axes)
    return make(op, node.dtype, (_in_two_steps(first, axis, count), rest))


def _part(value: UOp, axis: int, start: int, end: int) -> UOp:
    """Some of the elements along an axis."""
    box = [(0, size) for size in shape_of(value)]
    box[axis] = (start, end)
    return shrink(value, box)


def _independent_results(sizes: list[int], node: UOp, target: Target) -> int:
    """How many threads can compute results without sharing rows of memory."""
    axes = node.arg[1]
    outside = math.prod(size for axis, size in enumerate(sizes[: max(axes)]) if axis not in axes)
    inside = math.prod(sizes[max(axes) + 1 :])
    bits = inside * node.dtype.bits
    compute = target.compute
    if isinstance(compute, Simt) and inside > 1:
        # Threads of a warp lie along the columns, each with a vector of them.
        lanes = max(target.access_bits // node.dtype.bits, 1)
        return outside * -(-inside // (compute.warp * lanes))
    is_kept = isinstance(compute, Simd) and bits <= compute.vector_bits * compute.vector_registers
    return outside if is_kept else outside * inside


def _in_two_steps(node: UOp, axis: int, count: int) -> UOp:
    """The reduction of each part, and then of those.

    before: reduce ADD axes (0): x[1000]
    after:  reduce ADD axes (0): stage(reduce ADD axes (1): x.reshape(10, 100))
    """
    op, axes = node.arg
    value = node.src[0]
    shape = shape_of(value)
    size = shape[axis]
    assert isinstance(size, int)
    apart = (*shape[:axis], count, size // count, *shape[axis + 1 :])
    inner = [a if a < axis else a + 1 for a in axes]
    first = reduce_axes(reshape(value, apart), op, inner)
    second = reduce_axes(global_stage(first), op, (axis,))
    return reshape(second, shape_of(node))

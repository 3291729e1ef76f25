"""Long scans with few rows are cut into blocks, so that all threads have work.

In and Out: a tensor graph. Each block is scanned by itself, and what comes before it is reduced
onto it. The totals of the blocks are a kernel; their prefixes, few enough to be summed again for
each block, and the scans of the blocks are another.

    scan(x)   ->   blocks = pad(x).reshape(blocks, size)
                   total  = reduce(blocks)
                   before = reduce(where(j < i, total[j], identity)) over j
                   (before[i] op scan(blocks)).reshape(n)

The number of blocks is at most the square root of the elements, so the work stays linear.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from weft.ir.build import Size, reduce_axes, scan_axis
from weft.ir.dtypes import DType, dtypes
from weft.ir.movement import expand, iota, pad, reshape, shrink
from weft.ir.ops import Op
from weft.ir.reduction.reductions import identity
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp, const, make
from weft.ir.walk import map_graph, with_sources
from weft.schedule.context import ScheduleContext
from weft.target.compute import Simt
from weft.target.target import Target

# Blocks for each thread, so that a slow one does not hold up the others.
ITERATIONS_PER_THREAD: Final = 4


def block_scans(root: UOp, context: ScheduleContext) -> UOp:
    """The graph with its long and lonely scans in blocks."""

    def blocked(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = with_sources(node, made)
        count = block_count(new, context.target) if new.op == Op.SCAN else 1
        if count < 2:
            return new
        is_single = new.arg[0] == Op.ADD and new.dtype is dtypes.float32
        if is_single and dtypes.float64 in context.target.native_dtypes:
            return _blocked_in(dtypes.float64, new, count)
        return _blocked(new, count)

    return map_graph(root, blocked)


def block_count(scan: UOp, target: Target) -> int:
    """Into how many blocks a scan is cut; 1 where it is not."""
    shape, (axis,) = shape_of(scan), scan.arg[1]
    size = shape[axis]
    if not isinstance(size, int) or size < target.costs.least_scan:
        return 1
    rows = largest_size(shape) // size
    compute = target.compute
    lanes = wanted = compute.units
    if isinstance(compute, Simt):
        lanes = wanted = compute.units * min(target.grid.group_threads, compute.scan_threads)
    else:
        wanted *= ITERATIONS_PER_THREAD
    if lanes < 2 or rows >= lanes:
        return 1
    return min(math.isqrt(size), -(-wanted // rows))


def _blocked_in(dtype: DType, scan: UOp, count: int) -> UOp:
    """A scan in blocks that is computed in a wider dtype, for the error of a long sum is large."""
    op, (axis,) = scan.arg
    wide = scan_axis(scan.src[0].cast(dtype), op, axis)
    return _blocked(wide, count).cast(scan.dtype)


def _blocked(scan: UOp, count: int) -> UOp:
    x, (op, (axis,)) = scan.src[0], scan.arg
    shape = shape_of(x)
    length = shape[axis]
    assert isinstance(length, int)
    size = -(-length // count)
    count = -(-length // size)
    head, tail = shape[:axis], shape[axis + 1 :]
    blocks = reshape(_pad(x, axis, count * size - length), (*head, count, size, *tail))
    total = reduce_axes(blocks, op, (axis + 1,))
    before = expand(_reduced_before(total, op, axis), (*head, count, size, *tail))
    joined = make(op, x.dtype, (before, scan_axis(blocks, op, axis + 1)))
    return _shrink(reshape(joined, (*head, count * size, *tail)), axis, length)


def _reduced_before(total: UOp, op: int, axis: int) -> UOp:
    """For each block the reduction of the totals before it: (…, blocks, 1, …)."""
    shape = shape_of(total)
    head, count, tail = shape[:axis], shape[axis], shape[axis + 2 :]
    square = (*head, count, count, *tail)
    others = expand(reshape(total, (*head, 1, count, *tail)), square)
    number = iota(count)
    ones: list[Size] = [1] * len(square)
    here = expand(reshape(number, [*ones[:axis], count, *ones[axis + 1 :]]), square)
    other = expand(reshape(number, [*ones[: axis + 1], count, *ones[axis + 2 :]]), square)
    neutral = const(total.dtype, identity(op, total.dtype))
    chosen = make(Op.WHERE, total.dtype, (other < here, others, neutral))
    return reduce_axes(chosen, op, (axis + 1,))


def _pad(node: UOp, axis: int, after: int) -> UOp:
    if not after:
        return node
    return pad(node, [(0, after if i == axis else 0) for i in range(len(shape_of(node)))])


def _shrink(node: UOp, axis: int, stop: int) -> UOp:
    sizes: list[Size] = list(shape_of(node))
    if sizes[axis] == stop:
        return node
    sizes[axis] = stop
    return shrink(node, [(0, size) for size in sizes])

"""Long folds with few results are done in two steps, so that all threads have work.

In and Out: a tensor graph. A fold that is long and whose results are fewer than the threads of the
target, or than the groups of a GPU, first folds equal parts into memory and then folds those. The
parts are turns of a range of the first kernel, and so they are spread over threads. Sums come out
more exact too. Results that lie inside the folded axis count as one where all of them fit into
registers: one thread then reads whole rows, in the order of memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from weft.ir.build import global_stage, reduce_axes
from weft.ir.movement import reshape
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import map_graph, with_sources
from weft.schedule.context import Context
from weft.target.compute import Simd, Simt
from weft.target.target import Target

# Parts for each thread, so that a slow one does not hold up the others.
PARTS_PER_THREAD: Final = 16
# On a GPU a part may be one thread, so there are enough to fill some groups with them.
FILLED_GROUPS: Final = 4


def split_reductions(root: UOp, context: Context) -> UOp:
    """Fold in two steps where one would leave threads without work."""
    parts = wanted_parts(context.target)
    if parts < 2 or not root.ops >> Op.REDUCE & 1:
        return root

    def split(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = with_sources(node, made)
        steps = _try_split(new, parts, context.target) if new.op == Op.REDUCE else None
        return new if steps is None else steps

    return map_graph(root, split)


def wanted_parts(target: Target) -> int:
    """How many independent parts keep a target busy."""
    compute = target.compute
    if isinstance(compute, Simt):
        return max(compute.resident_groups, FILLED_GROUPS * compute.group_threads)
    return compute.units * PARTS_PER_THREAD if compute.units > 1 else 1


def _try_split(node: UOp, parts: int, target: Target) -> UOp | None:
    """The fold in two steps.

    before: reduce ADD axes (0): x[1000]
    after:  reduce ADD axes (0): stage(reduce ADD axes (1): x.reshape(10, 100))
    """
    body = shape_of(node.src[0])
    sizes = [size for size in body if isinstance(size, int)]
    if len(sizes) != len(body) or math.prod(sizes) < target.costs.least_split:
        return None
    axes = node.arg[1]
    goal = parts // max(_independent_results(sizes, axes, node, target), 1)
    if goal < 2:
        return None
    for axis in axes:
        count = max(n for n in range(1, goal + 1) if sizes[axis] % n == 0)
        if 2 * count > goal:
            return _in_two_steps(node, axis, count)
    return None


def _independent_results(
    sizes: list[int], axes: tuple[int, ...], node: UOp, target: Target
) -> int:
    """How many threads can compute results without sharing rows of memory."""
    outside = math.prod(size for axis, size in enumerate(sizes[: max(axes)]) if axis not in axes)
    inside = math.prod(sizes[max(axes) + 1 :])
    bits = inside * node.dtype.bits
    compute = target.compute
    is_kept = isinstance(compute, Simd) and bits <= compute.vector_bits * compute.vector_registers
    return outside if is_kept else outside * inside


def _in_two_steps(node: UOp, axis: int, count: int) -> UOp:
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

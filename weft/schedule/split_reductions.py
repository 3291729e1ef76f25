"""Long folds with few results are done in two steps, so that all threads have work.

In and Out: a tensor graph. A fold that is long and whose results are fewer than the threads of the
target, or than the groups of a GPU, first folds equal parts into memory and then folds those. The
parts are turns of a range of the first kernel, and so they are spread over threads. Sums come out
more exact too. Results that lie inside the folded axis count as one where all of them fit into
registers: one thread then reads whole rows, in the order of memory.
"""

from __future__ import annotations

import math
from typing import Final

from weft.ir.build import reduce_axes
from weft.ir.movement import reshape
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.stage import staged
from weft.ir.uop import UOp
from weft.ir.walk import rebuild, topological
from weft.schedule.context import Context
from weft.target.target import Target

# Elements below which a second kernel costs more than the other threads bring.
LEAST_ELEMENTS: Final = 1 << 18
# Parts for each thread, so that a slow one does not hold up the others; parts for a GPU.
PARTS_PER_THREAD: Final = 16
PARTS_OF_A_GRID: Final = 1024


def split_reductions(root: UOp, context: Context) -> UOp:
    """Fold in two steps where one would leave threads without work."""
    parts = wanted_parts(context.target)
    if parts < 2 or not root.ops >> Op.REDUCE & 1:
        return root
    made: dict[UOp, UOp] = {}
    for node in topological(root):
        new = rebuild(node, tuple([made[source] for source in node.src]))
        if new.op == Op.REDUCE:
            split = _try_split(new, parts, context.target)
            new = new if split is None else split
        made[node] = new
    return made[root]


def wanted_parts(target: Target) -> int:
    """How many independent parts keep a target busy."""
    if target.has_groups:
        return PARTS_OF_A_GRID
    return target.threads * PARTS_PER_THREAD if target.threads > 1 else 1


def _try_split(node: UOp, parts: int, target: Target) -> UOp | None:
    """The fold in two steps.

    before: reduce ADD axes (0): x[1000]
    after:  reduce ADD axes (0): stage(reduce ADD axes (1): x.reshape(10, 100))
    """
    body = shape_of(node.src[0])
    sizes = [size for size in body if isinstance(size, int)]
    if len(sizes) != len(body) or math.prod(sizes) < LEAST_ELEMENTS:
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
    is_kept = not target.has_groups and bits <= target.vector_bits * target.vector_registers
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
    second = reduce_axes(staged(first), op, (axis,))
    return reshape(second, shape_of(node))

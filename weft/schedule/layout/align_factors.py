"""Factors of large products get rows that begin where copies of boxes can read them.

In and Out: a tensor graph. Matrix units that read local memory are fed by copies of boxes, whose
rows begin at multiples of 16 bytes. A factor whose last axis has another size is materialized with
a longer one, and read as far as it goes:

    reduce ADD axes (2): float32(x[512, 1001]) * float32(y[512, 1001])   ->   of x and y,
        stage(x.pad(to 1024 columns)).shrink(to 1001)

Products that become one kernel with a softmax between them (`fuse/chains/`) are left alone:
their rows are multiples of 16 bytes already, and their weights are never in memory.

Factors of one byte are multiplied along the sum alone: one that lies across it is transposed. A
copy moves each element once, and a product uses it as often as the other factor has rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from weft.ir.build import global_stage
from weft.ir.dtypes import DType
from weft.ir.movement import pad, shrink
from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import map_graph, topological, with_sources
from weft.schedule.context import ScheduleContext
from weft.schedule.fuse.chains.chains import find_chains
from weft.schedule.layout.view_axes import base_of_factor, sizes_of, without_cast
from weft.target.compute import Simt
from weft.target.target import Target

# Products of fewer multiplications are as fast without matrix units, with the copy.
LEAST_WORK: Final = 1 << 24
# How often an element is used that is worth copying.
LEAST_USES: Final = 64
# Rows of whole lines are read fastest: on an H200, others by a quarter slower. That is more than a
# copy takes where each element is used so often.
LINE_USES: Final = 2048
# Views of a factor that keep its elements where they are.
_VIEWS: Final = MOVEMENT - {Op.PAD}


def align_factors(root: UOp, context: ScheduleContext) -> UOp:
    """Materialize factors of products with rows that copies can read."""
    dtypes, alignment = matrix_inputs(context.target)
    if not dtypes or not root.ops >> Op.REDUCE & 1:
        return root
    compute = context.target.compute
    assert isinstance(compute, Simt)  # other machines have no such matrix units
    line = compute.line_bytes
    chains = find_chains(root, topological(root), context.target)
    in_chains = {
        node for chain in chains.results.values() for node in (chain.result, *chain.products)
    }

    def aligned(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = with_sources(node, made)
        is_product = new.op == Op.REDUCE and new.arg[0] == Op.ADD and new.src[0].op == Op.MUL
        if not is_product or node in in_chains or not is_large(new.src[0]):
            return new
        bases = [base_of_factor(factor, _VIEWS) for factor in new.src[0].src]
        uses = min(_uses(base, new.src[0]) for base in bases)
        if uses < LEAST_USES or any(base.dtype not in dtypes for base in bases):
            return new
        multiple = line if uses >= LINE_USES else alignment
        sizes = _matrix_sizes(new)
        known = {
            base: _padded(base, line) for base in bases if _is_unaligned(base, sizes, multiple)
        }
        for factor, base in zip(new.src[0].src, bases, strict=True):
            if sizes and base.dtype.itemsize == 1 and _is_across(factor, base, new.arg[1][0]):
                view = _view(factor)
                transposed = _padded(without_cast(view, base), line)
                known[view] = (
                    transposed if transposed.dtype is view.dtype else transposed.cast(view.dtype)
                )
        if not known:
            return new
        return map_graph(new, lambda node, made: with_sources(node, made), known=known)

    return map_graph(root, aligned)


def matrix_inputs(target: Target) -> tuple[frozenset[DType], int]:
    """The dtypes that matrix units read from local memory, and what rows are multiples of."""
    copies = [copy for copy in target.copies if copy.box_limits]
    units = [unit for unit in target.matrix_units if unit.tiles]
    if not copies or not units:
        return frozenset(), 1
    pairs = [pair for unit in units for pair in unit.inputs]
    found = frozenset(dtype for pair in pairs for dtype in pair if dtype.bits <= 16)
    return found, copies[0].alignment


def is_large(product: UOp) -> bool:
    sizes = sizes_of(product)
    return bool(sizes) and math.prod(sizes) >= LEAST_WORK


def _uses(base: UOp, product: UOp) -> int:
    """How often each element of a factor is multiplied."""
    sizes = sizes_of(base)
    return math.prod(sizes_of(product)) // max(math.prod(sizes), 1) if sizes else 0


def _matrix_sizes(reduction: UOp) -> frozenset[int]:
    """The sizes of rows, columns and the sum, if there is one axis of each; else none.

    Pixels of an image are several axes, which lie in memory as one as long as they are not padded.
    """
    product, axes = reduction.src[0], reduction.arg[1]
    sizes = sizes_of(product)
    left, right = (_varies(factor) for factor in product.src)
    own = [axis for axis in range(len(sizes)) if left[axis] != right[axis]]
    if len(axes) != 1 or len(own) != 2 or left[own[0]] == left[own[1]]:
        return frozenset()
    return frozenset(sizes[axis] for axis in (*own, *axes))


def _varies(factor: UOp) -> list[bool]:
    """Along which axes a factor is not repeated."""
    inner = factor.src[0] if factor.op == Op.EXPAND else factor
    return [size != 1 for size in shape_of(inner)]


def _is_unaligned(base: UOp, wanted: frozenset[int], multiple: int) -> bool:
    """Whether the rows of a matrix begin where no copy can read them, or slowly."""
    sizes = sizes_of(base)
    is_row = len(sizes) > 1 and sizes[-1] in wanted
    return is_row and sizes[-1] * base.dtype.itemsize % multiple != 0


def _view(factor: UOp) -> UOp:
    """A factor before it is repeated."""
    while factor.op in (Op.EXPAND, Op.CAST):
        factor = factor.src[0]
    return factor


def _is_across(factor: UOp, base: UOp, axis: int) -> bool:
    """Whether an axis, the last of a factor, is another one of what it is a view of."""
    view = _view(factor)
    if axis != len(shape_of(view)) - 1:
        return False
    while view is not base:
        if view.op == Op.PERMUTE:
            axis = view.arg[axis]
        elif view.op == Op.RESHAPE:
            below = shape_of(view.src[0])
            if [size for size in below if size != 1] != [s for s in shape_of(view) if s != 1]:
                return False
            before = sum(size != 1 for size in shape_of(view)[:axis])
            axis = [at for at, size in enumerate(below) if size != 1][before]
        view = view.src[0]
    return axis != len(shape_of(base)) - 1


def _padded(base: UOp, line_bytes: int) -> UOp:
    """The same value, materialized in rows of whole lines."""
    *outer, last = sizes_of(base)
    more = -last % (line_bytes // base.dtype.itemsize)
    whole = global_stage(pad(base, [*((0, 0) for _ in outer), (0, more)]))
    return shrink(whole, [*((0, size) for size in outer), (0, last)])

"""Products of matrices with few results and long sums are summed in parts, by more groups.

`split_reductions` asks. Matrix units compute tiles of a result; one of fewer tiles than there are
multiprocessors leaves the others without work. Sums of equal parts are tiles of their own. They go
to memory in the dtype of the sum, and a second kernel adds them, always in the same order.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from weft.ir.build import global_stage, reduce_axes
from weft.ir.dtypes import DType
from weft.ir.movement import permute, reshape
from weft.ir.ops import Op
from weft.ir.reduction.contract import ROW_BYTES
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.schedule.layout.convolutions import varies, views_of
from weft.schedule.layout.view_axes import base_of_factor, sizes_of
from weft.target.compute import Simt
from weft.target.matrix import LEAST_SIDE, Tile
from weft.target.memory import GLOBAL
from weft.target.target import Target

MOST_PARTS: Final = 128
# What a part sums at least, in bytes: some steps. It is a multiple of what is in a line of a step.
LEAST_PART: Final = 512
# How much faster parts have to be than one sum.
GAIN: Final = 1.2
SUM_BYTES: Final = 4
# How much longer parts take that are not runs of the sum, as some lines of each image.
SCATTERED: Final = 1.1


class _Product(NamedTuple):
    """The sizes of a product: results for each batch, and what is summed."""

    batch: int
    rows: int
    columns: int
    depth: int
    dtype: DType  # of the factors


def parts_of_product(node: UOp, target: Target) -> tuple[int, int] | None:
    """The axis along which a product is summed in parts, and how many; one where that is fastest.

    None for other reductions, and for machines of which nobody knows how fast they are.
    """
    found = _product(node) if isinstance(target.compute, Simt) else None
    if found is None or min(found.rows, found.columns) < LEAST_SIDE:
        return None
    speed = _speed(found.dtype, target)
    if not speed.rate:
        return None
    least, line = (size // found.dtype.itemsize for size in (LEAST_PART, ROW_BYTES))
    first = min(axis for axis in node.arg[1] if sizes_of(node.src[0])[axis] > 1)
    choices = [
        (_time(found, count, speed, target) * (1.0 if axis == first else SCATTERED), count, axis)
        for axis in node.arg[1]
        for count in range(2, MOST_PARTS + 1)
        if sizes_of(node.src[0])[axis] % count == 0 and _is_part(found.depth, count, least, line)
    ]
    time, count, axis = min(choices, default=(math.inf, 1, 0))
    return (axis, count) if GAIN * time < _time(found, 1, speed, target) else (axis, 1)


def _is_part(depth: int, count: int, least: int, line: int) -> bool:
    """Whether so many parts of a sum are long enough, and fill the lines of their steps."""
    return depth // count >= least and depth // count % line == 0


class _Speed(NamedTuple):
    """What computes a product: operations of a multiprocessor in a nanosecond, and its tiles."""

    rate: float
    tiles: tuple[Tile, ...]


def _speed(dtype: DType, target: Target) -> _Speed:
    """Matrix units that read local memory, or plain cores."""
    compute, reached = target.compute, target.peaks.reached
    assert isinstance(compute, Simt)
    for unit in target.matrix_units if dtype.bits <= 16 and target.copies else ():
        if unit.tiles and (dtype, dtype) in unit.inputs:
            return _Speed(reached * unit.rate / target.units / 1e9, unit.tiles)
    return _Speed(reached * target.peaks.operations / target.units / 1e9, compute.tiles)


def in_parts(node: UOp, axis: int, count: int) -> UOp:
    """The sum of the sums of parts, each part a product of its own.

    before: reduce ADD axes (2): x[64, 64, 4096]
    after:  reduce ADD axes (0): stage(reduce ADD axes (3): x.reshape(64, 64, 8, 512).permute(…))
    """
    value, shape = node.src[0], sizes_of(node.src[0])
    apart = reshape(value, (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :]))
    order = [axis, *(i for i in range(len(shape) + 1) if i != axis)]
    first = reduce_axes(permute(apart, order), Op.ADD, [each + 1 for each in node.arg[1]])
    return reshape(reduce_axes(global_stage(first), Op.ADD, (0,)), shape_of(node))


def _time(product: _Product, parts: int, speed: _Speed, target: Target) -> float:
    """Nanoseconds of a product in parts: waves of the best tile, then the sums of the parts."""
    size = product.depth // parts * product.dtype.itemsize
    least = math.inf
    for tile in speed.tiles:
        rows, columns = -(-product.rows // tile.rows), -(-product.columns // tile.columns)
        groups = product.batch * parts * rows * columns
        work = -(-groups // target.units) * 2 * tile.rows * tile.columns * product.depth / parts
        share = tile.share_of(size, is_alone=groups <= target.units)
        least = min(least, work / (speed.rate * share))
    if parts == 1:
        return least
    results = product.batch * product.rows * product.columns
    moved = 2 * results * parts * SUM_BYTES
    return least + target.costs.launch + moved * target.memory(GLOBAL).cost / target.units


def _product(node: UOp) -> _Product | None:
    """What is multiplied, if it is two matrices of one dtype, each of which has all of the sum."""
    views = views_of(node)
    if views is None:
        return None
    sizes, axes = sizes_of(node.src[0]), node.arg[1]
    dtypes = {base_of_factor(view).dtype for view in views}
    left, right = map(varies, views)
    if len(dtypes) != 1 or not all(left[axis] and right[axis] for axis in axes):
        return None
    rest = [axis for axis in range(len(sizes)) if axis not in axes]
    return _Product(
        math.prod(sizes[axis] for axis in rest if left[axis] == right[axis]),
        math.prod(sizes[axis] for axis in rest if left[axis] and not right[axis]),
        math.prod(sizes[axis] for axis in rest if right[axis] and not left[axis]),
        math.prod(sizes[axis] for axis in axes),
        dtypes.pop(),
    )

"""Opts for products of matrices on matrix units that read tiles from local memory.

A group computes a tile of the result. The multiprocessors run groups in waves, and a last wave
that is not full wastes the rest of them: the tile is taken whose waves waste least, weighed by how
fast the tile itself is. Groups that run at the same time share rows and columns of the factors in
the second cache, so they are numbered down a block of tiles, not along a whole row.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Final

from weft.codegen.analysis.contraction_shape import ContractionShape
from weft.codegen.analysis.loops import nodes_of
from weft.codegen.analysis.tensor_factors import product_of
from weft.codegen.choose.chooser import Chooser
from weft.codegen.opts.table import Order, Split, TensorCore
from weft.ir.dtypes import FLOAT, DType
from weft.ir.ops import Op
from weft.ir.program import DYNAMIC_ALIGNMENT
from weft.ir.reduction.contract import ROW_BYTES
from weft.ir.spec.program import DYNAMIC
from weft.ir.uop import UOp
from weft.support.settings import settings
from weft.target.compute import Simt
from weft.target.matrix import MatrixUnit, Tile
from weft.target.target import Target

# Stages of local memory that are worth having; two are not enough to hide the copies.
MOST_STAGES: Final = 8
# Tiles of rows that run side by side: 8 and 16 are best on an H200, a whole column loses 4 %.
RASTER: Final = 16
# Rows or columns below which a group has mostly nothing to do, and steps that are worth a copy.
LEAST_SIDE: Final = 17
LEAST_DEPTH: Final = 32
_FLOAT32_DIGITS: Final = 24


def use_matrix_units(chooser: Chooser, compute: Simt) -> bool:
    """Tiles of a kernel that is one product of matrices, or a batch of them."""
    shape = ContractionShape.of(chooser)
    if shape is None:
        return False
    reason = _tiled(chooser, shape, compute)
    if reason and settings.DEBUG >= 5:
        print(f"{chooser.kernel.arg[0]}: no matrix units, {reason}")
    return not reason


def _tiled(chooser: Chooser, shape: ContractionShape, compute: Simt) -> str:
    """Take the fastest tile; why there is none, in words."""
    target = chooser.target
    product = product_of(shape.contraction.reduction)
    if isinstance(product, str):
        return product
    unit = unit_for(target, product.loads[0].dtype, product.loads[1].dtype)
    if unit is None or not any(copy.box_limits for copy in target.copies):
        return f"{target.name} has none for {product.loads[0].dtype.name} in local memory"
    if unit.digits < _digits(chooser, product.reduction):
        return f"sums of {product.loads[0].dtype.name} have {unit.digits} bits there"
    # A tile lies along one loop of rows and that of columns which is contiguous in the result;
    # others are loops around it.
    row = max(shape.rows, key=lambda number: chooser.extent(number) or 1)
    column = shape.columns[-1]
    rows, columns, depth = (
        math.prod(chooser.extent(number) or 1 for number in numbers)
        for numbers in ([row], [column], shape.reduced)
    )
    if min(rows, columns) < LEAST_SIDE or depth < LEAST_DEPTH:
        return f"{rows} x {columns} x {depth} is too small"
    others = [n for n in (*shape.batch, *shape.rows, *shape.columns) if n not in (row, column)]
    batch = math.prod(chooser.extent(number) or 1 for number in others)
    item = product.loads[0].dtype.itemsize
    tile = _fastest(unit.tiles, (batch, rows, columns), depth * item, compute.units)
    reason = ""
    for step in reversed(shape.reduced):
        # A step takes no more of the sum than there is.
        size = (chooser.extent(step) or 1) * item
        cut = dataclasses.replace(tile, depth=min(tile.depth, -(-size // ROW_BYTES) * ROW_BYTES))
        count = batch * -(-rows // cut.rows) * -(-columns // cut.columns)
        shared = cut.groups if count > compute.units else 1
        stages = min(_stages(target, cut, shared), max(-(-depth * item // cut.depth), 2))
        opt = TensorCore(row, column, step, (cut.rows, cut.columns, cut.depth), stages)
        reason = next(iter(opt.reasons(chooser.kernel)), "")
        if not reason:
            chooser.take(opt)
            _raster(chooser, row, column)
            break
    return reason


def _digits(chooser: Chooser, reduction: UOp) -> int:
    """The bits that are looked at of a sum of floats; fewer where it is rounded at once."""
    if reduction.dtype.kind != FLOAT:
        return reduction.dtype.bits
    uses = [node for node in nodes_of(chooser.kernel) if reduction in node.src]
    formats = [node.dtype.format for node in uses if node.op == Op.CAST]
    if len(formats) != len(uses):
        return _FLOAT32_DIGITS
    return max(1 + each.mantissa_bits if each else _FLOAT32_DIGITS for each in formats)


def unit_for(target: Target, left: DType, right: DType) -> MatrixUnit | None:
    """The unit that multiplies these dtypes in tiles of local memory."""
    for unit in target.matrix_units:
        if unit.tiles and unit.operands_from == "local" and (left, right) in unit.inputs:
            return unit
    return None


def _fastest(
    tiles: tuple[Tile, ...], sizes: tuple[int, int, int], sum_bytes: int, units: int
) -> Tile:
    """The tile that has most of full waves that is work, times its share of the rate."""
    batch, rows, columns = sizes

    def speed(tile: Tile) -> float:
        groups = batch * -(-rows // tile.rows) * -(-columns // tile.columns)
        waves = -(-groups // units)
        work = batch * rows * columns / (waves * units * tile.rows * tile.columns)
        return work * tile.share_of(sum_bytes)

    return max(tiles, key=speed)


def _stages(target: Target, tile: Tile, groups: int = 1) -> int:
    """As many as local memory has room for, beside barriers, with so many groups in it."""
    room = target.memory(DYNAMIC).size // groups - 2 * DYNAMIC_ALIGNMENT
    return min(room // ((tile.rows + tile.columns) * tile.depth), MOST_STAGES)


def other_tiles(opt: TensorCore, target: Target) -> Iterator[TensorCore]:
    """The same product in other tiles, for a search."""
    found = {tile for unit in target.matrix_units for tile in unit.tiles}
    for tile in sorted(found, key=lambda each: (-each.share, each.rows, each.columns)):
        sizes = (tile.rows, tile.columns, tile.depth)
        yield dataclasses.replace(opt, tile=sizes, stages=_stages(target, tile))


def _raster(chooser: Chooser, row: int, column: int) -> None:
    """Number groups down blocks of tiles: `row` fastest, up to a block of them."""
    tiles = chooser.extent(row) or 1
    blocks = [size for size in range(RASTER // 2, 2 * RASTER) if tiles % size == 0]
    inner = row
    if tiles > RASTER and blocks:
        size = min(blocks, key=lambda each: abs(each - RASTER))
        inner = chooser.next_number()
        if not chooser.take(Split(row, size)):
            inner = row
    chooser.take(Order((column, inner)))

"""Opts for products of matrices on matrix units that read tiles from local memory.

A group computes a tile of the result. The multiprocessors run groups in waves, and a last wave
that is not full wastes the rest of them: the tile is taken whose waves waste least, weighed by how
fast the tile itself is. Groups that run at the same time share rows and columns of the factors in
the second cache, so they are numbered down a block of tiles, not along a whole row.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from weft.codegen.analysis.contraction_shape import ContractionShape
from weft.codegen.analysis.loops import nodes_of
from weft.codegen.analysis.tensor_factors import Extents, product_of
from weft.codegen.analysis.tile_epilogues import epilogue_bytes
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
from weft.target.matrix import LEAST_SIDE, MatrixUnit, Tile
from weft.target.target import Target

# Stages of local memory that are worth having; two are not enough to hide the copies.
MOST_STAGES: Final = 8
# Tiles of rows that run side by side: 8 and 16 are best on an H200, a whole column loses 4 %.
RASTER: Final = 16
# Steps that are worth a copy.
LEAST_DEPTH: Final = 32
# Elements of the sum that a step may take, over those that there are.
MOST_WASTE: Final = 1.5
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
    columns = math.prod(chooser.extent(number) or 1 for number in shape.columns)
    depth = math.prod(chooser.extent(number) or 1 for number in shape.reduced)
    rows = math.prod(chooser.extent(number) or 1 for number in shape.rows)
    if min(rows, columns) < LEAST_SIDE or depth < LEAST_DEPTH:
        return f"{rows} x {columns} x {depth} is too small"
    item = product.loads[0].dtype.itemsize
    reason = ""
    for choice in _choices(chooser, shape, unit, depth * item, compute.units):
        for step in _steps(chooser, shape, item):
            opt = _opt(chooser, shape, choice, step, (item, depth * item, compute.units))
            why = next(iter(opt.reasons(chooser.kernel)), "")
            if not why:
                chooser.take(opt)
                if isinstance(opt.row, int) and isinstance(opt.column, int):
                    _raster(chooser, opt.row, opt.column)
                return ""
            reason = reason or why
    return reason


class _Choice(NamedTuple):
    """A tile whose sides lie along a range or several; how fast it is, and how many groups."""

    speed: float
    tile: Tile
    row: int | Extents
    column: int | Extents
    groups: int


def _choices(
    chooser: Chooser, shape: ContractionShape, unit: MatrixUnit, sum_bytes: int, units: int
) -> list[_Choice]:
    """The fastest tile along each range of rows, and along all of them; the fastest first.

    Its columns begin with those that are contiguous in the result.
    """
    tiles, more = unit.tiles, epilogue_bytes(chooser.kernel, shape, unit, chooser.target)
    rows, (first, *others) = (_sides(chooser, n, tiles) for n in (shape.rows, shape.columns))
    columns = [first, *others[-1:]]
    batch = math.prod(chooser.extent(n) or 1 for n in shape.batch)
    work = math.prod(chooser.extent(n) or 1 for n in (*shape.batch, *shape.rows, *shape.columns))

    def fastest(row: _Side, column: _Side) -> _Choice:
        found: list[_Choice] = []
        for tile in tiles:
            down, across = row[tile.rows], column[tile.columns]
            groups = batch * down.tiles * across.tiles
            waves = -(-groups // units)
            share = work / (waves * units * tile.rows * tile.columns)
            speed = share * tile.share_of(sum_bytes, more, groups <= units)
            found.append(_Choice(speed, tile, down.along, across.along, groups))
        return max(found, key=lambda each: each.speed)

    found = [fastest(row, column) for column in columns for row in rows]
    return sorted(found, key=lambda each: -each.speed)


class _Cover(NamedTuple):
    """What a side of a tile lies along, and how many tiles cover the result there."""

    along: int | Extents
    tiles: int


# By the size of a side.
_Side = dict[int, _Cover]


def _sides(chooser: Chooser, numbers: Sequence[int], tiles: tuple[Tile, ...]) -> list[_Side]:
    """Sides of tiles along each of some ranges, the last first, and along all of them."""
    extents = [(number, chooser.extent(number) or 1) for number in reversed(numbers)]
    total = math.prod(extent for _, extent in extents)
    sizes = {size for tile in tiles for size in (tile.rows, tile.columns)}
    found: list[_Side] = [
        {size: _Cover(number, -(-extent // size) * (total // extent)) for size in sizes}
        for number, extent in extents
    ]
    if len(extents) > 1:
        found.append({size: _Cover(*_box(extents, size)) for size in sizes})
    return found


def _steps(chooser: Chooser, shape: ContractionShape, itemsize: int) -> Iterator[int | Extents]:
    """The ranges of the sum that a tile may lie along: one, or as pixels do, several.

    First come those of whose steps the sum fills most, and of these the innermost.
    """
    extents = [(number, chooser.extent(number) or 1) for number in reversed(shape.reduced)]
    count = ROW_BYTES // itemsize
    yield from [n for n, _ in sorted(extents, key=lambda each: -(-each[1] // count) / each[1])]
    if len(extents) > 1:
        box, boxes = _box(extents, count)
        if boxes * count <= MOST_WASTE * math.prod(extent for _, extent in extents):
            yield box


def _box(extents: Sequence[tuple[int, int]], count: int) -> tuple[Extents, int]:
    """A box of so many elements, and how many such boxes hold all that there are.

    Its sides are powers of two but for the last, for ranges from the fastest to the slowest; of
    those that are as few, the longest along the fastest range.
    """
    (number, extent), *rest = extents
    if not rest:
        return ((number, count),), -(-extent // count)
    found: list[tuple[int, int, Extents]] = []
    side = 1
    while count % side == 0:
        box, boxes = _box(rest, count // side)
        found.append((-(-extent // side) * boxes, -side, ((number, side), *box)))
        side *= 2
    boxes, _, best = min(found)
    return best, boxes


def _opt(
    chooser: Chooser,
    shape: ContractionShape,
    choice: _Choice,
    step: int | Extents,
    sizes: tuple[int, int, int],
) -> TensorCore:
    """A tile with as many stages as there is room for; `sizes` are bytes and multiprocessors."""
    item, sum_bytes, units = sizes
    tile = choice.tile
    if isinstance(step, int):  # a step takes no more of the sum than there is
        size = (chooser.extent(step) or 1) * item
        tile = dataclasses.replace(tile, depth=min(tile.depth, -(-size // ROW_BYTES) * ROW_BYTES))
    else:
        tile = dataclasses.replace(tile, depth=ROW_BYTES)
    shared = tile.groups if choice.groups > units else 1
    stages = min(_stages(chooser.target, tile, shared), max(-(-sum_bytes // tile.depth), 2))
    sides = (tile.rows, tile.columns, tile.depth)
    return TensorCore(choice.row, choice.column, step, sides, stages)


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

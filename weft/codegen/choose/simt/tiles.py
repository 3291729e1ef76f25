"""Opts for products of matrices on targets of threads: tiles of both factors in local memory.

A group computes a tile of the result. In each step over the reduction its threads fill a tile of
both factors, wait, and add the products of what they read there into registers; each thread has a
few rows and columns, four neighbors and those half a tile away, so that threads read and write
neighboring vectors. The tile is taken with the least work for the busiest multiprocessor.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from weft.codegen.analysis.contraction_shape import ContractionShape
from weft.codegen.analysis.loops import GRID, THREAD, kinds_of
from weft.codegen.choose.chooser import Chooser
from weft.codegen.opts.table import Bind, Stage, Unroll, Vectorize
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.target.compute import Simt

LANES: Final = 4


class Tile(NamedTuple):
    """A part of the result that a group computes: its sides, and how many threads share each.

    Both sides have as many threads, and no more than there are `steps` of the reduction at once.
    `rate` is how much of the largest tile's speed a multiprocessor has that is full of these.
    """

    rows: int
    columns: int
    threads: int
    step: int
    rate: float


# The rates were measured on an H200, with float32. Smaller tiles use each element that they have
# read less often.
TILES: Final = (
    Tile(128, 128, 16, 16, 1.0),
    Tile(128, 64, 16, 32, 0.93),
    Tile(64, 64, 8, 16, 0.88),
    Tile(64, 64, 16, 16, 0.72),
    Tile(32, 32, 8, 16, 0.58),
)


class _Side(NamedTuple):
    """The loops of one side of a tile: groups, halves, threads and neighbors."""

    groups: list[int]
    halves: list[int]
    threads: int
    neighbors: int


def tile_product(chooser: Chooser, compute: Simt) -> bool:
    """Tiles for a kernel that is one product of matrices, or a batch of them."""
    shape = ContractionShape.of(chooser)
    if shape is None or any(len(each) != 1 for each in (shape.rows, shape.columns, shape.reduced)):
        return False
    sizes = [chooser.extent(each[0]) or 1 for each in (shape.rows, shape.columns, shape.reduced)]
    batch = math.prod(chooser.extent(number) or 1 for number in shape.batch)
    tiles = [t for t in TILES if t.rows <= sizes[0] and t.columns <= sizes[1]]
    if not tiles or sizes[2] < 2 * TILES[0].step:
        return False
    return _tiled(chooser, shape, min(tiles, key=lambda t: _cost(t, sizes, batch, compute)))


def _cost(tile: Tile, sizes: list[int], batch: int, compute: Simt) -> float:
    """The work of the multiprocessor that has most of it: whole tiles, at their rate.

    Few threads leave it waiting: with a quarter of a group, for as long as it computes.
    """
    count = batch * -(-sizes[0] // tile.rows) * -(-sizes[1] // tile.columns)
    each = -(-count // compute.units)
    waiting = max(math.sqrt(compute.group_threads / (each * tile.threads**2)), 1.0)
    return each * tile.rows * tile.columns / tile.rate * waiting


def _tiled(chooser: Chooser, shape: ContractionShape, tile: Tile) -> bool:
    row, column, step = shape.rows[0], shape.columns[0], shape.reduced[0]
    factors = (1 - shape.factor, shape.factor)
    is_along = [_is_along(chooser, shape, which, step) for which in factors]
    inner = chooser.split(step, tile.step, "mask")
    rows = _cut(chooser, row, tile.rows, tile.threads)
    columns = _cut(chooser, column, tile.columns, tile.threads)
    if inner < 0 or inner == step or rows is None or columns is None:
        return False
    sides = (rows, columns)
    groups = [*shape.batch, *rows.groups, *columns.groups]
    threads = [rows.threads, columns.threads]
    work = [*rows.halves, rows.neighbors, *columns.halves, columns.neighbors]
    if not chooser.order([*groups, *threads, step, inner, *work]):
        return False
    for which, side, along in zip(factors, sides, is_along, strict=True):
        if not _staged(chooser, inner, which, side, along):
            return False
    copies = [Unroll(number) for number in (*work[:-1],)]
    return chooser.take(
        *(Bind(number, THREAD) for number in threads),
        *copies,
        Vectorize(columns.neighbors),
        Unroll(inner, sequential=True),
        *(Bind(number, GRID) for number in groups),
    )


def _cut(chooser: Chooser, number: int, side: int, threads: int) -> _Side | None:
    """The loops of a side; neighbors are as many as a vector has lanes."""
    tile = chooser.split(number, side, "mask")
    groups = [] if tile == number else [number]
    share = threads * LANES
    part = chooser.split(tile, share) if side > share else tile
    neighbors = chooser.split(part, LANES)
    if min(tile, part, neighbors) < 0:
        return None
    return _Side(groups, [] if part == tile else [tile], part, neighbors)


def _staged(chooser: Chooser, step: int, which: int, side: _Side, is_along: bool) -> bool:
    """Put a tile of a factor into local memory, and let the threads fill it.

    A factor that lies along the reduction is read by threads along it. They write to different
    rows of the tile, between which a vector is left free, so that those lie in different banks.
    """
    ranges = (step, *side.halves, side.threads, side.neighbors)
    first = chooser.next_number()
    threads = chooser.extent(side.threads) or 1
    layout: tuple[str, ...] = ()
    if is_along:
        sizes = [chooser.extent(number) or 1 for number in ranges]
        layout = (_padded_rows(sizes),)
    if not chooser.take(Stage(("factor", step, which), ranges, "local", layout)):
        return False
    filled = [first + number for number in range(len(ranges))]
    down, *halves, across, neighbors = filled
    part = chooser.split(down, threads)
    steps = [] if part == down else [down]
    order = [*steps, *halves, across, part] if is_along else [*steps, *halves, part, across]
    return chooser.order([*order, neighbors]) and chooser.take(
        *(Bind(number, THREAD) for number in (part, across)),
        *(Unroll(number) for number in (*steps, *halves)),
        Vectorize(neighbors),
    )


def _padded_rows(sizes: list[int]) -> str:
    """The address of a position of a tile: behind each row is room for a vector.

    >>> _padded_rows([16, 8, 4])
    'i0 * 36 + i1 * 4 + i2'
    """
    terms: list[str] = []
    step = 1
    for axis in reversed(range(len(sizes))):
        step += LANES if axis == 0 else 0
        terms.append(f"i{axis} * {step}" if step > 1 else f"i{axis}")
        step *= sizes[axis]
    return " + ".join(reversed(terms))


def _is_along(chooser: Chooser, shape: ContractionShape, which: int, step: int) -> bool:
    """Whether a factor lies in memory along the reduction."""
    value: UOp = shape.contraction.right if which else shape.contraction.left
    addresses = {node for node in topological(value) if node.op == Op.INDEX}
    found = [access for access in chooser.accesses() if access.node in addresses]
    numbers = [n for n in kinds_of(chooser.kernel) if n != step]
    across = any(access.stride(n) == 1 for access in found for n in numbers)
    return any(access.stride(step) == 1 for access in found) and not across

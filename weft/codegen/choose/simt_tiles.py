"""Opts for products of matrices on targets of threads: tiles of both factors in local memory.

A group computes a square of the result. In each step over the reduction its threads fill a tile of
both factors, wait, and add the products of what they read there into registers; each thread has a
few rows and columns, four neighbors and those half a tile away, so that threads read and write
neighboring vectors. The largest square is taken that leaves a group for each multiprocessor.
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
STEP: Final = 16


class Square(NamedTuple):
    """A tile of the result: its side, and how many threads share a side."""

    side: int
    threads: int


# The largest first; smaller ones use each element that they have read less often.
SQUARES: Final = (Square(128, 16), Square(64, 16), Square(32, 8))


class _Side(NamedTuple):
    """The loops of one side of a tile: groups, halves, threads and neighbors."""

    groups: list[int]
    halves: list[int]
    threads: int
    neighbors: int


def tile_product(chooser: Chooser, compute: Simt) -> bool:
    """Tiles for a kernel that is one product of matrices, or a batch of them."""
    shape = ContractionShape.of(chooser)
    if shape is None or any(len(each) != 1 for each in (shape.rows, shape.columns, shape.folded)):
        return False
    sizes = [chooser.extent(each[0]) or 1 for each in (shape.rows, shape.columns, shape.folded)]
    if min(sizes[:2]) < SQUARES[-1].side or sizes[2] < 2 * STEP:
        return False
    batch = math.prod(chooser.extent(number) or 1 for number in shape.batch)
    squares = [each for each in SQUARES if each.side <= min(sizes[:2])]
    full = [
        each
        for each in squares
        if batch * math.prod(-(-size // each.side) for size in sizes[:2]) >= compute.units
    ]
    return _tiled(chooser, shape, (full or squares[-1:])[0])


def _tiled(chooser: Chooser, shape: ContractionShape, square: Square) -> bool:
    row, column, step = shape.rows[0], shape.columns[0], shape.folded[0]
    factors = (1 - shape.factor, shape.factor)
    is_along = [_is_along(chooser, shape, which, step) for which in factors]
    inner = chooser.split(step, STEP, "mask")
    rows, columns = (_cut(chooser, number, square) for number in (row, column))
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
        Unroll(inner, in_turn=True),
        *(Bind(number, GRID) for number in groups),
    )


def _cut(chooser: Chooser, number: int, square: Square) -> _Side | None:
    """The loops of a side; neighbors are as many as a vector has lanes."""
    tile = chooser.split(number, square.side)
    groups = [] if tile == number else [number]
    share = square.threads * LANES
    part = chooser.split(tile, share) if square.side > share else tile
    neighbors = chooser.split(part, LANES)
    if min(tile, part, neighbors) < 0:
        return None
    return _Side(groups, [] if part == tile else [tile], part, neighbors)


def _staged(chooser: Chooser, step: int, which: int, side: _Side, is_along: bool) -> bool:
    """Put a tile of a factor into local memory, and let the threads fill it.

    A factor that lies along the reduction is read by threads along it. They write to different
    rows of the tile, which are rotated so that those lie in different banks.
    """
    ranges = (step, *side.halves, side.threads, side.neighbors)
    first = chooser.next_number()
    threads = chooser.extent(side.threads) or 1
    layout: tuple[str, ...] = ()
    if is_along:
        names = [f"i{axis}" for axis in range(len(ranges))]
        names[-2] = f"{names[-2]} ^ (i0 % {threads})"
        layout = tuple(names)
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


def _is_along(chooser: Chooser, shape: ContractionShape, which: int, step: int) -> bool:
    """Whether a factor lies in memory along the reduction."""
    value: UOp = shape.contraction.right if which else shape.contraction.left
    places = {node for node in topological(value) if node.op == Op.INDEX}
    found = [access for access in chooser.accesses() if access.node in places]
    numbers = [n for n in kinds_of(chooser.kernel) if n != step]
    across = any(access.stride(n) == 1 for access in found for n in numbers)
    return any(access.stride(step) == 1 for access in found) and not across

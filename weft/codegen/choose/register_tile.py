"""The tile of accumulators that a contraction keeps in registers, from the target's numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_ROWS: Final = 14
# Rows that lie apart by a power of two share a set of the first cache, which has so many places.
ROWS_APART: Final = 8
MOST_VECTORS: Final = 8
# Cycles until a multiply-add can be added to again, and how many start in one.
LATENCY: Final = 4
PORTS: Final = 2
# What a load that fills a vector with a single element costs, in loads of vectors.
SPREAD: Final = 1.5
# Cycles until the second cache has brought a lane of a vector, which a tile reads once.
FAR: Final = 0.09
# Cycles of a turn that counting and the first loads take.
TURN: Final = 0.5


@dataclass(frozen=True)
class Tile:
    """Accumulators: some rows, and some vectors of columns."""

    rows: int
    vectors: int


def best_tile(
    rows: int,
    columns: int,
    lanes: int,
    registers: int,
    most_rows: int = ROWS_APART,
    has_room: bool = True,
) -> Tile:
    """The tile that needs the fewest cycles for a result of this size.

    A turn of the fold takes as long as its multiply-adds or its loads, a vector for each column
    and a single element for each row. Accumulators, the vectors of a row and one factor stay in
    registers, and one more is left for a constant of what is done with the result. Columns that
    no tile divides are read past their end if there is room, and masked by registers if not.

    >>> best_tile(1024, 1024, 16, 32)
    Tile(rows=6, vectors=4)
    >>> best_tile(1024, 1024, 8, 16)
    Tile(rows=6, vectors=2)
    >>> best_tile(1024, 1020, 8, 16, has_room=False)
    Tile(rows=5, vectors=2)
    """

    tiles = [
        Tile(m, v)
        for v in range(1, min(MOST_VECTORS, -(-columns // lanes)) + 1)
        for m in range(1, min(most_rows, rows) + 1)
        if m * v + v + 2 + (0 if has_room or columns % (v * lanes) == 0 else v) <= registers
    ]
    return min(
        tiles,
        key=lambda tile: (cycles(tile, rows, columns, lanes), -tile.rows * tile.vectors),
    )


def cycles(tile: Tile, rows: int, columns: int, lanes: int) -> float:
    """How long the tiles of a result of this size take for a turn of the fold."""
    work = tile.rows * tile.vectors / PORTS
    loads = (SPREAD * tile.rows + tile.vectors) / PORTS
    tiles = -(-rows // tile.rows) * -(-columns // (tile.vectors * lanes))
    return tiles * (max(work, loads, FAR * lanes * tile.vectors, LATENCY) + TURN)

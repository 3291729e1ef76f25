"""The tile of accumulators that a contraction keeps in registers, from the target's numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.target.compute import Simd

# Tiles that are tried: beyond these, more rows or vectors only leave less room for the others.
MOST_ROWS: Final = 14
MOST_VECTORS: Final = 8


@dataclass(frozen=True)
class Tile:
    """Accumulators: some rows, and some vectors of columns."""

    rows: int
    vectors: int


def best_tile(
    rows: int,
    columns: int,
    lanes: int,
    compute: Simd,
    most_rows: int,
    has_room: bool = True,
) -> Tile:
    """The tile that needs the fewest cycles for a result of this size.

    An iteration of the reduction takes as long as its multiply-adds or its loads, a vector for
    each column and a single element for each row. Accumulators, the vectors of a row and one
    factor stay in registers, and one more is left for a constant of what is done with the result.
    Columns that no tile divides are read past their end if there is room, and masked by registers
    if not.

    >>> avx512, avx2 = Simd(vector_registers=32), Simd(vector_registers=16)
    >>> best_tile(1024, 1024, 16, avx512, most_rows=8)
    Tile(rows=6, vectors=4)
    >>> best_tile(1024, 1024, 8, avx2, most_rows=8)
    Tile(rows=6, vectors=2)
    >>> best_tile(1024, 1020, 8, avx2, most_rows=8, has_room=False)
    Tile(rows=5, vectors=2)
    """
    registers = compute.vector_registers
    tiles = [
        Tile(m, v)
        for v in range(1, min(MOST_VECTORS, -(-columns // lanes)) + 1)
        for m in range(1, min(most_rows, rows) + 1)
        if m * v + v + 2 + (0 if has_room or columns % (v * lanes) == 0 else v) <= registers
    ]
    return min(
        tiles,
        key=lambda tile: (cycles(tile, rows, columns, lanes, compute), -tile.rows * tile.vectors),
    )


def cycles(tile: Tile, rows: int, columns: int, lanes: int, compute: Simd) -> float:
    """How long the tiles of a result of this size take for an iteration of the reduction."""
    numbers = compute.loops
    work = tile.rows * tile.vectors / compute.multiply_adds
    loads = (numbers.broadcast * tile.rows + tile.vectors) / compute.multiply_adds
    far = numbers.second_cache_lane * lanes * tile.vectors
    tiles = -(-rows // tile.rows) * -(-columns // (tile.vectors * lanes))
    return tiles * (max(work, loads, far, compute.latency) + numbers.iteration)

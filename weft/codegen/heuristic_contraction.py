"""The recipe of a contraction: a tile of registers, panels near the core, blocks of the fold.

    for each block of columns                       the grid
      for each block of the fold                    ordered; the sum goes on in the result
        fill a panel with the right factor          once for all rows
        for each tile of rows
          for each tile of columns of the panel
            for each turn of the fold in the block
              rows x vectors accumulators

Sizes follow from the registers, the vectors and the caches of the target. Nothing is asked about
what the contraction is for: convolutions come here with several ranges of columns and of the fold,
and a factor that is padded, cast or computed is computed once, when the panel is filled.
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.chooser import Chooser
from weft.codegen.contraction_loops import ContractionLoops
from weft.codegen.contraction_shape import ContractionShape
from weft.codegen.heuristic_folds import SHORT_FOLD
from weft.codegen.opts import Merge, Split
from weft.codegen.register_tile import MOST_ROWS, MOST_VECTORS, ROWS_APART, Tile, best_tile
from weft.ir.ops import Op

# Rows from which a panel is worth the copy, if the factor can be read as vectors or if it cannot.
LEAST_ROWS: Final = 16
FEW_ROWS: Final = 4
# Rows from which a copy is worth it for the alignment of its vectors alone.
MANY_ROWS: Final = 64
# Lanes that may be wasted before columns of several ranges are taken together.
WASTE: Final = 1.05
# Lanes that a row of the result may leave empty, and vectors of products that a copy takes.
MOST_WASTE: Final = 1.34
COPY: Final = 3


def tile_contraction(chooser: Chooser) -> bool:
    """Shape the loops of a kernel that is one contraction; False, and nothing done, if not."""
    shape = ContractionShape.of(chooser)
    if shape is None:
        return False
    mark = chooser.mark()
    if _Recipe(chooser, shape).run():
        return True
    chooser.undo_to(mark)
    return False


class _Recipe(ContractionLoops):
    """Chooses the structure of one contraction, and takes its opts."""

    def run(self) -> bool:
        joined = self.joined_columns()
        rows = self.turns(self.shape.rows)
        if joined > 1 and self.turns(self.fold) <= SHORT_FOLD and rows < LEAST_ROWS:
            return False  # it is written out, and each element of it read where it is
        is_staged = joined > 1 or self.wants_panel()
        least = LEAST_ROWS if self.is_contiguous() else FEW_ROWS
        if rows < least and is_staged:
            return False
        columns = self.extent(self.column) * joined
        self.lanes = min(self.lanes, 1 << columns.bit_length() - 1)
        tile = self.tile_of(columns)
        if self.lanes < 4 or tile.rows < 2:
            return False
        if joined > 1:
            if self.fills_slowly(joined):
                return self.with_rows_as_vectors()
            return self.with_joined_columns(joined, tile)
        return self.with_panels(tile) if is_staged else self.in_place(tile)

    def tile_of(self, columns: int) -> Tile:
        """The best tile; short ranges of rows, as the taps of a window, fill it together."""
        registers = self.chooser.target.vector_registers
        rows, taken = self.extent(self.row), [self.row]
        for number in sorted(self.others, key=self.extent):
            if rows * self.extent(number) <= MOST_ROWS:
                rows *= self.extent(number)
                taken.append(number)
        near = MOST_ROWS if len(taken) > 1 else ROWS_APART
        tile = best_tile(rows, columns, self.lanes, registers, near)
        if len(taken) > 1 and (tile.rows < rows or self.wants_copied_rows()):
            return best_tile(self.extent(self.row), columns, self.lanes, registers)
        self.together = taken[1:]
        self.others = [n for n in self.others if n not in taken]
        return tile

    # ---- what the columns are

    def joined_columns(self) -> int:
        """How many turns of the range outside the columns to take together with them.

        Where the last range is no multiple of a vector, rows of the result that follow each other
        in memory fill the lanes that it leaves empty.
        """
        extent = self.extent(self.column)
        if len(self.shape.columns) < 2 or self.waste(extent) <= WASTE:
            return 1
        before = self.shape.columns[-2]
        (result,) = self.chooser.accesses(self.chooser.stores()[0].src[0])
        if result.stride(before) != extent:
            return 1
        fold = self.turns(self.fold)
        fits = [
            f
            for f in range(1, self.extent(before) + 1)
            if self.extent(before) % f == 0 and f * extent * fold <= self.panel_size
        ]
        return min(fits or [1], key=lambda f: (round(self.waste(f * extent), 2), f))

    def waste(self, columns: int) -> float:
        return -(-columns // self.lanes) * self.lanes / columns

    def fills_slowly(self, joined: int) -> bool:
        """Whether joined columns take longer, for vectors of their panel are cut at each row.

        Times are in vectors for a column and a turn of the fold: its products, and its copy.
        """
        extent = self.extent(self.column)
        rows = self.turns(self.shape.rows) / self.lanes
        together = rows * self.waste(joined * extent) + COPY / math.gcd(extent, self.lanes)
        apart = self.waste(extent) * (rows + COPY / self.lanes)
        return self.waste(extent) <= MOST_WASTE and apart < together

    def is_contiguous(self) -> bool:
        """Whether the factor with the columns is plainly loaded, as vectors."""
        factor = self.shape.panel
        if factor.op != Op.LOAD or factor.src[0].src[1].op != Op.CONST:
            return False
        (access,) = self.chooser.accesses(factor.src[0])
        return access.stride(self.column) == 1

    def wants_panel(self) -> bool:
        """Whether the factor with the columns is better copied before it is used."""
        if not self.is_contiguous():
            return True
        factor = self.shape.panel
        (access,) = self.chooser.accesses(factor.src[0])
        span = sum((access.stride(n) or 0) * self.extent(n) for n in [*self.fold, self.column])
        is_aligned = all((access.stride(n) or 0) % self.lanes == 0 for n in self.fold)
        if not is_aligned and self.turns(self.shape.rows) >= MANY_ROWS:
            return True  # each vector would lie in two lines of the cache
        return span * factor.dtype.itemsize > self.chooser.target.cache_bytes[1] // 4

    # ---- the structures

    def in_place(self, tile: Tile) -> bool:
        """The factor with the columns is small and read where it is."""
        inner = self.columns_in_registers(self.column, tile)
        if not inner:
            return False
        return self.finish([], [] if self.column in inner else [self.column], inner, tile)

    def with_panels(self, tile: Tile) -> bool:
        """Panels of a tile's width, as many as stay in the cache with a block of the fold."""
        self.split_fold(tile.vectors * self.lanes)
        inner = self.columns_in_registers(self.column, tile)
        if not inner:
            return False
        panels: list[int] = []
        blocks: list[int] = []
        if self.column not in inner:
            panels = [self.chooser.split(self.column, self.panels_in_block(tile))]
            if panels[0] < 0:  # one panel in a block
                panels = []
            if panels != [self.column]:
                blocks = [self.column]
        fill = self.stage([*panels, *self.fold, *inner])
        self.merge_fold()
        return bool(fill) and self.finish(blocks, panels, inner, tile, fill)

    def with_joined_columns(self, joined: int, tile: Tile) -> bool:
        """Rows of the result side by side: a panel over both ranges, then one range of both."""
        before = self.shape.columns[-2]
        together = self.chooser.split(before, joined)
        if together == before:
            self.outer.remove(before)
        self.split_fold(self.extent(self.column) * joined)
        fill = self.stage([*self.fold, together, self.column])
        if not fill or not self.chooser.take(Merge(together, self.column)):
            return False
        self.column = together
        self.merge_fold()
        inner = self.columns_in_registers(together, tile)
        if not inner:
            return False
        return self.finish([], [together] if together not in inner else [], inner, tile, fill)

    def with_rows_as_vectors(self) -> bool:
        """Each row of the result in vectors of its own, the last with lanes to spare."""
        before, column, lanes = self.shape.columns[-2], self.column, self.lanes
        registers = self.chooser.target.vector_registers
        width = -(-self.extent(column) // lanes)
        counts = [n for n in range(1, MOST_VECTORS // width + 1) if self.extent(before) % n == 0]
        tiles = {
            n: best_tile(self.extent(self.row), n * width * lanes, lanes, registers)
            for n in counts
        }
        fits = [n for n, tile in tiles.items() if tile.vectors == n * width]
        if not fits:
            return False
        count = max(fits, key=lambda n: tiles[n].rows * tiles[n].vectors)
        tile = tiles[count]
        copies = [self.chooser.split(before, count)] if count > 1 else []
        vector = self.chooser.next_number()
        if -1 in copies or not self.chooser.take(Split(column, lanes, "mask")):
            return False
        self.outer = [n for n in self.outer if n not in copies]
        self.outer += [column] if width == 1 else []
        inner = [*copies, vector] if width == 1 else [*copies, column, vector]
        self.split_fold(tile.vectors * lanes)
        fill = self.stage([*self.fold, *inner])
        self.merge_fold()
        return bool(fill) and self.finish([], [], inner, tile, fill)

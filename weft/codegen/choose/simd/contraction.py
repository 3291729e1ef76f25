"""The opts of a contraction: a tile of registers, panels near the core, blocks of the reduction.

    for each block of columns                       the grid
      for each block of the reduction                    ordered; the sum goes on in the result
        fill a panel with the right factor          once for all rows
        for each tile of rows
          for each tile of columns of the panel
            for each iteration of the reduction in the block
              rows x vectors accumulators

Sizes follow from the registers, the vectors and the caches of the target. Nothing is asked about
what the contraction is for: convolutions come here with several ranges of columns and of the
reduction, and a factor that is padded, cast or computed is computed once, when the panel is
filled.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from weft.codegen.analysis.contraction_shape import ContractionShape
from weft.codegen.analysis.loops import ranges_of
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simd.contraction_loops import ContractionLoops
from weft.codegen.choose.simd.reductions import SHORT_REDUCTION
from weft.codegen.choose.simd.register_tile import (
    MOST_ROWS,
    MOST_VECTORS,
    Tile,
    best_tile,
    cycles,
)
from weft.codegen.opts.table import Merge, Split
from weft.codegen.opts.windows import Windows, windowed
from weft.ir.ops import Op
from weft.target.compute import Simd

# Lanes that may be wasted before columns of several ranges are taken together: less is not worth
# the loops that it takes.
WASTE: Final = 1.05
# Lanes that a row of the result may leave empty before other forms are always better.
MOST_WASTE: Final = 1.34
# Costs that differ by less are the same; then smaller panels are better.
SAME: Final = 1.01


class PanelColumns(NamedTuple):
    """Iterations outside the columns that share a panel, and whether both are one range.

    Vectors and tiles of columns that are one range go across the ends of rows.
    """

    iterations: int
    are_merged: bool


class RowTile(NamedTuple):
    """A tile over some iterations of the range outside the columns, each in vectors of its own."""

    iterations: int
    lanes: int
    tile: Tile


def tile_contraction(chooser: Chooser) -> bool:
    """Shape the loops of a kernel that is one contraction; False, and nothing done, if not."""
    shape, compute = ContractionShape.of(chooser), chooser.target.compute
    if shape is None or not isinstance(compute, Simd):
        return False
    mark = chooser.mark()
    if _ContractionChooser(chooser, shape, compute).run():
        return True
    chooser.undo_to(mark)
    return False


class _ContractionChooser(ContractionLoops):
    """Chooses the structure of one contraction, and takes its opts."""

    def run(self) -> bool:
        panel = self.panel_columns()
        rows = self.iterations(self.shape.rows)
        is_staged = panel.iterations > 1 or self.wants_panel()
        is_cut = panel.iterations > 1 or self.waste(self.extent(self.column)) > WASTE
        is_short = (
            self.iterations(self.reduction) <= SHORT_REDUCTION and len(self.shape.columns) > 1
        )
        if is_cut and is_short and (rows < self.numbers.panel_rows or not is_staged):
            return False  # it is written out, and each element of it read where it is
        numbers = self.numbers
        least = numbers.panel_rows if self.is_contiguous() else numbers.computed_panel_rows
        if rows < least and is_staged:
            return False
        apart = self.rows_in_tile() if is_cut and is_staged else None
        if apart is not None and self.cost_of_rows(apart) < self.cost_of(panel):
            self.lanes = apart.lanes
            return self.with_rows_as_vectors(apart)
        columns = self.extent(self.column) * (panel.iterations if panel.are_merged else 1)
        self.lanes = self.lanes_for(columns)
        tile = self.tile_of(columns, has_room=panel.iterations == 1)
        if self.lanes < 4 or tile.rows < 2:
            return False
        if panel.iterations > 1:
            return self.with_panel_columns(panel, tile)
        return self.with_panels(tile) if is_staged else self.in_place(tile)

    def tile_of(self, columns: int, has_room: bool) -> Tile:
        """The best tile; short ranges of rows, as the taps of a window, fill it together."""
        rows, taken = self.extent(self.row), [self.row]
        for number in sorted(self.others, key=self.extent):
            if rows * self.extent(number) <= MOST_ROWS:
                rows *= self.extent(number)
                taken.append(number)
        near = MOST_ROWS if len(taken) > 1 else self.rows_apart
        tile = best_tile(rows, columns, self.lanes, self.compute, near, has_room)
        if len(taken) > 1 and (tile.rows < rows or self.wants_copied_rows()):
            return self.tile_for(columns, has_room)
        self.together = taken[1:]
        self.others = [n for n in self.others if n not in taken]
        return tile

    # ---- what the columns are

    def panel_columns(self) -> PanelColumns:
        """How many iterations of the range outside the columns to take together with them.

        Rows of the result that follow each other in memory fill the lanes, or the vectors of a
        tile, that the last range leaves empty; and windows that overlap are copied once.
        """
        extent = self.extent(self.column)
        alone = PanelColumns(1, are_merged=False)
        if len(self.shape.columns) < 2:
            return alone
        before = self.shape.columns[-2]
        (result,) = self.chooser.accesses(self.chooser.stores()[0].src[0])
        is_wasteful = self.waste(extent) > WASTE
        if result.stride(before) != extent or not (is_wasteful or self.wants_panel()):
            return alone
        self.find_window(before)
        reduction = min(self.iterations(self.reduction), self.numbers.reduction_block)
        is_cut_up = math.gcd(extent, self.lanes) < 2  # no vectors to copy it with
        most = 1 if is_cut_up else self.extent(before)
        counts = [n for n in range(2, most + 1) if self.extent(before) % n == 0]
        ways = [PanelColumns(n, are_merged) for n in counts for are_merged in (True, False)]
        fits = [way for way in ways if self.panel_elements(way) * reduction <= self.panel_size]
        costs = {way: self.cost_of(way) for way in (alone, *fits)}
        least = min(costs.values())
        return next(way for way, cost in costs.items() if cost <= SAME * least)

    def find_window(self, position: int) -> None:
        """Look for a range of the reduction that is added to this one of the columns."""
        ranges = ranges_of(self.chooser.kernel)
        number = self.chooser.next_number()
        for tap in self.reduction:
            found = windowed(self.shape.panel, ranges[position], ranges[tap], number)
            if found is not None:
                self.window = (tap, found.step)
                return

    def has_window(self, panel: PanelColumns) -> bool:
        """Whether windows are stored once: rows that are one range must lie behind each other."""
        return self.window is not None and (self.window[1] == 1 or not panel.are_merged)

    def panel_elements(self, panel: PanelColumns) -> int:
        """Elements that a panel has for each iteration of the reduction."""
        columns = panel.iterations * self.extent(self.column)
        if self.window is None or not self.has_window(panel):
            return columns
        tap, step = self.window
        taps = self.extent(tap)
        return -(-columns * ((panel.iterations - 1) * step + taps) // (panel.iterations * taps))

    def cost_of(self, panel: PanelColumns) -> float:
        """What a panel's columns take, in vectors for a column and an iteration of the reduction.

        That is their products, and the copy to the panel, whose vectors are cut at each row.
        """
        extent = self.extent(self.column)
        columns = extent * (panel.iterations if panel.are_merged else 1)
        lanes = math.gcd(extent, self.lanes) if panel.iterations > 1 else self.lanes_for(columns)
        tile = self.tile_for(columns, has_room=panel.iterations == 1)
        products = self.products(tile, columns, self.lanes_for(columns)) / columns
        if panel.iterations > 1 and columns % (tile.vectors * self.lanes):
            products *= self.numbers.masked
        copied = self.numbers.copied_vector / lanes * self.panel_elements(panel)
        copied /= panel.iterations * extent
        return self.shared_out(products, copied, self.iterations(self.outer) // panel.iterations)

    def cost_of_rows(self, apart: RowTile) -> float:
        """The same for rows of the result in vectors of their own, some of them past the end."""
        extent, iterations = self.extent(self.column), self.extent(self.shape.columns[-2])
        columns = apart.tile.vectors * apart.lanes
        blocks = -(-iterations // apart.iterations)
        share = blocks / (iterations * extent)
        products = self.products(apart.tile, columns, apart.lanes) * share
        copied = self.numbers.copied_vector * apart.tile.vectors * share
        return self.shared_out(
            products, copied, self.iterations(self.outer) // iterations * blocks
        )

    def shared_out(self, products: float, copied: float, blocks: int) -> float:
        """What threads take that share out blocks, each with a panel of its own."""
        threads = self.compute.units
        if blocks < threads:  # some fill the same panel
            return products + copied * threads / blocks
        return (products + copied) * -(-blocks // threads) * threads / blocks

    def tile_for(self, columns: int, has_room: bool) -> Tile:
        rows, lanes = self.extent(self.row), self.lanes_for(columns)
        return best_tile(rows, columns, lanes, self.compute, self.rows_apart, has_room)

    def lanes_for(self, columns: int) -> int:
        """Lanes of vectors that columns fill at least once."""
        return min(self.lanes, 1 << columns.bit_length() - 1)

    def products(self, tile: Tile, columns: int, lanes: int) -> float:
        """Multiply-adds of vectors in the time of an iteration of the reduction for all rows."""
        rows = self.extent(self.row)
        times = self.iterations(self.shape.rows) // rows
        ports = self.compute.multiply_adds
        return ports * times * cycles(tile, rows, columns, lanes, self.compute)

    def waste(self, columns: int) -> float:
        return -(-columns // self.lanes) * self.lanes / columns

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
        span = sum(
            (access.stride(n) or 0) * self.extent(n) for n in [*self.reduction, self.column]
        )
        is_aligned = all((access.stride(n) or 0) % self.lanes == 0 for n in self.reduction)
        if not is_aligned and self.iterations(self.shape.rows) >= self.numbers.aligned_panel_rows:
            return True  # each vector would lie in two lines of the cache
        return span * factor.dtype.itemsize > self.chooser.target.caches[1].size // 4

    # ---- the structures

    def in_place(self, tile: Tile) -> bool:
        """The factor with the columns is small and read where it is."""
        inner = self.columns_in_registers(self.column, tile)
        if not inner:
            return False
        return self.finish([], [] if self.column in inner else [self.column], inner, tile)

    def with_panels(self, tile: Tile) -> bool:
        """Panels of a tile's width, as many as stay in the cache with a block of the reduction."""
        self.split_reduction(tile.vectors * self.lanes)
        inner = self.columns_in_registers(self.column, tile)
        if not inner:
            return False
        panels: list[int] = []
        blocks: list[int] = []
        if self.column not in inner:
            # The last block of a symbolic extent is whole too, and may be most of the work.
            is_known = ranges_of(self.chooser.kernel)[self.column].src[0].op == Op.CONST
            size = self.panels_in_block(tile) if is_known else 1
            panels = [self.chooser.split(self.column, size)] if size > 1 else []
            if panels and panels[0] < 0:  # one panel in a block
                panels = []
            if panels != [self.column]:
                blocks = [self.column]
        fill = self.stage([*panels, *self.reduction, *inner])
        self.merge_reduction()
        return bool(fill) and self.finish(blocks, panels, inner, tile, fill)

    def with_panel_columns(self, panel: PanelColumns, tile: Tile) -> bool:
        """Rows of the result side by side: a panel over both ranges, then one range of both."""
        before = self.shape.columns[-2]
        together = self.chooser.split(before, panel.iterations)
        if together == before:
            self.outer.remove(before)
        self.split_reduction(self.panel_elements(panel))
        windows: Windows = ()
        if self.window is not None and self.has_window(panel) and self.window[0] in self.reduction:
            windows = ((together, self.window[0]),)
        reduced = [n for n in self.reduction if (together, n) not in windows]
        fill = self.stage([*reduced, together, self.column], windows)
        if not fill:
            return False
        panels = [] if panel.are_merged else [together]
        if panel.are_merged:
            if not self.chooser.take(Merge(together, self.column)):
                return False
            self.column = together
        self.merge_reduction()
        inner = self.columns_in_registers(self.column, tile)
        panels += [self.column] if self.column not in inner else []
        return bool(inner) and self.finish([], panels, inner, tile, fill)

    def rows_in_tile(self) -> RowTile | None:
        """Rows of the result of which each has vectors of its own, if few lanes stay empty."""
        extent = self.extent(self.column)
        lanes = min(self.lanes, 1 << (extent - 1).bit_length())
        width = -(-extent // lanes)
        if len(self.shape.columns) < 2 or lanes < 4 or width * lanes > MOST_WASTE * extent:
            return None
        iterations = self.extent(self.shape.columns[-2])
        found: list[RowTile] = []
        for count in range(1, min(MOST_VECTORS // width, iterations) + 1):
            columns = count * width * lanes
            rows = self.extent(self.row)
            tile = best_tile(rows, columns, lanes, self.compute, self.rows_apart)
            if tile.vectors == count * width and tile.rows > 1:
                found.append(RowTile(count, lanes, tile))
        return min(found, key=self.cost_of_rows, default=None)

    def with_rows_as_vectors(self, apart: RowTile) -> bool:
        """Each row of the result in vectors of its own, the last with lanes to spare."""
        before, column, lanes = self.shape.columns[-2], self.column, self.lanes
        count, tile = apart.iterations, apart.tile
        copies = [self.chooser.split(before, count)] if count > 1 else []
        vector = self.chooser.next_number()
        if -1 in copies or not self.chooser.take(Split(column, lanes, "mask")):
            return False
        one = tile.vectors == count
        self.outer = [n for n in self.outer if n not in copies]
        self.outer += [column] if one else []
        inner = [*copies, vector] if one else [*copies, column, vector]
        self.split_reduction(tile.vectors * lanes)
        fill = self.stage([*self.reduction, *inner])
        self.merge_reduction()
        return bool(fill) and self.finish([], [], inner, tile, fill)

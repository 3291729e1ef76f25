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

from weft.codegen.chooser import HEAVY, Chooser
from weft.codegen.contraction import factors_of
from weft.codegen.contraction_shape import ContractionShape
from weft.codegen.heuristic_folds import SHORT_FOLD
from weft.codegen.loops import nodes_of, own_ranges
from weft.codegen.opts import (
    Accumulate,
    Bind,
    Epilogue,
    Merge,
    Split,
    Stage,
    Unroll,
    Vectorize,
)
from weft.codegen.register_tile import MOST_ROWS, MOST_VECTORS, ROWS_APART, Tile, best_tile
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.uop import UOp
from weft.ir.walk import topological

# Rows from which a panel is worth the copy, if the factor can be read as vectors or if it cannot.
LEAST_ROWS: Final = 16
FEW_ROWS: Final = 4
# Rows from which a copy is worth it for the alignment of its vectors alone.
MANY_ROWS: Final = 64
# Turns of the fold in a block.
FOLD_BLOCK: Final = 512
# The share of the second cache that a panel may take; the rest is for rows and the result.
PANEL_SHARE: Final = 0.4
# Bytes from turn to turn of the fold at which rows are read where they are.
SHORT_STEP: Final = 16
# Operations on each element of the result from which they are a loop of their own.
LONG_EPILOGUE: Final = 8
# Multiply-adds of a vector in the time that an element of the rows takes once more.
ROWS_AGAIN: Final = 0.8
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


class _Recipe:
    """Takes the opts of one contraction, from the result down to its accumulators."""

    def __init__(self, chooser: Chooser, shape: ContractionShape) -> None:
        self.chooser = chooser
        self.shape = shape
        target = chooser.target
        size = shape.contraction.fold.dtype.itemsize
        self.lanes = target.vector_bits // (8 * size)
        self.panel_size = int(min(PANEL_SHARE * target.cache_bytes[1], target.local_bytes) / size)
        self.row = max(shape.rows, key=self.extent)
        self.column = shape.columns[-1]
        self.outer = shape.batch + shape.columns[:-1]
        self.others = [n for n in shape.rows if n != self.row]  # they share a panel
        self.together: list[int] = []  # further rows of a tile
        self.fold = shape.folded
        self.blocks: list[int] = []  # ordered blocks of the fold

    def extent(self, number: int) -> int:
        return self.chooser.extent(number) or 1

    def turns(self, numbers: list[int]) -> int:
        return math.prod(map(self.extent, numbers))

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

    # ---- the three structures

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

    # ---- the steps

    def split_fold(self, columns: int) -> None:
        """Blocks of the fold, so that a panel of these columns stays near."""
        most = min(FOLD_BLOCK * 5 // 4, max(self.panel_size // columns, 1))
        while self.turns(self.fold[1:]) > 2 * most and self.accumulates(self.fold[0]):
            self.blocks, self.fold = [*self.blocks, self.fold[0]], self.fold[1:]
        whole = self.turns(self.fold)
        first = self.fold[0]
        if whole <= most:
            return
        rest = whole // self.extent(first)
        goal = -(-whole // FOLD_BLOCK) if most >= FOLD_BLOCK else -(-whole // most)
        counts = [n for n in range(goal, 2 * goal + 1) if self.extent(first) % n == 0]
        count = counts[0] if counts else goal
        size = -(-self.extent(first) // count)
        if size * rest > 2 * most or size >= self.extent(first):
            return
        mark = self.chooser.mark()
        inner = [self.chooser.split(first, size)] if size > 1 else []
        rest_of_fold = [*inner, *self.fold[1:]]
        if rest_of_fold and self.accumulates(first):
            self.blocks = [*self.blocks, first]
            self.fold = rest_of_fold
        else:
            self.chooser.undo_to(mark)

    def accumulates(self, number: int) -> bool:
        """Whether a range can be a block; it becomes one when the rows are split."""
        mark = self.chooser.mark()
        is_legal = self.chooser.take(*map(Accumulate, [*self.blocks, number]))
        self.chooser.undo_to(mark)
        return is_legal

    def columns_in_registers(self, number: int, tile: Tile) -> list[int]:
        """Split a tile off a range of columns: copies, and the lanes of vectors."""
        lanes = self.lanes
        width = self.chooser.split(number, tile.vectors * lanes, "mask")
        vector = self.chooser.split(width, lanes, "mask") if width >= 0 else -1
        if vector < 0:
            return []
        return [width, vector] if vector != width else [vector]

    def panels_in_block(self, tile: Tile) -> int:
        """How many panels a thread fills at a time, of those that fit into the cache."""
        panels = self.extent(self.column)
        columns = tile.vectors * self.lanes
        most = max(self.panel_size // (columns * self.turns(self.fold)), 1)
        threads = self.chooser.target.threads
        again = ROWS_AGAIN * self.lanes / (panels * columns)

        def cost(size: int) -> float:
            """Work past the end, threads that wait, and what is done again for each block."""
            blocks = -(-panels // size)
            turns = -(-blocks // threads) * threads
            return turns * size / panels + again * blocks

        return min(range(1, min(most, panels) + 1), key=lambda size: (cost(size), -size))

    def merge_fold(self) -> None:
        """One loop for the fold where its factors now walk through memory as one."""
        while len(self.fold) > 1 and self.chooser.take(Merge(*self.fold[-2:])):
            self.fold.pop()

    def stage(self, layout: list[int]) -> list[int]:
        """Keep the factor with the columns in this layout; the ranges that fill it."""
        first = self.chooser.next_number()
        size = self.turns(layout) * self.shape.contraction.fold.dtype.itemsize
        if size > 2 * self.chooser.target.local_bytes:  # a fold that could not be cut
            return []
        if not self.chooser.take(Stage(self.fold[-1], self.shape.factor, tuple(layout))):
            return []
        return list(range(first, first + len(layout)))

    def finish(
        self,
        blocks: list[int],
        panels: list[int],
        inner: list[int],
        tile: Tile,
        fill: list[int] | None = None,
    ) -> bool:
        """Rows, the order of the loops, threads, and what stays in registers."""
        chooser = self.chooser
        spread = self.outer + blocks
        threads = chooser.target.threads
        others = self.others if fill else []
        while others and self.turns(spread) < threads:
            spread, others = [*spread, others[0]], others[1:]
        spread += [] if fill else self.others
        if self.wants_copied_rows():
            rows, copies, left = self.copy_rows(tile)
        else:
            copies, left = chooser.split(self.row, tile.rows), []
            rows = [] if copies == self.row else [self.row]
        spread += self.spread_rows(rows, self.turns(spread)) if rows else []
        tile_rows = [*self.together, copies]
        loops = [*spread, *self.blocks, *others, *rows, *panels, *self.fold, *tile_rows, *inner]
        if not chooser.take(*map(Accumulate, self.blocks)) or not chooser.order(loops):
            return False
        *unrolled, vector = inner
        if (fill and not self.shape_fill(fill)) or (left and not self.shape_rows(left)):
            return False
        if self.has_long_epilogue():
            first = chooser.next_number()
            kept = tuple(n for n in (*tile_rows, *inner) if self.extent(n) > 1)
            if not chooser.take(Epilogue(self.fold[-1], kept), Vectorize(vector)):
                return False
            *unrolled, vector = range(first, first + len(kept))
        else:
            unrolled = [*tile_rows, *unrolled]
        if not chooser.take(*map(Unroll, unrolled), Vectorize(vector)):
            return False
        self.bind(spread)
        return True

    def has_long_epilogue(self) -> bool:
        """Whether so much is done with the result that it is better written once."""
        values = [store.src[1] for store in self.chooser.stores()]
        done = topological(*values, enter=lambda node: node.op not in (Op.REDUCE, Op.LOAD))
        if any(node.op in HEAVY for node in done):
            return True
        return sum(node.op in ELEMENTWISE for node in done) > LONG_EPILOGUE

    def wants_copied_rows(self) -> bool:
        """Whether the factor with the rows is computed, or jumps through memory along the fold."""
        factor = self.shape.contraction.left if self.shape.factor else self.shape.contraction.right
        if factor.op != Op.LOAD or factor.src[0].src[1].op != Op.CONST:
            return True
        place = next(n for n in self.rows_places() if n.op == Op.INDEX)
        (access,) = self.chooser.accesses(place)
        step = access.stride(self.fold[-1])
        return step is None or not 0 < step * access.dtype.itemsize <= SHORT_STEP

    def rows_places(self) -> list[UOp]:
        """The place that the factor with the rows is loaded from, as the opts have left it."""
        fold = next(n for n in nodes_of(self.chooser.kernel) if n.op == Op.REDUCE)
        factors = factors_of(fold)
        assert factors is not None
        return [n for n in topological(factors[1 - self.shape.factor]) if n.op == Op.INDEX]

    def copy_rows(self, tile: Tile) -> tuple[list[int], int, list[int]]:
        """Keep the factor with the rows too, for as many tiles of rows as stay near.

        Returns the loops over rows, the rows of a tile, and the ranges that fill the copy.
        """
        chooser = self.chooser
        most = max(self.panel_size // 2 // (self.turns(self.fold) * tile.rows), 1)
        tiles = -(-self.extent(self.row) // tile.rows)
        even = -(-tiles // -(-tiles // most))  # blocks of one size waste no more than a tile each
        block = chooser.split(self.row, even * tile.rows, "mask")
        if block < 0 or self.extent(block) <= tile.rows:
            copies = chooser.split(self.row, tile.rows, "mask") if block < 0 else block
            return [n for n in (self.row,) if n != copies], copies, []
        first, layout = chooser.next_number(), [*self.fold, block]
        is_even = self.extent(block) % tile.rows == 0  # else the copy needs room for whole tiles
        if not is_even:
            layout.append(chooser.split(block, tile.rows, "mask"))
            first += 1
        taken = chooser.take(Stage(self.fold[-1], 1 - self.shape.factor, tuple(layout)))
        copies = chooser.split(block, tile.rows) if is_even else layout[-1]
        rows = list(dict.fromkeys((self.row, block)))
        return rows, copies, list(range(first, first + len(layout))) if taken else []

    def shape_rows(self, fill: list[int]) -> bool:
        """Vectors along the copied rows, which lie side by side."""
        rows = fill[len(self.fold)]
        if len(fill) > len(self.fold) + 1 and not self.chooser.take(Merge(rows, fill[-1])):
            return True
        vector = self.chooser.split(rows, self.lanes, "mask")
        if vector >= 0:
            self.chooser.take(Vectorize(vector))
        return True

    def spread_rows(self, rows: list[int], turns: int) -> list[int]:
        """Where other loops are too few for all threads, share out the rows too."""
        threads = self.chooser.target.threads
        tiles = self.extent(rows[0])
        if turns >= threads or tiles < 2:
            return []
        inner = self.chooser.split(rows[0], -(-tiles // min(-(-threads // turns), tiles)))
        if inner in (rows[0], -1):
            return []
        outer, rows[0] = rows[0], inner
        return [outer]

    def shape_fill(self, fill: list[int]) -> bool:
        """Vectors along the last range of a panel, which is contiguous in it.

        Where the factor is contiguous along another one, squares are transposed on the way.
        """
        chooser = self.chooser
        *others, last = fill
        extent = self.extent(last)
        lanes = math.gcd(extent, self.lanes)
        gated = self.gated(others)
        chooser.order(gated + [n for n in fill if n not in gated])
        along = self.contiguous_in_fill(others)
        if along is not None and extent == self.lanes and self.extent(along) % lanes == 0:
            vector = chooser.split(along, lanes)
            return vector >= 0 and chooser.take(Vectorize(vector), Unroll(last))
        vector = chooser.split(last, lanes)
        if lanes < 2 or vector < 0 or not chooser.take(Vectorize(vector)):
            return False
        beside = last if vector != last else others[-1]
        if self.extent(beside) <= MOST_VECTORS:  # masks of all its turns stay in registers
            chooser.take(Unroll(beside))
        return True

    def contiguous_in_fill(self, numbers: list[int]) -> int | None:
        """The range along which a factor that is plainly loaded lies in memory."""
        stage = next(n for n in nodes_of(self.chooser.kernel) if self.fills(n, numbers))
        if stage.src[0].op != Op.LOAD:
            return None
        (access,) = self.chooser.accesses(stage.src[0].src[0])
        return next((n for n in numbers if access.stride(n) == 1), None)

    def gated(self, numbers: list[int]) -> list[int]:
        """The ranges that gates of the panel look at; outermost, so that masks stay outside."""
        stage = next(n for n in nodes_of(self.chooser.kernel) if self.fills(n, numbers))
        seen = 0
        for node in topological(stage):
            if node.op == Op.INDEX:
                seen |= node.src[1].ranges
        return [n for n in numbers if seen >> n & 1]

    def fills(self, node: UOp, numbers: list[int]) -> bool:
        """Whether a node is the stage that some of these ranges fill."""
        return node.op == Op.STAGE and any(r.arg in numbers for r in own_ranges(node))

    def bind(self, spread: list[int]) -> None:
        if self.chooser.target.threads < 2:
            return
        for number in spread:
            if not self.chooser.take(Bind(number, "grid")):
                return

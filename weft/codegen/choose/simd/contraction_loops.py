"""The loops of a contraction, step by step: blocks of the reduction, panels, rows, threads, tile.

`contraction.py` decides which structure a contraction gets and calls the steps of that one.
Each takes opts of the kernel and remembers which ranges stand where; one that is refused says so,
and the caller undoes them all.
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.analysis.contraction_shape import ContractionShape
from weft.codegen.analysis.loops import extent_of, nodes_of, ranges_of
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simd.contraction_fill import fill_panel, fill_rows
from weft.codegen.choose.simd.register_tile import MOST_ROWS, Tile
from weft.codegen.opts.stage_value import Ranges
from weft.codegen.opts.table import Accumulate, Bind, Merge, Stage, Unroll, Vectorize
from weft.codegen.opts.windows import Windows
from weft.ir.ops import ELEMENTWISE, TRANSCENDENTAL, Op
from weft.ir.reduction.contraction import factors_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.target.compute import Simd

# Operations on each element of the result from which they are a loop of their own: unrolled for
# every accumulator, longer ones double the time to compile.
LONG_EPILOGUE: Final = 8
# Multiply-adds in the innermost loop that short loops inside of it may become, for that reason.
MOST_PRODUCTS: Final = 128


class ContractionLoops:
    """A contraction while its loops are shaped, from the result down to its accumulators."""

    def __init__(self, chooser: Chooser, shape: ContractionShape, compute: Simd) -> None:
        self.chooser = chooser
        self.shape = shape
        self.compute, self.numbers = compute, compute.loops
        target = chooser.target
        size = shape.contraction.reduction.dtype.itemsize
        self.lanes = compute.vector_bits // (8 * size)
        near = self.numbers.panel_share * target.caches[1].size
        self.panel_size = int(min(near, target.local_bytes) / size)
        self.row = self.longest(shape.rows)
        self.column = shape.columns[-1]
        self.outer = shape.batch + shape.columns[:-1]
        self.others = [n for n in shape.rows if n != self.row]  # they share a panel
        self.together: list[int] = []  # further rows of a tile
        self.reduction = shape.reduced
        self.blocks: list[int] = []  # ordered blocks of the reduction
        self.window: tuple[int, int] | None = None  # a tap of the reduction, and its steps

    @property
    def rows_apart(self) -> int:
        """Rows of a tile: a power of two apart, they share a set of the first cache."""
        return self.chooser.target.caches[0].ways or MOST_ROWS

    def extent(self, number: int) -> int:
        return self.chooser.extent(number) or 1

    def iterations(self, numbers: list[int]) -> int:
        return math.prod(map(self.extent, numbers))

    def longest(self, numbers: list[int]) -> int:
        """The range with the most iterations, of those that are known to fill a tile.

        A symbolic range may have few. Where all that could be long are symbolic, it is the inner
        one: outer ones are batches, which are often short, and a tile over them is then idle.
        """
        ranges = ranges_of(self.chooser.kernel)
        known = [number for number in numbers if extent_of(ranges[number]) is not None]
        if known and (len(known) == len(numbers) or max(map(self.extent, known)) >= MOST_ROWS):
            return max(known, key=self.extent)
        return next(number for number in reversed(numbers) if number not in known)

    # ---- the reduction and the panels

    def split_reduction(self, columns: int) -> None:
        """Blocks of the reduction, so that a panel of these columns stays near."""
        block = self.numbers.reduction_block
        most = min(block * 5 // 4, max(self.panel_size // columns, 1))
        while self.iterations(self.reduction[1:]) > 2 * most and self.accumulates(
            self.reduction[0]
        ):
            self.blocks, self.reduction = [*self.blocks, self.reduction[0]], self.reduction[1:]
        whole = self.iterations(self.reduction)
        first = self.reduction[0]
        if whole <= most:
            return
        rest = whole // self.extent(first)
        goal = -(-whole // min(block, most))
        counts = [n for n in range(goal, 2 * goal + 1) if self.extent(first) % n == 0]
        count = counts[0] if counts else goal
        size = -(-self.extent(first) // count)
        if size * rest > 2 * most or size >= self.extent(first):
            return
        mark = self.chooser.mark()
        inner = [self.chooser.split(first, size)] if size > 1 else []
        rest_of_reduction = [*inner, *self.reduction[1:]]
        if rest_of_reduction and self.accumulates(first):
            self.blocks = [*self.blocks, first]
            self.reduction = rest_of_reduction
        else:
            self.chooser.undo_to(mark)

    def accumulates(self, number: int) -> bool:
        """Whether a range can be a block; it becomes one when the rows are split."""
        mark = self.chooser.mark()
        is_legal = self.chooser.take(*map(Accumulate, [*self.blocks, number]))
        self.chooser.undo_to(mark)
        return is_legal

    def merge_reduction(self) -> None:
        """One loop for the reduction where its factors now walk through memory as one."""
        while len(self.reduction) > 1 and self.chooser.take(Merge(*self.reduction[-2:])):
            self.reduction.pop()

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
        most = max(self.panel_size // (columns * self.iterations(self.reduction)), 1)
        threads = self.compute.units
        again = self.numbers.row_again * self.lanes / (panels * columns)

        def cost(size: int) -> float:
            """Work past the end, threads that wait, and what is done again for each block."""
            blocks = -(-panels // size)
            iterations = -(-blocks // threads) * threads
            return iterations * size / panels + again * blocks

        return min(range(1, min(most, panels) + 1), key=lambda size: (cost(size), -size))

    def stage(self, layout: list[int], windows: Windows = ()) -> list[int]:
        """Keep the factor with the columns in this layout; the ranges that fill it."""
        first = self.chooser.next_number()
        size = self.iterations(layout) * self.shape.contraction.reduction.dtype.itemsize
        if size > 2 * self.chooser.target.local_bytes:  # a reduction that could not be cut
            return []
        taps = dict(windows)
        ranges: Ranges = tuple((n, taps[n]) if n in taps else n for n in layout)
        factor = ("factor", self.reduction[-1], self.shape.factor)
        if not self.chooser.take(Stage(factor, ranges)):
            return []
        return list(range(first, first + len(layout)))

    # ---- the rows, and all loops in their order

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
        parallel = self.outer + blocks
        threads = self.compute.units
        others = self.others if fill else []
        while others and self.iterations(parallel) < threads:
            parallel, others = [*parallel, others[0]], others[1:]
        parallel += [] if fill else self.others
        if self.wants_copied_rows():
            rows, copies, left = self.copy_rows(tile)
        else:
            copies, left = chooser.split(self.row, tile.rows), []
            rows = [] if copies == self.row else [self.row]
        parallel += self.parallel_rows(rows, self.iterations(parallel)) if rows else []
        tile_rows = [*self.together, copies]
        loops = [
            *parallel,
            *self.blocks,
            *others,
            *rows,
            *panels,
            *self.reduction,
            *tile_rows,
            *inner,
        ]
        if not chooser.take(*map(Accumulate, self.blocks)) or not chooser.order(loops):
            return False
        *unrolled, vector = inner
        if fill and not fill_panel(chooser, fill, self.lanes):
            return False
        if left:
            fill_rows(chooser, left, len(self.reduction), self.lanes)
        if self.has_long_epilogue():
            first = chooser.next_number()
            kept = tuple(n for n in (*tile_rows, *inner) if self.extent(n) > 1)
            if not chooser.take(Stage(("reduction", self.reduction[-1]), kept), Vectorize(vector)):
                return False
            *unrolled, vector = range(first, first + len(kept))
        else:
            unrolled = [*tile_rows, *unrolled]
        if not chooser.take(*map(Unroll, unrolled), Vectorize(vector)):
            return False
        self.write_out_reduction(tile)
        self.bind(parallel)
        return True

    def write_out_reduction(self, tile: Tile) -> None:
        """Short loops inside another one are written out, for their accumulators are many."""
        iterations = self.extent(self.reduction[-1])
        if len(self.reduction) > 1 and iterations * tile.rows * tile.vectors <= MOST_PRODUCTS:
            self.chooser.take(Unroll(self.reduction[-1], sequential=True))

    def parallel_rows(self, rows: list[int], iterations: int) -> list[int]:
        """Where other loops are too few for all threads, share out the rows too."""
        threads = self.compute.units
        tiles = self.extent(rows[0])
        if iterations >= threads or tiles < 2:
            return []
        inner = self.chooser.split(rows[0], -(-tiles // min(-(-threads // iterations), tiles)))
        if inner in (rows[0], -1):
            return []
        outer, rows[0] = rows[0], inner
        return [outer]

    def bind(self, parallel: list[int]) -> None:
        if self.compute.units < 2:
            return
        for number in parallel:
            if not self.chooser.take(Bind(number, "grid")):
                return

    def has_long_epilogue(self) -> bool:
        """Whether so much is done with the result that it is better written once."""
        values = [store.src[1] for store in self.chooser.stores()]
        done = topological(*values, enter=lambda node: node.op not in (Op.REDUCE, Op.LOAD))
        if any(node.op in TRANSCENDENTAL for node in done):
            return True
        return sum(node.op in ELEMENTWISE for node in done) > LONG_EPILOGUE

    # ---- a copy of the rows

    def wants_copied_rows(self) -> bool:
        """Whether the factor with the rows is computed, or jumps in memory along the reduction."""
        factor = self.shape.contraction.left if self.shape.factor else self.shape.contraction.right
        if factor.op != Op.LOAD or factor.src[0].src[1].op != Op.CONST:
            return True
        address = next(n for n in self.rows_addresses() if n.op == Op.INDEX)
        (access,) = self.chooser.accesses(address)
        step = access.stride(self.reduction[-1])
        return step is None or not 0 < step * access.dtype.itemsize <= self.numbers.short_step

    def rows_addresses(self) -> list[UOp]:
        """The address that the factor with the rows is loaded from, as the opts have left it."""
        reduction = next(n for n in nodes_of(self.chooser.kernel) if n.op == Op.REDUCE)
        factors = factors_of(reduction)
        assert factors is not None
        return [n for n in topological(factors[1 - self.shape.factor]) if n.op == Op.INDEX]

    def copy_rows(self, tile: Tile) -> tuple[list[int], int, list[int]]:
        """Keep the factor with the rows too, for as many tiles of rows as stay near.

        Returns the loops over rows, the rows of a tile, and the ranges that fill the copy.
        """
        chooser = self.chooser
        most = max(self.panel_size // 2 // (self.iterations(self.reduction) * tile.rows), 1)
        tiles = -(-self.extent(self.row) // tile.rows)
        even = -(-tiles // -(-tiles // most))  # blocks of one size waste no more than a tile each
        block = chooser.split(self.row, even * tile.rows, "mask")
        if block < 0 or self.extent(block) <= tile.rows:
            copies = chooser.split(self.row, tile.rows, "mask") if block < 0 else block
            return [n for n in (self.row,) if n != copies], copies, []
        first, layout = chooser.next_number(), [*self.reduction, block]
        is_even = self.extent(block) % tile.rows == 0  # else the copy needs room for whole tiles
        if not is_even:
            layout.append(chooser.split(block, tile.rows, "mask"))
            first += 1
        taken = chooser.take(
            Stage(("factor", self.reduction[-1], 1 - self.shape.factor), tuple(layout))
        )
        copies = chooser.split(block, tile.rows) if is_even else layout[-1]
        rows = list(dict.fromkeys((self.row, block)))
        return rows, copies, list(range(first, first + len(layout))) if taken else []

"""The opts of a contraction of few rows, whose other factor comes from memory and is used up.

One token against a long cache is of that kind: few queries share a head of keys and values, which
are read once. A panel would be another copy of what is read once anyway, so memory is walked in
its own order instead, each vector of it is used for all rows, and nothing else is asked of it.

    scores    s[row, key] = sum over d: q[row, d] * k[key, d]         lanes along d
    results   o[row, d] = sum over key: w[row, key] * v[key, d]       whole rows of v in registers

Heads that share keys are one range in the kernel, taken apart by a quotient; it is split here.
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.analysis.accesses import Access
from weft.codegen.analysis.contraction_shape import ContractionShape
from weft.codegen.analysis.loops import LOOP, kinds_of
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simd.reductions import SHORT_REDUCTION
from weft.codegen.opts.table import Carry, Nest, Split, Unroll, Vectorize
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.target.compute import Simd

# Rows of the far factor that are taken again: as many as stay in the first cache.
BLOCK_ROWS: Final = 32


def stream_contraction(chooser: Chooser) -> bool:
    """Shape the loops of a contraction of few rows; False, and nothing done, for others."""
    compute = chooser.target.compute
    if not isinstance(compute, Simd) or not chooser.kernel.ops >> Op.REDUCE & 1:
        return False
    mark = chooser.mark()
    chooser.take_apart(most=compute.accumulators)
    shape = ContractionShape.of(chooser)
    if shape is not None and _Streams(chooser, shape, compute).run():
        return True
    chooser.undo_to(mark)
    return False


class _Streams:
    """A contraction of few rows while its loops are shaped."""

    def __init__(self, chooser: Chooser, shape: ContractionShape, compute: Simd) -> None:
        self.chooser, self.shape, self.compute = chooser, shape, compute
        self.lanes = compute.vector_bits // 32

    def run(self) -> bool:
        shape = self.shape
        is_one = len(shape.rows) == len(shape.columns) == len(shape.reduced) == 1
        if not is_one or not shape.batch or shape.contraction.reduction.dtype.bits != 32:
            return False
        rows = self.extent(shape.rows[0])
        far = self.access(shape.panel)
        few = self.access(shape.contraction.left if shape.factor else shape.contraction.right)
        if not 1 < rows <= self.compute.accumulators or far is None or few is None:
            return False
        size = math.prod(map(self.extent, [*shape.batch, *shape.columns, *shape.reduced]))
        if size * far.dtype.itemsize <= self.chooser.target.caches[1].size:
            return False
        (column,), (reduced,) = shape.columns, shape.reduced
        if far.stride(reduced) == few.stride(reduced) == 1:
            # Rows that are accumulators enough need no others, unless each is converted again.
            is_unrolled = rows < self.compute.accumulators or few.dtype.bits < 32
            return self.scores(column, reduced, is_unrolled)
        return far.stride(column) == 1 and self.results(column, reduced, rows)

    def extent(self, number: int) -> int:
        return self.chooser.extent(number) or 1

    def access(self, factor: UOp) -> Access | None:
        """Where a factor is loaded from; None where it is computed from more than one load."""
        loads = [node for node in topological(factor) if node.op == Op.LOAD]
        is_plain = factor.op == Op.LOAD or (factor.op == Op.CAST and factor.src[0].op == Op.LOAD)
        if len(loads) != 1 or not is_plain or loads[0].src[0].src[1].op != Op.CONST:
            return None
        (access,) = self.chooser.accesses(loads[0].src[0])
        return access

    def scores(self, column: int, reduced: int, is_unrolled: bool) -> bool:
        """A row of the far factor at a time, whole: it is read in order, and never again."""
        chooser, (row,) = self.chooser, self.shape.rows
        lanes = self.lanes
        while lanes > self.extent(reduced):
            lanes //= 2
        if lanes < 4 or self.extent(reduced) > SHORT_REDUCTION * lanes:
            return False
        if chooser.split_and(reduced, lanes, "mask", Vectorize) < 0:
            return False
        outer = [n for n in self.loops() if n not in (row, column, reduced)]
        inner = [reduced] if reduced in self.loops() else []
        if not chooser.order([*outer, column, *inner, row]) or not chooser.take(Unroll(row)):
            return False
        return not is_unrolled or chooser.take(*map(Unroll, inner))

    def results(self, column: int, reduced: int, rows: int) -> bool:
        """Whole rows of the far factor in registers, for as many rows of the other as have room.

        Further ones take the same block of rows again while it is near.
        """
        chooser, (row,) = self.chooser, self.shape.rows
        if self.extent(column) % self.lanes:
            return False
        width = self.width(column)
        vectors = width // self.lanes
        room = self.compute.vector_registers
        if not vectors or vectors > room // 2:
            return False
        is_all = rows <= self.compute.latency and rows * vectors <= room
        together = rows if is_all else min(rows, room // 2 // vectors)
        part = chooser.split(column, width)
        lanes = chooser.split(part, self.lanes)
        inner = chooser.split(row, together)
        if min(part, lanes, inner) < 0 or not chooser.take(Vectorize(lanes)):
            return False
        outer = [n for n in self.loops() if n not in (row, part, inner, reduced)]
        unrolled = list(dict.fromkeys([inner, part] if part != lanes else [inner]))
        if inner != row:
            block = chooser.next_number()
            if not chooser.take(Split(reduced, BLOCK_ROWS, "mask"), Nest(block)):
                return False
            if not chooser.order([*outer, reduced, row, block, *unrolled]):
                return False
            return chooser.take(Carry(reduced), *map(Unroll, unrolled))
        if not chooser.order([*outer, reduced, *unrolled]):
            return False
        return chooser.take(*map(Unroll, unrolled))

    def width(self, column: int) -> int:
        """Columns of a thread: all of them, or a part where other loops are too few."""
        batch = math.prod(map(self.extent, self.shape.batch))
        parts = -(-self.compute.units // batch)
        return (
            self.extent(column) // parts if self.extent(column) % (parts * self.lanes) == 0 else 0
        )

    def loops(self) -> list[int]:
        return [number for number, kind in kinds_of(self.chooser.kernel).items() if kind == LOOP]

"""The opts of two products with a softmax between them: blocks of scores that never see memory.

    for each tile of queries                       the grid
      copy the queries, transposed                 lanes are queries from here on
      for each block of keys                       ordered; sums go on in arrays near the core
        fill S with scores of the block            a tile of registers for keys x queries
        the greatest of each query
        fill P with exp(S - greatest)
        the sum of each query
        for each tile of columns
          for each key of the block
            columns x queries accumulators
        all three are joined to those of the blocks before

Keys and values are read where they are, an element at a time, and nothing goes across lanes.
Nothing is asked about the scores: masks, biases and caps are part of what fills S. Each product
has a tile of its own; `contraction.py` has kernels of one product.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.analysis.loops import kinds_of, nodes_of, own_ranges
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simd.chain_loops import ChainLoops, Near, Product, last_product
from weft.codegen.opts.table import Join
from weft.ir.ops import Op
from weft.ir.reduction.contraction import contraction_of
from weft.ir.uop import UOp, range_ids
from weft.target.compute import Simd


@dataclass
class ChainShape:
    """The ranges of a chain by their part."""

    query: int
    column: int
    depth: int  # what the first product sums over
    keys: int  # what the second product sums over
    sums: list[int]  # what other sums of exponentials run over
    tops: list[int]  # what their maximum runs over

    @property
    def rows(self) -> list[int]:
        """The ranges along the keys, those that need others first."""
        return [self.keys, *self.sums, *self.tops]

    @staticmethod
    def of(chooser: Chooser) -> ChainShape | None:
        """The shape of a kernel that ends in the second product of a chain; None of others."""
        reductions = [n for n in nodes_of(chooser.kernel) if n.op == Op.REDUCE]
        if len(reductions) < 4 or any(len(own_ranges(n)) != 1 for n in reductions):
            return None
        last = last_product(chooser)
        return None if last is None else _shape(chooser, last, reductions)


def _shape(chooser: Chooser, last: UOp, reductions: list[UOp]) -> ChainShape | None:
    found = contraction_of(last)
    if found is None:
        return None
    weights, values, queries, columns = found.left, found.right, found.rows, found.columns
    if not weights.ops >> Op.REDUCE & 1:
        weights, values, queries, columns = values, weights, columns, queries
    scores = [n for n in reductions if contraction_of(n) is not None and n is not last]
    rows = [n for n in reductions if n is not last and n not in scores]
    depths = {own_ranges(n)[0].arg for n in scores}
    keys = own_ranges(last)[0]
    if values.ops >> Op.REDUCE & 1 or len(depths) != 1 or len(tuple(range_ids(columns))) != 1:
        return None
    if any(own_ranges(n)[0].src[0] is not keys.src[0] for n in rows):
        return None
    tops = [own_ranges(n)[0].arg for n in rows if n.arg[0] == Op.MAX]
    sums = [own_ranges(n)[0].arg for n in rows if n.arg[0] == Op.ADD]
    if len(tops) != 1 or not sums or len(tops) + len(sums) != len(rows):
        return None
    query = max(range_ids(queries), key=lambda number: chooser.extent(number) or 0)
    (column,), (depth,) = range_ids(columns), depths
    return ChainShape(query, column, depth, keys.arg, sums, tops)


def tile_chain(chooser: Chooser) -> bool:
    """Shape the loops of a kernel that is a chain; False, and nothing done, if it is none."""
    compute = chooser.target.compute
    shape = ChainShape.of(chooser) if isinstance(compute, Simd) else None
    if shape is None or not isinstance(compute, Simd):
        return False
    mark = chooser.mark()
    if _SoftmaxLoops(chooser, shape, compute).run():
        return True
    chooser.undo_to(mark)
    return False


class _SoftmaxLoops(ChainLoops):
    """A chain with a softmax while its loops are shaped."""

    def __init__(self, chooser: Chooser, shape: ChainShape, compute: Simd) -> None:
        super().__init__(chooser, compute, shape.query, shape.column, shape.keys, shape.depth)
        self.shape = shape

    def masked_range(self) -> int:
        return self.shape.tops[0]

    def along_keys(self) -> list[int]:
        return self.shape.rows

    def block_keys(self) -> list[int] | None:
        """Split the rows into blocks that are joined: the loop over these, or None."""
        chooser, shape = self.chooser, self.shape
        keys, size = chooser.extent(shape.keys) or 0, self.block_size()
        self.inner = {number: number for number in shape.rows}
        if keys <= size:
            return None
        for number in shape.rows:
            self.inner[number] = chooser.split(number, size, "mask")
        if -1 in self.inner.values() or not chooser.take(Join(tuple(shape.rows))):
            return None
        kept = [number for number in shape.rows if number in kinds_of(chooser.kernel)]
        self.reduced = [self.inner[number] for number in (*shape.tops, *shape.sums)]
        return kept if len(kept) == 1 else None

    def stage_blocks(self, tile: int) -> Near | None:
        """Keep scores, exponentials and queries near; the ranges that fill each of them."""
        shape = self.shape
        top, one = self.inner[shape.tops[0]], self.inner[shape.sums[0]]
        keys = self.inner[shape.keys]
        scores = self.stage(("common", top, one), (top, tile))
        if scores is None:
            return None
        powers = self.stage(("common", one, keys), (one, tile))
        if powers is None:
            return None
        near = Near([Product(scores[0], scores[1], shape.depth)], [powers], [], [])
        is_near = self.stage_weights(near, keys, tile) and self.stage_factors(near, keys)
        return near if is_near else None

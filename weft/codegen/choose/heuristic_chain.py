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
has a tile of its own; `heuristic_contraction` has kernels of one product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from weft.codegen.analysis.loops import kinds_of, nodes_of, own_ranges
from weft.codegen.choose.chooser import Chooser
from weft.codegen.opts.stage_value import reduction_over
from weft.codegen.opts.table import Carry, Join, Stage, Unroll, Vectorize
from weft.ir.ops import COMPARE, Op
from weft.ir.reduction.contraction import contraction_of, factors_of
from weft.ir.uop import UOp, range_ids
from weft.ir.walk import topological
from weft.target.compute import Simd

# Vectors of queries in a tile, and the most rows: keys of scores, columns of the result.
VECTORS: Final = 2
MOST_ROWS: Final = 8
# What a block costs beside its products, measured: a join is as much as some keys are, longer
# blocks are further away, and so much longer takes a product that is guarded at the end of a row.
JOIN_COST: Final = 5.0
FAR_COST: Final = 6000.0
GUARD: Final = 1.05
MOST_KEYS: Final = 256
# Tiles of queries that share a block where keys and values are far away, and fewer of them where
# a mask ends short rows.
TILES: Final = 4
SHORT_TILES: Final = 2
LONG_ROW: Final = 4096
# Accumulators of a reduction in one loop, so that each does not wait for itself.
COPIES: Final = 4


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
        stores = chooser.stores()
        if len(reductions) < 4 or not stores or any(len(own_ranges(n)) != 1 for n in reductions):
            return None
        if any(n.op in (Op.STAGE, Op.SCAN, Op.AFTER) for n in nodes_of(chooser.kernel)):
            return None
        own = {r.arg for r in own_ranges(stores[0])}
        if any({r.arg for r in own_ranges(store)} != own for store in stores):
            return None
        values = [store.src[1] for store in stores]
        direct = topological(*values, enter=lambda node: node.op != Op.REDUCE)
        last = [node for node in direct if node.op == Op.REDUCE]
        if len(last) != 1:
            return None
        return _shape(chooser, last[0], reductions)


class Near(NamedTuple):
    """What a block keeps near, by the ranges that fill it."""

    tiles: list[list[int]]  # scores, their exponentials and the weights: keys and queries
    queries: list[int]
    copies: list[list[int]]  # of keys and values


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
    if _ChainLoops(chooser, shape, compute).run():
        return True
    chooser.undo_to(mark)
    return False


class _ChainLoops:
    """A chain while its loops are shaped."""

    def __init__(self, chooser: Chooser, shape: ChainShape, compute: Simd) -> None:
        self.chooser, self.shape, self.compute = chooser, shape, compute
        self.lanes = compute.vector_bits // 32
        self.width = self.lanes  # queries of a tile in registers
        self.inner: dict[int, int] = {}  # a range along the keys -> the one of a block

    def run(self) -> bool:
        chooser, shape = self.chooser, self.shape
        queries = chooser.extent(shape.query) or 0
        while self.lanes > queries:
            self.lanes //= 2
        vectors = min(VECTORS, queries // max(self.lanes, 1))
        if self.lanes < 4:
            return False
        self.width = vectors * self.lanes
        tile = chooser.split(shape.query, self.width * self.tiles(queries), "mask")
        blocks = self.block_keys() if tile >= 0 else None
        if blocks is None:
            return False
        near = self.stage_blocks(tile)
        return near is not None and self.finish(tile, blocks, near)

    def tiles(self, queries: int) -> int:
        """How many tiles of queries share a block of keys and values that is far away."""
        chooser, shape = self.chooser, self.shape
        keys, columns, depth = (
            chooser.extent(n) or 1 for n in (shape.keys, shape.column, shape.depth)
        )
        if keys * (columns + depth) * 4 <= chooser.target.caches[1].size // 2:
            return 1
        most = SHORT_TILES if keys < LONG_ROW and self.is_masked() else TILES
        while most > 1 and queries % (most * self.width):
            most //= 2
        return most

    # ---- blocks of keys

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
        return kept if len(kept) == 1 else None

    def block_size(self) -> int:
        """How many keys a block has: the size that costs least, by keys past the end and joins."""
        keys, is_masked = self.chooser.extent(self.shape.keys) or 1, self.is_masked()

        def cost(size: int) -> float:
            blocks = -(-keys // size)
            guarded = GUARD if keys % size else 1.0
            unused = size / keys if is_masked else 0.0  # of the last block, by the diagonal
            return blocks * size / keys * guarded + JOIN_COST / size + unused + size / FAR_COST

        sizes = range(MOST_ROWS, min(MOST_KEYS, keys - 1) + 1, MOST_ROWS)
        return min(sizes, key=cost, default=keys)

    def is_masked(self) -> bool:
        """Whether some scores are left out by where they are."""
        own = 1 << self.shape.tops[0]
        return any(n.op in COMPARE and n.ranges & own for n in nodes_of(self.chooser.kernel))

    # ---- what is kept near

    def stage_blocks(self, tile: int) -> Near | None:
        """Keep scores, exponentials and queries near; the ranges that fill each of them."""
        shape = self.shape
        top, one = self.inner[shape.tops[0]], self.inner[shape.sums[0]]
        keys = self.inner[shape.keys]
        scores = self.stage(("common", top, one), (top, tile))
        if scores is None:
            return None
        weights = self.stage(("common", one, keys), (one, tile))
        if weights is None:
            return None
        near = Near([scores, weights], [], [])
        for which in (0, 1):
            queries = self.stage(("factor", shape.depth, which), (shape.depth, scores[1]))
            if queries is not None:
                near.queries.extend(queries)
                break
        is_near = bool(near.queries) and self.stage_weights(near, keys, tile)
        return near if is_near and self.stage_factors(near, scores[0], keys) else None

    def stage_weights(self, near: Near, keys: int, tile: int) -> bool:
        """Let the second product read its weights, and compute nothing more for each.

        Weights that are rounded to a small float, or dropped at random, are another block.
        """
        which, factor = self.factor_with(keys, tile)
        if factor is None or not factor.ops >> Op.READ & 1:
            return False
        if factor.op == Op.READ:
            return True
        filled = self.stage(("factor", keys, which), (keys, tile))
        near.tiles.extend([filled] if filled is not None else [])
        return filled is not None

    def stage_factors(self, near: Near, key: int, keys: int) -> bool:
        """Copy keys and values of a block that are computed, as from small floats, once for all
        its queries; others are read where they are."""
        shape = self.shape
        for number, other, filled in (
            (shape.depth, key, (key, shape.depth)),
            (keys, shape.column, (keys, shape.column)),
        ):
            which, factor = self.factor_with(number, other)
            if factor is None:
                return False
            if factor.op == Op.LOAD:
                continue
            copy = self.stage(("factor", number, which), filled)
            if copy is None:
                return False
            near.copies.append(copy)
        return True

    def factor_with(self, number: int, other: int) -> tuple[int, UOp | None]:
        """The factor of the product that sums over a range which depends on another range."""
        reduction = reduction_over(self.chooser.kernel, number)
        factors = () if reduction is None else factors_of(reduction) or ()
        found = [(i, each) for i, each in enumerate(factors) if each.ranges >> other & 1]
        return found[0] if len(found) == 1 else (0, None)

    def stage(self, node: tuple[str | int, ...], ranges: tuple[int, ...]) -> list[int] | None:
        first = self.chooser.next_number()
        if not self.chooser.take(Stage(node, ranges)):
            return None
        return list(range(first, first + len(ranges)))

    # ---- registers

    def finish(self, tile: int, blocks: list[int], near: Near) -> bool:
        """The order of the loops, and what stays in registers."""
        chooser, shape = self.chooser, self.shape
        rows = self.rows()
        key_rows = chooser.split(near.tiles[0][0], rows)
        columns = chooser.split(shape.column, rows, "mask")
        own = self.in_registers(tile)
        filled = [self.in_registers(query) for _, query in near.tiles]
        if -1 in (key_rows, columns, *own, *(n for each in filled for n in each)):
            return False
        reduced = [self.inner[n] for n in (*shape.tops, *shape.sums)]
        (key, query), *others = near.tiles
        inside = [
            *(*near.queries, *blocks, *(n for each in near.copies for n in each)),
            *(query, key, shape.depth, key_rows, *filled[0]),
            *(n for (k, q), each in zip(others, filled[1:], strict=True) for n in (q, k, *each)),
            *(tile, *reduced, shape.column, self.inner[shape.keys], columns, *own),
        ]
        last = {number: at for at, number in enumerate(inside)}  # where it is in registers
        inside = [number for at, number in enumerate(inside) if last[number] == at]
        outside = [number for number in kinds_of(chooser.kernel) if number not in inside]
        if not chooser.order([*outside, *inside]):
            return False
        self.add_copies(reduced)
        *wide, _ = zip(*(own, *filled), strict=True)
        unrolled = dict.fromkeys([key_rows, columns, *(n for each in wide for n in each)])
        vectors = [each[-1] for each in (own, *filled)]
        if not chooser.take(*map(Unroll, unrolled), *map(Vectorize, vectors), *map(Carry, blocks)):
            return False
        self.fill_queries(*near.queries)
        for copy in near.copies:
            chooser.split_and(copy[-1], self.lanes, "mask", Vectorize)
        return True

    def in_registers(self, number: int) -> list[int]:
        """Split vectors off a range of queries: copies of them, and their lanes."""
        copies = self.chooser.split(number, self.width)
        lanes = self.chooser.split(copies, self.lanes) if copies >= 0 else -1
        return [copies, lanes] if lanes != copies else [lanes]

    def rows(self) -> int:
        """Rows of a tile that the columns are a multiple of, and that fit into the registers."""
        most = min(MOST_ROWS, (self.compute.vector_registers - 2 - VECTORS) // VECTORS)
        columns = self.chooser.extent(self.shape.column) or 1
        block = self.chooser.extent(self.inner[self.shape.tops[0]]) or 1
        fits = [n for n in range(most, 1, -1) if columns % n == 0 and block % n == 0]
        return fits[0] if fits and fits[0] >= most // 2 else most

    def add_copies(self, reduced: list[int]) -> None:
        """Several accumulators for what is the greatest and the sum of a block."""
        for number in reduced:
            if (self.chooser.extent(number) or 1) % COPIES == 0:
                self.chooser.split_and(number, COPIES, "clamp", Unroll)

    def fill_queries(self, deep: int, query: int) -> None:
        """Transpose squares on the way to the copy of the queries."""
        chooser, lanes = self.chooser, self.lanes
        if any((chooser.extent(n) or 1) % lanes for n in (deep, query)):
            return
        along, across = chooser.split(deep, lanes), chooser.split(query, lanes)
        order = list(dict.fromkeys((deep, query, along, across)))
        if chooser.order(order):
            chooser.take(Vectorize(along), Unroll(across))

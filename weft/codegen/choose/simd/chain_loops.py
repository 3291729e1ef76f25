"""The loops of a kernel that is a chain of products: blocks of a value that never see memory.

A chain ends in a product, one of whose factors, the *weights*, is computed from other products.
`chain.py` has those with a softmax between them, `products.py` those without. Both share what is
here: tiles of queries, blocks of keys, what is near, and what is in registers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from weft.codegen.analysis.loops import kinds_of, nodes_of, own_ranges
from weft.codegen.choose.chooser import Chooser
from weft.codegen.opts.narrow import window_of
from weft.codegen.opts.stage_value import reduction_over
from weft.codegen.opts.table import Carry, Narrow, Stage, Unroll, Vectorize
from weft.ir.ops import COMPARE, Op
from weft.ir.reduction.contraction import contraction_of, factors_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.target.compute import Simd

# Vectors of queries in a tile, and the most rows: keys of scores, columns of the result.
VECTORS: Final = 2
MOST_ROWS: Final = 8
MOST_KEYS: Final = 256
# Tiles of queries that share a block where keys and values are far away, and fewer of them where
# a mask ends short rows.
TILES: Final = 4
SHORT_TILES: Final = 2
LONG_ROW: Final = 4096
# What keys and values take of the second cache at most, so that tiles need not share them. Most of
# a window was read for the tile before, and wider tiles stick out of the windows of their queries.
NEAR_SHARE: Final = 0.5
NEAR_WINDOW: Final = 0.75
# Share of the keys that a window has at most: rows at the beginning of a long one see far fewer.
WIDE_WINDOW: Final = 0.5
# Accumulators of a reduction in one loop, so that each does not wait for itself.
COPIES: Final = 4


class Product(NamedTuple):
    """A product that fills a block of scores: the ranges of the block, and what it sums over."""

    key: int
    query: int
    depth: int


class Near(NamedTuple):
    """What a block keeps near, by the ranges that fill it."""

    products: list[Product]
    tiles: list[list[int]]  # what is computed from these: keys and queries
    queries: list[list[int]]  # transposed copies of the factors with the queries
    copies: list[list[int]]  # of keys and values that are computed


def last_product(chooser: Chooser) -> UOp | None:
    """The product that a kernel ends in; None if it ends in another way.

    Values of its rows may be stored too, as the gradient of attention wants them.
    """
    nodes, stores = nodes_of(chooser.kernel), chooser.stores()
    if not stores or any(node.op in (Op.STAGE, Op.SCAN, Op.AFTER) for node in nodes):
        return None
    ranges = [{r.arg for r in own_ranges(store)} for store in stores]
    own = max(ranges, key=len)
    if any(not each <= own or len(each) < len(own) - 1 for each in ranges):
        return None
    values = [store.src[1] for store, each in zip(stores, ranges, strict=True) if each == own]
    direct = topological(*values, enter=lambda node: node.op != Op.REDUCE)
    last = [node for node in direct if node.op == Op.REDUCE]
    is_product = len(last) == 1 and contraction_of(last[0]) is not None
    return last[0] if is_product else None


class ChainLoops:
    """A chain while its loops are shaped."""

    def __init__(
        self, chooser: Chooser, compute: Simd, query: int, column: int, keys: int, depth: int
    ) -> None:
        self.chooser, self.compute = chooser, compute
        self.query, self.column, self.keys, self.depth = query, column, keys, depth
        self.lanes = compute.vector_bits // 32
        self.width = self.lanes  # queries of a tile in registers
        self.inner: dict[int, int] = {}  # a range along the keys -> the one of a block
        self.is_narrow = False  # whether keys are those of a window
        self.reduced: list[int] = []  # further reductions of a block

    def run(self) -> bool:
        """Take the opts; False where one is refused, and the caller undoes the others."""
        chooser = self.chooser
        queries = chooser.extent(self.query) or 0
        while self.lanes > queries:
            self.lanes //= 2
        vectors = min(VECTORS, queries // max(self.lanes, 1))
        if self.lanes < 4:
            return False
        self.width = vectors * self.lanes
        tile = chooser.split(self.query, self.width * self.tiles(queries), "mask")
        if tile >= 0:
            self.narrow()
        blocks = self.block_keys() if tile >= 0 else None
        if blocks is None:
            return False
        near = self.stage_blocks(tile)
        return near is not None and self.finish(tile, blocks, near)

    def block_keys(self) -> list[int] | None:
        """Split the keys into blocks: the loop over these, or None."""
        raise NotImplementedError

    def stage_blocks(self, tile: int) -> Near | None:
        """Keep what a block needs near: the ranges that fill it, or None."""
        raise NotImplementedError

    def tiles(self, queries: int) -> int:
        """How many tiles of queries share a block of keys and values that is far away."""
        chooser = self.chooser
        keys, columns, depth = (
            chooser.extent(n) or 1 for n in (self.keys, self.column, self.depth)
        )
        window = window_of(chooser.kernel, self.masked_range(), self.query)
        room = chooser.target.caches[1].size * (NEAR_SHARE if window is None else NEAR_WINDOW)
        keys = keys if window is None else min(keys, window.length + self.width)
        if keys * (columns + depth) * 4 <= room:
            return 1
        most = SHORT_TILES if keys < LONG_ROW and self.is_masked() else TILES
        while most > 1 and queries % (most * self.width):
            most //= 2
        return most

    def narrow(self) -> None:
        """Let the loops over keys have the length of a window, where a mask leaves one."""
        chooser = self.chooser
        found = {window_of(chooser.kernel, number, self.query) for number in self.along_keys()}
        window = found.pop() if len(found) == 1 else None
        if window is None:
            return
        length = -(-window.length // MOST_ROWS) * MOST_ROWS
        if length > WIDE_WINDOW * (chooser.extent(self.keys) or 0):
            return
        self.is_narrow = chooser.take(
            *(Narrow(number, self.query, length) for number in self.along_keys())
        )

    def along_keys(self) -> list[int]:
        """The ranges along the keys."""
        return [self.keys]

    def block_size(self) -> int:
        """How many keys a block has: the size that costs least, by keys past the end and joins."""
        keys, numbers = self.chooser.extent(self.keys) or 1, self.compute.loops
        is_masked = self.is_masked() and not self.is_narrow  # a window begins with a block

        def cost(size: int) -> float:
            blocks = -(-keys // size)
            passes = blocks * size / keys * (numbers.guarded_block if keys % size else 1.0)
            unused = size / keys if is_masked else 0.0  # of the last block, by the diagonal
            return passes + numbers.joined_block / size + unused + size / numbers.near_block

        sizes = range(MOST_ROWS, min(MOST_KEYS, keys - 1) + 1, MOST_ROWS)
        return min(sizes, key=cost, default=keys)

    def is_masked(self) -> bool:
        """Whether some scores are left out by where they are."""
        own = 1 << self.masked_range()
        return any(n.op in COMPARE and n.ranges & own for n in nodes_of(self.chooser.kernel))

    def masked_range(self) -> int:
        """The range along the keys that masks of scores look at."""
        return self.keys

    # ---- what is kept near

    def stage_weights(self, near: Near, keys: int, tile: int) -> bool:
        """Let the second product read its weights, and compute nothing more for each.

        Weights that are rounded to a small float, or dropped at random, are another block.
        """
        which, factor = self.factor_with(keys, tile)
        if factor is None or not factor.ops & (1 << Op.READ | 1 << Op.REDUCE):
            return False
        if factor.op == Op.READ:
            return True
        filled = self.stage(("factor", keys, which), (keys, tile))
        if filled is None:
            return False
        near.tiles.append(filled)
        return True

    def stage_factors(self, near: Near, keys: int) -> bool:
        """Copies of the factors: queries transposed, and keys and values that are computed.

        Those, as from small floats, are computed once for all queries of a block; others are read
        where they are.
        """
        for product in near.products:
            which, factor = self.factor_with(product.depth, product.query)
            layout = (product.depth, product.query)
            copy = None
            if factor is not None:
                copy = self.stage(("factor", product.depth, which), layout)
            if copy is None or not self.copy_computed(near, product.depth, product.key):
                return False
            near.queries.append(copy)
        return self.copy_computed(near, keys, self.column)

    def copy_computed(self, near: Near, number: int, other: int) -> bool:
        """Copy the factor of a product that depends on another range, if it is computed."""
        which, factor = self.factor_with(number, other)
        if factor is None:
            return False
        if factor.op == Op.LOAD:
            return True
        layout = (number, other) if other == self.column else (other, number)
        copy = self.stage(("factor", number, which), layout)
        near.copies.extend([] if copy is None else [copy])
        return copy is not None

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
        chooser = self.chooser
        rows = self.rows()
        key_rows = [chooser.split(product.key, rows) for product in near.products]
        columns = chooser.split(self.column, rows, "mask")
        own = self.in_registers(tile)
        filled = [self.in_registers(product.query) for product in near.products]
        others = [self.in_registers(query) for _, query in near.tiles]
        if -1 in (*key_rows, columns, *own, *_flat(filled), *_flat(others)):
            return False
        products = [
            (product.query, product.key, product.depth, row, *each)
            for product, row, each in zip(near.products, key_rows, filled, strict=True)
        ]
        tiles = [(q, k, *each) for (k, q), each in zip(near.tiles, others, strict=True)]
        inside = [
            *(*_flat(near.queries), *blocks, *_flat(near.copies)),
            *(*_flat(products), *_flat(tiles)),
            *(tile, *self.reduced, self.column, self.inner[self.keys], columns, *own),
        ]
        last = {number: at for at, number in enumerate(inside)}  # where it is in registers
        inside = [number for at, number in enumerate(inside) if last[number] == at]
        outside = [number for number in kinds_of(chooser.kernel) if number not in inside]
        if not chooser.order([*outside, *inside]):
            return False
        self.add_copies(self.reduced)
        *wide, _ = zip(*(own, *filled, *others), strict=True)
        unrolled = dict.fromkeys([*key_rows, columns, *_flat(wide)])
        vectors = [each[-1] for each in (own, *filled, *others)]
        if not chooser.take(*map(Unroll, unrolled), *map(Vectorize, vectors), *map(Carry, blocks)):
            return False
        for copy in near.queries:
            self.fill_queries(*copy)
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
        columns = self.chooser.extent(self.column) or 1
        block = self.chooser.extent(self.inner[self.keys]) or 1
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


def _flat(parts: Iterable[Iterable[int]]) -> list[int]:
    return [number for part in parts for number in part]

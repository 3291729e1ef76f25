"""The opts of a product whose weights are computed from other products, without a softmax.

    for each tile of queries                       the grid
      copy the queries, transposed
      for each block of keys                       ordered; sums go on in arrays near the core
        fill blocks with products                  a tile of registers each
        fill W with weights of the block           computed from these
        for each tile of columns, for each key     columns x queries accumulators

Scores by another function than softmax, retention, and two layers with few features between them
are of this form, and so are the gradients of attention, where the sums of rows are known.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.analysis.loops import nodes_of, own_ranges
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simd.chain_loops import ChainLoops, Near, Product, last_product
from weft.codegen.opts.table import Nest
from weft.ir.ops import Op
from weft.ir.reduction.contraction import contraction_of
from weft.ir.uop import UOp, range_ids
from weft.ir.walk import topological
from weft.target.compute import Simd


@dataclass
class ProductsShape:
    """The ranges of a product of computed weights."""

    query: int
    column: int
    keys: int
    depths: list[int]  # what the products of the weights sum over

    @staticmethod
    def of(chooser: Chooser) -> ProductsShape | None:
        """The shape of a kernel that is a product of products; None of others."""
        reductions = [node for node in nodes_of(chooser.kernel) if node.op == Op.REDUCE]
        is_plain = all(len(own_ranges(n)) == 1 and contraction_of(n) for n in reductions)
        last = last_product(chooser) if is_plain and len(reductions) > 1 else None
        return None if last is None else _shape(chooser, last, reductions)


def _shape(chooser: Chooser, last: UOp, reductions: list[UOp]) -> ProductsShape | None:
    found = contraction_of(last)
    assert found is not None
    weights, values, queries, columns = found.left, found.right, found.rows, found.columns
    if not weights.ops >> Op.REDUCE & 1:
        weights, values, queries, columns = values, weights, columns, queries
    if values.ops >> Op.REDUCE & 1 or len(tuple(range_ids(columns))) != 1:
        return None
    inner = [node for node in reductions if node is not last]
    below = set(topological(*(source for node in inner for source in node.src)))
    depths = [own_ranges(node)[0].arg for node in inner]
    if any(node in below for node in inner) or len(set(depths)) != len(depths):
        return None  # products of products, or over one range
    keys = own_ranges(last)[0].arg
    query = max(range_ids(queries), key=lambda number: chooser.extent(number) or 0)
    if not all(node.ranges >> keys & 1 and node.ranges >> query & 1 for node in inner):
        return None
    (column,) = range_ids(columns)
    return ProductsShape(query, column, keys, depths)


def tile_products(chooser: Chooser) -> bool:
    """Shape the loops of a product of products; False, and nothing done, for other kernels."""
    compute = chooser.target.compute
    shape = ProductsShape.of(chooser) if isinstance(compute, Simd) else None
    if shape is None or not isinstance(compute, Simd):
        return False
    mark = chooser.mark()
    if _ProductLoops(chooser, shape, compute).run():
        return True
    chooser.undo_to(mark)
    return False


class _ProductLoops(ChainLoops):
    """A product of products while its loops are shaped."""

    def __init__(self, chooser: Chooser, shape: ProductsShape, compute: Simd) -> None:
        first = shape.depths[0]
        super().__init__(chooser, compute, shape.query, shape.column, shape.keys, first)
        self.depths = shape.depths

    def block_keys(self) -> list[int] | None:
        """Split the keys into blocks, each a sum of its own."""
        keys, size = self.chooser.extent(self.keys) or 0, self.block_size()
        if keys <= size:
            return None
        inner = self.chooser.split(self.keys, size, "mask")
        if inner < 0 or not self.chooser.take(Nest(inner)):
            return None
        self.inner = {self.keys: inner}
        return [self.keys]

    def stage_blocks(self, tile: int) -> Near | None:
        """Keep the products and the weights of a block near, the last product as weights."""
        keys = self.inner[self.keys]
        near = Near([], [], [], [])
        *others, last = self.depths
        for depth in others:
            filled = self.stage(("reduction", depth), (keys, tile))
            if filled is None:
                return None
            near.products.append(Product(filled[0], filled[1], depth))
        which, factor = self.factor_with(keys, tile)
        filled = None if factor is None else self.stage(("factor", keys, which), (keys, tile))
        if filled is None:
            return None
        near.products.append(Product(filled[0], filled[1], last))
        return near if self.stage_factors(near, keys) else None

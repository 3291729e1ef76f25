"""Which chains become one kernel on a GPU: those whose tiles matrix units can multiply.

A kernel of plain threads would compute scores anew for each column, so a chain is taken only where
`codegen/choose/simt/tensor_chain.py` will find tiles for it: all factors are memory of 16 bits
that copies of boxes can bring, and weights are rounded to it before they are multiplied.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from weft.ir.build import range_
from weft.ir.dtypes import dtypes, holds_exactly
from weft.ir.linear import linear
from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.views import unmoved
from weft.schedule.fuse.chains.chain import Chain
from weft.schedule.fuse.cost import size_of
from weft.schedule.indexing import everywhere, flatten, through
from weft.schedule.layout.view_axes import base_of_factor
from weft.target.target import Target

# Keys that are more than one block of the smallest tile.
LEAST_KEYS: Final = 65
# Rows of a tile, and queries from which on one is worth it: fewer leave most of its rows empty.
TILE_ROWS: Final = 128
LEAST_QUERIES: Final = 16
# Keys that a group may walk over alone; beyond, a share of the multiprocessors has to be busy.
LONG_WALK: Final = 4096
BUSY_SHARE: Final = 0.25
# Columns of the result, and products that a score sums, that registers have room for.
MOST_COLUMNS: Final = 128
MOST_DEPTH: Final = 256
# Axes of a tensor that a copy brings, and bytes that its strides are multiples of.
MOST_AXES: Final = 5
ALIGNMENT: Final = 16
_ROUNDED: Final = frozenset((dtypes.bfloat16, dtypes.float16))


class _Sizes(NamedTuple):
    """The axes of a product: of its rows, of its columns, and of its sum."""

    row: int
    column: int
    depth: int


def has_tile_units(target: Target) -> bool:
    """Whether a target multiplies tiles of local memory, with sums in registers."""
    units = [unit for unit in target.matrix_units if unit.operands_from == "local" and unit.tiles]
    copies = [copy for copy in target.copies if copy.box_limits]
    return bool(units and copies) and any(unit.result is not None for unit in units)


def fits_units(chain: Chain) -> bool:
    """Whether matrix units can multiply all tiles of a chain."""
    body = chain.result.src[0]
    sizes = shape_of(body)
    if any(not isinstance(size, int) for size in sizes) or body.op != Op.MUL:
        return False
    (key,) = chain.result.arg[1]
    weights = [source for source in body.src if _weights_of(source, chain) is not None]
    values = [source for source in body.src if source not in weights]
    if len(weights) != 1 or len(values) != 1:
        return False
    narrow = _weights_of(weights[0], chain)
    column = _alone(body, values[0], weights[0])
    row = _row(body, weights[0], values[0], key)
    if narrow is None or column is None or row is None:
        return False
    base = _base(values[0])
    if base is None or base.dtype is not narrow or not _is_tensor(body, values[0], (column, key)):
        return False
    is_narrow = sizes[column] <= MOST_COLUMNS and sizes[column] % 8 == 0
    is_long = bool(sizes[key] >= LEAST_KEYS)
    return is_long and bool(is_narrow) and all(map(_is_score, chain.products))


def wins_on_units(chain: Chain, target: Target) -> bool:
    """Whether one kernel is faster than three; it was at each length of 128 to 4,096 keys.

    A group walks over all keys of its queries, where products of three kernels share them out. So
    one query, or few of a long past, are not a chain.
    """
    body = chain.result.src[0]
    (key,) = chain.result.arg[1]
    (weights,) = [source for source in body.src if _weights_of(source, chain) is not None]
    (values,) = [source for source in body.src if source is not weights]
    row = _row(body, weights, values, key)
    sizes = shape_of(body)
    assert row is not None
    queries, keys = int(sizes[row]), int(sizes[key])
    heads = size_of(chain.scores) // (queries * keys)
    groups = heads * -(-queries // TILE_ROWS)
    is_busy = groups >= BUSY_SHARE * target.compute.units
    return queries >= LEAST_QUERIES and (keys <= LONG_WALK or is_busy)


def factors_on_units(chain: Chain) -> list[UOp]:
    """What copies bring for a chain: memory, or values that have to become that."""
    products = [chain.result, *chain.products]
    bases = [_base(factor) for node in products for factor in node.src[0].src]
    return [base for base in bases if base is not None and base not in chain.values]


def _weights_of(factor: UOp, chain: Chain) -> object:
    """The dtype that weights are rounded to, of the factor that has them."""
    if factor not in chain.values or factor.op != Op.CAST:
        factor = unmoved(factor)
    if factor.op != Op.CAST or factor not in chain.values:
        return None
    narrow = factor.src[0]
    while narrow.op in MOVEMENT or narrow.op == Op.DETACH:
        narrow = narrow.src[0]
    is_rounded = narrow.op == Op.CAST and narrow.dtype in _ROUNDED
    return narrow.dtype if is_rounded and narrow.src[0].dtype is dtypes.float32 else None


def _is_score(product: UOp) -> bool:
    """Whether a product of a chain is one of two tensors."""
    body = product.src[0]
    if body.op != Op.MUL or len(product.arg[1]) != 1:
        return False
    (depth,) = product.arg[1]
    left, right = body.src
    row = _longest(body, [axis for axis in _alone_axes(body, left, right) if axis != depth])
    column = _longest(body, [axis for axis in _alone_axes(body, right, left) if axis != depth])
    if row is None or column is None or shape_of(body)[depth] > MOST_DEPTH:
        return False
    bases = [_base(factor) for factor in (left, right)]
    if bases[0] is None or bases[1] is None or bases[0].dtype is not bases[1].dtype:
        return False
    is_left = _is_tensor(body, left, (row, depth))
    return is_left and _is_tensor(body, right, (column, depth))


def _alone_axes(body: UOp, factor: UOp, other: UOp) -> list[int]:
    """The axes along which one factor varies, and the other one does not."""
    own, others = _varies(body, factor), _varies(body, other)
    return [axis for axis in range(len(own)) if own[axis] and not others[axis]]


def _alone(body: UOp, factor: UOp, other: UOp) -> int | None:
    found = _alone_axes(body, factor, other)
    return found[0] if len(found) == 1 else None


def _row(body: UOp, weights: UOp, values: UOp, key: int) -> int | None:
    """The axis of the queries: the longest one that values do not have."""
    return _longest(body, [axis for axis in _alone_axes(body, weights, values) if axis != key])


def _longest(body: UOp, axes: list[int]) -> int | None:
    """The axis that tiles lie along, of several: heads have queries of their own, and one key."""
    sizes = shape_of(body)
    return max(axes, key=lambda axis: sizes[axis], default=None)


def _varies(body: UOp, factor: UOp) -> list[bool]:
    """Along which axes of a product a factor has different elements."""
    loops = tuple([range_(axis, size) for axis, size in enumerate(shape_of(body))])
    address, node = everywhere(loops), factor
    while node.op in MOVEMENT or node.op == Op.CAST:
        address = through(node, address) if node.op in MOVEMENT else address
        node = node.src[0]
    seen = 0
    for each in address.indices:
        seen |= each.ranges
    return [bool(seen >> axis & 1) for axis in range(len(loops))]


def _base(factor: UOp) -> UOp | None:
    """What a factor is a view of: memory of 16 bits, or what becomes that."""
    base = base_of_factor(factor)
    has_cast = base.dtype is not factor.dtype
    return _behind_round_trips(base) if has_cast and base.dtype in _ROUNDED else None


def _behind_round_trips(narrow: UOp) -> UOp:
    """What is widened and rounded back to what it was, as slopes of a result in float32 are."""
    found = node = narrow
    while node.op in MOVEMENT or node.op == Op.CAST:
        if node.op == Op.CAST and not holds_exactly(node.dtype, narrow.dtype):
            return found
        node = node.src[0]
        found = node if node.dtype is narrow.dtype and node.op not in MOVEMENT else found
    return found


def _is_tensor(body: UOp, factor: UOp, contiguous: tuple[int, int]) -> bool:
    """Whether copies of boxes can bring a factor: one of two axes is contiguous in memory."""
    loops = tuple([range_(axis, size) for axis, size in enumerate(shape_of(body))])
    address, base = everywhere(loops), _base(factor)
    node = factor
    while node is not base:
        address = through(node, address) if node.op in MOVEMENT else address
        node = node.src[0]
    if base is None or address.mask.op != Op.CONST or not address.mask.arg:
        return False
    offset, terms = linear(flatten(address.indices, shape_of(base)))
    strides: dict[int, int] = {}
    for term, stride in terms:
        whole = term.src[0] if term.op in (Op.FLOORDIV, Op.FLOORMOD) else term
        if whole.op != Op.RANGE or stride <= 0 or (whole is not term and whole.arg in contiguous):
            return False
        strides[whole.arg] = min(stride, strides.get(whole.arg, stride))
    size = base.dtype.itemsize
    first = [axis for axis, stride in strides.items() if stride == 1]
    rest = [stride for _, stride in terms if stride != 1]
    is_aligned = all(number * size % ALIGNMENT == 0 for number in (offset, *rest))
    is_known = len(first) == 1 and first[0] in contiguous and set(contiguous) <= strides.keys()
    return is_known and is_aligned and len(terms) <= MOST_AXES and math.prod(strides.values()) > 0

"""Lanes of vectors: a scalar in all of them, one of them, squares transposed, all reduced to one.

`expand` makes vectors with these, and `thread_reductions` reduces what threads have exchanged.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Final

from weft.ir.dtypes import BOOL, INDEX, dtypes
from weft.ir.linear import linear
from weft.ir.ops import Op
from weft.ir.reduction.joined import in_lanes
from weft.ir.uop import UOp, const, make
from weft.rules.simplify import simplify

_OP: Final = operator.attrgetter("op")


def broadcast(node: UOp, lanes: int) -> UOp:
    """A scalar in every lane of a vector; a vector as it is.

    A float16 is broadcast before it is converted: it comes from memory into all lanes at once.
    """
    is_half = node.op == Op.CAST and node.src[0].dtype is dtypes.float16
    if is_half or (node.op == Op.BITCAST and node.dtype is dtypes.float16):
        if node.dtype.lanes == lanes:
            return node
        dtype = node.dtype.vector(lanes)
        return make(node.op, dtype, (broadcast(node.src[0], lanes),), node.arg)
    return in_lanes(node, lanes)


def pick(node: UOp, lane: int) -> UOp:
    """One lane of a vector."""
    if node.op == Op.VECTOR and len(node.src) == node.dtype.lanes:
        return node.src[lane]
    if node.op == Op.CONST:
        return const(node.dtype.scalar, node.arg)
    return make(Op.LANES, node.dtype.scalar, (node,), (lane,))


def transpose(rows: list[UOp]) -> list[UOp]:
    """The columns of a square of vectors, as vectors.

    The number of a row and that of a lane, one behind the other in binary, rotate by one digit
    when the halves of two rows are interleaved; after as many steps as a number has digits, rows
    and lanes are exchanged.
    """
    count = len(rows)
    half, both = count // 2, rows[0].dtype.scalar.vector(2 * count)
    orders = [
        tuple([lane for i in range(half) for lane in (start + i, start + count + i)])
        for start in (0, half)
    ]
    for _ in range(count.bit_length() - 1):
        pairs = [make(Op.VECTOR, both, (rows[i], rows[i + half])) for i in range(half)]
        rows = [make(Op.LANES, rows[0].dtype, (p,), order) for p in pairs for order in orders]
    return rows


def across_lanes(op: int, node: UOp) -> UOp:
    """The reduction of the lanes of a vector, by halves."""
    while node.dtype.lanes > 1:
        lanes = node.dtype.lanes
        if lanes % 2:
            return joined(op, [pick(node, lane) for lane in range(lanes)])
        dtype = node.dtype.scalar.vector(lanes // 2)
        low = make(Op.LANES, dtype, (node,), tuple(range(lanes // 2)))
        high = make(Op.LANES, dtype, (node,), tuple(range(lanes // 2, lanes)))
        node = make(op, dtype, (low, high))
    return node


def joined(op: int, parts: list[UOp]) -> UOp:
    """The parts reduced in pairs, which keeps chains short."""
    while len(parts) > 1:
        pairs = [make(op, x.dtype, (x, y)) for x, y in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[len(pairs) * 2 :]
    return parts[0]


def mask_of_addresses(mask: UOp, offsets: list[int], width: int) -> UOp:
    """Which addresses of a wider vector are read: those with a lane whose mask is true.

    What a mask asks of all lanes at once it asks of all addresses.
    """
    count = len(offsets)
    if mask.op == Op.AND and any(map(_is_shared, mask.src)):
        sides = [mask_of_addresses(source, offsets, width) for source in mask.src]
        return make(Op.AND, sides[0].dtype, tuple(sides))
    if _is_shared(mask):
        is_read = [const(dtypes.bool, at in offsets) for at in range(width)]
        whole = broadcast(mask.src[0], width)
        return make(Op.AND, whole.dtype, (whole, of_constants(is_read)))
    lanes_at: dict[int, list[int]] = {}
    for lane, offset in enumerate(offsets):
        lanes_at.setdefault(offset, []).append(lane)
    if (known := _listed(mask)) is not None:
        some = [any(known[lane].arg for lane in lanes_at.get(at, ())) for at in range(width)]
        return of_constants([const(dtypes.bool, each) for each in some])
    both = mask.dtype.scalar.vector(2 * count)
    with_false = make(Op.VECTOR, both, (mask, const(mask.dtype, False)))
    kind = mask.dtype.scalar.vector(width)
    parts: list[UOp] = []
    for iteration in range(max(map(len, lanes_at.values()))):
        found = [lanes_at.get(address, []) for address in range(width)]
        order = tuple([lanes[iteration] if iteration < len(lanes) else count for lanes in found])
        parts.append(make(Op.LANES, kind, (with_false,), order))
    return joined(Op.OR, parts)


def _is_shared(mask: UOp) -> bool:
    """Whether one condition stands in all lanes."""
    return mask.op == Op.VECTOR and all(source is mask.src[0] for source in mask.src)


def constant_lanes(node: UOp, src: list[UOp], lanes: int) -> UOp | None:
    """An op on lanes that are all known, such as the mask of a copy of a loop."""
    if node.dtype.kind not in (INDEX, BOOL):
        return None
    listed = [_listed(broadcast(source, lanes)) for source in src]
    if None in listed:
        return None
    made: list[UOp] = []
    for parts in zip(*[each for each in listed if each is not None], strict=True):
        made.append(simplify(make(node.op, node.dtype, parts, node.arg)))
    return of_constants(made) if _are_constants(made) else None


def _are_constants(nodes: Sequence[UOp]) -> bool:
    return set(map(_OP, nodes)) == {Op.CONST}


def _listed(node: UOp) -> list[UOp] | None:
    """The lanes of a vector of constants."""
    if node.op == Op.CONST:
        return [const(node.dtype.scalar, node.arg)] * node.dtype.lanes
    if node.op != Op.VECTOR or len(node.src) != node.dtype.lanes:
        return None
    return list(node.src) if _are_constants(node.src) else None


def of_constants(lanes: list[UOp]) -> UOp:
    """A vector of constants; one constant where all of them are the same."""
    dtype = lanes[0].dtype.vector(len(lanes))
    if len(set(lanes)) == 1:
        return const(dtype, lanes[0].arg)
    return make(Op.VECTOR, dtype, tuple(lanes))


def neighbors(parts: Mapping[UOp, UOp], start: int, lanes: int) -> dict[UOp, UOp]:
    """Some neighboring lanes of vectors."""
    found: dict[UOp, UOp] = {}
    for node, part in parts.items():
        order = tuple(range(start, start + lanes))
        found[node] = make(Op.LANES, part.dtype.scalar.vector(lanes), (part,), order)
    return found


def stride_of(index: UOp, number: int) -> int | None:
    """By how much a flat index grows with a range; None where it is not a multiple of it."""
    stride = 0
    for term, factor in linear(index)[1]:
        if term.ranges >> number & 1:
            if term.op != Op.RANGE or term.arg != number:
                return None
            stride += factor
    return stride

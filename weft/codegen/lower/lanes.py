"""Lanes of vectors: a scalar in all of them, one of them, squares transposed, all reduced to one.

`expand` makes vectors with these, and `thread_reductions` reduces what threads have exchanged.
"""

from __future__ import annotations

from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.reduction.joined import in_lanes
from weft.ir.uop import UOp, const, make


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

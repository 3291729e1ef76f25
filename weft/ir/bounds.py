"""What is known of an integer without running anything: its interval and its divisor.

`bounds(node)` is the closed interval of an integer or bool node, remembered on the node.
Fixed-width integers wrap, so an interval that leaves the dtype becomes the whole dtype. Index
arithmetic is exact and does not wrap. `divisor(node)` is a constant that divides every value the
node takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from weft.ir.dtypes import BOOL, FLOAT, INDEX, DType
from weft.ir.ops import Op
from weft.ir.uop import Interval, UOp
from weft.support.errors import InternalError

# Wider than any index of real memory, and still far from slow big integers.
UNBOUNDED: Final = (-(1 << 63), (1 << 63) - 1)


def bounds(node: UOp) -> Interval:
    """The least and the greatest value the node can have."""
    found = node.interval
    if found is not None:
        return found
    stack = [node]
    while stack:
        part = stack[-1]
        if part.interval is not None:
            stack.pop()
            continue
        missing = _missing(part)
        if missing:
            stack.extend(missing)
        else:
            part.interval = _interval(part)
            stack.pop()
    found = node.interval
    assert found is not None
    return found


def _missing(node: UOp) -> list[UOp]:
    """The sources whose intervals must be known first."""
    if node.op not in _RULES:
        return []
    return [
        source for source in node.src if source.interval is None and not source.dtype.kind & FLOAT
    ]


def _interval(node: UOp) -> Interval:
    if node.op == Op.CONST:
        return int(node.arg), int(node.arg)
    limits = dtype_limits(node.dtype)
    rule = _RULES.get(node.op)
    if rule is None:
        return limits
    low, high = rule(node)
    if node.dtype.kind == INDEX or (limits[0] <= low and high <= limits[1]):
        return low, high
    return limits


def dtype_limits(dtype: DType) -> Interval:
    """The interval of a dtype of which nothing else is known."""
    if dtype.kind == INDEX:
        return UNBOUNDED
    if dtype.kind == FLOAT:
        raise InternalError(f"a {dtype.name} has no integer bounds")
    if dtype.kind == BOOL:
        return 0, 1
    return int(dtype.min), int(dtype.max)


def _range(node: UOp) -> Interval:
    return 0, max(bounds(node.src[0])[1] - 1, 0)


def _add(node: UOp) -> Interval:
    (a, b), (c, d) = bounds(node.src[0]), bounds(node.src[1])
    return (a | c, b | d) if node.dtype.kind == BOOL else (a + c, b + d)


def _multiply(node: UOp) -> Interval:
    (a, b), (c, d) = bounds(node.src[0]), bounds(node.src[1])
    corners = (a * c, a * d, b * c, b * d)
    return min(corners), max(corners)


def _floordiv(node: UOp) -> Interval:
    (a, b), (c, d) = bounds(node.src[0]), bounds(node.src[1])
    if c <= 0 <= d:  # a zero divisor gives 0; the quotient is never further from 0 than x
        far = max(abs(a), abs(b))
        return (0, far) if a >= 0 and c >= 0 else (-far, far)
    corners = (a // c, a // d, b // c, b // d)
    return min(corners), max(corners)


def _floormod(node: UOp) -> Interval:
    (a, b), (c, d) = bounds(node.src[0]), bounds(node.src[1])
    if c > 0:
        if c == d and a // c == b // c:
            return a % c, b % c
        return 0, min(d - 1, b) if a >= 0 else d - 1
    return min(c + 1, 0), max(d - 1, 0)


def _truncdiv(node: UOp) -> Interval:
    (a, b), (c, d) = bounds(node.src[0]), bounds(node.src[1])
    if c <= 0 <= d:
        far = max(abs(a), abs(b))
        return (0, far) if a >= 0 and c >= 0 else (-far, far)
    corners = [_toward_zero(x, y) for x in (a, b) for y in (c, d)]
    if a <= 0 <= b:
        corners.append(0)
    return min(corners), max(corners)


def _toward_zero(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _truncmod(node: UOp) -> Interval:
    (a, b), (c, d) = bounds(node.src[0]), bounds(node.src[1])
    far = max(abs(c), abs(d)) - 1
    return (max(-far, a) if a < 0 else 0, min(far, b) if b > 0 else 0) if far >= 0 else (0, 0)


def _compare(decide: Callable[[Interval, Interval], Interval]) -> Callable[[UOp], Interval]:
    def rule(node: UOp) -> Interval:
        if node.src[0].dtype.kind == FLOAT:
            return 0, 1
        return decide(bounds(node.src[0]), bounds(node.src[1]))

    return rule


def _less(x: Interval, y: Interval) -> Interval:
    return int(x[1] < y[0]), int(x[0] < y[1])


def _less_equal(x: Interval, y: Interval) -> Interval:
    return int(x[1] <= y[0]), int(x[0] <= y[1])


def _equal(x: Interval, y: Interval) -> Interval:
    return int(x[0] == x[1] == y[0] == y[1]), int(x[0] <= y[1] and y[0] <= x[1])


def _where(node: UOp) -> Interval:
    (a, b), (c, d) = bounds(node.src[1]), bounds(node.src[2])
    low, high = bounds(node.src[0])
    if low:
        return a, b
    return (min(a, c), max(b, d)) if high else (c, d)


def _cast(node: UOp) -> Interval:
    source = node.src[0]
    limits = dtype_limits(node.dtype)
    if source.dtype.kind == FLOAT:
        return limits
    low, high = bounds(source)
    if node.dtype.kind == BOOL:
        return int(low > 0 or high < 0), int(low != 0 or high != 0)
    return low, high


def _and(node: UOp) -> Interval:
    (a, b), (c, d) = bounds(node.src[0]), bounds(node.src[1])
    if node.dtype.kind == BOOL:
        return a & c, b & d
    if a < 0 and c < 0:
        return dtype_limits(node.dtype)
    if a >= 0 and c >= 0:
        return 0, min(b, d)
    return 0, b if a >= 0 else d


def _or(node: UOp) -> Interval:
    (a, b), (c, d) = bounds(node.src[0]), bounds(node.src[1])
    if node.dtype.kind == BOOL:
        return a | c, b | d
    if a < 0 or c < 0:
        return dtype_limits(node.dtype)
    return max(a, c), (1 << max(b, d).bit_length()) - 1


def _xor(node: UOp) -> Interval:
    (a, b), (c, d) = bounds(node.src[0]), bounds(node.src[1])
    if a < 0 or c < 0:
        return dtype_limits(node.dtype)
    return 0, (1 << max(b, d).bit_length()) - 1


def _not(node: UOp) -> Interval:
    low, high = bounds(node.src[0])
    if node.dtype.kind == BOOL:
        return 1 - high, 1 - low
    top = int(node.dtype.max) if node.dtype.is_unsigned else -1
    return top - high, top - low


def _shift_right(node: UOp) -> Interval:
    (a, b), (c, d) = bounds(node.src[0]), bounds(node.src[1])
    if c < 0:
        return dtype_limits(node.dtype)
    return min(a >> c, a >> min(d, 128)), max(b >> c, b >> min(d, 128))


def _shift_left(node: UOp) -> Interval:
    (a, b), (c, d) = bounds(node.src[0]), bounds(node.src[1])
    if c < 0 or d > 63:
        return dtype_limits(node.dtype)
    return min(a << c, a << d), max(b << c, b << d)


_RULES: Final[dict[int, Callable[[UOp], Interval]]] = {
    Op.RANGE: _range,
    Op.SPECIAL: _range,
    Op.VARIABLE: lambda node: (node.arg[1], node.arg[2]),
    # What is proven of a size holds for every value of its variable, not for this run alone.
    Op.BIND: lambda node: bounds(node.src[0]),
    Op.ADD: _add,
    Op.MUL: _multiply,
    Op.FLOORDIV: _floordiv,
    Op.FLOORMOD: _floormod,
    Op.TRUNCDIV: _truncdiv,
    Op.TRUNCMOD: _truncmod,
    Op.LESS: _compare(_less),
    Op.LESS_EQUAL: _compare(_less_equal),
    Op.EQUAL: _compare(_equal),
    Op.WHERE: _where,
    Op.CAST: _cast,
    Op.AND: _and,
    Op.OR: _or,
    Op.XOR: _xor,
    Op.NOT: _not,
    Op.SHR: _shift_right,
    Op.SHL: _shift_left,
    Op.VECTOR: lambda node: _hull(node.src),
    Op.LANES: lambda node: bounds(node.src[0]),
    Op.SHUFFLE: lambda node: bounds(node.src[0]),
    Op.NEG: lambda node: (-bounds(node.src[0])[1], -bounds(node.src[0])[0]),
    Op.MAX: lambda node: _each(max, node),
    Op.MIN: lambda node: _each(min, node),
}


def _each(pick: Callable[[int, int], int], node: UOp) -> Interval:
    (a, b), (c, d) = bounds(node.src[0]), bounds(node.src[1])
    return pick(a, c), pick(b, d)


def _hull(nodes: tuple[UOp, ...]) -> Interval:
    spans = [bounds(node) for node in nodes]
    return min(low for low, _ in spans), max(high for _, high in spans)


def divisor(node: UOp, depth: int = 8) -> int:
    """A constant that divides every value of an index node; 0 only for the constant 0."""
    if node.op == Op.CONST:
        return abs(int(node.arg))
    if depth and node.dtype.kind == INDEX:
        if node.op == Op.MUL:
            return divisor(node.src[0], depth - 1) * divisor(node.src[1], depth - 1)
        if node.op in (Op.ADD, Op.FLOORMOD, Op.TRUNCMOD, Op.MAX, Op.MIN):
            return math.gcd(divisor(node.src[0], depth - 1), divisor(node.src[1], depth - 1))
        if node.op == Op.WHERE:
            return math.gcd(divisor(node.src[1], depth - 1), divisor(node.src[2], depth - 1))
        if node.op == Op.NEG:
            return divisor(node.src[0], depth - 1)
    return 1

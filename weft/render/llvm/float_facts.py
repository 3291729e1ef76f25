"""What is known of floats before they are computed: which digits matter, and how large they are.

The renderer asks this for machines that have approximations: a shorter form of a function is
enough for a result of 16 bits, and a quotient that is neither huge nor tiny needs no care for the
ends of float32. A float that is clamped becomes an integer without care for what does not fit. NaN
is possible everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from weft.ir.dtypes import FLOAT, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.render.llvm.functions import SHIFTED_DIGITS, WEIGHT_DIGITS

Interval = tuple[float, float]

ANY: Final = (-math.inf, math.inf)
# Sizes of the operands of a quotient that is far from the ends of float32, as is its remainder.
_LEAST: Final = 2.0**-40
_MOST: Final = 2.0**40
_OF_WEIGHTS: Final = (Op.WHERE, Op.MUL)
# Bounds are computed in float64; float32 rounds outward by at most this.
_SLACK: Final = 2.0**-20


def is_rounding(node: UOp) -> bool:
    """Whether a float32 becomes a float of 16 bits."""
    dtype = node.dtype
    is_half = dtype.kind == FLOAT and dtype.bits == 16 and dtype.lanes == 1
    return is_half and node.op == Op.CAST and node.src[0].dtype is dtypes.float32


def is_rounded_bits(node: UOp) -> bool:
    """Whether these are the bits of a float that is rounded to 16 bits."""
    return node.op == Op.BITCAST and is_rounding(node.src[0])


def rounded_pair(node: UOp) -> tuple[UOp, UOp] | None:
    """The floats that a word has the bits of, rounded to 16 each: the low and the high one."""
    if node.op != Op.OR or node.dtype is not dtypes.uint32 or node.src[1].op != Op.SHL:
        return None
    low, (high, by) = node.src[0], node.src[1].src
    if by.op != Op.CONST or by.arg != 16 or any(each.op != Op.CAST for each in (low, high)):
        return None
    bits = (low.src[0], high.src[0])
    if not all(map(is_rounded_bits, bits)) or bits[0].src[0].dtype is not bits[1].src[0].dtype:
        return None
    return bits[0].src[0], bits[1].src[0]


def digits_of(instructions: Sequence[UOp]) -> dict[UOp, int]:
    """The digits that are looked at of each float32 that only becomes a smaller float."""
    found: dict[UOp, int] = {}
    others: set[UOp] = set()
    weights = _weights(instructions)
    for node in instructions:
        target = node.dtype
        if node.op == Op.STORE and node.src[1] in weights:
            found[node.src[1]] = max(found.get(node.src[1], 0), WEIGHT_DIGITS)
            continue
        if node in weights and node.op in _OF_WEIGHTS:
            for source in _weighed(node):
                found[source] = max(found.get(source, 0), WEIGHT_DIGITS)
            continue
        is_small = node.op == Op.CAST and target.kind == FLOAT and target.bits < 32
        for source in node.src:
            if node.op == Op.ADD and source in weights:
                continue  # of what is added up no more digits matter
            if is_small and target.format is not None:
                found[source] = max(found.get(source, 0), target.format.mantissa_bits + 1)
            else:
                others.add(source)
    known = {node: digits for node, digits in found.items() if node not in others}
    return known | dict.fromkeys(_shifted(instructions), SHIFTED_DIGITS)


def _shifted(instructions: Sequence[UOp]) -> set[UOp]:
    """Hyperbolic tangents to which, or to whose negations, 1 or more is added, and nothing else.

    Of those near 0 the sum has few digits.
    """
    used: dict[UOp, bool] = {}  # whether all uses are sums with such a number
    for node in reversed(instructions):
        is_shift = node.op == Op.ADD and any(
            each.op == Op.CONST and abs(each.arg) >= 1.0 for each in node.src
        )
        is_shift |= node.op == Op.NEG and used.get(node, False)
        for source in node.src:
            used[source] = is_shift and used.get(source, True)
    return {
        node
        for node, is_shifted in used.items()
        if is_shifted and node.op == Op.TANH and node.dtype is dtypes.float32
    }


def _weights(instructions: Sequence[UOp]) -> set[UOp]:
    """Powers that go to registers which are only read to be rounded; choices and products of them.

    A product is as exact as its factors are, relative to their sizes.
    """
    wide = {node.src[0] for node in instructions if is_rounding(node)}
    loads = [node for node in instructions if node.op == Op.LOAD]
    read = {behind(node.src[0].src[0]) for node in loads if node in wide}
    read -= {behind(node.src[0].src[0]) for node in loads if node not in wide}
    stores = [node for node in instructions if node.op == Op.STORE]
    found = {node.src[1] for node in stores if behind(node.src[0].src[0]) in read}
    for node in reversed(instructions):
        if node in found:
            found.update(_weighed(node))
    return {node for node in found if node.op in _OF_WEIGHTS or node.op in (Op.EXP, Op.EXP2)}


def _weighed(node: UOp) -> tuple[UOp, ...]:
    """The weights that a choice or a product of them is made of."""
    if node.op == Op.WHERE:
        return node.src[1:]
    return node.src if node.op == Op.MUL else ()


def tame_quotients(instructions: Sequence[UOp]) -> frozenset[UOp]:
    """The divisions of float32 whose operands are neither huge nor tiny."""
    known: dict[UOp, Interval] = {}
    found: set[UOp] = set()
    for node in instructions:
        if node.dtype is not dtypes.float32:
            continue
        parts = [_interval(source, known) for source in node.src]
        if node.op == Op.DIV and all(map(_is_tame, parts)):
            found.add(node)
        rule = _RULES.get(node.op)
        if rule is not None:
            known[node] = rule(node, parts, known)
    return frozenset(found)


def clamped(node: UOp) -> Interval:
    """The bounds that a float is clamped to by constants, as in where(x < 0, 0, x)."""
    if node.op == Op.CONST and not math.isnan(node.arg):
        return float(node.arg), float(node.arg)
    if node.op in (Op.MAX, Op.MIN):
        parts = [clamped(source) for source in node.src if source.op == Op.CONST]
        inner = next((source for source in node.src if source.op != Op.CONST), node.src[0])
        if not parts:
            return ANY
        join = _greater if node.op == Op.MAX else _lesser
        return join(node, [parts[0], clamped(inner)], {})
    if node.op != Op.WHERE:
        return ANY
    condition, limit, inner = node.src
    if condition.op != Op.LESS or limit.op != Op.CONST or math.isnan(limit.arg):
        return ANY
    edge = float(limit.arg)
    if condition.src == (inner, limit):
        low, high = clamped(inner)
        return max(low, edge), max(high, edge)
    if condition.src == (limit, inner):
        low, high = clamped(inner)
        return min(low, edge), min(high, edge)
    return ANY


def _interval(node: UOp, known: Mapping[UOp, Interval]) -> Interval:
    if node.op == Op.CONST and not math.isnan(node.arg):
        return float(node.arg), float(node.arg)
    return known.get(node, ANY)


def _is_tame(interval: Interval) -> bool:
    low, high = interval
    return _LEAST <= low <= high <= _MOST or -_MOST <= low <= high <= -_LEAST


def _rounded(low: float, high: float) -> Interval:
    """An interval that rounding does not leave; NaN bounds are not bounds."""
    if math.isnan(low) or math.isnan(high):
        return ANY
    return low - abs(low) * _SLACK, high + abs(high) * _SLACK


def _add(node: UOp, parts: list[Interval], known: Mapping[UOp, Interval]) -> Interval:
    (a, b), (c, d) = parts
    return _rounded(a + c, b + d)


def _multiply(node: UOp, parts: list[Interval], known: Mapping[UOp, Interval]) -> Interval:
    (a, b), (c, d) = parts
    if node.src[0] is node.src[1]:
        return _rounded(0.0, max(a * a, b * b))
    corners = (a * c, a * d, b * c, b * d)
    return ANY if any(map(math.isnan, corners)) else _rounded(min(corners), max(corners))


def _negate(node: UOp, parts: list[Interval], known: Mapping[UOp, Interval]) -> Interval:
    return -parts[0][1], -parts[0][0]


def _choose(node: UOp, parts: list[Interval], known: Mapping[UOp, Interval]) -> Interval:
    condition, yes, no = node.src
    (a, b), (c, d) = _interval(yes, known), _interval(no, known)
    if condition.op == Op.LESS and condition.src[1].op == Op.CONST and condition.src[1].arg == 0:
        x = condition.src[0]  # where(x < 0, x, -x) and the like
        if yes is x:
            b = min(b, 0.0)
        if no.op == Op.NEG and no.src[0] is x:
            d = min(d, 0.0)
        if no is x:
            c = max(c, 0.0)
        if yes.op == Op.NEG and yes.src[0] is x:
            a = max(a, 0.0)
    return min(a, c), max(b, d)


def _greater(node: UOp, parts: list[Interval], known: Mapping[UOp, Interval]) -> Interval:
    (a, b), (c, d) = parts
    return max(a, c), max(b, d)


def _lesser(node: UOp, parts: list[Interval], known: Mapping[UOp, Interval]) -> Interval:
    (a, b), (c, d) = parts
    return min(a, c), min(b, d)


def _exp(node: UOp, parts: list[Interval], known: Mapping[UOp, Interval]) -> Interval:
    low, high = (math.exp(bound) if bound < 80 else math.inf for bound in parts[0])
    return (0.0 if low < _LEAST else low * (1 - _SLACK)), high * (1 + _SLACK)


def _unit(node: UOp, parts: list[Interval], known: Mapping[UOp, Interval]) -> Interval:
    return -1.0, 1.0


def _root(node: UOp, parts: list[Interval], known: Mapping[UOp, Interval]) -> Interval:
    low, high = (math.sqrt(max(bound, 0.0)) for bound in parts[0])
    return _rounded(low, high)


_Rule = Callable[[UOp, list[Interval], Mapping[UOp, Interval]], Interval]
_RULES: Final[dict[int, _Rule]] = {
    Op.ADD: _add,
    Op.MUL: _multiply,
    Op.NEG: _negate,
    Op.WHERE: _choose,
    Op.MAX: _greater,
    Op.MIN: _lesser,
    Op.EXP: _exp,
    Op.TANH: _unit,
    Op.ERF: _unit,
    Op.SQRT: _root,
}

"""Comparisons. An index comparison becomes `sum < constant` with a positive first factor.

That form is unique, so equal conditions are the same node and conditions on one expression can be
merged by their constants alone. Fixed-width integers wrap, so they are only folded by their
bounds.
"""

from __future__ import annotations

import math

from weft.ir.bounds import bounds
from weft.ir.dtypes import BOOL, EXACT, INDEX, INTEGER
from weft.ir.extremes import SYMBOLS, is_surely_less
from weft.ir.linear import LONGEST, from_linear, linear
from weft.ir.ops import Op
from weft.ir.uop import UOp, bool_like, const
from weft.rewrite.pattern import any_, const_, fold
from weft.rewrite.rule import rule, structural
from weft.rewrite.ruleset import rules
from weft.rules.divide import nearest_multiple_rest

x, y, c0, c1 = any_("x"), any_("y"), const_("c0"), const_("c1")


@structural(x < y, over=EXACT)
def decide_less(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """Replace a comparison that the bounds decide.

    before: i < const(100)
    after:  true
    """
    decided = _decided(node)
    if decided is None and node.ops & SYMBOLS and x.dtype.kind == INDEX:
        if is_surely_less(x, y):
            return const(node.dtype, True)
        if is_surely_less(y, x + 1):
            return const(node.dtype, False)
    return decided


@structural(x.equal(y), over=EXACT)
def decide_equal(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """Replace an equality that the bounds decide.

    before: i.equal(const(100))
    after:  false
    """
    return _decided(node)


def _decided(node: UOp) -> UOp | None:
    low, high = bounds(node)
    return const(node.dtype, low) if low == high else None


@structural(x < y, over=INDEX)
def gather_left(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """Move terms to the left and the constant to the right, with a positive first factor.

    before: i + 3 < j
    after:  i - j < const(-3)

    before: i*-1 < const(-3)
    after:  ~(i < const(4))
    """
    if y.op != Op.CONST:
        return x - y < 0
    constant, terms = linear(x)
    if not terms or len(terms) > LONGEST:
        return None
    limit = int(y.arg) - constant
    if terms[0][1] < 0:
        return ~(from_linear(x.dtype, 0, [(t, -f) for t, f in terms]) < 1 - limit)
    return from_linear(x.dtype, 0, terms) < limit if constant else None


@structural(x < c0, over=INDEX)
def shrink_less(node: UOp, x: UOp, c0: int) -> UOp | None:
    """Cancel common factors, and drop a rest too small to matter.

    before: i*4 + j*8 < const(9)
    after:  i + j*2 < const(3)

    before: i*4 + three < const(8)
    after:  i < const(2)
    """
    constant, terms = linear(x)
    if constant or not terms or len(terms) > LONGEST:
        return None
    common = math.gcd(*[factor for _, factor in terms])
    if common > 1:
        return from_linear(x.dtype, 0, [(t, f // common) for t, f in terms]) < -(-c0 // common)
    for g in sorted({abs(f) for _, f in terms if abs(f) > 1}, reverse=True):
        whole = [(term, factor // g) for term, factor in terms if factor % g == 0]
        low, high = bounds(from_linear(x.dtype, 0, [t for t in terms if t[1] % g]))
        if low >= 0 and high < g:
            limit, spare = divmod(c0, g)
            if high < spare or low >= spare:
                return from_linear(x.dtype, 0, whole) < limit + (high < spare)
    return None


@structural(x % c1 < c0, over=INDEX)
def unwrap_less(node: UOp, x: UOp, c1: int, c0: int) -> UOp | None:
    """Compare a sum itself where its remainder wraps only to what is too large anyway.

    i + j*39 is 40*j + (i - j). A rest below zero wraps to a remainder near the divisor.

    before: (i + j*39) % const(40) < const(6)
    after:  ~(i - j < const(0)) & (i - j < const(6))
    """
    rest = nearest_multiple_rest(x, c1) if c1 > 0 else None
    if rest is None:
        return None
    low, high = bounds(rest)
    if not (-c1 <= low < 0 <= high < c1 and c0 <= low + c1):
        return None
    return ~(rest < 0) & (rest < c0)


@structural(x.equal(y), over=INDEX)
def gather_equal(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """Bring an equality to the form sum == constant with coprime factors, the first positive.

    before: (i*2).equal(j*4 + 6)
    after:  (i - j*2).equal(const(3))

    before: (i*2).equal(j*4 + 5)
    after:  false
    """
    if y.op != Op.CONST:
        return (x - y).equal(0)
    constant, terms = linear(x)
    if not terms or len(terms) > LONGEST:
        return None
    value = int(y.arg) - constant
    common = math.gcd(*[factor for _, factor in terms])
    if terms[0][1] < 0:
        common = -common
    if value % common:
        return const(bool_like(x), False)
    if common == 1 and not constant:
        return None
    made = from_linear(x.dtype, 0, [(term, factor // common) for term, factor in terms])
    return made.equal(value // common)


def _positive(c1: int) -> bool:
    return c1 > 0


COMPARE_RULES = rules(
    "compare",
    rule("less-self", x < x, False),
    rule("less-equal-self", x <= x, True, over=EXACT),
    rule("equal-self", x.equal(x), True, over=EXACT),
    rule("less-equal-is-not-greater", x <= y, ~(y < x), over=EXACT),
    decide_less,
    unwrap_less,
    rule("less-of-div", x // c1 < c0, x < fold(c0 * c1), over=INDEX, when=_positive),
    gather_left,
    shrink_less,
    decide_equal,
    gather_equal,
    rule("equal-true", x.equal(True), x, over=BOOL),
    rule("equal-false", x.equal(False), ~x, over=BOOL),
    rule("less-of-bools", x < y, ~x & y, over=BOOL),
    rule(
        "less-moves-constant",
        x + c0 < c1,
        x < fold(c1 - c0),
        over=INTEGER & ~INDEX,
        when=lambda node, x, c0, c1: _exact_shift(x, c0, c1),
        why="{x} + {c0} does not wrap",
    ),
)


def _exact_shift(x: UOp, c0: int, c1: int) -> bool:
    """Whether neither `x + c0` nor `c1 - c0` wraps."""
    low, high = bounds(x)
    least, most = x.dtype.min, x.dtype.max
    return bool(least <= low + c0 and high + c0 <= most and least <= c1 - c0 <= most)

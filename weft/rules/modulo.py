"""Remainders, floor and truncating. What `divide` takes out of a quotient, this drops."""

from __future__ import annotations

import math

from weft.ir.bounds import bounds
from weft.ir.dtypes import INDEX, INTEGER
from weft.ir.linear import LONGEST, from_linear, linear
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.rewrite.pattern import any_, const_, fold, node_
from weft.rewrite.rule import rule, structural
from weft.rewrite.ruleset import rules
from weft.rules.divide import (
    is_below,
    part_by_carry,
    part_by_congruence,
    part_by_multiples,
    part_by_scaled,
    part_by_symbol,
)

x, y, c0, c1 = any_("x"), any_("y"), const_("c0"), const_("c1")


@structural(x % c0, over=INDEX)
def reduce_sum(node: UOp, x: UOp, c0: int) -> UOp | None:
    """Simplify the remainder of a sum by a constant.

    before: (i*8 + j) % const(4)
    after:  j % const(4)

    before: (i*6 + 4) % const(8)
    after:  ((i*3 + 2) % const(4)) * 2

    before: (i*4 + three) % const(8)
    after:  (i % const(2))*4 + three

    before: (three + 8) % const(4)
    after:  three
    """
    if c0 <= 0:
        return None
    low, high = bounds(x)
    if low // c0 == high // c0:
        return x - low // c0 * c0 if low // c0 else x
    constant, terms = linear(x)
    if len(terms) > LONGEST:
        return None
    whole, rest = part_by_multiples(terms, c0)
    if whole or not 0 <= constant < c0:
        return from_linear(x.dtype, constant % c0, rest) % c0
    common = math.gcd(c0, *[factor for _, factor in terms])
    if common > 1:
        inner = from_linear(x.dtype, constant // common, [(t, f // common) for t, f in terms])
        return (inner % (c0 // common)) * common + constant % common
    parted = part_by_carry(x, c0)
    if parted is None:
        near = part_by_congruence(x, c0)
        return None if near is None else near[1]
    g, quotient, remainder = parted
    return (quotient % (c0 // g)) * g + remainder


@structural(x % y, over=INDEX)
def reduce_by_symbol(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """Drop multiples of a symbolic divisor.

    before: (i*n + j) % n
    after:  j % n
    """
    if y.op == Op.CONST or bounds(y)[0] <= 0:
        return None
    if is_below(x, y):
        return x
    multiples, rest = part_by_symbol(x, y)
    if multiples is not None:
        return rest % y
    parted = part_by_scaled(x, y)
    return None if parted is None else parted[1] % parted[0] * y.src[0] + parted[2]


def _nonnegative(x: UOp, y: UOp) -> bool:
    return bounds(x)[0] >= 0 and bounds(y)[0] >= 0


MODULO_RULES = rules(
    "modulo",
    rule("mod-zero", x % 0, 0, over=INTEGER),
    rule("mod-one", x % 1, 0, over=INTEGER),
    rule("mod-self", x % x, 0, over=INTEGER),
    rule(
        "mod-of-mod",
        (x % c0) % c1,
        x % c1,
        over=INDEX,
        when=lambda c0, c1: c0 > 0 and c1 > 0 and c0 % c1 == 0,
        why="{c1} divides {c0}",
    ),
    rule(
        "mod-by-negative", x % c0, ((x * -1) % fold(-c0)) * -1, over=INDEX, when=lambda c0: c0 < 0
    ),
    reduce_sum,
    reduce_by_symbol,
    rule(
        "truncmod-of-nonnegative", node_(Op.TRUNCMOD, x, y), x % y, over=INTEGER, when=_nonnegative
    ),
)

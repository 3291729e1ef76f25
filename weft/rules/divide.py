"""Division, floor and truncating.

Index arithmetic is exact, so a quotient is taken apart: what the divisor divides leaves it, common
factors cancel, and a small rest that cannot carry is dropped. Fixed-width integers wrap, so only
identities that hold for every value are applied to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from weft.ir.bounds import bounds
from weft.ir.dtypes import FLOAT, INDEX, INTEGER
from weft.ir.extremes import (
    Polynomial,
    is_surely_less,
    multiplied_out,
    product_polynomial,
    sum_polynomial,
    without_factors,
)
from weft.ir.linear import LONGEST, from_linear, linear, order
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.rewrite.pattern import any_, const_, fold, node_
from weft.rewrite.rule import rule, structural
from weft.rewrite.ruleset import rules

x, y, c0, c1 = any_("x"), any_("y"), const_("c0"), const_("c1")
truncdiv = node_(Op.TRUNCDIV, x, y)

Terms = list[tuple[UOp, int]]


@structural(x // c0, over=INDEX)
def divide_sum(node: UOp, x: UOp, c0: int) -> UOp | None:
    """Take a quotient of a sum by a constant apart.

    before: (i*8 + j) // const(4)
    after:  i*2 + j//4

    before: (i*6 + 4) // const(8)
    after:  (i*3 + 2) // const(4)

    before: (i*4 + three) // const(8)
    after:  i // const(2)

    before: (i + 9) // const(4)
    after:  (i + 1)//4 + 2
    """
    if c0 <= 0:
        return None
    low, high = bounds(x)
    if low // c0 == high // c0:
        return node.const_like(low // c0)
    constant, terms = linear(x)
    if len(terms) > LONGEST:
        return None
    whole, rest = part_by_multiples(terms, c0)
    if whole or not 0 <= constant < c0:
        small = from_linear(x.dtype, constant % c0, rest)
        return from_linear(x.dtype, constant // c0, whole) + small // c0
    common = math.gcd(c0, *[factor for _, factor in terms])
    if common > 1:
        shared = from_linear(x.dtype, constant // common, [(t, f // common) for t, f in terms])
        return shared // (c0 // common)
    parted = part_by_carry(x, c0)
    if parted is not None:
        return parted[1] // (c0 // parted[0])
    near = part_by_congruence(x, c0)
    return None if near is None else near[0]


def part_by_multiples(terms: Iterable[tuple[UOp, int]], divisor: int) -> tuple[Terms, Terms]:
    """Write the terms as divisor*whole + rest, the factors of the rest smaller than the divisor.

    Factors keep their sign, so that a small negative one does not become a large positive one.
    """
    whole: Terms = []
    rest: Terms = []
    for term, factor in terms:
        residue = factor % divisor if factor > 0 else -(-factor % divisor)
        if factor != residue:
            whole.append((term, (factor - residue) // divisor))
        if residue:
            rest.append((term, residue))
    return whole, rest


def part_by_carry(x: UOp, divisor: int) -> tuple[int, UOp, UOp] | None:
    """Write x = g*y + r with g > 1, g dividing the divisor and 0 <= r < g; (g, y, r) or None.

    The greatest such g is taken. Then x // divisor is y // (divisor // g): r never carries.
    """
    constant, terms = linear(x)
    tried = {abs(f) for _, f in terms if 1 < abs(f) < divisor and divisor % f == 0}
    for g in sorted(tried, reverse=True):
        rest = from_linear(x.dtype, constant % g, [t for t in terms if t[1] % g])
        low, high = bounds(rest)
        if low >= 0 and high < g:
            whole = [(term, factor // g) for term, factor in terms if factor % g == 0]
            return g, from_linear(x.dtype, constant // g, whole), rest
    return None


def part_by_congruence(x: UOp, divisor: int) -> tuple[UOp, UOp] | None:
    """Write x = divisor*q + r with 0 <= r < divisor, by factors near a multiple of it; (q, r).

    19*i + 19 is 20*i + (19 - i), and for i < 20 the rest does not leave 0..19.
    """
    constant, terms = linear(x)
    rest = [(term, f - divisor * round(f / divisor)) for term, f in terms]
    if rest == list(terms):
        return None
    remainder = from_linear(x.dtype, constant, [pair for pair in rest if pair[1]])
    low, high = bounds(remainder)
    if low // divisor != high // divisor:
        return None
    whole = [(t, (f - r) // divisor) for (t, f), (_, r) in zip(terms, rest, strict=True) if f != r]
    carry = low // divisor
    return from_linear(x.dtype, carry, whole), remainder - carry * divisor


def nearest_multiple_rest(x: UOp, divisor: int) -> UOp | None:
    """What is left of x beside the multiples of a divisor that are nearest to its factors."""
    constant, terms = linear(x)
    if len(terms) > LONGEST:
        return None
    rest = [(term, f - divisor * round(f / divisor)) for term, f in terms]
    return from_linear(x.dtype, constant % divisor, [pair for pair in rest if pair[1]])


@structural(x // y, over=INDEX)
def divide_by_symbol(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """Take multiples of a symbolic divisor out of a quotient.

    before: (i*n + j) // n
    after:  i + j//n

    before: range_(9, n) // n
    after:  const(0)
    """
    if y.op == Op.CONST:
        return None
    low, high = bounds(y)
    if low <= 0 <= high:
        return None
    if is_below(x, y):
        return node.const_like(0)
    multiples, rest = part_by_symbol(x, y)
    if multiples is not None:
        return multiples + rest // y
    parted = part_by_scaled(x, y)
    return None if parted is None else parted[1] // parted[0]


def part_by_scaled(x: UOp, y: UOp) -> tuple[int, UOp, UOp] | None:
    """Write x = z*q + r with 0 <= r < z, where y is c times a symbolic z; (c, q, r) or None.

    Then x // y is q // c, and x % y is z*(q % c) + r.
    """
    if y.op != Op.MUL or y.src[1].op != Op.CONST or bounds(y)[0] <= 0:
        return None
    quotient, rest = part_by_sum(x, y.src[0])
    return None if quotient is None else (int(y.src[1].arg), quotient, rest)


def is_below(x: UOp, y: UOp) -> bool:
    """Whether 0 <= x < y is certain."""
    if bounds(x)[0] < 0:
        return False
    if bounds(x)[1] < bounds(y)[0] or (x.op == Op.RANGE and x.src[0] is y):
        return True
    return is_surely_less(x, y)


def part_by_symbol(x: UOp, y: UOp) -> tuple[UOp | None, UOp]:
    """Write x = y*q + r: the terms that hold y as a factor, divided by it, and the others.

    With a sum for y, j*n + j + i is j*(n + 1) + i, which is said only where 0 <= i < n + 1.
    """
    found = part_by_sum(x, y)
    if found[0] is not None or y.op == Op.ADD:
        return found
    constant, terms = linear(x)
    quotient: UOp | None = None
    rest: Terms = []
    for term, factor in terms:
        other = _cofactor(term, y)
        if other is None:
            rest.append((term, factor))
        else:
            part = other * factor
            quotient = part if quotient is None else quotient + part
    return quotient, from_linear(x.dtype, constant, rest)


def part_by_sum(x: UOp, y: UOp) -> tuple[UOp | None, UOp]:
    """Write x = y*q + r with 0 <= r < y, where y is a sum; q is None where that is not known."""
    total, by = multiplied_out(x), multiplied_out(y)
    lead = max(by, key=lambda product: (len(product), [order(part) for part in product]))
    quotient: Polynomial = {}
    for product, factor in total.items():
        rest = without_factors(product, lead)
        if rest is not None and factor % by[lead] == 0:
            quotient[rest] = factor // by[lead]
    if not quotient:
        return None, x
    remainder = added_up(sum_polynomial(total, product_polynomial(quotient, by), -1), x)
    if is_below(remainder, y):
        return added_up(quotient, x), remainder
    return None, x


def added_up(total: Polynomial, like: UOp) -> UOp:
    """The expression that a sum of products is."""
    result = like.const_like(0)
    for product, factor in total.items():
        part = like.const_like(factor)
        for each in product:
            part = each * part
        result = result + part
    return result


def _cofactor(term: UOp, y: UOp) -> UOp | None:
    """What y is multiplied by in a term."""
    if term is y:
        return term.const_like(1)
    if term.op == Op.MUL:
        for i in (0, 1):
            if term.src[i] is y:
                return term.src[1 - i]
    return None


def _nonnegative(x: UOp, y: UOp) -> bool:
    return bounds(x)[0] >= 0 and bounds(y)[0] >= 0


def _nonzero(x: UOp) -> bool:
    low, high = bounds(x)
    return low > 0 or high < 0


DIVIDE_RULES = rules(
    "divide",
    rule("div-zero", x // 0, 0, over=INTEGER),
    rule("div-one", x // 1, x, over=INTEGER),
    rule("div-self", x // x, 1, over=INTEGER, when=_nonzero, why="{x} is not zero"),
    rule(
        "div-of-div",
        (x // c0) // c1,
        x // fold(c0 * c1),
        over=INDEX,
        when=lambda c0, c1: c0 > 0 and c1 > 0,
    ),
    rule(
        "div-of-mod",
        (x % c0) // c1,
        (x // c1) % fold(c0 // c1),
        over=INDEX,
        when=lambda c0, c1: c1 > 0 and c0 > c1 and c0 % c1 == 0,
        why="{c1} divides {c0}",
    ),
    rule("div-by-negative", x // c0, (x * -1) // fold(-c0), over=INDEX, when=lambda c0: c0 < 0),
    divide_sum,
    divide_by_symbol,
    rule("truncdiv-of-nonnegative", truncdiv, x // y, over=INTEGER, when=_nonnegative),
    rule("truncdiv-one", node_(Op.TRUNCDIV, x, 1), x, over=INTEGER),
    rule("float-div-one", x / 1.0, x, over=FLOAT),
    rule("float-div-minus-one", x / -1.0, -x, over=FLOAT),
    rule(
        "float-div-power-of-two",
        x / c0,
        x * fold(1.0 / c0),
        over=FLOAT,
        when=lambda node, c0: has_exact_reciprocal(node, c0),
        why="1/{c0} is exact",
    ),
    rule("float-div-self", x / x, 1.0, over=FLOAT, assumes=("nonzero", "finite")),
)


def has_exact_reciprocal(node: UOp, value: float) -> bool:
    """Whether dividing by a constant is multiplying by another, for every float of this dtype."""
    if value == 0 or not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return False
    inverse = node.const_like(1.0 / value).arg
    return inverse != 0 and math.isfinite(inverse) and inverse * value == 1.0

"""How large a sum with symbolic factors can be: what intervals of its parts alone cannot say.

`bounds` takes each part of an expression by itself, so `n - n//2*2` is from `1 - n` to `n` for it.
Here an index expression is multiplied out first. A loop counter is put at the end of its loop that
makes the sum greatest, a quotient `a//c*c` is at most `a`, and what is left are products of
variables, which are counted from their least values on. Sizes of windows, masks of padding and the
remainders of reshapes are decided so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from weft.ir.bounds import bounds
from weft.ir.linear import order
from weft.ir.ops import Op
from weft.ir.uop import UOp

# Factors of a product, in order; and the sum of products with their coefficients.
Product = tuple[UOp, ...]
Polynomial = dict[Product, int]

SYMBOLS: Final = 1 << Op.VARIABLE | 1 << Op.BIND
# Larger sums are left to their intervals, as are loops in loops in loops.
_MOST_TERMS, _MOST_STEPS, _MOST_FACTOR = 64, 32, 1 << 24
_MOST_CASES: Final = 3


def is_symbolic(*nodes: UOp) -> bool:
    """Whether expressions depend on a variable."""
    return any(node.ops & SYMBOLS for node in nodes)


def product_polynomial(a: Mapping[Product, int], b: Mapping[Product, int]) -> Polynomial:
    total: Polynomial = {}
    for x, c in a.items():
        for y, d in b.items():
            product = tuple(sorted(x + y, key=order)) if x and y else x or y
            total[product] = total.get(product, 0) + c * d
    return {product: factor for product, factor in total.items() if factor}


def sum_polynomial(a: Mapping[Product, int], b: Mapping[Product, int], by: int = 1) -> Polynomial:
    """a + b * by."""
    total = dict(a)
    for product, factor in b.items():
        total[product] = total.get(product, 0) + factor * by
    return {product: factor for product, factor in total.items() if factor}


def multiplied_out(node: UOp) -> Polynomial:
    """An index expression as a sum of products of what is neither a sum nor a product."""
    if node.op == Op.CONST:
        return {(): int(node.arg)} if node.arg else {}
    if node.op == Op.ADD:
        return sum_polynomial(multiplied_out(node.src[0]), multiplied_out(node.src[1]))
    if node.op == Op.MUL:
        left, right = map(multiplied_out, node.src)
        if len(left) * len(right) <= _MOST_TERMS:
            return product_polynomial(left, right)
    if node.op == Op.NEG:
        return sum_polynomial({}, multiplied_out(node.src[0]), -1)
    return {(node,): 1}


def without_factors(product: Product, factors: Product) -> Product | None:
    """A product divided by some of its factors."""
    rest = list(product)
    for factor in factors:
        if factor not in rest:
            return None
        rest.remove(factor)
    return tuple(rest)


def greatest(total: Polynomial) -> int | None:
    """A number that a sum does not exceed, whatever its variables are; None for none known."""
    return _greatest(total, _MOST_CASES)


def _greatest(total: Polynomial, cases: int) -> int | None:
    """The same; the lesser or greater of two sizes is one of them, in so many places."""
    chosen = next(filter(_is_choice, total), None) if cases else None
    if chosen is not None:
        factor = total[chosen]
        rest = {each: by for each, by in total.items() if each != chosen}
        limits = [
            _greatest(sum_polynomial(rest, multiplied_out(part), factor), cases - 1)
            for part in chosen[0].src
        ]
        if (factor > 0) == (chosen[0].op == Op.MIN):  # below both
            return min((limit for limit in limits if limit is not None), default=None)
        known = [limit for limit in limits if limit is not None]
        return max(known) if len(known) == len(limits) else None
    found = []
    for larger, by in without_quotients(_at_ends(total)):
        limit = _greatest_of_symbols(larger)
        if limit is not None:
            found.append(limit // by)
    return min(found, default=None)


def _is_choice(product: Product) -> bool:
    """Whether a product is the lesser or greater of two sizes, which depend on no loop."""
    if len(product) != 1 or product[0].op not in (Op.MIN, Op.MAX):
        return False
    return not product[0].ranges and is_symbolic(product[0])


def is_surely_less(x: UOp, y: UOp) -> bool:
    """Whether x < y for all values of variables and in every iteration of loops.

    >>> from weft.ir.build import range_, variable
    >>> n = variable("n", 1, 8)
    >>> is_surely_less((n + 1) // 2 * 2, n + 2), is_surely_less(range_(0, n) * 2, n * 2 - 1)
    (True, True)
    """
    limit = greatest(sum_polynomial(multiplied_out(x), multiplied_out(y), -1))
    return limit is not None and limit < 0


def _at_ends(total: Polynomial) -> Polynomial:
    """The sum with each loop counter at the end of its loop where the sum is greatest.

    The lesser of two is at most that which depends on fewer loops.
    """
    for product, factor in list(total.items()):
        if len(product) == 1 and product[0].op == Op.MIN and factor > 0:
            part = min(product[0].src, key=lambda each: each.ranges.bit_count())
            others = {each: by for each, by in total.items() if each != product}
            total = sum_polynomial(others, multiplied_out(part), factor)
    for _ in range(_MOST_STEPS):
        loops = {part for product in total for part in product if part.op == Op.RANGE}
        done = False
        for loop in loops:
            slope: Polynomial = {}
            rest: Polynomial = {}
            for product, factor in total.items():
                if product.count(loop) == 1:
                    at = product.index(loop)
                    slope[product[:at] + product[at + 1 :]] = factor
                else:
                    rest[product] = factor
            if any(loop in product for product in rest) or not slope:
                continue
            if _is_nonnegative(slope):
                last = sum_polynomial(multiplied_out(loop.src[0]), {(): -1})
                total, done = sum_polynomial(rest, product_polynomial(slope, last)), True
            elif _is_nonnegative(sum_polynomial({}, slope, -1)):
                total, done = rest, True
            if done:
                break
        if not done:
            break
    return total


def _is_nonnegative(total: Polynomial) -> bool:
    limit = _greatest_of_symbols(sum_polynomial({}, total, -1))
    return limit is not None and limit <= 0


def without_quotients(total: Polynomial) -> list[tuple[Polynomial, int]]:
    """Sums with fewer and fewer quotients, and by how much each is multiplied.

    So many times the sum is not above any of them.
    """
    found = [(total, 1)]
    by = 1
    for _ in range(_MOST_STEPS):
        for product, factor in total.items():
            quotient = _quotient_in(product)
            if quotient is None:
                continue
            part, others = quotient
            divisor = int(part.src[1].arg)
            times = divisor // math.gcd(divisor, factor)
            by *= times
            rest = {each: each_by * times for each, each_by in total.items() if each != product}
            # Of x//c: x - (c - 1) <= x//c * c <= x.
            whole = multiplied_out(part.src[0])
            whole = whole if factor > 0 else sum_polynomial(whole, {(): 1 - divisor})
            larger = product_polynomial(whole, {others: factor * times // divisor})
            total = sum_polynomial(rest, larger)
            found.append((total, by))
            break
        else:
            break
        if by > _MOST_FACTOR:
            break
    return found


def _quotient_in(product: Product) -> tuple[UOp, Product] | None:
    """A quotient by a constant above 0 in a product, and the other factors if none is below 0."""
    for at, part in enumerate(product):
        if part.op == Op.FLOORDIV and part.src[1].op == Op.CONST and part.src[1].arg > 0:
            others = product[:at] + product[at + 1 :]
            if all(bounds(each)[0] >= 0 for each in others):
                return part, others
    return None


def _greatest_of_symbols(total: Polynomial) -> int | None:
    """The greatest value of a sum of products, each part by itself, counted from its least."""
    spans = {part: bounds(part) for product in total for part in product}
    shifted: Polynomial = {}
    for product, factor in total.items():
        moved: Polynomial = {(): factor}
        for part in product:
            moved = product_polynomial(moved, {(part,): 1, (): spans[part][0]})
        shifted = sum_polynomial(shifted, moved)
        if len(shifted) > _MOST_TERMS:
            return None
    limit = 0
    for product, factor in shifted.items():
        if factor > 0:
            limit += factor * math.prod(spans[part][1] - spans[part][0] for part in product)
        elif not product:
            limit += factor
    return limit

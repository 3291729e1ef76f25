"""The proof that an index stays inside its memory wherever its mask holds.

The schedule asks it for every access and guards what it cannot prove; codegen asks again after
every opt. Indices are proven by intervals, with what the mask says; symbolic extents by putting in
the last iteration of each range, and by adding up inequalities of the mask.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Final

from weft.ir.bounds import bounds
from weft.ir.build import Size, index, variable
from weft.ir.dtypes import INDEX
from weft.ir.extremes import (
    Polynomial,
    greatest,
    is_symbolic,
    multiplied_out,
    sum_polynomial,
    without_quotients,
)
from weft.ir.linear import from_linear, linear
from weft.ir.ops import Op
from weft.ir.uop import Interval, UOp
from weft.rules.logic import conditions
from weft.rules.simplify import simplify
from weft.rules.validity import limits, substitute_values

_FAR: Final = 1 << 62
# So many inequalities of a mask are added up.
_MOST_FACTS: Final = 2


def is_in_bounds(each: UOp, size: Size, mask: UOp | None) -> bool:
    """Whether 0 <= index < size wherever the mask holds.

    >>> from weft.ir.build import range_
    >>> i = range_(0, 8)
    >>> is_in_bounds(i + 1, 8, None), is_in_bounds(i + 1, 8, i < 7)
    (False, True)
    """
    limit = size if isinstance(size, int) else bounds(size)[0]
    low, high = bounds(each)
    for least, most in _intervals_under(each, mask):
        low, high = max(low, least), min(high, most)
        if low >= 0 and high < limit:
            return True
    if low >= 0 and (_is_below(each, simplify(index(size)), mask) or _ends(each, size)):
        return True
    nodes = [node for node in (each, size, mask) if isinstance(node, UOp)]
    return is_symbolic(*nodes) and _is_between(each, index(size), mask)


def _is_between(each: UOp, size: UOp, mask: UOp | None) -> bool:
    """Whether 0 <= index < size follows from the mask's inequalities, of symbols too."""
    facts = _nonnegative_sums(conditions(mask) if mask is not None else [])
    facts += _of_quotients(facts, each)
    is_far = bounds(each)[0] < 0
    negative = sum_polynomial({(): -1}, multiplied_out(each), -1)
    if is_far and not _is_negative(negative, facts, _MOST_FACTS):
        return False
    return any(
        _is_negative(sum_polynomial(multiplied_out(a), multiplied_out(b), -1), facts, _MOST_FACTS)
        for a, b in _inequalities(each, size)
    )


def _inequalities(each: UOp, size: UOp) -> Iterator[tuple[UOp, UOp]]:
    """Pairs whose first is below the second if, and only if, the index is below the size.

    x // c + y is below a size where x + c * y is below c times the size.
    """
    yield each, size
    constant, terms = linear(each)
    for term, factor in terms:
        if term.op == Op.FLOORDIV and factor == 1 and bounds(term.src[1])[0] > 0:
            dividend, divisor = term.src
            pairs = [pair for pair in terms if pair[0] is not term]
            rest = from_linear(each.dtype, constant, pairs)
            yield from _inequalities(simplify(dividend + rest * divisor), simplify(size * divisor))


def _nonnegative_sums(parts: list[UOp]) -> list[Polynomial]:
    """What is 0 or more where conditions hold."""
    found = []
    for condition in parts:
        inner = condition.src[0] if condition.op == Op.NOT else condition
        if inner.op not in (Op.LESS, Op.EQUAL) or inner.src[0].dtype.kind != INDEX:
            continue
        left, right = map(multiplied_out, inner.src)
        if inner.op == Op.EQUAL:
            if condition is inner:
                found += [sum_polynomial(left, right, -1), sum_polynomial(right, left, -1)]
        elif condition is inner:
            found.append(sum_polynomial(sum_polynomial(right, left, -1), {(): -1}))
        else:
            found.append(sum_polynomial(left, right, -1))
    return found


def _of_quotients(facts: list[Polynomial], each: UOp) -> list[Polynomial]:
    """Facts about i, said of i // c, which an index has.

    Where i < n * c, also (i // c) * c <= n * c - 1; and as all of that is multiples of c but for
    the 1, it is <= n * c - c.
    """
    found = []
    for product in multiplied_out(each):
        for part in product:
            if part.op != Op.FLOORDIV or part.src[1].op != Op.CONST or part.src[1].arg < 1:
                continue
            inner, divisor = (part.src[0],), int(part.src[1].arg)
            for fact in facts:
                if fact.get(inner, 0) < 0:
                    less: Polynomial = {(part,): divisor, inner: -1}
                    changed = sum_polynomial(fact, less, fact[inner])
                    common = math.gcd(*[factor for own, factor in changed.items() if own])
                    constant = changed.get((), 0)
                    found.append(sum_polynomial(changed, {(): -(constant % common)}))
    return found


def _is_negative(total: Polynomial, facts: list[Polynomial], most: int) -> bool:
    """Whether a sum is below 0 if facts are not: it is, if it is so with facts added to it."""
    limit = greatest(total)
    if limit is not None and limit < 0:
        return True
    forms = [larger for larger, _ in without_quotients(total)]
    return any(_is_negative_with(form, facts, most) for form in forms if most)


def _is_negative_with(total: Polynomial, facts: list[Polynomial], most: int) -> bool:
    """Whether one of the facts, added so often that a product leaves the sum, shows it."""
    for fact in facts:
        tried = set()
        for product, factor in fact.items():
            own = total.get(product, 0)
            if not product or own * factor >= 0:
                continue
            common = math.gcd(own, factor)
            times = abs(factor) // common, abs(own) // common
            if times not in tried:
                tried.add(times)
                scaled = {each: by * times[0] for each, by in total.items()}
                if _is_negative(sum_polynomial(scaled, fact, times[1]), facts, most - 1):
                    return True
    return False


def _is_below(each: UOp, size: UOp, mask: UOp | None) -> bool:
    """Whether the mask itself, or the range of the index, says that it is below a size."""
    if each.op == Op.RANGE and each.src[0] is size:
        return True
    if mask is not None and simplify(each < size) in conditions(mask):
        return True
    for whole, limit in itertools.islice(_inequalities(each, size), 1, None):
        if _is_below(whole, limit, mask):
            return True
    return False


def _intervals_under(each: UOp, mask: UOp | None) -> Iterator[Interval]:
    """Intervals of an index where the mask holds, the cheap ones first.

    What the mask compares are sums with known intervals. The index is a sum and a rest, or it is
    written with sums for some of its terms: one sum for each of its terms, then two.
    """
    yield bounds(each)
    spans = limits(conditions(mask)) if mask is not None else {}
    parts = [(x, span) for x, span in spans.items() if not x.ranges or x.ranges & each.ranges]
    for x, (least, most) in parts:
        low, high = bounds(simplify(each - x))
        yield low + least, high + most
        low, high = bounds(simplify(each + x))
        yield low - most, high - least
    singles: list[tuple[UOp, UOp]] = []
    for number, (subject, span) in enumerate(parts):
        singles += _solved(subject, span, number)
    for single in singles:
        yield bounds(simplify(substitute_values(each, dict([single]))))
    for pair in itertools.combinations(singles, 2):
        yield bounds(simplify(substitute_values(each, dict(pair))))


def _solved(subject: UOp, span: Interval, number: int) -> list[tuple[UOp, UOp]]:
    """Each term of a sum, in terms of the sum: where i + k is s, i is s - k and k is s - i."""
    solved: list[tuple[UOp, UOp]] = []
    whole = variable(f"sum {number}", max(span[0], -_FAR), min(span[1], _FAR))
    terms = linear(subject)[1]
    for term, factor in terms:
        if abs(factor) == 1:
            rest = [(t, -f * factor) for t, f in terms if t is not term]
            solved.append((term, whole * factor + from_linear(subject.dtype, 0, rest)))
    return solved


def _ends(each: UOp, size: Size) -> bool:
    """Whether an index is below a symbolic size with every range at its last iteration."""
    below = simplify(_last(simplify(each)) < index(size))
    return below.op == Op.CONST and bool(below.arg)


def _last(each: UOp) -> UOp:
    """An expression that is nowhere less than an index in normal form."""
    constant, terms = linear(each)
    greatest = index(constant)
    for term, factor in terms:
        if factor < 0:
            greatest = greatest + term * factor
        elif term.op == Op.RANGE:
            greatest = greatest + (term.src[0] - 1) * factor
        elif term.op == Op.FLOORDIV and bounds(term.src[1])[0] > 0 and bounds(term)[0] >= 0:
            greatest = greatest + _last(term.src[0]) // term.src[1] * factor
        elif term.op == Op.FLOORMOD and bounds(term.src[1])[0] > 0:
            greatest = greatest + (term.src[1] - 1) * factor
        elif term.op == Op.MIN:
            fixed = min(term.src, key=lambda part: part.ranges.bit_count())
            greatest = greatest + _last(fixed) * factor
        else:
            greatest = greatest + term * factor
    return greatest

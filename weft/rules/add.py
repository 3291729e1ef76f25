"""Sums. Integer sums have one normal form, made by `collect_terms`; floats have identities."""

from __future__ import annotations

from weft.ir.dtypes import BOOL, FLOAT, INDEX, INTEGER
from weft.ir.linear import LONGEST, LONGEST_VALUE, from_linear, in_order, linear, order
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.rewrite.pattern import any_
from weft.rewrite.rule import rule, structural
from weft.rewrite.ruleset import rules

x, y = any_("x"), any_("y")


@structural(x + y, over=INTEGER)
def collect_terms(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """Merge two sums in normal form into one, adding the factors of equal terms.

    before: i*2 + (j + i)
    after:  i*3 + j

    before: (i + 3) + (j + 5)
    after:  (i + j) + 8

    before: i + i*-1
    after:  const(0)
    """
    constant, terms = linear(x)
    more, extra = linear(y)
    if len(terms) + len(extra) > (LONGEST if node.dtype.kind == INDEX else LONGEST_VALUE):
        return None
    if terms and not constant:
        if not extra and more:
            return None
        if _follows(terms[-1][0], extra, more) and not _has_pair(terms, extra):
            return None
    return _recombined(node, terms, extra, constant + more)


def _follows(last: UOp, extra: tuple[tuple[UOp, int], ...], more: int) -> bool:
    """Whether `x + y` is in normal form already: y is one term, and it comes last."""
    return len(extra) == 1 and not more and order(extra[0][0]) > order(last)


def _has_pair(terms: tuple[tuple[UOp, int], ...], extra: tuple[tuple[UOp, int], ...]) -> bool:
    """Whether a quotient and a remainder could stand in this sum."""
    for term, _ in extra:
        if term.op in (Op.FLOORMOD, Op.FLOORDIV):
            return any(t.op == Op.FLOORMOD for t, _ in terms) or term.op == Op.FLOORMOD
    return False


def _recombined(
    node: UOp,
    terms: tuple[tuple[UOp, int], ...],
    extra: tuple[tuple[UOp, int], ...],
    constant: int,
) -> UOp | None:
    factors: dict[UOp, int] = {}
    for term, factor in terms + extra:
        factors[term] = factors.get(term, 0) + factor
    if node.dtype.kind == INDEX:
        while True:
            gained = _recombine_once(factors)
            if gained is None:
                break
            constant += gained
    made = from_linear(node.dtype, constant, in_order(node.dtype, factors))
    return None if made is node else made


def _recombine_once(factors: dict[UOp, int]) -> int | None:
    """Replace one quotient and its remainder by what was divided; the constant that this adds.

    c*(x//m)*m + c*(x%m)  is  c*x,  and  c*((x//m)%d)*m + c*(x%m)  is  c*(x%(m*d)).
    """
    for rest, factor in factors.items():
        if not factor or not _is_remainder(rest):
            continue
        x, divisor = rest.src[0], int(rest.src[1].arg)
        if factor * divisor not in factors.values():
            continue
        target = quotient(x, divisor)
        for other, times in factors.items():
            if times != factor * divisor:
                continue
            if other is target:
                whole = x
            elif _is_remainder(other) and other.src[0] is target:
                whole = x % (int(other.src[1].arg) * divisor)
            else:
                continue
            factors[rest] = factors[other] = 0
            constant, terms = linear(whole)
            for term, more in terms:
                factors[term] = factors.get(term, 0) + more * factor
            return constant * factor
    return None


def _is_remainder(node: UOp) -> bool:
    return node.op == Op.FLOORMOD and node.src[1].op == Op.CONST


def quotient(x: UOp, divisor: int) -> UOp:
    """The normal form of x // divisor, for an x that the divisor leaves whole."""
    if x.op == Op.FLOORDIV and x.src[1].op == Op.CONST:
        return x.src[0] // (int(x.src[1].arg) * divisor)
    return x // divisor


ADD_RULES = rules(
    "add",
    collect_terms,
    # 0.0 is not neutral for -0.0, but -0.0 is for every float.
    rule("add-negative-zero", x + -0.0, x, over=FLOAT),
    rule("add-zero", x + 0.0, x, over=FLOAT, assumes=("no signed zeros",)),
    rule("add-false", x + False, x, over=BOOL),
    rule("add-true", x + True, True, over=BOOL),
    rule("add-negation", x + -x, 0.0, over=FLOAT, assumes=("finite",)),
)

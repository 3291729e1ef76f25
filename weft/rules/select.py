"""`WHERE`, `MAX` and `MIN`: choices between values."""

from __future__ import annotations

from weft.ir.bounds import bounds
from weft.ir.dtypes import ANY, BOOL, EXACT, INTEGER
from weft.ir.uop import UOp
from weft.rewrite.pattern import any_, const_, fold, max_, min_, where_
from weft.rewrite.rule import rule, structural
from weft.rewrite.ruleset import rules

a, b, x, y, z = any_("a"), any_("b"), any_("x"), any_("y"), any_("z")
c0, c1 = const_("c0"), const_("c1")


def _never_below(x: UOp, y: UOp) -> bool:
    return bounds(x)[0] >= bounds(y)[1]


def _never_above(x: UOp, y: UOp) -> bool:
    return bounds(x)[1] <= bounds(y)[0]


@structural(where_(a, x, y), over=ANY)
def decide_where(a: UOp, x: UOp, y: UOp) -> UOp | None:
    """Choose at once when the bounds decide the condition.

    before: (i < const(100)).where(i, j)
    after:  i
    """
    low, high = bounds(a)
    return (x if low else y) if low == high else None


SELECT_RULES = rules(
    "select",
    rule("where-same", where_(a, x, x), x),
    rule("where-of-not", where_(~a, x, y), where_(a, y, x)),
    decide_where,
    rule("where-true-false", where_(a, True, False), a, over=BOOL),
    rule("where-false-true", where_(a, False, True), ~a, over=BOOL),
    rule("where-or", where_(a, True, x), a | x, over=BOOL),
    rule("where-and", where_(a, x, False), a & x, over=BOOL),
    rule("where-and-not", where_(a, False, x), ~a & x, over=BOOL),
    rule("where-or-not", where_(a, x, True), ~a | x, over=BOOL),
    rule("where-in-true-branch", where_(a, where_(a, x, y), z), where_(a, x, z)),
    rule("where-in-false-branch", where_(a, x, where_(a, y, z)), where_(a, x, z)),
    rule("where-both", where_(a, where_(b, x, y), y), where_(a & b, x, y)),
    rule("where-either", where_(a, x, where_(b, x, y)), where_(a | b, x, y)),
    rule("max-is-first", max_(x, y), x, over=EXACT, when=_never_below, why="by their bounds"),
    rule("max-is-second", max_(x, y), y, over=EXACT, when=_never_above, why="by their bounds"),
    rule("min-is-first", min_(x, y), x, over=EXACT, when=_never_above, why="by their bounds"),
    rule("min-is-second", min_(x, y), y, over=EXACT, when=_never_below, why="by their bounds"),
    rule("max-self", max_(x, x), x),
    rule("min-self", min_(x, x), x),
    rule("max-merges-constants", max_(max_(x, c0), c1), max_(x, fold(max_(c0, c1))), over=INTEGER),
    rule("min-merges-constants", min_(min_(x, c0), c1), min_(x, fold(min_(c0, c1))), over=INTEGER),
    rule("max-of-bools", max_(x, y), x | y, over=BOOL),
    rule("min-of-bools", min_(x, y), x & y, over=BOOL),
)

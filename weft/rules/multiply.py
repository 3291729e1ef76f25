"""Products. Constant factors move outwards and sums are multiplied out: the linear form."""

from __future__ import annotations

from weft.ir.dtypes import BOOL, FLOAT, INTEGER
from weft.rewrite.pattern import any_, const_, fold
from weft.rewrite.rule import rule
from weft.rewrite.ruleset import rules

x, y, c0, c1 = any_("x"), any_("y"), const_("c0"), const_("c1")

MULTIPLY_RULES = rules(
    "multiply",
    rule("mul-zero", x * 0, 0, over=INTEGER),
    rule("mul-one", x * 1, x, over=INTEGER),
    rule("mul-merges-constants", (x * c0) * c1, x * fold(c0 * c1), over=INTEGER),
    rule("mul-distributes", (x + y) * c0, x * c0 + y * c0, over=INTEGER),
    rule("mul-takes-constant-out", (x * c0) * y, (x * y) * c0, over=INTEGER),
    rule("mul-true", x * True, x, over=BOOL),
    rule("mul-false", x * False, False, over=BOOL),
    rule("mul-float-one", x * 1.0, x, over=FLOAT),
    rule("mul-minus-one", x * -1.0, -x, over=FLOAT),
    rule("mul-float-zero", x * 0.0, 0.0, over=FLOAT, assumes=("finite", "no signed zeros")),
    rule("mul-of-negations", -x * -y, x * y, over=FLOAT),
)

"""Powers with a small constant exponent, of which the function itself would take long."""

from __future__ import annotations

from weft.ir.dtypes import FLOAT, INTEGER
from weft.ir.ops import Op
from weft.rewrite.pattern import any_, node_
from weft.rewrite.rule import rule
from weft.rewrite.ruleset import rules

x = any_("x")

POWER_RULES = rules(
    "power",
    rule("pow-zero", node_(Op.POW, x, 0.0), 1.0, over=FLOAT),
    rule("pow-one", node_(Op.POW, x, 1.0), x, over=FLOAT),
    rule("pow-two", node_(Op.POW, x, 2.0), x * x, over=FLOAT, why="rounded once, as x * x is"),
    rule("pow-integer-one", node_(Op.POW, x, 1), x, over=INTEGER),
    rule("pow-integer-two", node_(Op.POW, x, 2), x * x, over=INTEGER),
)

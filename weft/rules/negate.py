"""Negation. Of an integer it is a product, so that sums have one form; of a float it is itself."""

from __future__ import annotations

from weft.ir.dtypes import FLOAT, INTEGER
from weft.ir.ops import Op
from weft.rewrite.pattern import any_, node_
from weft.rewrite.rule import rule
from weft.rewrite.ruleset import rules

x = any_("x")

NEGATE_RULES = rules(
    "negate",
    rule("neg-neg", node_(Op.NEG, -x), x, over=FLOAT),
    rule("neg-is-mul", -x, x * -1, over=INTEGER),
)

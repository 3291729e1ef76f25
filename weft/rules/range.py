"""Leaves that are known: a range of one iteration is 0, a variable of one value is that value."""

from __future__ import annotations

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.rewrite.pattern import op_
from weft.rewrite.rule import structural
from weft.rewrite.ruleset import rules


@structural(op_(Op.RANGE))
def range_of_one(node: UOp) -> UOp | None:
    """Replace a loop of one iteration by its only value.

    before: range_(9, 1)
    after:  const(0)
    """
    return node.const_like(0) if node.src[0].op == Op.CONST and node.src[0].arg == 1 else None


@structural(op_(Op.VARIABLE))
def variable_of_one_value(node: UOp) -> UOp | None:
    """Replace a symbolic size that can only have one value.

    before: variable("v", 4, 4)
    after:  const(4)
    """
    return node.const_like(node.arg[1]) if node.arg[1] == node.arg[2] else None


RANGE_RULES = rules("range", range_of_one, variable_of_one_value)

"""Reads of memory under a mask: they are 0 where the mask is false, and need no other choice."""

from __future__ import annotations

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.rewrite.pattern import any_, node_, op_, where_
from weft.rewrite.rule import Rule, structural
from weft.rewrite.ruleset import rules
from weft.rules.logic import conditions
from weft.rules.simplify import SIMPLIFY

a = any_("a")


def where_of_masked_read(a: UOp, x: UOp, node: UOp) -> UOp | None:
    """Drop a choice between a masked read and zero, where the mask says the same.

    before: where(g, load p[i if g], 0)
    after:  load p[i if g]
    """
    zero = node.src[2]
    mask = (x.src[0] if x.op == Op.LOAD else x).src[1]
    if zero.arg != 0 or str(zero.arg).startswith("-"):
        return None
    return x if set(conditions(a)) <= set(conditions(mask)) else None


def _over(read: int) -> Rule:
    return structural(where_(a, op_(read, "x"), node_(Op.CONST)))(where_of_masked_read)


MEMORY_RULES = rules("memory", _over(Op.LOAD), _over(Op.READ))
KERNEL_RULES = rules("kernel", SIMPLIFY, MEMORY_RULES, constants_right=True)

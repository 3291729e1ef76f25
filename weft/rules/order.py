"""One order for the operands of commutative ops, so that equal expressions are the same node.

Constants go to the right, where the other rules look for them; the rest is sorted by structure.
"""

from __future__ import annotations

from weft.ir.dtypes import ANY, BOOL, FLOAT
from weft.ir.linear import order
from weft.ir.ops import COMMUTATIVE_OPS, Op
from weft.ir.uop import UOp, make
from weft.rewrite.pattern import any_, node_
from weft.rewrite.rule import Rule, structural
from weft.rewrite.ruleset import rules

x, y = any_("x"), any_("y")

# Sums of integers and conjunctions have a normal form of their own, which orders them too.
_ORDERED_ELSEWHERE = {Op.ADD: BOOL | FLOAT, Op.AND: ANY & ~BOOL, Op.OR: ANY & ~BOOL}


def order_operands(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """Sort the operands of a commutative op, constants last.

    before: const(3).maximum(i)
    after:  i.maximum(const(3))
    """
    if y.op == Op.CONST or (x.op != Op.CONST and order(x) <= order(y)):
        return None
    return make(node.op, node.dtype, (y, x), node.arg)


def _ordering(op: int) -> Rule:
    return structural(node_(op, x, y), over=_ORDERED_ELSEWHERE.get(op, ANY))(order_operands)


ORDER_RULES = rules("order", *map(_ordering, sorted(COMMUTATIVE_OPS)))

"""The simplifier: all sound algebra in one rule set, and the function that applies it.

Below the tensor level every graph is kept in this normal form, so `simplify` is called on what is
new and remembers what it has seen.
"""

from __future__ import annotations

from weft.ir.uop import UOp
from weft.rewrite.driver import rewrite
from weft.rewrite.ruleset import rules
from weft.rules.add import ADD_RULES
from weft.rules.cast import CAST_RULES
from weft.rules.compare import COMPARE_RULES
from weft.rules.divide import DIVIDE_RULES
from weft.rules.fold import FOLD_RULES
from weft.rules.logic import LOGIC_RULES
from weft.rules.modulo import MODULO_RULES
from weft.rules.multiply import MULTIPLY_RULES
from weft.rules.negate import NEGATE_RULES
from weft.rules.order import ORDER_RULES
from weft.rules.power import POWER_RULES
from weft.rules.range import RANGE_RULES
from weft.rules.select import SELECT_RULES

SIMPLIFY = rules(
    "simplify",
    FOLD_RULES,
    RANGE_RULES,
    ADD_RULES,
    MULTIPLY_RULES,
    POWER_RULES,
    DIVIDE_RULES,
    MODULO_RULES,
    COMPARE_RULES,
    LOGIC_RULES,
    SELECT_RULES,
    NEGATE_RULES,
    CAST_RULES,
    ORDER_RULES,
    constants_right=True,
)


def simplify(node: UOp) -> UOp:
    """The normal form of an expression."""
    return rewrite(node, SIMPLIFY)

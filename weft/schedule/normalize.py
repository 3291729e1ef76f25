"""Tensor graphs made plain before they are scheduled: constants folded.

In: a tensor graph. Out: the same values. Movement ops need no rules of their own: they become
index arithmetic, whose normal form merges them.
"""

from __future__ import annotations

from weft.ir.uop import UOp
from weft.rewrite.driver import rewrite
from weft.rewrite.ruleset import rules
from weft.rules.fold import FOLD_RULES
from weft.schedule.context import Context

NORMALIZE = rules("normalize", FOLD_RULES)


def normalize(root: UOp, context: Context) -> UOp:
    """The graph with constants folded."""
    return rewrite(root, NORMALIZE)

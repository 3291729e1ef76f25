"""Tensor graphs made plain before they are scheduled: calls inlined, constants folded.

In: a tensor graph. Out: one without CALL, TUPLE and ITEM. Movement ops need no rules of their own:
they become index arithmetic, whose normal form merges them.
"""

from __future__ import annotations

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import rebuild, substitute, topological
from weft.rewrite.driver import rewrite
from weft.rewrite.ruleset import rules
from weft.rules.fold import FOLD_RULES
from weft.schedule.context import Context

NORMALIZE = rules("normalize", FOLD_RULES)


def normalize(root: UOp, context: Context) -> UOp:
    """The graph without calls and with constants folded."""
    return rewrite(inline_calls(root), NORMALIZE)


def inline_calls(root: UOp) -> UOp:
    """Put the body of every call in its place."""
    if not root.ops & (1 << Op.CALL | 1 << Op.ITEM):
        return root
    made: dict[UOp, UOp] = {}
    for node in topological(root):
        built = rebuild(node, tuple([made[source] for source in node.src]))
        if built.op == Op.CALL:
            built = _bind(inline_calls(built.arg), built.src)
        elif built.op == Op.ITEM:
            built = built.src[0].src[built.arg]
        made[node] = built
    return made[root]


def _bind(body: UOp, arguments: tuple[UOp, ...]) -> UOp:
    bound = {node: arguments[node.arg[0]] for node in topological(body) if node.op == Op.PARAM}
    return substitute(body, bound)

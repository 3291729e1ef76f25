"""Which rule of a pass is wrong: each of its rewrites, evaluated on both sides.

`CHECK=levels` asks this when a pass changes the result. What a rewrite does not look into (memory,
reductions, loops) stands for a number that is drawn within its bounds. A rewrite that moves or
rebuilds such a part cannot be judged so, and is passed over.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import Final

from weft.ir.bounds import bounds
from weft.ir.dtypes import BOOL, FLOAT, Scalar
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.scalar import evaluate
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.rewrite.trace import Rewritten, active

_DRAWS: Final = 24
_MOST: Final = 64  # of integers without bounds


def wrong_rewrite(pass_name: str) -> Rewritten | None:
    """The first rewrite of the last run of a pass whose sides differ; rewrites must be traced."""
    trace = active()
    if trace is None:
        return None
    found = next((each for each in reversed(trace.passes) if each.name == pass_name), None)
    return None if found is None else first_wrong(found.steps)


def first_wrong(steps: Iterable[Rewritten]) -> Rewritten | None:
    """The first of some rewrites whose sides are not the same number."""
    seen: set[tuple[UOp, UOp]] = set()
    for step in steps:
        pair = step.before, step.after
        if pair not in seen:
            seen.add(pair)
            if _differ(*pair):
                return step
    return None


def _differ(before: UOp, after: UOp) -> bool:
    leaves = _leaves(before)
    if not _leaves(after) <= leaves:
        return False
    source = random.Random(0)
    ordered = [node for node in topological(before, after) if node in leaves]
    for _ in range(_DRAWS):
        values = {node: _draw(node, source) for node in ordered}
        try:
            pair = _value(before, values), _value(after, dict(values))
        except (ArithmeticError, ValueError, TypeError, KeyError):
            continue  # not a number here: a division by zero, a vector
        if not _is_same(*pair, is_float=before.dtype.kind == FLOAT):
            return True
    return False


def _is_computed(node: UOp) -> bool:
    return node.op in ELEMENTWISE or node.op == Op.CONST


def _leaves(root: UOp) -> set[UOp]:
    """The nodes that a rewrite takes as they are."""
    return {node for node in topological(root, enter=_is_computed) if not _is_computed(node)}


def _draw(node: UOp, source: random.Random) -> Scalar:
    if node.dtype.kind == FLOAT:
        return source.choice([0.0, 1.0, -1.0, source.uniform(-4, 4), source.uniform(0, 100)])
    if node.dtype.kind == BOOL:
        return source.random() < 0.5
    least, most = bounds(node)
    low = int(max(least, -_MOST))
    return source.randint(low, int(min(most, low + 2 * _MOST)))


def _value(root: UOp, values: dict[UOp, Scalar]) -> Scalar:
    for node in topological(root, enter=lambda node: node not in values):
        if node in values:
            continue
        if node.op == Op.CONST:
            values[node] = node.arg
        else:
            given = tuple(values[part] for part in node.src)
            values[node] = evaluate(node.op, node.dtype, given, node.src[-1].dtype)
    return values[root]


def _is_same(x: Scalar, y: Scalar, is_float: bool) -> bool:
    if not is_float:
        return x == y
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    return math.isclose(x, y, rel_tol=1e-3, abs_tol=1e-5)

"""Rewrites a graph to normal form: sources first, then the node, until no rule fires.

This module is one of the two that may be ugly for speed. Results of context-free sets are
remembered for the life of the node: a node in normal form has the set's bit in `done`, any other
has an entry in `forward`, so a second visit costs a mask and a subgraph that was seen is never
walked again. Sets that read a context remember within one call only.

Sources of one and two are unrolled because most nodes have them and loops cost more than the work.
Recursion is bounded: below LIMIT levels the rest of the graph is visited in topological order
first, so depth is limited by memory alone.
"""

from __future__ import annotations

from typing import Any, Final

from weft.ir.uop import UOp, make
from weft.ir.walk import topological
from weft.rewrite import trace
from weft.rewrite.ruleset import Matcher, RuleSet
from weft.rewrite.trace import ACTIVE

LIMIT: Final = 250
FIRST_BUDGET: Final = 2_000
HITS_PER_NODE: Final = 20


class _OutOfBudgetError(Exception):
    """More rules fired than a terminating rule set fires on such a graph."""


# A node that a rule wraps in itself is visited inside its own visit, which ends in recursion.
_TOO_MANY: Final = (_OutOfBudgetError, RecursionError)


def rewrite(root: UOp, rules: RuleSet, context: Any = None) -> UOp:
    """The normal form of a graph under these rules."""
    active = ACTIVE.get()
    if active is not None:
        return _rewrite_traced(root, rules, context, active)
    if not root.ops & rules.roots:
        return root
    table = rules.table
    bit = rules.bit
    if bit:
        if root.done & bit:
            return root
        memo = rules.forward
        found = memo.get(root)
        if found is not None:
            return found
    else:
        memo = {}
    budget = [FIRST_BUDGET]
    try:
        return _visit(root, table, context, bit, memo, budget, 0)
    except _TOO_MANY:
        budget[0] = allowance(root)
    try:
        return _visit(root, table, context, bit, memo, budget, 0)
    except _TOO_MANY:
        trace.report_loop(root, rules, lambda table: _some_hits(root, table, context))
        raise


def allowance(root: UOp) -> int:
    """How many times rules may fire on a graph before it counts as a loop."""
    return HITS_PER_NODE * len(topological(root))


def _rewrite_traced(root: UOp, rules: RuleSet, context: Any, active: trace.RewriteTrace) -> UOp:
    """What other calls remembered is not used, so that every rule that fires is seen.

    A trace that remembers skips what is in normal form: no rule fires there.
    """
    if active.remembers and not root.ops & rules.roots:
        return root
    bit = rules.bit if active.remembers else 0
    if bit and root.done & bit:
        return root
    table, memo = active.table_of(rules), active.memo_of(rules)
    if (found := memo.get(root)) is not None:
        return found
    before = len(memo)
    budget = [FIRST_BUDGET + allowance(root)]
    try:
        result = _visit(root, table, context, bit, memo, budget, 0)
    except _TOO_MANY:
        trace.report_loop(root, rules, lambda table: _some_hits(root, table, context))
        raise
    active.visited(len(memo) - before)
    return result


def _some_hits(root: UOp, table: list[Matcher | None], context: Any) -> None:
    """Run past the budget a little, for the record."""
    try:
        _visit(root, table, context, 0, {}, [FIRST_BUDGET + allowance(root)], 0)
    except _TOO_MANY:
        return


def _visit(
    node: UOp,
    table: list[Matcher | None],
    context: Any,
    bit: int,
    memo: dict[UOp, UOp],
    budget: list[int],
    depth: int,
) -> UOp:
    """The normal form of a node that has none yet, neither by its bit nor in the memo."""
    if depth > LIMIT:
        _visit_below(node, table, context, bit, memo, budget)
    first = node
    fired: list[UOp] | None = None
    while True:
        src = node.src
        count = len(src)
        if count == 2:
            old_x, old_y = x, y = src
            if not x.done & bit:
                found = memo.get(x)
                if found is None:
                    found = _visit(x, table, context, bit, memo, budget, depth + 1)
                x = found
            if not y.done & bit:
                found = memo.get(y)
                if found is None:
                    found = _visit(y, table, context, bit, memo, budget, depth + 1)
                y = found
            changed = x is not old_x or y is not old_y
            if changed:
                src = (x, y)
        elif count == 1:
            x = src[0]
            changed = False
            if not x.done & bit:
                found = memo.get(x)
                if found is None:
                    found = _visit(x, table, context, bit, memo, budget, depth + 1)
                if found is not x:
                    changed = True
                    src = (found,)
        elif count:
            new = []
            for x in src:
                if not x.done & bit:
                    found = memo.get(x)
                    if found is None:
                        found = _visit(x, table, context, bit, memo, budget, depth + 1)
                    x = found
                new.append(x)
            made = tuple(new)
            changed = made != src
            src = made
        else:
            changed = False
        if changed:
            node = make(node.op, node.dtype, src, node.arg)
            if node.done & bit:
                break
            found = memo.get(node)
            if found is not None:
                node = found
                break
        match = table[node.op]
        result = match(node, context) if match is not None else None
        if result is None or result is node:
            if bit:
                node.done |= bit
            else:
                memo[node] = node
            break
        budget[0] -= 1
        if budget[0] < 0:
            raise _OutOfBudgetError
        if fired is None:
            fired = [node]
        else:
            fired.append(node)
        node = result
        if node.done & bit:
            break
        found = memo.get(node)
        if found is not None:
            node = found
            break
    if first is not node:
        memo[first] = node
    if fired is not None:
        for before in fired:
            if before is not node:
                memo[before] = node
    return node


def _visit_below(
    node: UOp,
    table: list[Matcher | None],
    context: Any,
    bit: int,
    memo: dict[UOp, UOp],
    budget: list[int],
) -> None:
    """Visit everything below a node, sources first, so that visiting the node does not go deep."""

    def is_new(part: UOp) -> bool:
        return not part.done & bit and part not in memo

    for part in topological(node, enter=is_new):
        if part is not node and is_new(part):
            _visit(part, table, context, bit, memo, budget, LIMIT - 50)

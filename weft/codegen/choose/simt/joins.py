"""The part of the heuristic for threads that reads a row once for reductions that need each other.

A row that the registers of a group cannot keep comes from memory for each reduction of it. Each
thread reduces a few elements by all of them, joins that to what it has, and the threads join what
they have at the end: the row comes once for all reductions, and once more where it is stored.
"""

from __future__ import annotations

from weft.codegen.analysis.loops import LOOP, THREAD, kinds_of, nodes_of, own_ranges
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simd.joins import NEVER
from weft.codegen.opts.join import JoinPlan, plan_join
from weft.codegen.opts.table import Join
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.support.settings import settings


def join_streams(chooser: Chooser) -> None:
    """Join reductions over loops that threads share, where one needs another."""
    if settings.JOIN == NEVER:
        return
    reductions = _streams(chooser)
    for node in reversed(list(reductions)):
        below = set(topological(node))
        numbers = [n for each, own in reductions.items() if each in below for n in own]
        plan = plan_join(chooser.kernel, numbers) if len(numbers) > 2 else ""
        if isinstance(plan, JoinPlan) and not plan.is_wide and chooser.take(Join(tuple(numbers))):
            return


def _streams(chooser: Chooser) -> dict[UOp, list[int]]:
    """The reductions over a loop and threads, and the ranges of both, sources first."""
    kinds = kinds_of(chooser.kernel)
    found: dict[UOp, list[int]] = {}
    for node in nodes_of(chooser.kernel):
        own = [r.arg for r in own_ranges(node)] if node.op == Op.REDUCE else []
        outer = [n for n in own if kinds[n] in (LOOP, THREAD)]
        if {kinds[n] for n in outer} == {LOOP, THREAD} and len(outer) < len(own):
            found[node] = outer
    return found

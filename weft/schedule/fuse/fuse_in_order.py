"""Fuse a graph so that its writes can be put in order.

In: a SINK (TENSOR_SPEC). Out: the ranged graph (RANGED_SPEC): stores and global stages over
ranges, with copies where writes asked for them.
"""

from __future__ import annotations

from typing import Final

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.views import memory_of
from weft.ir.walk import topological
from weft.rewrite.trace_file import current
from weft.schedule.context import ScheduleContext, next_slot
from weft.schedule.fuse.decisions import Decisions
from weft.schedule.fuse.emit import emit
from weft.schedule.fuse.hazards import apply_repair, order_writes
from weft.schedule.fuse.record import record_fusion
from weft.schedule.fuse.walk import fuse
from weft.support.errors import InternalError

MOST_REPAIRS: Final = 20


def fuse_in_order(sink: UOp, context: ScheduleContext) -> UOp:
    """Fuse, look for writes that cannot be ordered, repair the graph, and fuse again."""
    alone: frozenset[UOp] = frozenset()
    for attempt in range(MOST_REPAIRS):
        fused = fuse(sink, context.target, next_slot(sink), alone, Decisions)
        repair = order_writes(fused, alone)
        if not repair:
            context.log += fused.log
            trace = current()
            if trace is not None:
                record_fusion(trace, sink, fused)
            return emit(fused, repair.waits)
        alone |= repair.alone
        if attempt == MOST_REPAIRS // 2:  # give every write a kernel of its own
            alone |= {memory_of(n.src[0]) for n in topological(sink) if n.op == Op.STORE}
        sink = apply_repair(sink, repair)
    raise InternalError("writes cannot be put in order", pass_name="fuse")

"""Fuse a graph so that its writes can be put in order.

In: a SINK (TENSOR_SPEC) without calls. Out: the SINK that was fused, with copies where writes
asked for them; `context.fusion` has the kernels.
"""

from __future__ import annotations

from typing import Final

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.views import memory_of
from weft.ir.walk import topological
from weft.schedule.context import Context
from weft.schedule.fuse.fuse import Fusion
from weft.schedule.fuse.hazards import apply_repair, order_writes
from weft.support.errors import InternalError

MOST_REPAIRS: Final = 20


def fuse_in_order(sink: UOp, context: Context) -> UOp:
    """Fuse, look for writes that cannot be ordered, repair the graph, and fuse again."""
    alone: frozenset[UOp] = frozenset()
    for attempt in range(MOST_REPAIRS):
        fusion = Fusion(sink, context.target, context.first_temporary, alone)
        fusion.temporaries += context.temporaries
        fusion.run()
        repair = order_writes(fusion)
        if not repair:
            context.found = fusion
            return sink
        alone |= repair.alone
        if attempt == MOST_REPAIRS // 2:  # give every write a kernel of its own
            alone |= {memory_of(n.src[0]) for n in topological(sink) if n.op == Op.STORE}
        sink = apply_repair(sink, repair)
    raise InternalError("writes cannot be put in order", pass_name="fuse")

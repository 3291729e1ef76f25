"""Calls of bodies under INLINE are written out, so that fusion sees what is inside them.

In: a tensor graph. Out: the same without INLINE. What is equal but for its memory has been
outlined before: the nodes of a body are made once for all of it.
"""

from __future__ import annotations

from weft.ir.inline import written_out
from weft.ir.uop import UOp
from weft.schedule.context import ScheduleContext


def inline_calls(root: UOp, context: ScheduleContext) -> UOp:
    """Replace calls that are written out by their bodies.

    before: store p1 = f(p0) + 1    where f(p0) = (p0 * 2).inline()
    after:  store p1 = p0 * 2 + 1
    """
    return written_out(root)

"""From a tensor graph to an ordered list of kernels. Read `phases.py` for the steps.

`make_schedule` is pure: the same graph and target give the same schedule in every process, so the
engine caches it under the text of the graph.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.ir.ops import Op
from weft.ir.spec import verify
from weft.ir.spec_tensor import TENSOR_SPEC
from weft.ir.uop import CollectorPaused, UOp
from weft.ir.walk import topological
from weft.schedule.fuse import Fusion, memory_of
from weft.schedule.hazards import apply_repair, order_writes
from weft.schedule.normalize import normalize
from weft.schedule.plan import Plan, plan_memory
from weft.schedule.split import split_kernels
from weft.support.errors import InternalError
from weft.support.settings import settings
from weft.target.target import Target

MOST_REPAIRS: Final = 20


class Schedule(NamedTuple):
    """Kernels in order (LINEAR of CALLs), the memory plan, and why it is so."""

    kernels: UOp
    plan: Plan
    temporaries: tuple[UOp, ...]
    log: tuple[str, ...]


def make_schedule(sink: UOp, target: Target) -> Schedule:
    """Schedule a SINK of STOREs and AFTERs over PARAMs for a target."""
    if settings.SPEC:
        verify(sink, TENSOR_SPEC, pass_name="before schedule")
    first = 1 + max((n for n in _slots(sink)), default=-1)
    with CollectorPaused():
        sink = normalize(sink)
        alone: frozenset[UOp] = frozenset()
        for attempt in range(MOST_REPAIRS):
            fusion = Fusion(sink, target, first, alone).run()
            repair = order_writes(fusion)
            if not repair:
                kernels = split_kernels(fusion)
                plan = plan_memory(kernels, first)
                return Schedule(kernels, plan, tuple(fusion.temporaries), tuple(fusion.log))
            alone |= repair.alone
            if attempt == MOST_REPAIRS // 2:  # give every write a kernel of its own
                alone |= {memory_of(n.src[0]) for n in topological(sink) if n.op == Op.STORE}
            sink = apply_repair(sink, repair)
    raise InternalError("writes cannot be put in order", pass_name="order-writes")


def _slots(sink: UOp) -> list[int]:
    return [node.arg[0] for node in topological(sink) if node.op == Op.PARAM]

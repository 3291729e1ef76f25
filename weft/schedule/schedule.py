"""From a tensor graph to an ordered list of kernels. `phases.py` has the steps.

`make_schedule` is pure: the same graph and target give the same schedule in every process.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.ir.build import param, sink, store
from weft.ir.ops import Op
from weft.ir.results import FILLING
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import bodies
from weft.rewrite.phase import PassReport, Phase, Watch, run_phase
from weft.schedule.context import Body, ScheduleContext, next_slot
from weft.schedule.decision import Decision
from weft.schedule.phases import SCHEDULE
from weft.schedule.plan import Plan, plan_memory, plan_of
from weft.support.bounded_cache import BoundedCache
from weft.support.settings import cache_key
from weft.target.target import Target

# Memory is planned once, for the kernels of all calls together.
_BODY: Final = SCHEDULE._replace(
    passes=tuple(step for step in SCHEDULE.passes if step.run is not plan_memory)
)
_BODIES: Final[BoundedCache[tuple[UOp, Target, object], Body]] = BoundedCache(4096)


class Schedule(NamedTuple):
    """Kernels in order (LINEAR of CALLs), the memory plan, and why it is so."""

    kernels: UOp
    plan: Plan
    temporaries: tuple[UOp, ...]
    log: tuple[Decision, ...]
    reports: tuple[PassReport, ...]


def make_schedule(root: UOp, target: Target, watch: Watch | None = None) -> Schedule:
    """Schedule a SINK of STOREs and AFTERs over PARAMs for a target.

    `watch` is called with each pass and what it gives; for the bodies of calls, see `watch_body`.
    """
    for body in bodies(root, has_gradients=False):  # callees first: nesting costs no stack
        if body.op not in FILLING and body.op not in (Op.SINK, Op.INLINE):
            schedule_body(body, target)
    return _make_schedule(SCHEDULE, root, target, watch)


def _make_schedule(
    phase: Phase, root: UOp, target: Target, watch: Watch | None = None
) -> Schedule:
    context = ScheduleContext(root, target, lambda body: schedule_body(body, target))
    reports: list[PassReport] = []
    kernels = run_phase(phase, root, context, reports, watch)
    made = plan_of(kernels)
    memory = {node.arg[0]: node for call in kernels.src for node in call.src}
    temporaries = tuple([memory[slot] for slot in made.offsets])
    return Schedule(kernels, made, temporaries, tuple(context.log), tuple(reports))


def schedule_body(body: UOp, target: Target) -> Body:
    """The schedule of a called function; remembered, so that a layer is scheduled once."""
    key = (body, target, cache_key())
    found = _BODIES.get(key)
    if found is None:
        made = _make_schedule(_BODY, graph_of_body(body), target)
        results = len(body.src) if body.op == Op.TUPLE else 1
        found = _BODIES[key] = Body(made.kernels, next_slot(body), results)
    return found


def graph_of_body(body: UOp) -> UOp:
    """A called function as a SINK: its results are stored to parameters behind its own."""
    values = body.src if body.op == Op.TUPLE else (body,)
    return sink(
        *(
            store(param(slot, value.dtype, shape_of(value)), value)
            for slot, value in enumerate(values, next_slot(body))
        )
    )


def watch_body(body: UOp, target: Target, watch: Watch) -> None:
    """Schedule a called function again, and call `watch` with each pass and what it gives."""
    _make_schedule(_BODY, graph_of_body(body), target, watch)

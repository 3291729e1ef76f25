"""From a tensor graph to an ordered list of kernels. `phases.py` has the steps.

`make_schedule` is pure: the same graph and target give the same schedule in every process.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.ir.uop import UOp
from weft.rewrite.phase import PassReport, run_phase
from weft.schedule.context import Context, Plan
from weft.schedule.phases import SCHEDULE
from weft.target.target import Target


class Schedule(NamedTuple):
    """Kernels in order (LINEAR of CALLs), the memory plan, and why it is so."""

    kernels: UOp
    plan: Plan
    temporaries: tuple[UOp, ...]
    log: tuple[str, ...]
    reports: tuple[PassReport, ...]


def make_schedule(sink: UOp, target: Target) -> Schedule:
    """Schedule a SINK of STOREs and AFTERs over PARAMs for a target."""
    context = Context(sink, target)
    reports: list[PassReport] = []
    kernels = run_phase(SCHEDULE, sink, context, reports)
    fusion = context.fusion
    return Schedule(
        kernels, context.plan, tuple(fusion.temporaries), tuple(fusion.log), tuple(reports)
    )

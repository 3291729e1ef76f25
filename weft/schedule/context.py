"""What the passes of a schedule are given beside the graph. They hand on nothing but graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.decision import Decision
from weft.target.target import Target


class Body(NamedTuple):
    """The schedule of a called function: kernels over its parameters, results and temporaries.

    Slots count through: parameters first, then `results` results, then the temporaries.
    """

    kernels: UOp
    parameters: int
    results: int


class ScheduleContext:
    """The target, the slot of the first temporary, and how a called function is scheduled.

    `log` is a trace: the passes write their decisions down and never read them.
    """

    def __init__(self, root: UOp, target: Target, schedule_body: Callable[[UOp], Body]) -> None:
        self.target = target
        self.schedule_body = schedule_body
        self.first_temporary = next_slot(root)
        self.log: list[Decision] = []


def next_slot(root: UOp) -> int:
    """The first slot that no PARAM of a graph has."""
    slots = [node.arg[0] for node in topological(root) if node.op == Op.PARAM]
    return 1 + max(slots, default=-1)

"""What the passes of a schedule hand to each other beside the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from weft.ir.build import param
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.fuse.fuse import Fusion
from weft.support.errors import InternalError
from weft.target.target import Target


class Plan(NamedTuple):
    """Byte offsets of the temporaries, by slot, and the bytes they take together."""

    offsets: dict[int, int]
    size: int


class Body(NamedTuple):
    """The schedule of a called function: kernels over its parameters, results and temporaries.

    Slots count through: parameters first, then `results` results, then the temporaries.
    """

    kernels: UOp
    parameters: int
    results: int
    temporaries: tuple[UOp, ...]


class Context:
    """The target, the slot of the first temporary, and what the passes found out."""

    def __init__(self, sink: UOp, target: Target, schedule_body: Callable[[UOp], Body]) -> None:
        slots = [node.arg[0] for node in topological(sink) if node.op == Op.PARAM]
        self.target = target
        self.schedule_body = schedule_body
        self.first_temporary = 1 + max(slots, default=-1)
        self.temporaries: list[UOp] = []
        self.found: Fusion | None = None
        self.plan = Plan({}, 0)

    def temporary(self, node: UOp) -> UOp:
        """New memory for a value, before fusion."""
        slot = self.first_temporary + len(self.temporaries)
        self.temporaries.append(param(slot, node.dtype, shape_of(node)))
        return self.temporaries[-1]

    @property
    def fusion(self) -> Fusion:
        if self.found is None:
            raise InternalError("there is no fusion before the pass that makes it")
        return self.found

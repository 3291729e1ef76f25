"""A decision of the scheduler: a value that is computed where it is used, or stored in memory.

Passes write them down and never read them; `DEBUG=3` prints them, and a trace has their numbers.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.ir.ops import name
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp


class Decision(NamedTuple):
    """What was decided of a value, and why: the numbers, or what left no choice.

    `evaluations` is how often it would be computed if it were inlined, `size` its elements; costs
    are nanoseconds.
    """

    node: UOp
    is_stored: bool
    reason: str = ""
    uses: int = 0
    evaluations: int = 0
    size: int = 0
    recompute: float = 0.0
    memory: float = 0.0

    def __str__(self) -> str:
        why = self.reason or (
            f"{self.uses} uses, {self.evaluations} evaluations of {self.size}:"
            f" recompute {self.recompute / 1e3:.2f} us, memory {self.memory / 1e3:.2f} us"
        )
        verdict = "memory" if self.is_stored else "inline"
        return f"{name(self.node.op)} {shape_of(self.node)}: {why} -> {verdict}"

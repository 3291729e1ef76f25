"""How much code the values of a kernel become, and where a kernel has enough of it.

Codegen and compilers take more than twice as long for twice the code, and a kernel that computes
this much for each element gains nothing from more: memory is a small part of its time. So a kernel
has a budget. A value whose kernel has spent it is materialized, and starts a kernel of its own.

Sizes are in ops. `Inliner` adds what it puts into a kernel; values that are small are paid for
with the value that reads them, because cutting there would save less code than a kernel has
anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.uop import UOp
from weft.schedule.fuse.kernel import Kernel
from weft.schedule.memory import CALLS, MEMORY

# Ops of one kernel: some ten times those of the largest kernel of common models, and compiled in
# a fraction of a second.
MOST_CODE: Final = 1024
# A value of fewer ops than these is computed where it is used, whatever the kernel has.
LEAST_CUT: Final = 16
# Loops cost more than what is in them: each pass looks at all of a kernel for each of its loops.
LOOP_CODE: Final = 64
# What `decompose` makes of an op for 32 bits, rounded; targets that have one natively gain by it.
_DECOMPOSED: Final = {
    Op.EXP: 40,
    Op.EXP2: 35,
    Op.LOG: 50,
    Op.LOG2: 80,
    Op.SIN: 180,
    Op.COS: 180,
    Op.TANH: 70,
    Op.ERF: 90,
    Op.POW: 340,
    Op.LOGADD: 110,
    Op.DOT_BYTES: 24,
}
# Index arithmetic and a mask.
_INDEX: Final = 4
_FREE: Final = frozenset((Op.CONST, Op.VARIABLE, Op.BIND, Op.PERMUTE, Op.EXPAND))


class CodeSize:
    """The code of each value of a graph, found in one walk."""

    def __init__(self, order: Sequence[UOp]) -> None:
        self._whole: dict[UOp, int] = {}  # with all that is computed below it, as a tree
        for node in order:
            below = () if node.op in MEMORY or node.op in CALLS else node.src
            total = _own(node) + sum([self._whole[source] for source in below])
            self._whole[node] = min(total, MOST_CODE)

    def is_small(self, node: UOp) -> bool:
        return self._whole[node] < LEAST_CUT

    def add(self, node: UOp, kernel: Kernel) -> None:
        """Count a value that is computed in a kernel, at one address."""
        if not self.is_small(node):
            small = [self._whole[source] for source in node.src if self.is_small(source)]
            kernel.code += _own(node) + sum(small)

    def must_cut(self, node: UOp, kernels: Iterable[Kernel]) -> bool:
        """Whether a value has to be in memory because a kernel that reads it is full."""
        return not self.is_small(node) and any(map(is_full, kernels))


def is_full(kernel: Kernel) -> bool:
    return kernel.code >= MOST_CODE


def _own(node: UOp) -> int:
    if node.op in (Op.REDUCE, Op.SCAN):
        return LOOP_CODE
    if node.op in ELEMENTWISE or node.op in MEMORY:
        return _DECOMPOSED.get(node.op, 1)
    return 0 if node.op in _FREE else _INDEX

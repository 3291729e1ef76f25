"""An interpreter for schedules: a LINEAR of CALLs, run in order on buffers in memory.

A call's body is a kernel at any level: a KERNEL or a SINK of STOREs, a LINEAR of instructions, or
again a schedule. So one function runs a program before, between and after the phases of codegen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir.ops import Op, name
from weft.ir.uop import UOp
from weft.ir.views import behind, memory_of
from weft.ir.walk import topological
from weft.reference.fault import fault
from weft.reference.kernel import run_kernel
from weft.reference.memory import ElementMemory
from weft.reference.program import run_program


def run_schedule(
    schedule: UOp,
    buffers: Mapping[int, ElementMemory],
    variables: Mapping[str, int] | None = None,
    arguments: Sequence[ElementMemory] = (),
) -> None:
    """Run the CALLs of a LINEAR; the memory of `buffers` and `arguments` is written in place.

    `buffers[number]` is the memory of a BUFFER, `arguments[slot]` that of `PARAM(slot)` where the
    schedule is itself the body of a call.
    """
    if not is_schedule(schedule):
        raise fault("a schedule is a LINEAR of CALLs", schedule)
    arena = _Arena(schedule, arguments)
    for call in schedule.src:
        body: UOp = call.arg
        memories = [_argument(source, buffers, arguments) for source in call.src]
        arena.overwrite(call)
        if body.op != Op.LINEAR:
            run_kernel(body, memories, variables, buffers)
        elif is_schedule(body):
            run_schedule(body, buffers, variables, memories)
        else:
            run_program(body, memories, variables)


class _Arena:
    """The temporaries of a planned schedule: writing one ends what others hold in its bytes."""

    def __init__(self, schedule: UOp, arguments: Sequence[ElementMemory]) -> None:
        size, offsets = schedule.arg if len(schedule.arg or ()) == 2 else (0, ())
        self.arguments = arguments
        self.spans: dict[int, tuple[int, int]] = {}
        for slot, offset in offsets:
            memory = arguments[slot]
            end = offset + memory.size * memory.dtype.itemsize
            if end > size:
                raise fault(f"temporary {slot} ends at {end} of {size} bytes", schedule)
            self.spans[slot] = (offset, end)

    def overwrite(self, call: UOp) -> None:
        """Forget what lies in the bytes that a call writes; what it reads has to stay."""
        written = [call.src[slot].arg[0] for slot in sorted(_written(call.arg)) if self.spans]
        for slot in (slot for slot in written if slot in self.spans):
            start, end = self.spans[slot]
            for other, (low, high) in self.spans.items():
                if other != slot and low < end and start < high:
                    memory = self.arguments[other]
                    memory.values[:] = [None] * memory.size


def _written(body: UOp) -> set[int]:
    """The slots that a kernel or a program writes to."""
    stores = [node for node in topological(body) if node.op == Op.STORE]
    below = [memory_of(node.src[0]) for node in stores]
    return {node.arg[0] for node in below if node.op == Op.PARAM}


def is_schedule(node: UOp) -> bool:
    """Whether a node is a LINEAR of CALLs, as opposed to one of instructions."""
    return node.op == Op.LINEAR and all(source.op == Op.CALL for source in node.src)


def _argument(
    node: UOp, buffers: Mapping[int, ElementMemory], arguments: Sequence[ElementMemory]
) -> ElementMemory:
    node = behind(node)
    if node.op in (Op.BUFFER, Op.PARAM):
        number: int = node.arg[0]
        if node.op == Op.BUFFER and number in buffers:
            return buffers[number]
        if node.op == Op.PARAM and number < len(arguments):
            return arguments[number]
    raise fault(f"{name(node.op)} is given to a kernel, and stands for no memory", node)

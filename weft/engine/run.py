"""Runs a schedule: memory for its temporaries, one launch per kernel, and the numbers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from weft.engine.compile import Loaded, load_kernels
from weft.engine.storage import Buffer, GlobalCounters
from weft.ir.build import Size
from weft.ir.ops import Op
from weft.ir.scalar import evaluate
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.runtime.device import Device, Handle
from weft.schedule.schedule import Schedule
from weft.support.settings import settings

Variables = Mapping[str, int]


class Step(NamedTuple):
    """One kernel of a schedule and the slots of its arguments."""

    loaded: Loaded
    slots: tuple[int, ...]


class Prepared:
    """A schedule with its programs, ready to run on any memory."""

    def __init__(self, schedule: Schedule, device: Device) -> None:
        self.schedule = schedule
        self.device = device
        calls = schedule.kernels.src
        loaded = load_kernels([call.arg for call in calls], device)
        self.steps = [
            Step(part, tuple(memory.arg[0] for memory in call.src))
            for part, call in zip(loaded, calls, strict=True)
        ]

    def run(self, memory: Sequence[Buffer], variables: Variables) -> None:
        """Run on these buffers, by slot; temporaries are added here."""
        handles: dict[int, Handle] = {n: part.allocated() for n, part in enumerate(memory)}
        arena = Buffer(self.device, self.schedule.plan.size)
        if arena.size:
            whole = arena.allocated()
            for part in self.schedule.temporaries:
                size = largest_size(shape_of(part)) * part.dtype.itemsize
                offset = self.schedule.plan.offsets.get(part.arg[0])
                if offset is not None:
                    handles[part.arg[0]] = self.device.view(whole, offset, max(size, 1))
        try:
            for step in self.steps:
                self._launch(step, handles, variables)
        finally:
            arena.free()

    def _launch(self, step: Step, handles: dict[int, Handle], variables: Variables) -> None:
        program = step.loaded.program
        values = [variables[node.arg[0]] for node in program.variables]
        groups = tuple(size_value(size, variables) for size in program.groups)
        start = time.perf_counter()
        step.loaded.executable([handles[slot] for slot in step.slots], values, groups)
        if settings.DEBUG >= 2:
            self.device.synchronize()
        seconds = time.perf_counter() - start
        estimate = program.estimate
        GlobalCounters.kernel_count += 1
        GlobalCounters.global_ops += estimate.operations
        GlobalCounters.global_mem += estimate.bytes_read + estimate.bytes_written
        GlobalCounters.time_sum_s += seconds
        if settings.DEBUG >= 2:
            print(describe_run(self.device.name, program.name, seconds, step))


def describe_run(device: str, name: str, seconds: float, step: Step) -> str:
    """One line about a kernel that ran."""
    estimate = step.loaded.program.estimate
    moved = estimate.bytes_read + estimate.bytes_written
    rate = f"{estimate.operations / seconds / 1e9:8.2f} GFLOPS {moved / seconds / 1e9:7.2f} GB/s"
    return (
        f"*** {device:8} {GlobalCounters.kernel_count:5} {name:32} {seconds * 1e6:10.1f} us {rate}"
        f"  mem {GlobalCounters.mem_used / 1e6:.2f} MB"
    )


def size_value(size: Size, variables: Variables) -> int:
    """A size, with the values that its variables have in this run."""
    if isinstance(size, int):
        return size
    values: dict[UOp, int] = {}
    for node in topological(size):
        if node.op == Op.VARIABLE:
            values[node] = variables[node.arg[0]]
        elif node.op == Op.CONST:
            values[node] = int(node.arg)
        else:
            sources = tuple(values[source] for source in node.src)
            values[node] = int(evaluate(node.op, node.dtype, sources, node.src[-1].dtype))
    return values[size]

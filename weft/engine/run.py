"""Runs a schedule: memory for its temporaries, one launch per kernel, and the numbers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from weft.engine.bindings import Variables, require_values, variables_of
from weft.engine.buffers import Buffer
from weft.engine.compile import Loaded, load_kernels
from weft.engine.counters import GlobalCounters
from weft.engine.zones import fill_fresh, run_between_zones, sizes_of
from weft.ir.program import Estimate, Program
from weft.ir.shapes import largest_size, shape_of
from weft.ir.sizes import shape_value
from weft.ir.uop import UOp
from weft.runtime.device import Device, Handle, seconds_of
from weft.schedule.schedule import Schedule
from weft.support.settings import settings
from weft.target.target import Peaks


class PlannedLaunch(NamedTuple):
    """One kernel of a schedule, and the slots and PARAMs of its arguments.

    `groups` is its grid; None where that depends on values of variables.
    """

    loaded: Loaded
    slots: tuple[int, ...]
    memory: tuple[UOp, ...]
    groups: tuple[int, ...] | None


class Prepared:
    """A schedule with its programs, ready to run on any memory."""

    def __init__(self, schedule: Schedule, device: Device) -> None:
        self.schedule = schedule
        self.device = device
        calls = schedule.kernels.src
        self.variables = variables_of(call.arg for call in calls)
        loaded = load_kernels([call.arg for call in calls], device)
        self.steps = [
            PlannedLaunch(
                part, tuple(memory.arg[0] for memory in call.src), call.src, _grid(part.program)
            )
            for part, call in zip(loaded, calls, strict=True)
        ]

    def run(self, memory: Sequence[Buffer | None], variables: Variables) -> None:
        """Run on these buffers, by slot, with these values of the variables, by name.

        A slot that no kernel has may be None. Temporaries are added here.
        """
        if self.variables:
            require_values(self.variables, variables)
        size = self.schedule.plan.size
        arena = Buffer(self.device, size) if size else None
        if is_checked := settings.CHECK == "memory":
            fill_fresh(memory if arena is None else [*memory, arena])
        handles: dict[int, Handle] = {}
        for slot, part in enumerate(memory):
            if part is not None:
                handle = part.handle
                handles[slot] = part.allocated() if handle is None else handle
        try:
            if arena is not None:
                handles.update(temporary_handles(self.schedule, arena))
            for step in self.steps:
                self._launch(step, handles, variables, is_checked)
        finally:
            if arena is not None:
                arena.free()

    def _launch(
        self,
        step: PlannedLaunch,
        handles: dict[int, Handle],
        variables: Variables,
        is_checked: bool,
    ) -> None:
        program, execute = step.loaded
        values: list[int] = []
        for node in program.variables:
            values.append(variables[node.arg[0]])
        groups = step.groups
        if groups is None:
            groups = shape_value(program.groups, variables)
        if 0 in groups:  # a symbolic size is 0 in this run: the kernel writes nothing
            return
        given = list(map(handles.__getitem__, step.slots))
        is_shown = settings.DEBUG >= 2
        start = time.perf_counter()
        if is_checked:
            sizes = sizes_of(step.memory, variables)
            run_between_zones(
                self.device, program, given, sizes, lambda memory: execute(memory, values, groups)
            )
            seconds = time.perf_counter() - start
        elif is_shown:
            seconds = seconds_of(self.device, lambda: execute(given, values, groups))
        else:
            execute(given, values, groups)
            seconds = time.perf_counter() - start
        estimate = program.estimate
        GlobalCounters.kernel_count += 1
        GlobalCounters.global_ops += estimate.operations
        GlobalCounters.global_mem += estimate.bytes_read + estimate.bytes_written
        GlobalCounters.time_sum_s += seconds
        if is_shown:
            print(describe_run(self.device, program, seconds))


def _grid(program: Program) -> tuple[int, ...] | None:
    """The grid of a program, where no variable decides it."""
    sizes = tuple(size for size in program.groups if isinstance(size, int))
    return sizes if len(sizes) == len(program.groups) else None


def temporary_handles(schedule: Schedule, arena: Buffer) -> dict[int, Handle]:
    """The memory of each temporary, by slot: its part of the arena."""
    handles: dict[int, Handle] = {}
    if arena.size:
        whole = arena.allocated()
        for part in schedule.temporaries:
            size = largest_size(shape_of(part)) * part.dtype.itemsize
            offset = schedule.plan.offsets.get(part.arg[0])
            if offset is not None:
                handles[part.arg[0]] = arena.device.view(whole, offset, max(size, 1))
    return handles


def describe_run(device: Device, program: Program, seconds: float) -> str:
    """One line about a kernel that ran."""
    estimate = program.estimate
    moved = estimate.bytes_read + estimate.bytes_written
    rate = f"{estimate.operations / seconds / 1e9:8.2f} GFLOPS {moved / seconds / 1e9:7.2f} GB/s"
    return (
        f"*** {device.name:8} {GlobalCounters.kernel_count:5} {program.name:32}"
        f" {seconds * 1e6:10.1f} us {rate} {share_of_peak(estimate, device.target.peaks, seconds)}"
        f"  mem {GlobalCounters.mem_used / 1e6:.2f} MB"
    )


def share_of_peak(estimate: Estimate, peaks: Peaks, seconds: float) -> str:
    """How much of what the machine can do a kernel reached, in what bounds it.

    >>> share_of_peak(Estimate(operations=50), Peaks(operations=100.0), 1.0)
    ' 50% flops'
    """
    moved = estimate.bytes_read + estimate.bytes_written
    computing = estimate.operations / peaks.operations if peaks.operations else 0.0
    moving = moved / peaks.bytes_moved if peaks.bytes_moved else 0.0
    if not computing and not moving:
        return ""
    what = "flops" if computing > moving else "bytes"
    return f"{100 * max(computing, moving) / seconds:3.0f}% {what}"

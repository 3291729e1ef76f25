"""Runs a schedule: memory for its temporaries, one launch per kernel, and the numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from weft.engine.bindings import Variables, require_values, variables_of
from weft.engine.buffers import Buffer
from weft.engine.checks.redzones import fill_fresh, run_between_redzones, sizes_of
from weft.engine.compile import Loaded, load_kernels
from weft.engine.counters import GlobalCounters
from weft.engine.watch.label import label_of
from weft.engine.watch.record import record_launch
from weft.engine.watch.show import show_run
from weft.ir.program import Program
from weft.ir.rooms import class_of, room
from weft.ir.shapes import shape_of
from weft.ir.sizes import shape_value
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.rewrite.trace_file import TraceFile, current
from weft.runtime.device import Device, Handle, seconds_of
from weft.schedule.plan import plan_arena
from weft.support.setting import scope
from weft.support.source_line import SourceLine

if TYPE_CHECKING:
    from weft.schedule.schedule import Schedule


class PlannedLaunch(NamedTuple):
    """One kernel of a schedule, and the slots and PARAMs of its arguments.

    `groups` is its grid; None where that depends on values of variables. `label` says what it
    computes.
    """

    loaded: Loaded
    slots: tuple[int, ...]
    memory: tuple[UOp, ...]
    groups: tuple[int, ...] | None
    line: SourceLine | None
    label: str


class Temporary(NamedTuple):
    """A part of the arena: its bytes from an offset on are the memory of a slot."""

    slot: int
    offset: int
    size: int


class ArenaPlan(NamedTuple):
    """The temporaries of a schedule, and the bytes that they take together."""

    temporaries: tuple[Temporary, ...]
    size: int


class Prepared:
    """The schedule of a body with its programs, ready to run on any memory.

    `temporaries` and `arena`, the bytes of all of them together, have room for the greatest
    symbolic sizes; `arena_for` plans by the values of a run. A schedule from disk may have a
    function instead of its body: who looks for lines or values in it makes it.
    """

    def __init__(
        self,
        device: Device,
        body: UOp | Callable[[], UOp],
        steps: list[PlannedLaunch],
        variables: tuple[UOp, ...],
        temporaries: tuple[Temporary, ...],
        arena: int,
    ) -> None:
        self._body = body
        self.device = device
        self.steps = steps
        self.variables = variables
        self.temporaries = temporaries
        self.arena = arena
        self.line_nodes: list[int] | None = None
        # Whether nothing about a run depends on what it is run on.
        self._is_plain = not (arena or variables) and all(
            step.groups is not None and 0 not in step.groups for step in steps
        )
        self._plans: dict[tuple[int, ...], ArenaPlan] = {}
        # The variables of temporaries, whose memory follows their values.
        slots = {each.slot for each in temporaries}
        nodes = {part for step in steps for part in step.memory if part.arg[0] in slots}
        self._sizing = tuple(n.arg[0] for n in variables_of(nodes) if n in variables)

    def arena_for(self, values: Variables) -> ArenaPlan:
        """The temporaries of a run with these values; the same for all values of their classes."""
        known = self._sizing
        classes = tuple([class_of(values[name]) for name in known]) if known else ()
        plan = self._plans.get(classes)
        if plan is None:
            plan = self._plans[classes] = self._planned(values if known else {})
        return plan

    def _planned(self, values: Variables) -> ArenaPlan:
        if not self._sizing:
            return ArenaPlan(self.temporaries, self.arena)
        first = min(each.slot for each in self.temporaries)
        kernels = [step.memory for step in self.steps]
        offsets, size = plan_arena(kernels, first, lambda shape: room(shape, values))
        nodes = {part.arg[0]: part for memory in kernels for part in memory}
        temporaries = tuple(
            Temporary(slot, offsets[slot], max(1, _bytes(nodes[slot], values))) for slot in offsets
        )
        return ArenaPlan(temporaries, size)

    @property
    def body(self) -> UOp:
        if not isinstance(self._body, UOp):
            self._body = self._body()
        return self._body

    def named_steps(self) -> list[PlannedLaunch]:
        """The steps with the lines they come from; a schedule from disk finds them now.

        It has `line_nodes`, the numbers of nodes of the body, because lines belong to a program
        and the disk is shared by many.
        """
        if self.line_nodes is not None:
            nodes = topological(self.body)
            self.steps = [
                step._replace(line=None if number < 0 else nodes[number].line)
                for step, number in zip(self.steps, self.line_nodes, strict=True)
            ]
            self.line_nodes = None
        return self.steps

    @property
    def title(self) -> str:
        """What an arena is called where memory is listed."""
        return f"temporaries of {len(self.steps)} kernels"

    def parts_of_arena(self) -> list[tuple[int, str, SourceLine | None]]:
        """Bytes, dtype and shape, and the line of the first kernel of each temporary."""
        first: dict[int, tuple[UOp, SourceLine | None]] = {}
        for step in self.named_steps():
            for slot, node in zip(step.slots, step.memory, strict=True):
                first.setdefault(slot, (node, step.line))
        parts: list[tuple[int, str, SourceLine | None]] = []
        for slot, _, size in self.temporaries:
            if slot in first:
                node, line = first[slot]
                parts.append((size, f"{node.dtype.name} {list(shape_of(node))}", line))
        return parts

    @classmethod
    def of(cls, schedule: Schedule, device: Device, body: UOp) -> Self:
        """The programs of a schedule are loaded, and made where there are none."""
        calls = schedule.kernels.src
        loaded = load_kernels([call.arg for call in calls], device)
        labels = {kernel: label_of(kernel) for kernel in {call.arg for call in calls}}
        steps = [
            planned(part, call.src, call.line, labels[call.arg])
            for part, call in zip(loaded, calls, strict=True)
        ]
        variables = variables_of(call.arg for call in calls)
        offsets, size = schedule.plan
        temporaries = tuple(
            Temporary(part.arg[0], offsets[part.arg[0]], max(1, _bytes(part, {})))
            for part in schedule.temporaries
        )
        return cls(device, body, steps, variables, temporaries, size)

    def run(self, memory: Sequence[Buffer | None], variables: Variables) -> None:
        """Run on these buffers, by slot, with these values of the variables, by name.

        A slot that no kernel has may be None. Temporaries are added here.
        """
        asked = scope.get()  # once: a setting by its name is a call
        if self._is_plain and not (asked["CHECK"] or asked["DEBUG"] or asked["VIZ"]):
            self._run_plain(memory)
            return
        if self.variables:
            require_values(self.variables, variables)
        plan = self.arena_for(variables)
        arena = Buffer(self.device, plan.size, owner=self) if plan.size else None
        check = asked["CHECK"]
        if check == "memory":
            fill_fresh(memory if arena is None else [*memory, arena])
        finite = None
        if check == "nan":
            from weft.engine.checks.finite import FiniteCheck

            finite = FiniteCheck(self.device, self.body, memory, variables)
        handles: dict[int, Handle] = {}
        for slot, part in enumerate(memory):
            if part is not None:
                handle = part.handle
                handles[slot] = part.allocated() if handle is None else handle
        try:
            if arena is not None:
                handles.update(temporary_handles(plan.temporaries, arena))
            is_shown: bool = asked["DEBUG"] >= 2  # type: ignore[operator]  # a number
            trace = current() if asked["VIZ"] else None
            is_watched = is_shown or trace is not None or finite is not None
            for step in self.named_steps() if is_watched else self.steps:
                self._launch(step, handles, variables, check == "memory", is_shown, trace)
                if finite is not None:
                    finite.after(step, [handles[slot] for slot in step.slots])
        finally:
            if arena is not None:
                arena.free()

    def _run_plain(self, memory: Sequence[Buffer | None]) -> None:
        """Run kernels that need neither temporaries nor variables, and that nobody watches."""
        for step in self.steps:
            given: list[Handle] = []
            for slot in step.slots:
                part = memory[slot]
                assert part is not None  # a kernel has this slot
                handle = part.handle
                given.append(part.allocated() if handle is None else handle)
            program, execute = step.loaded
            start = time.perf_counter()
            execute(given, (), step.groups or ())
            _count(program, time.perf_counter() - start)

    def _launch(
        self,
        step: PlannedLaunch,
        handles: dict[int, Handle],
        variables: Variables,
        is_checked: bool,
        is_shown: bool,
        trace: TraceFile | None,
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
        start = time.perf_counter()
        if is_checked:
            sizes = sizes_of(step.memory, variables)
            run_between_redzones(
                self.device, program, given, sizes, lambda memory: execute(memory, values, groups)
            )
            seconds = time.perf_counter() - start
        elif is_shown or trace is not None:
            seconds = seconds_of(self.device, lambda: execute(given, values, groups))
        else:
            execute(given, values, groups)
            seconds = time.perf_counter() - start
        _count(program, seconds)
        if trace is not None:
            record_launch(trace, self.device, step, seconds)
        if is_shown:
            show_run(self.device, step, seconds, GlobalCounters.kernel_count)


def _count(program: Program, seconds: float) -> None:
    """Count a kernel that ran."""
    estimate = program.estimate
    GlobalCounters.kernel_count += 1
    GlobalCounters.global_ops += estimate.operations
    GlobalCounters.global_mem += estimate.moved
    GlobalCounters.time_sum_s += seconds


def _grid(program: Program) -> tuple[int, ...] | None:
    """The grid of a program, where no variable decides it."""
    sizes = tuple(size for size in program.groups if isinstance(size, int))
    return sizes if len(sizes) == len(program.groups) else None


def planned(
    loaded: Loaded, memory: tuple[UOp, ...], line: SourceLine | None = None, label: str = ""
) -> PlannedLaunch:
    """A launch of a program on the memory of PARAMs."""
    slots = tuple([node.arg[0] for node in memory])
    return PlannedLaunch(loaded, slots, memory, _grid(loaded.program), line, label)


def _bytes(memory: UOp, values: Variables) -> int:
    return room(shape_of(memory), values) * memory.dtype.itemsize


def temporary_handles(temporaries: Sequence[Temporary], arena: Buffer) -> dict[int, Handle]:
    """The memory of each temporary, by slot: its part of the arena."""
    if not arena.size:
        return {}
    whole, view = arena.allocated(), arena.device.view
    return {slot: view(whole, offset, size) for slot, offset, size in temporaries}

"""A graph that runs again and again on other memory, with as little Python as can be.

The JIT and loaded functions call this. The schedule, its programs and the memory of its
temporaries are made once. On a device that takes whole lists (CPU, CUDA), a run writes the
addresses, the values of symbolic sizes and the grids that changed since the last run into the list
and calls it; on others it is the ordinary run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from weft.engine.arena import ArenaShare
from weft.engine.bindings import (
    Variables,
    require_agreement,
    require_values,
    take_bindings,
)
from weft.engine.buffers import Buffer
from weft.engine.checks.redzones import CheckedList, fill, fill_fresh
from weft.engine.contents import copy_contents
from weft.engine.counters import GlobalCounters
from weft.engine.run import ArenaPlan, Prepared
from weft.engine.tape import Copy, Tape
from weft.engine.watch.record import record_launches
from weft.engine.watch.show import show_runs
from weft.engine.work import prepare
from weft.ir.build import Size
from weft.ir.sizes import shape_value
from weft.ir.uop import UOp
from weft.rewrite.trace_file import current
from weft.runtime.device import Executable, Handle, LaunchList, ListLauncher
from weft.support.fork import renew_in_child
from weft.support.setting import scope
from weft.support.settings import settings

Result = TypeVar("Result")
_NO_SIZES: Final[dict[str, int]] = {}


class Replay:
    """A graph over parameters, prepared for a device. `run` takes memory by slot.

    The graph may have bound variables: those keep their values in every run. One that was prepared
    before, without any, is taken as it is.
    """

    def __init__(self, body: UOp | Prepared, device_name: str, slots: int) -> None:
        self._bound: dict[str, int] = {}
        if isinstance(body, Prepared):
            self.prepared = body
        else:
            unbound, self._bound = take_bindings(body)
            self.prepared = prepare(unbound, device_name)
        self._lock = threading.Lock()
        renew_in_child(self._lock)
        self._native = _try_native(self.prepared, slots)
        self._can_be_watched = self._native is not None and self._native.is_timed
        # Settings, and what follows from them: whether somebody watches, and what runs.
        self._mode: tuple[object, bool, bool] = (None, False, False)

    @property
    def has_bindings(self) -> bool:
        return bool(self._bound)

    @property
    def is_native(self) -> bool:
        """Whether a run is one native call."""
        return self._native is not None

    def run(self, memory: Sequence[Buffer | None], variables: Variables = _NO_SIZES) -> None:
        """Run on this memory, with these values of the variables that are not bound.

        A slot that no kernel has may be None. Temporaries are shared by all runs, so one waits for
        the other.
        """
        if self._bound:
            require_agreement(self._bound, variables)
            variables = {**variables, **self._bound}
        native = self._native
        asked = scope.get()
        known, is_watched, is_native = self._mode
        if known is not asked:  # a setting by its name is a call
            is_watched = settings.DEBUG >= 2 or settings.VIZ
            # CHECK=nan looks at memory after each kernel.
            is_native = settings.CHECK != "nan" and (not is_watched or self._can_be_watched)
            self._mode = asked, is_watched, is_native
        if native is None or not is_native:
            self.prepared.run(memory, variables)
            return
        with self._lock:
            if is_watched:
                native.run_watched(memory, variables)
            else:
                native.run(memory, variables)


class _ListRun:
    """All kernels of a schedule as one list of the device."""

    def __init__(self, prepared: Prepared, launcher: ListLauncher, slots: int) -> None:
        self._prepared = prepared
        self._arena: ArenaShare | None = None
        if prepared.arena:
            self._arena = ArenaShare(prepared.device)
        launches = launcher.run_list(
            [
                (
                    step.loaded.executable,
                    [None] * len(step.slots),  # at each run
                    (0,) * len(step.loaded.program.variables),  # until a run has values
                    _static_grid(step.loaded.program.groups),
                )
                for step in prepared.steps
            ]
        )
        self._list = self._checked(launches, prepared)
        self._timed = launches
        self._sizes = _Sizes(prepared, launches) if prepared.variables else None
        self._words = launches.words
        self._positions: list[list[int]] = [[] for _ in range(slots)]
        # Where the list has the address of each temporary.
        self._temporaries: dict[int, list[int]] = {each.slot: [] for each in prepared.temporaries}
        for number, step in enumerate(prepared.steps):
            for position, slot in enumerate(step.slots):
                found = self._temporaries.get(slot)
                found = self._positions[slot] if found is None else found
                found.append(launches.position(number, position))
        # The plan that a run follows, and where the temporaries are.
        self._plan = ArenaPlan((), 0) if prepared.variables else prepared.arena_for(_NO_SIZES)
        self._bound_arena: Buffer | None = None
        self._bound: list[Handle | None] = [None] * slots
        estimates = [step.loaded.program.estimate for step in prepared.steps]
        self._operations = sum(each.operations for each in estimates)
        self._bytes = sum(each.moved for each in estimates)

    def _checked(self, launches: LaunchList, prepared: Prepared) -> LaunchList | CheckedList:
        """What a run calls."""
        return launches

    @property
    def is_timed(self) -> bool:
        """Whether each kernel has a time of its own."""
        return self._timed.is_timed and self._list is self._timed

    def run_watched(self, memory: Sequence[Buffer | None], variables: Variables) -> None:
        """A run of which somebody sees each kernel, in the trace or on the terminal."""
        self._bind(memory, variables)
        clock = self._in_arena(self._timed.run_timed)
        self._count(clock[-1] - clock[0])
        steps, on = self._prepared.named_steps(), self._prepared.device
        if (trace := current()) is not None:
            record_launches(trace, on, steps, clock)
            trace.spent += time.perf_counter() - clock[-1]
        if settings.DEBUG >= 2:
            show_runs(on, steps, clock)

    def run(self, memory: Sequence[Buffer | None], variables: Variables) -> None:
        self._bind(memory, variables)
        start = time.perf_counter()
        if self._arena is None:
            self._list()
        else:
            self._in_arena(self._list)
        self._count(time.perf_counter() - start)

    def _in_arena(self, run: Callable[[], Result]) -> Result:
        """Run with memory for the temporaries."""
        arena = self._arena
        if arena is None:
            return run()
        taken = arena.take(self._plan.size, self._prepared)
        try:
            if taken is not self._bound_arena:
                self._bind_arena(taken)
            return run()
        finally:
            arena.release(taken)

    def _bind_arena(self, arena: Buffer) -> None:
        """Write the addresses of the temporaries into the list."""
        whole, view = arena.allocated(), arena.device.view
        for slot, offset, size in self._plan.temporaries:
            address = view(whole, offset, size).address
            for position in self._temporaries[slot]:
                self._words[position] = address
        self._bound_arena = arena

    def _bind(self, memory: Sequence[Buffer | None], variables: Variables) -> None:
        """Write the addresses and values of a run into the list."""
        if self._sizes is not None and self._sizes.set(variables):
            plan = self._prepared.arena_for(variables)
            if plan is not self._plan:
                self._plan, self._bound_arena = plan, None
        bound = self._bound
        for slot, part in enumerate(memory):
            if part is None:  # an output that takes the memory of an argument
                continue
            handle = part.handle
            # A handle has one address; a Buffer gets another handle when lent memory is written.
            if handle is None or bound[slot] is not handle:
                bound[slot] = handle = part.allocated()
                for position in self._positions[slot]:
                    self._words[position] = handle.address

    def _count(self, seconds: float) -> None:
        counters = GlobalCounters
        counters.time_sum_s += seconds
        counters.kernel_count += len(self._list)
        counters.global_ops += self._operations
        counters.global_mem += self._bytes


class _Sizes:
    """The words of a list that depend on symbolic sizes: values of variables, and grids."""

    def __init__(self, prepared: Prepared, run_list: LaunchList) -> None:
        self._list = run_list
        self._variables = prepared.variables
        self._now: list[int] | None = None
        self._positions: list[list[int]] = [[] for _ in prepared.variables]
        # Layers of a model share kernels, so that a grid is computed once for many.
        self._grids: dict[tuple[Executable, tuple[Size, ...]], list[int]] = {}
        for number, step in enumerate(prepared.steps):
            program = step.loaded.program
            for slot, variable in enumerate(program.variables, len(program.parameters)):
                position = run_list.position(number, slot)
                self._positions[prepared.variables.index(variable)].append(position)
            if any(not isinstance(size, int) for size in program.groups):
                key = (step.loaded.executable, program.groups)
                self._grids.setdefault(key, []).append(number)

    def set(self, variables: Variables) -> bool:
        """Let the next run have these values; whether they are others than those of the last."""
        try:
            values = [variables[variable.arg[0]] for variable in self._variables]
        except KeyError:
            values = []
        if values == self._now:
            return False
        require_values(self._variables, variables)
        self._now = None
        words = self._list.words
        for value, positions in zip(values, self._positions, strict=True):
            for position in positions:
                words[position] = value
        for (_, sizes), numbers in self._grids.items():
            self._list.set_grid(numbers, shape_value(sizes, variables))
        self._now = values
        return True


def _static_grid(groups: tuple[Size, ...]) -> tuple[int, ...]:
    """A grid that can be written down; a symbolic one is empty until there are values."""
    return tuple([size if isinstance(size, int) else 0 for size in groups])


class _CheckedRun(_ListRun):
    """The same list with its kernels between redzones, for `CHECK=memory`."""

    def _checked(self, launches: LaunchList, prepared: Prepared) -> CheckedList:
        kernels = [(step.loaded.program, step.memory) for step in prepared.steps]
        return CheckedList(launches, prepared.device, kernels)

    def run(self, memory: Sequence[Buffer | None], variables: Variables) -> None:
        fill_fresh(memory)
        assert isinstance(self._list, CheckedList)
        self._list.values = variables
        super().run(memory, variables)

    def _bind_arena(self, arena: Buffer) -> None:
        super()._bind_arena(arena)
        fill(arena)
        self._bound_arena = None  # so that the next run fills it, too


def _try_native(prepared: Prepared, slots: int) -> _ListRun | None:
    launcher = prepared.device.lists
    if launcher is None:
        return None
    # A traced function belongs to a value of the setting, so nobody need ask for it again.
    kind = _CheckedRun if settings.CHECK == "memory" else _ListRun
    return kind(prepared, launcher, slots)


class TapeRun:
    """The steps of a tape. `given` is memory that each run brings; the rest belongs to the run."""

    def __init__(self, tape: Tape, given: Sequence[Buffer]) -> None:
        self._positions = {id(part): number for number, part in enumerate(given)}
        self._count = len(given)
        self._own: list[Buffer] = []
        self._written: list[int] = []
        self._steps: list[tuple[Replay | None, list[int]]] = []
        for action in tape.actions:
            if isinstance(action, Copy):
                self._steps.append((None, self._slots(action)))
                continue
            slots = self._slots(action.memory)
            self._steps.append((Replay(action.body, action.device, len(slots)), slots))
            self._written += [n for n in self._slots(action.written) if n < self._count]

    def _slots(self, memory: Sequence[Buffer]) -> list[int]:
        for part in memory:
            if id(part) not in self._positions:
                self._positions[id(part)] = self._count + len(self._own)
                self._own.append(part)
        return [self._positions[id(part)] for part in memory]

    def run(self, given: Sequence[Buffer]) -> None:
        """Do it again on this memory."""
        memory = [*given, *self._own]
        for slot in self._written:
            memory[slot].prepare_write()
        for replay, slots in self._steps:
            parts = [memory[slot] for slot in slots]
            if replay is None:
                copy_contents(parts[0], parts[1])
            else:
                replay.run(parts)
        for part in self._own:
            part.free()

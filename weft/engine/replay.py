"""A graph that runs again and again on other memory, with as little Python as can be.

The JIT and loaded functions call this. The schedule, its programs and the memory of its
temporaries are made once. On a device that takes whole lists (CPU), a run writes the addresses
that changed since the last run into the list and calls it; on others it is the ordinary run.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from weft.engine.realize import prepare
from weft.engine.run import Prepared, temporary_handles
from weft.engine.storage import Buffer, GlobalCounters
from weft.ir.uop import UOp
from weft.runtime.cpu.memory import CpuMemory
from weft.support.settings import settings

Variables = Mapping[str, int]


class Replay:
    """A graph over parameters, prepared for a device. `run` takes memory by slot."""

    def __init__(self, body: UOp, device_name: str, slots: int) -> None:
        self.prepared = prepare(body, device_name)
        self._lock = threading.Lock()
        self._native = _try_native(self.prepared, slots)

    @property
    def is_native(self) -> bool:
        """Whether a run is one native call."""
        return self._native is not None

    def run(self, memory: Sequence[Buffer], variables: Variables | None = None) -> None:
        """Run on this memory. Temporaries are shared by all runs, so one waits for the other."""
        native = self._native
        if native is None or settings.DEBUG >= 2:
            self.prepared.run(memory, variables or {})
            return
        with self._lock:
            native.run(memory)


class _NativeRun:
    """All kernels of a schedule as one list of the device."""

    def __init__(self, prepared: Prepared, slots: int) -> None:
        device: Any = prepared.device
        self._arena = Buffer(device, prepared.schedule.plan.size)
        weakref.finalize(self, self._arena.free).atexit = False
        handles = temporary_handles(prepared.schedule, self._arena)
        unknown = CpuMemory(0, 0)  # until the first run
        self._list = device.run_list(
            [
                (
                    step.loaded.executable,
                    [handles.get(slot, unknown) for slot in step.slots],
                    (),
                    step.loaded.program.groups,
                )
                for step in prepared.steps
            ]
        )
        self._words = self._list.words
        self._positions: list[list[int]] = [[] for _ in range(slots)]
        for number, step in enumerate(prepared.steps):
            for position, slot in enumerate(step.slots):
                if slot not in handles:
                    self._positions[slot].append(self._list.position(number, position))
        self._bound: list[CpuMemory | None] = [None] * slots
        estimates = [step.loaded.program.estimate for step in prepared.steps]
        self._operations = sum(each.operations for each in estimates)
        self._bytes = sum(each.bytes_read + each.bytes_written for each in estimates)

    def run(self, memory: Sequence[Buffer | None]) -> None:
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
        start = time.perf_counter()
        self._list()
        counters = GlobalCounters
        counters.time_sum_s += time.perf_counter() - start
        counters.kernel_count += len(self._list)
        counters.global_ops += self._operations
        counters.global_mem += self._bytes


def _try_native(prepared: Prepared, slots: int) -> _NativeRun | None:
    has_sizes = any(step.loaded.program.variables for step in prepared.steps)
    if has_sizes or not hasattr(prepared.device, "run_list"):
        return None
    return _NativeRun(prepared, slots)

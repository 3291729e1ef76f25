"""What every device offers: memory, a compiler and programs that run; and what some offer beside.

A back end is one class that fills in the methods of `Device`. Memory is an opaque handle; whoever
asks for it frees it. `load` turns a compiled program into something callable; calling it queues
the program on the device, and `synchronize` waits for all that was queued.

What only some devices can do is a protocol of its own, which a device states by having its
attributes. The engine asks for the attribute, never for the name of a device.

| attribute | what it says |
| --- | --- |
| `share`, `wrap` | the host reads and writes this memory in place |
| `host_view` | the bytes of a handle as the host sees them |
| `adopt`, `hand_to`, `stream_number` | memory of other libraries on the same device |
| `try_copy_from` | copies from other devices of the kind, without the host |
| `run_list` | whole lists of kernels in one call (`LaunchList`) |
| `measure` | the device takes the time of what runs on it |
| `reuses_memory`, `release` | freed memory is handed out again by the device itself |
| `compiler` | what a binary depends on besides its source and target |
| `compile_threads` | how many programs are best compiled side by side |
| `stores_nothing` | memory has no contents |
| `facts` | what `weft devices` says beside the target |
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from weft.ir.program import Program
from weft.target.target import Target

Handle = Any


class Executable(Protocol):
    """A program that is loaded on a device."""

    def __call__(
        self,
        memory: Sequence[Handle],
        variables: Sequence[int],
        groups: tuple[int, ...],
    ) -> None:
        """Run over a grid of groups with these arguments, in the order of the parameters."""


class LaunchList(Protocol):
    """Kernels that run one after the other in one call, on memory that changes between calls.

    A device makes one with `run_list(launches)`. A launch is an executable, its memory (None for
    what a later call brings), the values of its variables and its grid. `words` has the address of
    each memory argument at its `position`, and behind those of a kernel its values; writing there
    changes the next call. Whoever writes an address keeps the memory alive.
    """

    words: Any

    def __len__(self) -> int: ...

    def __call__(self) -> None:
        """Queue all of it."""

    def position(self, number: int, slot: int) -> int:
        """Which of the words is an argument of a kernel."""

    def set_grid(self, numbers: Sequence[int], groups: tuple[int, ...]) -> None:
        """Let some launches of one kernel run over another grid."""

    def memory_at(self, number: int, slot: int, size: int) -> Handle:
        """The memory that an argument of a kernel has now."""

    def run_one(self, number: int, memory: Sequence[Handle]) -> None:
        """Run one kernel of the list on other memory; the list stays as it is."""


class Device(Protocol):
    """One device of one kind, for example `CPU` or `OPENCL:0`."""

    name: str
    target: Target

    def allocate(self, size: int) -> Handle:
        """New memory of `size` bytes; raises OutOfMemory."""

    def free(self, handle: Handle) -> None: ...

    def view(self, handle: Handle, offset: int, size: int) -> Handle:
        """A part of some memory, in bytes, without a copy; it keeps nothing alive."""

    def copy_in(self, handle: Handle, data: memoryview) -> None:
        """Write bytes of the host into memory."""

    def copy_out(self, data: memoryview, handle: Handle) -> None:
        """Read memory into bytes of the host; waits for what was queued."""

    def render(self, program: Program) -> str:
        """The program as source text for this device."""

    def compile(self, program: Program) -> bytes:
        """The source as a binary; pure, so that it can be cached."""

    def load(self, program: Program) -> Executable:
        """The binary, ready to run."""

    def synchronize(self) -> None: ...


def seconds_of(device: Device, run: Callable[[], None]) -> float:
    """The seconds of what `run` queues, by the clock of the device where it has one."""
    measure = getattr(device, "measure", None)
    if measure is not None:
        return float(measure(run))
    start = time.perf_counter()
    run()
    device.synchronize()
    return time.perf_counter() - start

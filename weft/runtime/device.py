"""What every device offers, and what some do besides.

A back end is one class that fills in the methods of `Device`. Memory is an opaque handle; whoever
asks for it frees it. `load` turns a compiled program into something callable; calling it queues
the program on the device, and `synchronize` waits for all that was queued.

What only some devices can do is stated, not looked for: a device class derives from `Abilities`,
where every ability is None, and sets those that it has to the object that does it, mostly itself.
So the engine reads `device.lists`, and nobody asks for a device's name or for a method of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, MutableSequence, Sequence
from typing import Any, Protocol

from weft.ir.program import Program
from weft.ir.uop import UOp
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


class HostMemory(Protocol):
    """Its memory is that of the host: others read it in place, and it reads theirs."""

    def zeros(self, size: int) -> Handle:
        """Memory of zeros, which costs nothing until it is touched."""

    def wrap(self, buffer: Any) -> Handle:
        """Memory that belongs to another object, such as a NumPy array, without a copy."""

    def share(self, handle: Handle) -> Any:
        """The bytes as an object that other libraries read in place; it keeps them alive."""

    def host_view(self, handle: Handle, size: int) -> memoryview:
        """The first bytes of some memory, to be read and written in place."""


class ForeignMemory(Protocol):
    """It uses memory of other libraries on the same device, and they use its own (DLPack)."""

    @property
    def dlpack_device(self) -> tuple[int, int]:
        """The kind and the number of this device in DLPack."""

    @property
    def stream_number(self) -> int:
        """The queue of this device, as producers of DLPack want to know it."""

    def adopt(self, address: int, size: int) -> tuple[Handle, bool]:
        """Memory of another library, and whether kernels can use it as it is."""

    def hand_to(self, stream: int | None) -> None:
        """Let the queue of a consumer, by DLPack's number, see all that was queued here."""


# A kernel, its memory (None: a run brings it), its variables and its grid.
Launch = tuple[Any, Sequence[Handle | None], Sequence[int], tuple[int, ...]]


class LaunchList(Protocol):
    """Kernels that run one after the other in one call; what they run on can be exchanged.

    `words` has the arguments of all kernels: the addresses of memory, and behind those of a kernel
    the values of its variables. Whoever writes an address there keeps the memory alive.
    """

    @property
    def words(self) -> MutableSequence[int] | Any: ...

    @property
    def is_timed(self) -> bool:
        """Whether `run_timed` can time its kernels one by one."""

    def run_timed(self) -> list[float]:
        """Run all of them: `time.perf_counter` before the first one and after each."""

    def __len__(self) -> int: ...

    def __call__(self) -> None:
        """Run all of them on what the words say."""

    def position(self, number: int, slot: int) -> int:
        """Which of the words is an argument of a kernel: an address, or behind those a value."""

    def set_grid(self, numbers: Sequence[int], groups: tuple[int, ...]) -> None:
        """Let some launches of one kernel run over another grid."""

    def memory_at(self, number: int, slot: int, size: int) -> Handle:
        """The memory that an argument of a kernel has now."""

    def run_one(self, number: int, memory: Sequence[Handle]) -> None:
        """Run one kernel of the list on other memory; the list stays as it is."""


class ListLauncher(Protocol):
    """It runs a whole list of kernels in one call."""

    def run_list(self, launches: Sequence[Launch]) -> LaunchList:
        """Several kernels as one list. Handles of this device have an `address`."""


class PeerCopier(Protocol):
    """It copies from the memory of other devices without the host in between."""

    def try_copy_from(self, handle: Handle, source: Any, other: Handle, size: int) -> bool:
        """Copy from memory of a device; False where the host has to be in between."""


class Timer(Protocol):
    """It takes the time of what is queued, on its own clock."""

    def measure(self, run: Callable[[], None]) -> float:
        """The seconds that what `run` queues takes on the device."""


class GraphEvaluator(Protocol):
    """It evaluates whole tensor graphs and needs no programs."""

    def evaluate(self, roots: Sequence[UOp], arrays: Mapping[int, Any]) -> list[Any]:
        """The values of these nodes, given the arrays of BUFFERs by number."""


class Abilities:
    """What a device can do besides running programs; nothing, unless its class says so."""

    host_memory: HostMemory | None = None
    lists: ListLauncher | None = None
    peers: PeerCopier | None = None
    timer: Timer | None = None
    graphs: GraphEvaluator | None = None
    foreign: ForeignMemory | None = None
    # How many programs are best compiled side by side.
    compile_threads: int = 2
    # What `weft devices` says of it besides its target.
    facts: tuple[str, ...] = ()
    # Memory has no contents, so nothing is copied to it and nothing is checked in it.
    stores_nothing: bool = False
    # Memory is a file, which is there once its tensor is and is never used again for another.
    stores_files: bool = False
    # Addresses of memory are numbers: parts that overlap can be told.
    has_addresses: bool = False
    # It hands out freed memory again itself, in the order of what is queued.
    reuses_memory: bool = False


class Device(Protocol):
    """One device of one kind, for example `CPU` or `OPENCL:0`; its class derives from
    `Abilities`.

    `compiler` is what `compile` depends on besides the source and the target, for keys of caches:
    the compiler's version, and that of the driver where it compiles too.
    """

    name: str
    target: Target
    host_memory: HostMemory | None
    lists: ListLauncher | None
    peers: PeerCopier | None
    timer: Timer | None
    graphs: GraphEvaluator | None
    foreign: ForeignMemory | None
    compile_threads: int
    facts: tuple[str, ...]
    stores_nothing: bool
    stores_files: bool
    has_addresses: bool
    reuses_memory: bool

    @property
    def compiler(self) -> str: ...

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
    """The seconds of what `run` queues, on the clock of the device where it has one."""
    if device.timer is not None:
        return device.timer.measure(run)
    start = time.perf_counter()
    run()
    device.synchronize()
    return time.perf_counter() - start

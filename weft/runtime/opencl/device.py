"""`OPENCL:n`: a device of an OpenCL platform.

One queue runs everything in order. Memory is an OpenCL buffer; a view is a sub-buffer, which has
to begin at an alignment of the device: `view` raises NotSupported at any other offset, and the
engine copies instead. A binary is kept with the driver it was made for. On another driver `load`
builds the source again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.ir.program import Program
from weft.runtime.device import Abilities
from weft.runtime.opencl.platform import (
    describe,
    import_pyopencl,
    require_compiler,
    require_device,
)
from weft.support.errors import InternalError, NotSupported, OutOfMemory
from weft.target.c import entry_name
from weft.target.opencl import rounds_float32
from weft.target.target import Target

AXES: Final = 3
MOST_BUILT: Final = 256


@dataclass(frozen=True)
class OpenclMemory:
    """A buffer, or a part of `root`: OpenCL has no parts of parts."""

    buffer: Any
    root: Any
    offset: int
    size: int


class OpenclDevice(Abilities):
    """`renderer` writes programs in OpenCL C; with `profiling` the queue takes times."""

    def __init__(
        self,
        renderer: Callable[[Program, Target], str],
        name: str = "OPENCL",
        profiling: bool = False,
    ) -> None:
        self.name = name
        self._cl = import_pyopencl()
        self.device = require_device(int(name.partition(":")[2] or 0))
        self.target = describe(self.device)
        self.alignment = max(int(self.device.mem_base_addr_align) // 8, 1)  # given in bits
        self._built: dict[str, Any] = {}  # by source, from compile to load
        self._renderer = renderer
        self._context = self._cl.Context([self.device])
        wanted = self._cl.command_queue_properties.PROFILING_ENABLE if profiling else 0
        self.queue = self._cl.CommandQueue(self._context, properties=wanted)
        self.has_profiling = profiling
        require_compiler(self._context, self.device)

    # Memory.

    def allocate(self, size: int) -> OpenclMemory:
        flags = self._cl.mem_flags.READ_WRITE
        try:
            buffer = self._cl.Buffer(self._context, flags, max(size, 1))
        except (self._cl.Error, MemoryError) as error:
            raise OutOfMemory(
                f"{self.name}: {size} bytes cannot be allocated",
                facts=[
                    ("memory of the device", self.device.global_mem_size),
                    ("largest buffer", self.device.max_mem_alloc_size),
                ],
            ) from error
        return OpenclMemory(buffer, buffer, 0, size)

    def free(self, handle: OpenclMemory) -> None:
        handle.buffer.release()

    def view(self, handle: OpenclMemory, offset: int, size: int) -> OpenclMemory:
        start = handle.offset + offset
        if start % self.alignment:
            raise NotSupported(
                f"{self.name}: a view cannot begin at byte {start}",
                rule=f"a view begins at a multiple of {self.alignment} bytes on this device",
            )
        part = handle.root.get_sub_region(start, max(size, 1))
        return OpenclMemory(part, handle.root, start, size)

    def copy_in(self, handle: OpenclMemory, data: memoryview) -> None:
        if data.nbytes:
            self._cl.enqueue_copy(self.queue, handle.buffer, data, is_blocking=True)

    def copy_out(self, data: memoryview, handle: OpenclMemory) -> None:
        if data.nbytes:
            self._cl.enqueue_copy(self.queue, data, handle.buffer, is_blocking=True)

    # Programs.

    @property
    def compiler(self) -> str:
        """The driver, which compiles."""
        return self._driver().decode()

    def render(self, program: Program) -> str:
        return self._renderer(program, self.target)

    def compile(self, program: Program) -> bytes:
        built = self._build_source(program)
        (binary,) = built.get_info(self._cl.program_info.BINARIES)
        result = self._driver() + bytes(binary)
        self._built[program.source] = built
        while len(self._built) > MOST_BUILT:  # those that were compiled and never loaded
            self._built.pop(next(iter(self._built)), None)
        return result

    def load(self, program: Program) -> OpenclExecutable:
        built = self._built.pop(program.source, None)
        built = built or self._try_build_binary(program) or self._build_source(program)
        return OpenclExecutable(self, self._cl.Kernel(built, entry_name(program.name)), program)

    def synchronize(self) -> None:
        self.queue.finish()

    def _driver(self) -> bytes:
        """What a binary is made for; it stands in front of it, up to the zero byte."""
        device = self.device
        words = (device.platform.version, device.name, device.version, device.driver_version)
        return "|".join(words).encode() + b"\0"

    def _try_build_binary(self, program: Program) -> Any:
        """The program from its binary, or None where the driver does not take it."""
        driver = self._driver()
        if not program.binary.startswith(driver):
            return None
        binary = program.binary[len(driver) :]
        try:
            return self._cl.Program(self._context, [self.device], [binary]).build()
        except self._cl.Error:
            return None

    def _build_source(self, program: Program) -> Any:
        options = ["-cl-std=CL1.2", "-w"]
        if rounds_float32(self.target):
            options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        made = self._cl.Program(self._context, program.source)
        try:
            return made.build(options=options, cache_dir=False)
        except self._cl.Error as error:
            raise InternalError(
                f"{self.name} rejects the rendered program {program.name}",
                facts=[("says", str(error).strip()[:2000])],
                ir_text=program.source,
            ) from error


class OpenclExecutable:
    """A kernel on a queue. `seconds` is the time of the last run, where the queue takes times."""

    def __init__(self, device: OpenclDevice, kernel: Any, program: Program) -> None:
        self._cl = import_pyopencl()
        self._device = device
        self._kernel = kernel
        self._threads = _three(program.threads)
        self._event: Any = None
        self._lock = threading.Lock()  # arguments are set on the kernel, then it is queued
        # Scalars have no type of their own in Python.
        import numpy

        longs = [numpy.int64] * len(program.variables)
        kernel.set_scalar_arg_dtypes([None] * len(program.parameters) + longs)

    def __call__(
        self,
        memory: Sequence[OpenclMemory],
        variables: Sequence[int],
        groups: tuple[int, ...],
    ) -> None:
        if 0 in groups:
            return  # OpenCL 1.2 refuses an empty grid
        sizes = [n * t for n, t in zip(_three(groups), self._threads, strict=True)]
        with self._lock:
            self._kernel.set_args(*[handle.buffer for handle in memory], *variables)
            self._event = self._cl.enqueue_nd_range_kernel(
                self._device.queue, self._kernel, sizes, self._threads
            )

    @property
    def seconds(self) -> float:
        """The time of the last run on the device."""
        if self._event is None or not self._device.has_profiling:
            raise NotSupported(
                f"{self._device.name}: no time was taken",
                rule="times are taken by a device with profiling, once a program has run",
                fix="open the device with profiling=True",
            )
        self._event.wait()
        return float(self._event.profile.end - self._event.profile.start) * 1e-9


def _three(sizes: Sequence[int]) -> tuple[int, ...]:
    return (*sizes, 1, 1, 1)[:AXES]

"""The CPU as a device: it keeps the `Device` protocol of `weft.runtime.device`.

Everything is done when a call returns, so there is no queue to wait for. The engine makes it with
a renderer, because runtime and render are siblings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.ir.program import Program
from weft.runtime.cpu import memory as cpu_memory
from weft.runtime.cpu.launch import CpuExecutable, Launch, RunList
from weft.runtime.cpu.memory import CpuMemory
from weft.runtime.cpu.pool import ThreadPool, pool_for
from weft.runtime.device import Abilities
from weft.runtime.host import host
from weft.runtime.llvm.compiler import compile_object, compiler_name
from weft.runtime.llvm.linker import load_object
from weft.target.target import Target

Renderer = Callable[[Program, Target], str]


class CpuDevice(Abilities):
    """This machine's CPU, for a target that it can run."""

    has_addresses = True

    def __init__(
        self, renderer: Renderer, target: Target, name: str = "CPU", pool: ThreadPool | None = None
    ) -> None:
        self.name = name
        self.target = target
        self.pool = pool_for(target) if pool is None else pool
        self._renderer = renderer
        self.host_memory = self
        self.lists = self
        self.facts = (f"{target.units} threads", host().cpu)

    @property
    def compiler(self) -> str:
        """What `compile` depends on besides the source and the target, for the key of a cache."""
        return compiler_name(self.target)

    def allocate(self, size: int) -> CpuMemory:
        return cpu_memory.allocate(size)

    def zeros(self, size: int) -> CpuMemory:
        """Memory of zeros, which costs nothing until it is touched."""
        return cpu_memory.allocate_zeros(size)

    def free(self, handle: CpuMemory) -> None:
        handle.free()

    def view(self, handle: CpuMemory, offset: int, size: int) -> CpuMemory:
        return cpu_memory.part(handle, offset, size)

    def wrap(self, buffer: Any) -> CpuMemory:
        """Memory that belongs to another object, such as a NumPy array, without a copy."""
        return cpu_memory.wrap(buffer)

    def share(self, handle: CpuMemory) -> Any:
        """The bytes as an object that other libraries read in place; it keeps them alive."""
        return cpu_memory.share(handle)

    def host_view(self, handle: CpuMemory, size: int) -> memoryview:
        """The first bytes of some memory, to be read and written in place."""
        return handle.view[:size]

    def copy_in(self, handle: CpuMemory, data: memoryview) -> None:
        handle.view[: data.nbytes] = data.cast("B")

    def copy_out(self, data: memoryview, handle: CpuMemory) -> None:
        data.cast("B")[:] = handle.view[: data.nbytes]

    def render(self, program: Program) -> str:
        return self._renderer(program, self.target)

    def compile(self, program: Program) -> bytes:
        return compile_object(program.source or self.render(program), self.target)

    def load(self, program: Program) -> CpuExecutable:
        binary = program.binary or self.compile(program)
        library = load_object(binary, (program.name,), self.target)
        return CpuExecutable(program, library, self.pool, self.target)

    def run_list(self, launches: Sequence[Launch]) -> RunList:
        """Several kernels as one native call."""
        return RunList(launches, self.pool)

    def synchronize(self) -> None:
        """Nothing is ever queued."""

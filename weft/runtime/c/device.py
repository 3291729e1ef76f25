"""`C`: a device whose kernels the C compiler of the system makes.

Memory is that of the process. Programs run in the thread that calls them, so `synchronize` has
nothing to wait for. The device CPU is faster and needs no compiler; this one shows readable code
and checks the C renderer.
"""

from __future__ import annotations

import ctypes
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from weft.ir.program import Program
from weft.runtime.c.compiler import compile_c, compiler_version, find_compiler, host_arch
from weft.runtime.device import Abilities
from weft.support.errors import ArgumentError, OutOfMemory
from weft.target.c import c_target, entry_name
from weft.target.target import Target

ALIGNMENT: Final = 64  # bytes, a cache line and the widest vector register


@dataclass(frozen=True)
class HostBytes:
    """Bytes at an address; `owner` keeps them where they are, and views have none."""

    address: int
    size: int
    owner: object = None


class CDevice(Abilities):
    """One CPU, one thread. `renderer` writes programs in C."""

    has_addresses = True

    def __init__(
        self,
        renderer: Callable[[Program, Target], str],
        name: str = "C",
        compiler: str | None = None,
    ) -> None:
        self.name = name
        self.command = find_compiler(compiler)
        self.target = c_target(host_arch())
        self._renderer = renderer

    def allocate(self, size: int) -> HostBytes:
        try:
            owner = (ctypes.c_char * (size + ALIGNMENT))()
        except (MemoryError, ValueError, OverflowError):
            raise OutOfMemory(f"{self.name}: {size} bytes cannot be allocated") from None
        address = -(-ctypes.addressof(owner) // ALIGNMENT) * ALIGNMENT
        return HostBytes(address, size, owner)

    def free(self, handle: HostBytes) -> None:
        """Let go of memory; its bytes end with the last handle."""

    def view(self, handle: HostBytes, offset: int, size: int) -> HostBytes:
        return HostBytes(handle.address + offset, size)

    def copy_in(self, handle: HostBytes, data: memoryview) -> None:
        self._bytes(handle, data.nbytes)[:] = data.cast("B")

    def copy_out(self, data: memoryview, handle: HostBytes) -> None:
        data.cast("B")[:] = self._bytes(handle, data.nbytes)

    def _bytes(self, handle: HostBytes, size: int) -> memoryview:
        if size > handle.size:
            raise ArgumentError(
                f"{self.name}: {size} bytes are more than the {handle.size} of the memory"
            )
        return memoryview((ctypes.c_char * size).from_address(handle.address)).cast("B")

    @property
    def compiler(self) -> str:
        """The compiler of the system and its version."""
        return compiler_version(self.command)

    def render(self, program: Program) -> str:
        return self._renderer(program, self.target)

    def compile(self, program: Program) -> bytes:
        return compile_c(program.source, self.target.arch, self.command)

    def load(self, program: Program) -> CExecutable:
        return CExecutable(program)

    def synchronize(self) -> None:
        return None


class CExecutable:
    """The function of a program, in a shared object that stays loaded with the process."""

    def __init__(self, program: Program) -> None:
        # The loader wants a file, and no longer once it has mapped it.
        with tempfile.NamedTemporaryFile(suffix=".so", delete=False) as file:
            file.write(program.binary)
        try:
            library = ctypes.CDLL(file.name)
        finally:
            os.unlink(file.name)
        self._function = library[entry_name(program.name)]
        self._function.restype = None
        self._arguments = ctypes.c_void_p * len(program.parameters)
        self._variables = ctypes.c_int64 * len(program.variables)

    def __call__(
        self,
        memory: Sequence[HostBytes],
        variables: Sequence[int],
        groups: tuple[int, ...],
    ) -> None:
        arguments = self._arguments(*[handle.address for handle in memory])
        begin, end = ctypes.c_int64(0), ctypes.c_int64(math.prod(groups))
        self._function(arguments, self._variables(*variables), begin, end)

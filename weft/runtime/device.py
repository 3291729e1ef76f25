"""What every device offers: memory, a compiler and programs that run.

A back end is one class that fills in these methods. Memory is an opaque handle; whoever asks for
it frees it. `load` turns a compiled program into something callable; calling it queues the program
on the device, and `synchronize` waits for all that was queued.
"""

from __future__ import annotations

from collections.abc import Sequence
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

"""`NULL`: memory and kernels are counted, nothing is stored and nothing runs.

It takes the target of another device, so the kernels, memory and code of a model can be
looked at without its hardware, and without the time to run it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir.program import Program
from weft.runtime.device import Abilities, Handle
from weft.support.errors import DeviceError
from weft.target.target import Target

Renderer = Callable[[Program, Target], str]


class NullDevice(Abilities):
    """Handles are sizes."""

    stores_nothing = True
    compiler = ""  # programs stay source

    def __init__(self, renderer: Renderer, target: Target, name: str = "NULL") -> None:
        self.name = name
        self.target = target
        self._renderer = renderer

    def allocate(self, size: int) -> int:
        return size

    def free(self, handle: Handle) -> None:
        return None

    def view(self, handle: Handle, offset: int, size: int) -> int:
        return size

    def copy_in(self, handle: Handle, data: memoryview) -> None:
        return None

    def copy_out(self, data: memoryview, handle: Handle) -> None:
        raise DeviceError(
            f"a tensor on {self.name} has no value",
            rule="NULL plans and compiles, but stores nothing",
            fix="move the inputs to a real device, for example x.to('CPU'), and compute there",
        )

    def render(self, program: Program) -> str:
        return self._renderer(program, self.target)

    def compile(self, program: Program) -> bytes:
        return program.source.encode()

    def load(self, program: Program) -> Callable[..., None]:
        return _run_nothing

    def synchronize(self) -> None:
        return None


def _run_nothing(
    memory: Sequence[Handle], variables: Sequence[int], groups: tuple[int, ...]
) -> None:
    return None

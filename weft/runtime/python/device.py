"""`PYTHON`: a device whose memory is Python's and whose kernels the interpreter runs.

It compiles nothing. The engine hands it whole tensor graphs, so it is the oracle of every other
device, and slow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.ir.dtypes import SCALARS, dtypes
from weft.ir.ops import ELEMENTWISE
from weft.ir.program import Program
from weft.ir.uop import UOp
from weft.reference.tensor import evaluate
from weft.runtime.device import Abilities, Executable
from weft.support.errors import NotSupported
from weft.target.target import Target

_DTYPES = frozenset(SCALARS.values()) - {dtypes.void}


class PythonDevice(Abilities):
    """Memory in bytearrays."""

    compiler = ""

    def __init__(self, name: str = "PYTHON") -> None:
        self.name = name
        self.target = Target("PYTHON", "INTERPRETER", "any", ELEMENTWISE, _DTYPES, _DTYPES)
        self.graphs = self

    def evaluate(self, roots: Sequence[UOp], arrays: Mapping[int, Any]) -> list[Any]:
        """The values of tensor graphs, by the oracle."""
        return list(evaluate(roots, arrays))

    def allocate(self, size: int) -> memoryview:
        return memoryview(bytearray(size))

    def free(self, handle: memoryview) -> None:
        handle.release()

    def view(self, handle: memoryview, offset: int, size: int) -> memoryview:
        return handle[offset : offset + size]

    def copy_in(self, handle: memoryview, data: memoryview) -> None:
        handle[:] = data.cast("B")

    def copy_out(self, data: memoryview, handle: memoryview) -> None:
        data.cast("B")[:] = handle

    def render(self, program: Program) -> str:
        raise NotSupported("PYTHON interprets graphs and renders no programs")

    def compile(self, program: Program) -> bytes:
        raise NotSupported("PYTHON interprets graphs and compiles no programs")

    def load(self, program: Program) -> Executable:
        raise NotSupported("PYTHON interprets graphs and loads no programs")

    def synchronize(self) -> None:
        return None

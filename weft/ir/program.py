"""A program: a kernel made ready for a target. Pure data, so it can be cached and exported.

Codegen fills in the instructions and the launch sizes, a renderer the source, a compiler the
binary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from weft.ir.build import Size
from weft.ir.dtypes import DType
from weft.ir.uop import UOp


@dataclass(frozen=True)
class Parameter:
    """One memory argument of a program, in the order of the slots."""

    slot: int
    dtype: DType
    is_written: bool
    is_read: bool


@dataclass(frozen=True)
class Estimate:
    """What a run costs: arithmetic operations and bytes of global memory touched."""

    operations: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


@dataclass(frozen=True)
class Program:
    """`groups` and `threads` are the launch sizes; a symbolic one is an index node."""

    name: str
    target: str
    instructions: UOp  # LINEAR
    parameters: tuple[Parameter, ...]
    variables: tuple[UOp, ...]  # VARIABLE nodes, passed in this order as int64 values
    groups: tuple[Size, ...]
    threads: tuple[int, ...]
    estimate: Estimate = Estimate()
    source: str = ""
    binary: bytes = b""

    def with_source(self, source: str) -> Program:
        return replace(self, source=source)

    def with_binary(self, binary: bytes) -> Program:
        return replace(self, binary=binary)

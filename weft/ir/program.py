"""A program: a kernel made ready for a target. Pure data, so it can be cached and exported.

Codegen fills in the instructions and the launch sizes, a renderer the source, a compiler the
binary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.ir.build import Size
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make

# Registers whose names start so hold what the next iteration of a loop puts into a tile.
AHEAD: Final = "ahead"


@dataclass(frozen=True)
class Parameter:
    """One memory argument of a program, in the order of the slots."""

    slot: int
    dtype: DType
    is_written: bool
    is_read: bool
    size: int = 0  # bytes, the most where it is symbolic; 0 where nobody knows


@dataclass(frozen=True)
class Estimate:
    """What a run costs: arithmetic operations and bytes of global memory touched.

    `rate` is the operations per second of the matrix unit that it uses, 0 where it uses none.
    """

    operations: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    rate: float = 0.0

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True)
class TensorMap:
    """An argument as copies of boxes see it: the contiguous axis first, strides in elements.

    A launch makes it from the address of the argument. What is copied has rows of 128 bytes that
    are swizzled.
    """

    position: int  # of the argument among the parameters
    itemsize: int
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    traversal: tuple[int, ...]  # every so many elements of an axis are copied


@dataclass(frozen=True)
class Program:
    """`groups` and `threads` are the launch sizes; a symbolic one is an index node.

    A program that `waits` may be started while those before it run: it lets the next one start at
    once, and touches no memory until they are done, but for the arguments in the slots `early`,
    which it reads at once unless its last argument tells it to wait first.
    """

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
    # Local memory that a launch asks for, and arguments behind the variables.
    dynamic_bytes: int = 0
    maps: tuple[TensorMap, ...] = ()
    waits: bool = False
    early: tuple[int, ...] = ()

    def with_source(self, source: str) -> Program:
        return replace(self, source=source)

    def with_binary(self, binary: bytes) -> Program:
        return replace(self, binary=binary)


# Memory that a launch asks for begins at a multiple of this, wherever that of the group does.
DYNAMIC_ALIGNMENT: Final = 1024


def dynamic_offsets(memories: Sequence[UOp]) -> dict[UOp, int]:
    """Where each memory that a launch asks for begins, the largest first."""
    found: dict[UOp, int] = {}
    end = 0
    for node in sorted(memories, key=lambda each: -each.arg[2] * each.dtype.itemsize):
        found[node] = end
        size = node.arg[2] * node.dtype.itemsize
        end += -(-size // DYNAMIC_ALIGNMENT) * DYNAMIC_ALIGNMENT
    return found


def dynamic_bytes(memories: Sequence[UOp]) -> int:
    """How much a launch asks for: all memories, and room to begin at a multiple."""
    ends = [
        offset + node.arg[2] * node.dtype.itemsize
        for node, offset in dynamic_offsets(memories).items()
    ]
    return max(ends) + DYNAMIC_ALIGNMENT if ends else 0


def written_program(
    name: str,
    target: str,
    source: str,
    outputs: Sequence[DType],
    inputs: Sequence[DType],
    groups: Sequence[int] = (1,),
    threads: Sequence[int] = (1,),
) -> Program:
    """A program whose source a person wrote: it takes the memory of the outputs, then the inputs.

    How its function takes them is the business of the target; the source of any generated kernel
    shows it (`DEBUG=4`).
    """
    kinds = [*((dtype, True) for dtype in outputs), *((dtype, False) for dtype in inputs)]
    return Program(
        name=name,
        target=target,
        instructions=make(Op.LINEAR, dtypes.void),
        parameters=tuple(
            Parameter(slot, dtype, is_output, not is_output)
            for slot, (dtype, is_output) in enumerate(kinds)
        ),
        variables=(),
        groups=tuple(groups),
        threads=tuple(threads),
        source=source,
    )


def as_node(program: Program, memory: Sequence[UOp]) -> UOp:
    """The PROGRAM of a finished program; `memory` are the PARAMs of its parameters, in order."""
    pairs = zip(program.parameters, memory, strict=True)
    written = tuple(sorted(address.arg[0] for parameter, address in pairs if parameter.is_written))
    arg = (
        *(program.name, program.target, program.source, program.binary.hex()),
        *(written, program.groups, program.threads),
    )
    return make(Op.PROGRAM, dtypes.void, (*memory, *program.variables), arg)


def from_node(node: UOp) -> Program:
    """The program of a PROGRAM node."""
    name, target, source, binary, written, groups, threads = node.arg
    memory = [part for part in node.src if part.op == Op.PARAM]
    return Program(
        name=name,
        target=target,
        instructions=make(Op.LINEAR, dtypes.void),
        parameters=tuple(
            Parameter(slot, part.dtype, part.arg[0] in written, part.arg[0] not in written)
            for slot, part in enumerate(memory)
        ),
        variables=tuple(part for part in node.src if part.op == Op.VARIABLE),
        groups=groups,
        threads=threads,
        source=source,
        binary=bytes.fromhex(binary),
    )

"""A target: everything a code generator may know about a machine, as one frozen value of parts.

A target is named `device:renderer:arch`, for example `CPU:LLVM:x86_64,avx512f`. Code for a target
can be made without that device being present, so nothing here asks the machine it runs on; `host`
does. The parts are what computes (`compute.py`), the memories and the grid (`memory.py`), matrix
units (`matrix.py`), and what things cost. Heuristics read them and hold no numbers of a machine.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from weft.ir.dtypes import DType
from weft.support.errors import InternalError
from weft.target.compute import Compute, Simd, Simt
from weft.target.matrix import MatrixUnit
from weft.target.memory import GLOBAL, LEVELS, LOCAL, MACHINE, UNIT, AsyncCopy, Grid, Memory


@dataclass(frozen=True)
class Peaks:
    """What the whole machine does at most in a second; 0 is not known.

    A multiplication with an addition counts as two operations of float32. The best kernels reach
    the share `reached` of what cores and matrix units do (H200: 790 of 989 Tflop/s).
    """

    operations: float = 0.0
    bytes_moved: float = 0.0
    source: str = ""
    reached: float = 0.8


@dataclass(frozen=True)
class Costs:
    """Nanoseconds per element on one core or one multiprocessor; only their order matters.

    What bytes cost stands with the memories. `python -m bench machine` measures those of this
    machine's CPU. `launch` is a kernel that does nothing. Work of less than `wake` is not worth
    another thread. A reduction of fewer elements than `least_split`, or a scan of fewer than
    `least_scan`, takes less time than the second kernel that would share it out.
    """

    op: float = 0.012
    transcendental: float = 0.10
    multiply_add: float = 0.006
    launch: float = 1500.0
    wake: float = 20_000.0
    least_split: int = 1 << 18
    least_scan: int = 1 << 14
    source: str = "a server of 2023"


# Caches and memory of a server, as nanoseconds per byte for one core.
USUAL_MEMORIES: Final = (
    Memory("level1", 32 << 10, UNIT, cost=0.008, ways=8),
    Memory("level2", 1 << 20, UNIT, cost=0.02),
    Memory("level3", 24 << 20, MACHINE, cost=0.04),
    Memory(LOCAL, 1 << 18, UNIT, cost=0.02),
    Memory(GLOBAL, 0, MACHINE, cost=0.10),
)


@dataclass(frozen=True)
class Target:
    """One machine. `native_dtypes` are computed in; `stored_dtypes` can at least be kept in
    memory.

    `native_ops` are the ops the renderer can write; codegen rewrites all others into these.
    `memories` are in order, from registers to global memory.
    """

    device: str
    renderer: str
    arch: str
    native_ops: frozenset[int]
    native_dtypes: frozenset[DType]
    stored_dtypes: frozenset[DType]
    compute: Compute = field(default_factory=Simd)
    memories: tuple[Memory, ...] = USUAL_MEMORIES
    grid: Grid = field(default_factory=Grid)
    matrix_units: tuple[MatrixUnit, ...] = ()
    copies: tuple[AsyncCopy, ...] = ()
    has_slow_division: bool = False  # its compiler leaves division by a constant as it is
    widened_dtypes: frozenset[DType] = frozenset()  # those that it turns into float32, no more
    rounded_dtypes: frozenset[DType] = frozenset()  # those that it rounds a float32 to
    # Ops that the renderer writes for float32 alone, with approximations that the machine has.
    float32_ops: frozenset[int] = frozenset()
    costs: Costs = field(default_factory=Costs)
    peaks: Peaks = field(default_factory=Peaks)

    def __hash__(self) -> int:
        return hash(self.name)  # schedules are looked up by target: the parts are many

    @cached_property
    def name(self) -> str:
        return f"{self.device}:{self.renderer}:{self.arch}"

    @cached_property
    def written_ops(self) -> frozenset[int]:
        """The ops that the renderer writes, for some dtypes at least."""
        return self.native_ops | self.float32_ops

    @property
    def has_groups(self) -> bool:
        """Whether it runs a grid of groups of threads that share local memory."""
        return isinstance(self.compute, Simt)

    @property
    def units(self) -> int:
        """Cores or multiprocessors: costs are those of one."""
        return self.compute.units

    @cached_property
    def caches(self) -> tuple[Memory, ...]:
        """The caches, the nearest first."""
        return tuple(memory for memory in self.memories if memory.name in LEVELS)

    def memory(self, name: str) -> Memory:
        """The memory of this name, as `local` or `global`."""
        for memory in self.memories:
            if memory.name == name:
                return memory
        raise InternalError(f"the target {self.name} has no memory {name!r}")

    @cached_property
    def access_bits(self) -> int:
        """The widest load or store of global memory by a thread; 0: one element at a time."""
        return self.memory(GLOBAL).access_bits

    @cached_property
    def vectors_in_registers(self) -> int:
        """How many of the widest vectors a thread keeps in registers."""
        return self.compute.vectors_in_registers(self.access_bits)

    @cached_property
    def local_bytes(self) -> int:
        """How much of local memory a kernel may use."""
        return self.memory(LOCAL).size

    @cached_property
    def key(self) -> str:
        """A short text that differs between targets that differ in anything, for caches."""
        return hashlib.blake2b(_text(self).encode(), digest_size=16).hexdigest()


# Values whose text is their repr: most of a target, so they cost no call.
_PLAIN: Final = frozenset((bool, int, float, str, type(None)))


def _text(part: object) -> str:
    """All fields of a part, in an order that every process has."""
    if isinstance(part, DType):
        return part.name
    if fields := getattr(type(part), "__dataclass_fields__", None):
        texts: list[str] = []
        for name in fields:
            value = getattr(part, name)
            texts.append(f"{name}={repr(value) if type(value) in _PLAIN else _text(value)}")
        return f"{type(part).__name__}({','.join(texts)})"
    if isinstance(part, frozenset):
        # Of ops or of dtypes, nearly all, whose texts cost no call either.
        texts = [
            each.name if type(each) is DType else repr(each) if type(each) is int else _text(each)
            for each in part
        ]
        return f"{{{','.join(sorted(texts))}}}"
    if isinstance(part, tuple):
        return f"({','.join(map(_text, part))})"
    return repr(part)

"""A target: everything a code generator may know about a machine, as one frozen value.

A target is named `device:renderer:arch`, for example `CPU:LLVM:x86_64,avx512f`. Code for a target
can be made without that device being present, so nothing here asks the machine it runs on; `host`
does. Costs are in nanoseconds and only their order matters.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.ir.dtypes import DType


@dataclass(frozen=True)
class Peaks:
    """What the whole machine does at most in a second; 0 is not known.

    A multiplication with an addition counts as two operations of float32.
    """

    operations: float = 0.0
    bytes_moved: float = 0.0


@dataclass(frozen=True)
class Costs:
    """Nanoseconds per element or byte on one core or one multiprocessor lane.

    `python -m bench machine` measures those of this machine's CPU.
    """

    op: float = 0.012
    transcendental: float = 0.10
    multiply_add: float = 0.006
    level1: float = 0.008
    level2: float = 0.02
    level3: float = 0.04
    memory: float = 0.10
    launch: float = 1500.0


@dataclass(frozen=True)
class Target:
    """One machine. `native_dtypes` are computed in; `stored_dtypes` can at least be kept in
    memory.

    `native_ops` are the ops the renderer can write; codegen rewrites all others into these.
    """

    device: str
    renderer: str
    arch: str
    native_ops: frozenset[int]
    native_dtypes: frozenset[DType]
    stored_dtypes: frozenset[DType]
    vector_bits: int = 0  # 0: no explicit vectors
    vector_registers: int = 16
    has_groups: bool = False  # a grid of groups of threads that share local memory
    group_limit: int = 1  # threads in a group
    local_bytes: int = 1 << 18
    threads: int = 1
    cache_bytes: tuple[int, ...] = (32 << 10, 1 << 20, 24 << 20)
    has_barrier: bool = False
    # How many groups each axis of a grid can have; () is any number on each.
    grid_limits: tuple[int, ...] = ()
    # Vectors are for memory alone: arithmetic is that of one thread.
    has_scalar_arithmetic: bool = False
    # Memory arguments start at a multiple of so many bytes; 1 is that of an element.
    argument_alignment: int = 1
    has_slow_division: bool = False  # its compiler leaves division by a constant as it is
    widened_dtypes: frozenset[DType] = frozenset()  # those that it turns into float32, no more
    costs: Costs = field(default_factory=Costs)
    peaks: Peaks = field(default_factory=Peaks)

    @property
    def name(self) -> str:
        return f"{self.device}:{self.renderer}:{self.arch}"

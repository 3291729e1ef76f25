"""Targets of NVIDIA GPUs, for which LLVM writes PTX: `CUDA:PTX:sm_90a` and its kin.

The driver compiles PTX for the GPU that is there, so code for a target can be made, and read,
without one. `GPUS` has one row for each architecture that is known by its numbers, which are those
of its largest GPU; another architecture takes the row of the newest one before it. LLVM computes
the remainder of floats from their rounded quotient, so the ops that need the remainder are none of
the target's: codegen writes them exactly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.support.errors import UnknownName
from weft.target.compute import Simt
from weft.target.cpu import LLVM_OPS, NATIVE_DTYPES, STORED_DTYPES
from weft.target.cuda_copies import BULK_COPY, CP_ASYNC, TENSOR_COPY
from weft.target.cuda_matrix import mma_units, tcgen05_units, wgmma_units
from weft.target.matrix import MatrixUnit
from weft.target.memory import (
    GLOBAL,
    GROUP,
    LOCAL,
    MACHINE,
    REGISTER,
    THREAD,
    UNIT,
    AsyncCopy,
    Grid,
    Memory,
)
from weft.target.target import Costs, Peaks, Target

# Of the CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability": the
# same for all that are listed here.
REGISTERS_PER_THREAD: Final = 255
REGISTERS_PER_UNIT: Final = 1 << 16
THREADS_PER_UNIT: Final = 2048
WARP: Final = 32
# The first capability whose kernels can start while those before them run.
EARLY_START: Final = 90
GRID: Final = Grid(
    group_threads=1024,
    group_limits=((1 << 31) - 1, 65535, 65535),
    thread_limits=(1024, 1024, 64),
)
# A thread loads and stores at most 16 bytes at once.
ACCESS_BITS: Final = 128
# What a kernel may declare; more has to be asked for when it is launched.
STATIC_SHARED_BYTES: Final = 48 << 10
# `cuMemAlloc` starts memory at multiples of 256 bytes and so do its parts; memory of other
# libraries is used as it is from this on, so that a thread can move 16 bytes at once.
ARGUMENT_ALIGNMENT: Final = 16
# Bytes that a multiprocessor moves to and from shared memory and the first cache in a cycle.
SHARED_BYTES_PER_CYCLE: Final = 128


@dataclass(frozen=True)
class Gpu:
    """The numbers of one architecture. Rates are those of the whole GPU, per second."""

    units: int
    clock: float  # Hz, the boost clock of the data sheet
    near_bytes: int  # of a multiprocessor: its first cache and its shared memory together
    shared_bytes: int  # the most of those that is shared memory
    group_shared_bytes: int  # that one group can ask for
    cache_bytes: int  # of the second cache
    memory_bytes: int
    operations: float  # of float32, without matrix units
    bytes_moved: float
    cache_bytes_moved: float
    matrix_units: tuple[MatrixUnit, ...]
    own_units: tuple[MatrixUnit, ...]  # of this capability alone: its arch has an `a`
    copies: tuple[AsyncCopy, ...]
    source: str
    tensor_bytes: int = 0  # memory of the results of its own matrix units


# Capability to numbers, the oldest first.
GPUS: Final[dict[int, Gpu]] = {
    80: Gpu(
        units=108,
        clock=1.41e9,
        near_bytes=192 << 10,
        shared_bytes=164 << 10,
        group_shared_bytes=163 << 10,
        cache_bytes=40 << 20,
        memory_bytes=80 << 30,
        operations=19.5e12,
        bytes_moved=2.039e12,
        cache_bytes_moved=5120 * 1.41e9,  # the whitepaper: 5,120 bytes in a cycle
        matrix_units=mma_units(half=312e12, tf32=156e12, int8=624e12, float64=19.5e12),
        own_units=(),
        copies=(CP_ASYNC,),
        source="NVIDIA A100 80GB SXM data sheet and A100 whitepaper",
    ),
    90: Gpu(
        units=132,
        clock=1.98e9,
        near_bytes=256 << 10,
        shared_bytes=228 << 10,
        group_shared_bytes=227 << 10,
        cache_bytes=50 << 20,
        memory_bytes=141 << 30,
        operations=67e12,
        bytes_moved=4.8e12,
        cache_bytes_moved=5.5e12,  # published microbenchmarks of H100: 5.5e12 to 7e12
        # Measured with bfloat16, mma.sync reaches 0.6 of what wgmma does.
        matrix_units=mma_units(half=593e12, tf32=296e12, int8=1187e12, float64=67e12, fp8=1187e12),
        own_units=wgmma_units(half=989e12, tf32=494e12, fp8=1979e12, int8=1979e12),
        copies=(TENSOR_COPY, BULK_COPY, CP_ASYNC),
        source="NVIDIA H200 SXM data sheet; registers and shared memory as on H100",
    ),
    100: Gpu(
        units=148,
        clock=1.96e9,
        near_bytes=256 << 10,
        shared_bytes=228 << 10,
        group_shared_bytes=227 << 10,
        cache_bytes=126 << 20,
        memory_bytes=180 << 30,
        operations=75e12,
        bytes_moved=7.7e12,
        cache_bytes_moved=5.5e12 * 148 / 132,  # as on H200, for each multiprocessor
        matrix_units=mma_units(half=593e12, tf32=296e12, int8=1187e12, float64=37e12, fp8=1187e12),
        own_units=tcgen05_units(half=2.25e15, tf32=1.125e15, fp8=4.5e15, int8=4.5e15),
        tensor_bytes=256 << 10,
        copies=(TENSOR_COPY, BULK_COPY, CP_ASYNC),
        source="NVIDIA HGX B200 data sheet, one of eight; mma.sync as on H200",
    ),
}
# What the renderer makes of `ex2.approx`, `rcp.approx`, `tanh.approx` and multiply-adds.
FLOAT32_OPS: Final = frozenset((Op.EXP, Op.EXP2, Op.LOG, Op.LOG2, Op.TANH, Op.ERF))
# A launch behind another one, with what the multiprocessors need to get going (H200).
LAUNCH: Final = 2000.0
# One group takes longer for more elements than all of them for parts, and one for those (H200:
# 9 us for 128,000 elements of 16 bits).
LEAST_SPLIT: Final = 1 << 16


def cuda_target(arch: str = "sm_90a") -> Target:
    """The target of a GPU of this architecture.

    >>> cuda_target("sm_80").name
    'CUDA:PTX:sm_80'
    """
    found = re.fullmatch(r"sm_(\d{2,3})[af]?", arch)
    if found is None:
        raise UnknownName(
            f"target: unknown CUDA architecture {arch!r}",
            rule="an architecture is sm_ and its compute capability, as in sm_90a or sm_80",
        )
    row = _row_of(int(found[1]))
    gpu, has_own_units = GPUS[row], arch == f"sm_{row}a"
    return Target(
        device="CUDA",
        renderer="PTX",
        arch=arch,
        native_ops=LLVM_OPS - {Op.TRUNCMOD, Op.FLOORMOD, Op.FLOORDIV},
        native_dtypes=NATIVE_DTYPES,
        stored_dtypes=STORED_DTYPES,
        widened_dtypes=frozenset((dtypes.float16, dtypes.bfloat16)),
        rounded_dtypes=_rounded_dtypes(int(found[1])),
        float32_ops=FLOAT32_OPS,
        compute=Simt(
            units=gpu.units,
            warp=WARP,
            registers_per_thread=REGISTERS_PER_THREAD,
            registers_per_unit=REGISTERS_PER_UNIT,
            threads_per_unit=THREADS_PER_UNIT,
            has_shuffles=True,
            starts_early=int(found[1]) >= EARLY_START,
        ),
        memories=_memories(gpu),
        grid=GRID,
        matrix_units=(*(gpu.own_units if has_own_units else ()), *gpu.matrix_units),
        copies=gpu.copies,
        peaks=Peaks(gpu.operations, gpu.bytes_moved, gpu.source),
        costs=_costs(gpu),
    )


def _rounded_dtypes(capability: int) -> frozenset[DType]:
    """What `cvt.rn` makes of two float32s at once, from sm_80 on."""
    return frozenset((dtypes.float16, dtypes.bfloat16) if capability >= 80 else ())


def _row_of(capability: int) -> int:
    """The newest row that is not newer; the oldest for GPUs before that."""
    return max((row for row in GPUS if row <= capability), default=min(GPUS))


def _memories(gpu: Gpu) -> tuple[Memory, ...]:
    """From registers to global memory; costs are nanoseconds per byte of one multiprocessor.

    Of the `shared` memory of a multiprocessor a group has what is `local` by declaring it, and
    what is `dynamic` by asking for it when it is launched.
    """
    near = 1e9 / (SHARED_BYTES_PER_CYCLE * gpu.clock)
    registers = 4 * REGISTERS_PER_THREAD
    return (
        Memory(REGISTER, registers, THREAD, ACCESS_BITS),
        Memory("level1", gpu.near_bytes, UNIT, ACCESS_BITS, near),
        Memory("shared", gpu.shared_bytes, UNIT, ACCESS_BITS, near),
        Memory(LOCAL, STATIC_SHARED_BYTES, GROUP, ACCESS_BITS, near),
        Memory("dynamic", gpu.group_shared_bytes, GROUP, ACCESS_BITS, near),
        *([Memory("tensor", gpu.tensor_bytes, UNIT)] if gpu.tensor_bytes else []),
        Memory(
            *("level2", gpu.cache_bytes, MACHINE, ACCESS_BITS),
            cost=1e9 * gpu.units / gpu.cache_bytes_moved,
        ),
        Memory(
            *(GLOBAL, gpu.memory_bytes, MACHINE, ACCESS_BITS),
            cost=1e9 * gpu.units / gpu.bytes_moved,
            alignment=ARGUMENT_ALIGNMENT,
            source=gpu.source,
        ),
    )


def _costs(gpu: Gpu) -> Costs:
    """Nanoseconds of a multiprocessor, from the peaks: a multiply-add is two operations."""
    multiply_add = 2e9 * gpu.units / gpu.operations
    return Costs(
        op=multiply_add,
        transcendental=8 * multiply_add,  # some fifteen multiply-adds, many of them in pairs
        multiply_add=multiply_add,
        launch=LAUNCH,
        least_split=LEAST_SPLIT,
        source=gpu.source,
    )


def parse_cuda(text: str) -> Target:
    """The target with this name, or of this arch alone."""
    prefix, _, arch = text.rpartition(":")
    if prefix not in ("", "CUDA:PTX"):
        raise UnknownName(
            f"target: {text!r} is not one of CUDA",
            rule="a CUDA target is CUDA:PTX:arch or arch, where arch is sm_90a for example",
        )
    return cuda_target(arch)

"""Targets of NVIDIA GPUs, for which LLVM writes PTX: `CUDA:PTX:sm_90a` and its kin.

The driver compiles PTX for the GPU that is there, so code for a target can be made, and read,
without one. The sizes are those that every GPU has: static shared memory, threads of a group. LLVM
computes the remainder of floats from their rounded quotient, so the ops that need the remainder
are none of the target's: codegen writes them exactly.
"""

from __future__ import annotations

import re

from weft.ir.ops import Op
from weft.support.errors import UnknownName
from weft.target.cpu import LLVM_OPS, NATIVE_DTYPES, STORED_DTYPES
from weft.target.target import Costs, Peaks, Target

# What a kernel may declare; more has to be asked for when it is launched.
SHARED_BYTES = 48 << 10
THREADS_IN_GROUP = 1024
# Loads and stores move at most 16 bytes per thread at once.
VECTOR_BITS = 128
REGISTERS = 255
# How many groups a grid has at most along x, y and z.
GRID_LIMITS = ((1 << 31) - 1, 65535, 65535)
# Memory of a GPU starts at a multiple of 256 bytes and so do its parts; memory of other libraries
# is used as it is from this on, so that a thread can move 16 bytes at once.
ARGUMENT_ALIGNMENT = 16
# Of the data sheets: float32 without matrix units, and memory.
_PEAKS = {"sm_80": Peaks(19.5e12, 2.0e12), "sm_90a": Peaks(67e12, 4.8e12)}


def cuda_target(arch: str = "sm_90a") -> Target:
    """The target of a GPU of this architecture.

    >>> cuda_target("sm_80").name
    'CUDA:PTX:sm_80'
    """
    if not re.fullmatch(r"sm_\d{2,3}[af]?", arch):
        raise UnknownName(
            f"target: unknown CUDA architecture {arch!r}",
            law="an architecture is sm_ and its compute capability, as in sm_90a or sm_80",
        )
    return Target(
        device="CUDA",
        renderer="PTX",
        arch=arch,
        native_ops=LLVM_OPS - {Op.TRUNCMOD, Op.FLOORMOD, Op.FLOORDIV},
        native_dtypes=NATIVE_DTYPES,
        stored_dtypes=STORED_DTYPES,
        vector_bits=VECTOR_BITS,
        vector_registers=REGISTERS,
        has_groups=True,
        group_limit=THREADS_IN_GROUP,
        local_bytes=SHARED_BYTES,
        threads=1,
        cache_bytes=(128 << 10, 40 << 20),
        has_barrier=True,
        grid_limits=GRID_LIMITS,
        has_scalar_arithmetic=True,
        argument_alignment=ARGUMENT_ALIGNMENT,
        peaks=_PEAKS.get(arch, Peaks()),
        costs=Costs(op=0.0005, transcendental=0.002, multiply_add=0.0003, memory=0.0005),
    )


def parse_cuda(text: str) -> Target:
    """The target with this name, or of this arch alone."""
    prefix, _, arch = text.rpartition(":")
    if prefix not in ("", "CUDA:PTX"):
        raise UnknownName(
            f"target: {text!r} is not one of CUDA",
            law="a CUDA target is CUDA:PTX:arch or arch, where arch is sm_90a for example",
        )
    return cuda_target(arch)

"""Targets of OpenCL platforms.

The runtime asks a device for its limits and makes its target with `opencl_target`; without a
device the defaults are those of any full profile of OpenCL 1.2. The arch is a name and features:
`fp64` where the device has float64, `exact32` where it rounds `/` and `sqrt` of float32 correctly.
"""

from __future__ import annotations

import re
from typing import Final

from weft.ir.dtypes import dtypes
from weft.target.c import EXACT_OPS, INTEGERS, STORED
from weft.target.compute import Simt
from weft.target.memory import (
    GLOBAL,
    GROUP,
    LEVELS,
    LOCAL,
    MACHINE,
    REGISTER,
    THREAD,
    UNIT,
    Grid,
    Memory,
)
from weft.target.target import Costs, Target

# Registers of 32 bits that every thread has at least: OpenCL does not tell.
REGISTERS: Final = 64
# Nanoseconds per byte, for one compute unit of a CPU.
_BYTES: Final = (0.008, 0.02, 0.04)
_MEMORY_BYTES: Final = 0.10


def opencl_target(
    name: str = "any",
    *,
    has_float64: bool = True,
    rounds_float32: bool = True,
    group_limit: int = 256,
    local_bytes: int = 32 << 10,
    vector_bits: int = 128,
    compute_units: int = 1,
    cache_bytes: tuple[int, ...] = (32 << 10, 1 << 20),
    device: str = "OPENCL",
) -> Target:
    """The target of a device of these limits; there is no float16, and no transcendental op.

    >>> opencl_target("pocl").name
    'OPENCL:CL:pocl,fp64,exact32'
    """
    plain = re.sub(r"[^\w.]+", "-", name, flags=re.ASCII).strip("-").lower()
    features = [("fp64", has_float64), ("exact32", rounds_float32)]
    floats = {dtypes.float32, dtypes.float64} if has_float64 else {dtypes.float32}
    return Target(
        device=device,
        renderer="CL",
        arch=",".join([plain, *[feature for feature, is_there in features if is_there]]),
        native_ops=EXACT_OPS,
        native_dtypes=INTEGERS | {dtypes.bool} | floats,
        stored_dtypes=STORED,
        compute=Simt(
            units=compute_units,
            warp=1,  # OpenCL does not tell before a kernel is there
            registers_per_thread=REGISTERS,
            has_vectors=True,
        ),
        memories=(
            Memory(REGISTER, 4 * REGISTERS, THREAD, vector_bits),
            *(
                Memory(level, size, MACHINE if number else UNIT, vector_bits, cost)
                for number, (level, size, cost) in enumerate(
                    zip(LEVELS, cache_bytes, _BYTES, strict=False)
                )
            ),
            Memory(LOCAL, local_bytes, GROUP, vector_bits, _BYTES[1]),
            Memory(GLOBAL, 0, MACHINE, vector_bits, _MEMORY_BYTES),
        ),
        grid=Grid(group_threads=group_limit),
        costs=Costs(launch=8000.0, source="PoCL on a server of 2023"),
    )


def rounds_float32(target: Target) -> bool:
    """Whether `/` and `sqrt` of float32 are correctly rounded."""
    return "exact32" in target.arch.split(",")

"""Targets of OpenCL platforms.

The runtime asks a device for its limits and makes its target with `opencl_target`; without a
device the defaults are those of any full profile of OpenCL 1.2. The arch is a name and features:
`fp64` where the device has float64, `exact32` where it rounds `/` and `sqrt` of float32 correctly.
"""

from __future__ import annotations

import re

from weft.ir.dtypes import dtypes
from weft.target.c import EXACT_OPS, INTEGERS, STORED
from weft.target.target import Costs, Target


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
        vector_bits=vector_bits,
        has_groups=True,
        group_limit=group_limit,
        local_bytes=local_bytes,
        threads=compute_units,
        cache_bytes=cache_bytes,
        has_barrier=True,
        costs=Costs(launch=8000.0),
    )


def rounds_float32(target: Target) -> bool:
    """Whether `/` and `sqrt` of float32 are correctly rounded."""
    return "exact32" in target.arch.split(",")

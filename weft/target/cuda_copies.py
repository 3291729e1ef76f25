"""The asynchronous copies of NVIDIA GPUs, as the PTX ISA (8.6, "Data movement") describes them."""

from __future__ import annotations

from typing import Final

from weft.target.memory import GLOBAL, LOCAL, AsyncCopy

# Each thread copies some bytes; groups of copies are waited for in order. From sm_80 on.
CP_ASYNC: Final = AsyncCopy(
    name="cp.async",
    source=GLOBAL,
    destination=LOCAL,
    waits="group",
    widths=(4, 8, 16),
)
# One thread copies any multiple of 16 bytes; a barrier in shared memory counts them. From sm_90.
BULK_COPY: Final = AsyncCopy(
    name="cp.async.bulk",
    source=GLOBAL,
    destination=LOCAL,
    waits="mbarrier",
    widths=(16,),
)
# One thread copies a box of a tensor of up to five axes (TMA): outside of it are zeros, and rows
# of shared memory are swizzled on the way. Strides are multiples of 16 bytes. From sm_90.
TENSOR_COPY: Final = AsyncCopy(
    name="cp.async.bulk.tensor",
    source=GLOBAL,
    destination=LOCAL,
    waits="mbarrier",
    box_limits=(256, 256, 256, 256, 256),
    swizzles=(32, 64, 128),
)

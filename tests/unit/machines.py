"""Made-up machines for tests: one value of parts from a few words."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from weft.ir.dtypes import INDEX, SCALARS, VOID
from weft.ir.ops import ELEMENTWISE
from weft.target.compute import Simd, Simt
from weft.target.memory import GLOBAL, LEVELS, LOCAL, Grid
from weft.target.target import Target

ALL_DTYPES = frozenset(d for d in SCALARS.values() if d.kind not in (VOID, INDEX))
ANY = Target("TEST", "TEXT", "any", frozenset(ELEMENTWISE), ALL_DTYPES, ALL_DTYPES)


def machine(
    base: Target = ANY,
    *,
    units: int | None = None,
    vector_bits: int | None = None,
    vector_registers: int | None = None,
    cache_bytes: Sequence[int] = (),
    local_bytes: int = 0,
    group_threads: int = 0,
    **details: Any,
) -> Target:
    """A machine that can do everything, but for what is said; one with groups is a GPU."""
    compute = base.compute
    if group_threads:
        compute = Simt(units=base.units, registers_per_thread=64)
        details["grid"] = Grid(group_threads=group_threads)
    if units is not None:
        compute = replace(compute, units=units)
    if isinstance(compute, Simd):
        bits = compute.vector_bits if vector_bits is None else vector_bits
        registers = compute.vector_registers if vector_registers is None else vector_registers
        compute = replace(compute, vector_bits=bits, vector_registers=registers)
    sizes = dict(zip(LEVELS, cache_bytes, strict=False))
    if local_bytes:
        sizes[LOCAL] = local_bytes
    memories = []
    for memory in base.memories:
        if memory.name == GLOBAL and vector_bits is not None:
            memory = replace(memory, access_bits=vector_bits)
        memories.append(replace(memory, size=sizes.get(memory.name, memory.size)))
    return replace(base, compute=compute, memories=tuple(memories), **details)

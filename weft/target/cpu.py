"""Targets of CPUs, by architecture and the features that change how code is made for them.

The name of a target is `CPU:LLVM:` and its arch: `x86_64` (SSE2), `x86_64,avx2`,
`x86_64,avx512f`, `x86_64,avx512vnni` or `aarch64`. A feature stands for the whole level of
machines that have it: `avx2` for x86-64-v3 (with FMA), `avx512f` for x86-64-v4, `avx512vnni` for
that with dot products of bytes. Nothing here asks the machine it runs on;
`weft.runtime.host` does and calls `cpu_target`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from weft.ir.dtypes import FLOAT, INDEX, SCALARS, VOID, DType, dtypes
from weft.ir.ops import Op
from weft.support.errors import UnknownName
from weft.support.message import nearest
from weft.target.compute import Simd
from weft.target.memory import GLOBAL, GROUP, LOCAL, MACHINE, REGISTER, THREAD, UNIT, Memory
from weft.target.memory import LEVELS as CACHE_LEVELS
from weft.target.target import Costs, Peaks, Target

# The elementwise ops that LLVM IR has, or that take a few of its instructions, for every native
# dtype on which they are defined. Renderers also write VECTOR, LANES, memory and control.
LLVM_OPS: Final = frozenset(
    (
        *(Op.ADD, Op.MUL, Op.NEG, Op.MAX, Op.MIN),
        *(Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCDIV, Op.TRUNCMOD),
        *(Op.AND, Op.OR, Op.XOR, Op.NOT, Op.SHL, Op.SHR),
        *(Op.LESS, Op.LESS_EQUAL, Op.EQUAL, Op.WHERE),
        *(Op.CAST, Op.BITCAST),
        *(Op.DIV, Op.SQRT, Op.FLOOR, Op.TRUNC, Op.ROUND),
    )
)
STORED_DTYPES: Final = frozenset(
    dtype for dtype in SCALARS.values() if dtype.kind not in (VOID, INDEX)
)


def _is_native(dtype: DType) -> bool:
    return dtype.kind != FLOAT or dtype.bits >= 32


# Smaller floats are kept in memory and computed in float32.
NATIVE_DTYPES: Final = frozenset(filter(_is_native, STORED_DTYPES))

DEFAULT_CACHES: Final = (32 << 10, 1 << 20, 24 << 20)
# Local memory of a group is on the stack of the thread that runs it; threads have megabytes.
MOST_LOCAL_BYTES: Final = 1 << 20


class VectorFeature(NamedTuple):
    """What a feature brings: the width of vectors, how many registers hold them, whether an
    instruction turns float16 into float32, and whether one adds products of bytes."""

    vector_bits: int
    vector_registers: int
    widens_halves: bool = False
    multiplies_bytes: bool = False


class Measured(NamedTuple):
    """What was measured on a machine: costs of one core, peaks of all threads.

    `bytes_moved` are nanoseconds per byte of the three caches and of memory.
    """

    costs: Costs
    peaks: Peaks
    bytes_moved: tuple[float, ...]


# Nanoseconds per byte of the caches and of memory, for a core of a server of 2023.
USUAL_BYTES: Final = (0.008, 0.02, 0.04, 0.10)
# The ways of the first cache: x86 and ARM have had 4 to 12, and 8 since 2008 mostly.
FIRST_CACHE_WAYS: Final = 8


# The features of each architecture, the best first; "" is what every machine of it has.
LEVELS: Final[dict[str, dict[str, VectorFeature]]] = {
    "x86_64": {
        "avx512vnni": VectorFeature(512, 32, widens_halves=True, multiplies_bytes=True),
        "avx512f": VectorFeature(512, 32, widens_halves=True),
        "avx2": VectorFeature(256, 16, widens_halves=True),
        "": VectorFeature(128, 16),
    },
    "aarch64": {"": VectorFeature(128, 32, widens_halves=True)},
}


def cpu_target(
    arch: str = "x86_64",
    features: Sequence[str] = (),
    threads: int = 1,
    cache_bytes: Sequence[int] = DEFAULT_CACHES,
    measured: Measured | None = None,
) -> Target:
    """The target of a CPU with these features; of several the best one counts.

    Without a measurement the costs are those of a server of 2023, and the peaks what two units
    for multiply-add at 3 GHz and 10 GB/s would give each thread.

    >>> cpu_target("x86_64", ("avx2",)).access_bits
    256
    """
    _require_known("architecture", arch, LEVELS)
    levels = LEVELS[arch]
    for feature in features:
        _require_known(f"feature of {arch}", feature, levels)
    level = levels[min((*features, ""), key=list(levels).index)]
    nanoseconds = USUAL_BYTES if measured is None else measured.bytes_moved
    return Target(
        device="CPU",
        renderer="LLVM",
        arch=",".join((arch, *features)),
        native_ops=LLVM_OPS | {Op.DOT_BYTES} if level.multiplies_bytes else LLVM_OPS,
        native_dtypes=NATIVE_DTYPES,
        stored_dtypes=STORED_DTYPES,
        widened_dtypes=frozenset([dtypes.float16] * level.widens_halves),
        compute=Simd(
            units=threads,
            vector_bits=level.vector_bits,
            vector_registers=level.vector_registers,
        ),
        memories=_memories(level, tuple(cache_bytes), nanoseconds),
        costs=Costs() if measured is None else measured.costs,
        peaks=_usual_peaks(level, threads) if measured is None else measured.peaks,
    )


def _memories(
    level: VectorFeature, cache_bytes: tuple[int, ...], nanoseconds: tuple[float, ...]
) -> tuple[Memory, ...]:
    """Registers, caches, the memory of a group, which is on the stack, and all the rest."""
    bits = level.vector_bits
    caches = [
        Memory(name, size, MACHINE if name == CACHE_LEVELS[-1] else UNIT, bits, cost)
        for name, size, cost in zip(CACHE_LEVELS, cache_bytes, nanoseconds, strict=False)
    ]
    caches[0] = dataclasses.replace(caches[0], ways=FIRST_CACHE_WAYS)
    local = min(max(cache_bytes[1] // 2, 1 << 18), MOST_LOCAL_BYTES)
    return (
        Memory(REGISTER, level.vector_registers * bits // 8, THREAD, bits),
        *caches,
        Memory(LOCAL, local, GROUP, bits, nanoseconds[1]),
        Memory(GLOBAL, 0, MACHINE, bits, nanoseconds[-1]),
    )


def _usual_peaks(level: VectorFeature, threads: int) -> Peaks:
    lanes = level.vector_bits // 32
    return Peaks(
        operations=threads * lanes * 2 * 2 * 3e9,
        bytes_moved=threads * 1e10,
        source="two units for multiply-add at 3 GHz and 10 GB/s for each thread",
    )


def parse_cpu(text: str, threads: int = 1, cache_bytes: Sequence[int] = DEFAULT_CACHES) -> Target:
    """The target with this name; its last part, the arch, is enough.

    >>> parse_cpu("CPU:LLVM:x86_64,avx512f").name
    'CPU:LLVM:x86_64,avx512f'
    """
    prefix, _, arch = text.rpartition(":")
    if prefix not in ("", "CPU:LLVM"):
        raise UnknownName(
            f"target: {text!r} is not one of a CPU",
            rule="a CPU target is CPU:LLVM:arch or arch, where arch is x86_64,avx2 for example",
        )
    name, *features = arch.split(",")
    return cpu_target(name, features, threads, cache_bytes)


def best_level(arch: str, has: frozenset[str]) -> tuple[str, ...]:
    """The features of a target for a machine that has these, as `cpu_target` takes them."""
    found = next(feature for feature in LEVELS[arch] if not feature or feature in has)
    return (found,) if found else ()


def _require_known(what: str, name: str, known: Iterable[str]) -> None:
    names = [key for key in known if key]
    if name not in names:
        guess = nearest(name, names)
        raise UnknownName(
            f"target: unknown {what} {name!r}",
            rule=f"known are: {', '.join(names) or 'none'}",
            fix=f"write {guess!r}" if guess else "",
        )

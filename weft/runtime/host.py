"""The machine this process runs on, as a target.

`host_target` is what the engine makes the CPU device with. LLVM is asked once, when first needed.
"""

from __future__ import annotations

import functools
import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from weft.runtime.llvm.compiler import LOCK
from weft.support.cache import DiskCache
from weft.support.errors import DeviceError, NotSupported
from weft.support.settings import settings
from weft.support.source_line import NOWHERE
from weft.target.cpu import DEFAULT_CACHES, LEVELS, Measured, best_level, cpu_target, parse_cpu
from weft.target.target import Costs, Peaks, Target

_ARCHS: Final = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_AVX512: Final = frozenset(("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"))
# What a machine needs before a feature of a target may be used on it.
_NEEDS: Final = {
    "avx2": frozenset(("avx2", "fma", "bmi", "bmi2", "lzcnt", "movbe", "f16c")),
    "avx512vnni": _AVX512 | {"avx512vnni"},
    "avx512f": _AVX512,
}
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_CACHE_FOLDER: Final = "/sys/devices/system/cpu/cpu0/cache"
_QUOTA_FILE: Final = "/sys/fs/cgroup/cpu.max"


@dataclass(frozen=True)
class Host:
    """What is known of this machine; `features` are those that targets know."""

    arch: str
    cpu: str
    features: tuple[str, ...]
    cores: int
    cache_bytes: tuple[int, ...]


@functools.cache
def host() -> Host:
    """This machine."""
    import llvmlite.binding as llvm

    arch = _ARCHS.get(platform.machine().lower())
    if arch is None:
        raise NotSupported(
            f"CPU: no code is made for {platform.machine()}",
            rule=f"the architectures are: {', '.join(LEVELS)}",
        )
    with LOCK:
        cpu = llvm.get_host_cpu_name()
        present = {name for name, has in llvm.get_host_cpu_features().items() if has}
    known = frozenset(name for name, needs in _NEEDS.items() if needs <= present)
    return Host(
        arch=arch,
        cpu=cpu,
        features=best_level(arch, known),
        cores=core_count(),
        cache_bytes=cache_sizes(),
    )


def host_target(threads: int = 0) -> Target:
    """The target of this machine, for as many threads as asked for, or THREADS, or cores."""
    here = host()
    count = threads or settings.THREADS or here.cores
    if settings.TARGET:
        return _require_runs(parse_cpu(settings.TARGET, count, here.cache_bytes), here)
    return cpu_target(here.arch, here.features, count, here.cache_bytes, measured(count))


def _require_runs(target: Target, here: Host) -> Target:
    """A target of the setting TARGET, if this machine runs its code: a wrong one would crash."""
    arch, *features = target.arch.split(",")
    order = [*LEVELS[here.arch]]
    best = min((*here.features, ""), key=order.index)
    is_known = arch == here.arch
    if is_known and all(order.index(each) >= order.index(best) for each in features):
        return target
    own = ",".join((here.arch, *here.features))
    raise DeviceError(
        f"TARGET: this machine does not run {target.arch}",
        facts=[("expected", f"{own}, or less"), ("got", target.arch)],
        rule="the device CPU runs kernels on this machine; for other machines code can be made,\n"
        "and not run",
        fix=f"unset TARGET, or set TARGET=CPU:LLVM:{own}",
        where=NOWHERE,
    )


_MEASURED: Final = DiskCache("machine", 2)


def _machine_key(threads: int) -> str:
    here = host()
    return repr((here.cpu, here.features, here.cache_bytes, threads))


def keep_measured(threads: int, found: Measured) -> None:
    """Keep what was measured with so many threads, for processes on this machine from now on."""
    data = {"costs": asdict(found.costs), "peaks": asdict(found.peaks), "bytes": found.bytes_moved}
    _MEASURED.put(_machine_key(threads), json.dumps(data).encode())


def forget_measured(threads: int) -> None:
    """Go back to the usual numbers."""
    _MEASURED.put(_machine_key(threads), b"null")


def measured(threads: int) -> Measured | None:
    """What `python -m bench machine` measured here; None where nobody did, or it does not fit."""
    data = _MEASURED.get(_machine_key(threads))
    if data is None:
        return None
    try:
        parts = json.loads(data)
        first, second, third, memory = map(float, parts["bytes"])
        bytes_moved = (first, second, third, memory)
        return Measured(Costs(**parts["costs"]), Peaks(**parts["peaks"]), bytes_moved)
    except (ValueError, TypeError, KeyError):  # written by a version with other numbers
        return None


def core_count() -> int:
    """How many cores this process may use: its affinity, and the quota of its container."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, min(count, quota_cores(_read(Path(_QUOTA_FILE)), count)))


def quota_cores(text: str, cores: int) -> int:
    """The cores that a quota of microseconds per period amounts to, rounded up.

    >>> quota_cores("150000 100000", 8), quota_cores("max 100000", 8)
    (2, 8)
    """
    quota, _, period = text.partition(" ")
    if not quota.isdecimal() or not period.isdecimal():
        return cores
    return -(-int(quota) // int(period))


def cache_sizes(folder: str = _CACHE_FOLDER) -> tuple[int, ...]:
    """The sizes of the data caches, the first level first."""
    found: dict[int, int] = {}
    for entry in Path(folder).glob("index*"):
        level, kind, size = (_read(entry / name) for name in ("level", "type", "size"))
        if kind in ("Data", "Unified") and level.isdecimal() and size[:-1].isdecimal():
            found[int(level)] = int(size[:-1]) * _UNITS.get(size[-1], 1)
    return tuple(found.get(level, DEFAULT_CACHES[level - 1]) for level in (1, 2, 3))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""

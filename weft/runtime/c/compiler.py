"""The C compiler of the system: where it is, what it is told, and what it makes.

`compile_c` turns source text into the bytes of a shared object. The flags make C mean what
`weft/ir/ops.py` says: integers wrap, and no product is fused into a sum.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
import tempfile
from typing import Final

from weft.support.errors import DeviceError, InternalError
from weft.target.c import X86_VECTOR_BITS

COMPILERS: Final = ("cc", "clang", "gcc")
FLAGS: Final = (
    *("-x", "c", "-std=c11", "-O2", "-ftree-vectorize", "-fPIC", "-shared"),
    *("-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing", "-w"),
)
# What a processor must have for each level of x86-64, best first.
_LEVELS: Final = (
    ("x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"),
    ("x86-64-v3", "avx avx2 bmi1 bmi2 f16c fma abm movbe"),
    ("x86-64-v2", "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"),
)


def find_compiler(wanted: str | None = None) -> str:
    """The path of the C compiler: the wanted one, or the first that is on PATH."""
    names = (wanted,) if wanted else COMPILERS
    for name in names:
        if path := shutil.which(name):
            return path
    raise DeviceError(
        f"C: no C compiler is on PATH (looked for {', '.join(names)})",
        rule="the device C compiles kernels with the compiler of the system",
        fix="install gcc or clang, or use the device CPU, which brings its own compiler",
    )


@functools.cache
def compiler_version(path: str) -> str:
    """What a compiler says about itself, with its path and what it is told."""
    done = subprocess.run([path, "--version"], capture_output=True, text=True)
    return " ".join((path, *FLAGS, done.stdout.strip()))


def host_arch(cpu_info: str = "/proc/cpuinfo") -> str:
    """The arch of this machine: a level of x86-64, or the name of the processor's family."""
    machine = platform.machine().lower()
    if machine not in ("x86_64", "amd64"):
        return machine
    try:
        with open(cpu_info, encoding="utf-8") as file:
            return best_level(next((line for line in file if line.startswith("flags")), ""))
    except OSError:
        return "x86-64"


def best_level(flags: str) -> str:
    """The highest level of x86-64 for which all features are among the flags.

    >>> best_level("flags: cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 avx")
    'x86-64-v2'
    """
    present = set(flags.split())
    found = "x86-64"
    for level, needed in reversed(_LEVELS):
        if not present.issuperset(needed.split()):
            break
        found = level
    return found


def compile_c(source: str, arch: str, compiler: str) -> bytes:
    """The shared object of a source text."""
    march = (f"-march={arch}",) if arch in X86_VECTOR_BITS else ()
    with tempfile.TemporaryDirectory(prefix="weft-c-") as folder:
        result = os.path.join(folder, "kernel.so")
        command = [compiler, *FLAGS, *march, "-o", result, "-", "-lm"]
        done = subprocess.run(command, input=source, capture_output=True, text=True)
        if done.returncode != 0:
            raise InternalError(
                "the C compiler rejects a rendered program",
                facts=[("compiler", compiler), ("says", done.stderr.strip()[:2000])],
                ir_text=source,
            )
        with open(result, "rb") as file:
            return file.read()

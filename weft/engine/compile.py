"""Kernels made runnable: generated, rendered, compiled and loaded, each once.

A process keeps what it has loaded. The disk keeps what was compiled, under the text of the kernel,
the target and the settings that change code, so a second process that runs the same model compiles
nothing. Kernels of one schedule are compiled side by side: LLVM does not hold the interpreter.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.codegen.generate import generate
from weft.engine.program_file import pack, unpack
from weft.engine.search import best_recipe
from weft.ir.ops import Op
from weft.ir.program import Program, from_node
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.rewrite.phase import PassReport
from weft.runtime.device import Device, Executable
from weft.support.cache import DiskCache
from weft.support.code_version import code_version
from weft.support.errors import DeviceError
from weft.support.settings import cache_key, settings
from weft.support.workers import Workers

_CACHE: Final = DiskCache("programs", 1)
Key = tuple[UOp, str, object]  # kernel, device, settings
_LOADED: Final[dict[Key, Loaded]] = {}
_MOST_LOADED: Final = 2048


class Loaded(NamedTuple):
    """A program on a device, ready to run."""

    program: Program
    executable: Executable


class CompileStatistics:
    """How many programs this process generated, compiled and found on disk, and the time.

    `slowest` names the kernel that took the processor longest, and its seconds there.
    """

    generated = 0
    from_disk = 0
    seconds = 0.0
    slowest = ("", 0.0)


def load_kernels(kernels: Sequence[UOp], device: Device) -> list[Loaded]:
    """The programs of these kernels on a device; missing ones are made, side by side."""
    settings_key = cache_key()
    keys: list[Key] = [(kernel, device.name, settings_key) for kernel in kernels]
    missing = {
        key: kernel for key, kernel in zip(keys, kernels, strict=True) if key not in _LOADED
    }
    if missing:
        start = time.perf_counter()
        programs: dict[Key, Program | None] = {
            key: _try_stored(kernel, device) for key, kernel in missing.items()
        }
        fresh = {key: kernel for key, kernel in missing.items() if programs[key] is None}
        programs.update(_make_all(fresh, device))
        for key, program in programs.items():
            assert program is not None
            _LOADED[key] = Loaded(program, device.load(program))
        CompileStatistics.seconds += time.perf_counter() - start
    found = [_LOADED[key] for key in keys]
    while len(_LOADED) > _MOST_LOADED:  # the oldest; schedules that use it keep it
        del _LOADED[next(iter(_LOADED))]
    return found


def _generate(kernel: UOp, device: Device) -> Program:
    if kernel.op == Op.PROGRAM:
        return _require_fit(from_node(kernel), device)
    reports: list[PassReport] = []
    opts = best_recipe(kernel, device, settings.BEAM) if settings.BEAM else None
    program = generate(kernel, device.target, opts, reports=reports)
    CompileStatistics.generated += 1
    if settings.DEBUG >= 5:
        print(f"codegen of {program.name}", *reports, sep="\n")
    return program.with_source(device.render(program))


def _require_fit(program: Program, device: Device) -> Program:
    """A finished program, if it is one of the device's target."""
    if program.target != device.target.name:
        raise DeviceError(
            f"the program {program.name!r} cannot run on {device.name}",
            facts=[("written for", program.target), ("the target", device.target.name)],
            law="a finished program runs on its own target alone",
        )
    return program


def _make_all(fresh: dict[Key, UOp], device: Device) -> dict[Key, Program]:
    """Generate the programs one by one; each is compiled while the next is generated."""
    done: dict[Key, Program] = {}
    with Workers(device.compile_threads) as workers:
        waiting = {}
        for key, kernel in fresh.items():
            start = time.thread_time()
            program = _generate(kernel, device)
            spent = time.thread_time() - start
            waiting[key] = (program, spent, workers.submit(_binary_of, program, device))
        for key, (program, spent, compiled) in waiting.items():
            binary, more = compiled.result()
            done[key] = program.with_binary(binary)
            if spent + more > CompileStatistics.slowest[1]:
                CompileStatistics.slowest = (program.name, spent + more)
            _CACHE.put(_disk_key(key[0], device), pack(done[key]))
    return done


def _binary_of(program: Program, device: Device) -> tuple[bytes, float]:
    """What a device runs, and the seconds of processor time that it took."""
    start = time.thread_time()
    binary = program.binary or device.compile(program)
    return binary, time.thread_time() - start


def _disk_key(kernel: UOp, device: Device) -> str:
    """All that a compiled program depends on: another target, compiler or setting is another."""
    kind = type(device).__name__  # NULL keeps sources where others keep code
    target, versions = device.target, (device.compiler, code_version())
    return repr((dump(kernel), kind, target.name, target.key, versions, cache_key()))


def _try_stored(kernel: UOp, device: Device) -> Program | None:
    """The compiled program as another process left it; without its instructions and source."""
    if settings.DEBUG >= 4:  # somebody wants to read the source
        return None
    data = _CACHE.get(_disk_key(kernel, device))
    if data is None:
        return None
    CompileStatistics.from_disk += 1
    return unpack(data)

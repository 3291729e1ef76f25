"""Kernels made runnable: generated, rendered, compiled and loaded, each once.

A process keeps what it has loaded. The disk keeps what was compiled, under the name of the kernel,
the target and the settings that change code, so a second process that runs the same model compiles
nothing. Kernels of one schedule are compiled side by side: LLVM does not hold the interpreter.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.engine.stored.program import pack, unpack
from weft.engine.watch.record import record_compiled, record_kernel
from weft.ir.ops import Op
from weft.ir.program import Program, from_node
from weft.ir.text.digest import digest
from weft.ir.uop import UOp
from weft.rewrite.phase import PassReport
from weft.rewrite.trace_file import TraceFile, current, wants_graphs
from weft.runtime.device import Device, Executable
from weft.support.bounded_cache import BoundedCache
from weft.support.cache import DiskCache
from weft.support.code_version import code_version
from weft.support.errors import DeviceError
from weft.support.progress import Progress
from weft.support.settings import cache_key, settings
from weft.support.workers import Workers

if TYPE_CHECKING:
    from weft.codegen.opts.table import Opt

_CACHE: Final = DiskCache("programs", 4)
Key = tuple[UOp, str, object]  # kernel, device, settings
_KEYS: Final[BoundedCache[Key, str]] = BoundedCache(2048)  # on disk
# By the key on disk, and the device; schedules that use a program keep it.
_LOADED: Final[BoundedCache[tuple[str, str], Loaded]] = BoundedCache(2048)


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
    name = device.name
    keys = [program_key(kernel, device) for kernel in kernels]
    found = {key: _LOADED.get((key, name)) for key in keys}
    missing = {
        key: kernel for key, kernel in zip(keys, kernels, strict=True) if found[key] is None
    }
    if missing:
        start = time.perf_counter()
        programs = {key: _try_stored(key) for key in missing}
        fresh = {key: kernel for key, kernel in missing.items() if programs[key] is None}
        programs.update(_make_all(fresh, device))
        for key, program in programs.items():
            assert program is not None
            found[key] = _LOADED[key, name] = _load(program, device)
        CompileStatistics.seconds += time.perf_counter() - start
    return [loaded for key in keys if (loaded := found[key]) is not None]


def try_load(keys: Sequence[str], device: Device) -> list[Loaded] | None:
    """The programs of these keys on a device, if the disk or this process has all of them."""
    found: list[Loaded] = []
    for key in keys:
        loaded = _LOADED.get((key, device.name))
        if loaded is None:
            program = _try_stored(key)
            if program is None:
                return None
            loaded = _LOADED[key, device.name] = _load(program, device)
        found.append(loaded)
    return found


def _load(program: Program, device: Device) -> Loaded:
    began, trace = time.perf_counter(), current()
    loaded = Loaded(program, device.load(program))
    if trace is not None:
        record_compiled(trace, device, program, began, "load")
    return loaded


def program_key(kernel: UOp, device: Device) -> str:
    """What the program of a kernel is found by on disk."""
    key = (kernel, device.name, cache_key())
    found = _KEYS.get(key)
    if found is None:
        found = _KEYS[key] = _disk_key(kernel, device)
    return found


def _generate(kernel: UOp, device: Device) -> Program:
    if kernel.op == Op.PROGRAM:
        return _require_fit(from_node(kernel), device)
    # Here, because a process whose programs are all on disk needs none of it.
    from weft.codegen.generate import generate

    reports: list[PassReport] | None = [] if settings.DEBUG >= 5 else None
    opts: tuple[Opt, ...] | None = None
    if settings.BEAM:
        from weft.engine.search import best_opts

        opts = best_opts(kernel, device, settings.BEAM)
    taken: list[Opt] = []
    program = generate(kernel, device.target, opts, reports=reports, taken=taken)
    CompileStatistics.generated += 1
    if reports is not None:
        print(f"codegen of {program.name}", *reports, sep="\n")
    began = time.perf_counter()
    program = program.with_source(device.render(program))
    trace = current()
    if trace is not None:
        record_kernel(trace, device, program, kernel, taken)
        record_compiled(trace, device, program, began, "render")
    return program


def _require_fit(program: Program, device: Device) -> Program:
    """A finished program, if it is one of the device's target."""
    if program.target != device.target.name:
        raise DeviceError(
            f"the program {program.name!r} cannot run on {device.name}",
            facts=[("written for", program.target), ("the target", device.target.name)],
            rule="a finished program runs on its own target alone",
        )
    return program


def _make_all(fresh: dict[str, UOp], device: Device) -> dict[str, Program]:
    """Generate the programs one by one; each is compiled while the next is generated."""
    done: dict[str, Program] = {}
    # A kernel is two steps: it is generated, and compiled.
    bar = Progress("compiling", len(fresh), "kernels")
    with bar, Workers(device.compile_threads) as workers:
        waiting = {}
        for key, kernel in fresh.items():
            start = time.thread_time()
            program = _generate(kernel, device)
            spent = time.thread_time() - start
            waiting[key] = (program, spent, workers.submit(_binary_of, program, device, current()))
            bar.advance(0.5)
        for key, (program, spent, compiled) in waiting.items():
            binary, more = compiled.result()
            done[key] = program.with_binary(binary)
            if spent + more > CompileStatistics.slowest[1]:
                CompileStatistics.slowest = (program.name, spent + more)
            _CACHE.put(key, pack(done[key]))
            bar.advance(0.5)
    return done


def _binary_of(program: Program, device: Device, trace: TraceFile | None) -> tuple[bytes, float]:
    """What a device runs, and the seconds of processor time that it took."""
    began, start = time.perf_counter(), time.thread_time()
    binary = program.binary or device.compile(program)
    if trace is not None:
        record_compiled(trace, device, program, began, "compile")
    return binary, time.thread_time() - start


def _disk_key(kernel: UOp, device: Device) -> str:
    return disk_key(kernel, device, code_version())


def disk_key(graph: UOp, device: Device, version: str) -> str:
    """All that follows from a graph: another target, compiler or setting is another key."""
    return f"{digest(graph)} {machine_key(device, version)}"


def machine_key(device: Device, version: str) -> str:
    """What beside a graph decides what becomes of it, by code of this version."""
    kind = type(device).__name__  # NULL keeps sources where others keep code
    target = device.target
    facts = (kind, target.name, target.key, device.compiler, version, cache_key())
    return blake2b(repr(facts).encode(), digest_size=20).hexdigest()


def _try_stored(key: str) -> Program | None:
    """The compiled program as another process left it; without its instructions and source."""
    if settings.DEBUG >= 4 or wants_graphs():  # somebody wants to read the source
        return None
    data = _CACHE.get(key)
    if data is None:
        return None
    CompileStatistics.from_disk += 1
    return unpack(data)

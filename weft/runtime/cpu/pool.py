"""The thread pool of a process: it runs lists of kernels over a number of threads.

`pool_for(target)` gives the pool with as many threads as the target has; all devices of a process
share it. `pool.run(pool.state, list, count)` runs `count` records (`pool_code` has their form) and
returns when all are done; Python's lock is free meanwhile. The native threads start at the first
run. A child of `fork` has none of them, so it starts its own; at exit they are stopped.

Where threads cannot be made from generated code (Windows), `PythonPool` does the same with threads
of Python.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final, Protocol

from weft.runtime.cpu.memory import CpuMemory, allocate
from weft.runtime.cpu.pool_code import NAMES, RECORD_WORDS, pool_bytes, pool_module
from weft.runtime.llvm.compiler import compile_object, compiler_name
from weft.runtime.llvm.linker import Library, load_object
from weft.support.cache import DiskCache
from weft.support.workers import Workers
from weft.target.cpu import parse_cpu
from weft.target.llvm import backend_of
from weft.target.target import Target

# A list is bytes, or the address of one that stays where it is.
RunRecords = Callable[[int | None, bytes | int, int], None]

_RUN: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_START: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
_STOP: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_KERNEL: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
_WORD: Final = 8
_CACHE: Final = DiskCache("pool", version=1)


class ThreadPool(Protocol):
    """What an executable runs on."""

    threads: int
    state: int | None
    run: RunRecords

    def close(self) -> None:
        """End the threads; later runs use the caller's thread."""


class _Native:
    """The functions of the pool's module, loaded once per process."""

    def __init__(self, target: Target) -> None:
        source = pool_module(backend_of(target).name)
        key = "\n".join((compiler_name(target), target.name, source))
        binary = _CACHE.get_or_make(key, lambda: compile_object(source, target))
        library: Library = load_object(binary, NAMES, target)
        library.keep()
        run, start, stop = (library.address(name) for name in NAMES)
        self.run: RunRecords = _RUN(run)
        self.start = _START(start)
        self.stop = _STOP(stop)


@functools.cache
def _native(arch: str) -> _Native:
    return _Native(parse_cpu(arch))


class NativePool:
    """Threads that only native code knows."""

    def __init__(self, threads: int, target: Target) -> None:
        self.threads = threads
        self._native = _native(target.arch)
        self._forget()
        _POOLS.add(self)

    def _forget(self) -> None:
        """Be as new: without threads, which start at the first run."""
        self.state: int | None = None
        self._memory: CpuMemory | None = None
        self._lock = threading.Lock()
        self.run: RunRecords = self._native.run if self.threads == 1 else self._run_first

    def _run_first(self, state: int | None, records: bytes | int, count: int) -> None:
        with self._lock:
            if self._memory is None:
                self._start()
        self.run(self.state, records, count)

    def _start(self) -> None:
        workers = self.threads - 1
        self._memory = allocate(pool_bytes(workers))
        ctypes.memset(self._memory.address, 0, self._memory.size)
        self._native.start(self._memory.address, workers)
        self.state = self._memory.address
        self.run = self._native.run

    def close(self) -> None:
        with self._lock:
            state, self.state = self.state, None
            self.run = self._native.run
            if state is not None:
                self._native.stop(state)


class PythonPool:
    """Threads of Python, each of which calls native code."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.state: int | None = None
        self._forget()
        _POOLS.add(self)

    def _forget(self) -> None:
        self._workers = Workers(self.threads) if self.threads > 1 else None

    def run(self, state: int | None, records: bytes | int, count: int) -> None:
        """Run the records in order, the chunks of each at once."""
        if isinstance(records, bytes):
            keep = ctypes.create_string_buffer(records, len(records))
            return self.run(state, ctypes.addressof(keep), count)
        at = records
        for _ in range(count):
            header = (ctypes.c_int64 * RECORD_WORDS).from_address(at)
            function, groups, chunk, arguments, words = header
            args = at + RECORD_WORDS * _WORD
            call = functools.partial(_KERNEL(function), args, args + arguments * _WORD)
            self._run_chunks(call, groups, max(chunk, 1))
            at += words * _WORD
        return None

    def _run_chunks(self, call: Callable[[int, int], None], groups: int, chunk: int) -> None:
        if self._workers is None or groups <= chunk:
            call(0, groups)
            return
        tasks = [
            self._workers.submit(call, begin, min(begin + chunk, groups))
            for begin in range(0, groups, chunk)
        ]
        for task in tasks:
            task.result()

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()
            self._workers = None


_POOLS: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def make_pool(threads: int, target: Target) -> ThreadPool:
    """A pool of its own; close it when it is not needed any more."""
    if sys.platform in ("linux", "darwin"):
        return NativePool(threads, target)
    return PythonPool(threads)


@functools.cache
def _shared_pool(threads: int, target: Target) -> ThreadPool:
    return make_pool(threads, target)


def pool_for(target: Target) -> ThreadPool:
    """The pool that all devices with as many threads share."""
    return _shared_pool(target.units, target)


def _forget_all() -> None:
    for pool in list(_POOLS):
        pool._forget()


def _close_all() -> None:
    for pool in list(_POOLS):
        pool.close()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)

"""The process that runs candidates of a search, and the handle of the one who asks.

A candidate is unproven code: it may write where it should not, crash or never end. It runs in a
child process on memory of its own. A child that does not finish in time is killed and replaced.
Messages are pickles of plain bytes and numbers through the pipes of `multiprocessing`, between
processes of one program.
"""

from __future__ import annotations

import functools
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any, Final

import numpy as np

from weft.ir.dtypes import FLOAT, by_name
from weft.ir.ops import Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.runtime.device import Device, seconds_of

SECONDS_TO_RUN: Final = 10.0
SECONDS_TO_START: Final = 60.0
ROUNDS: Final = 5
LEAST_SECONDS: Final = 0.01
# Sums in another order differ by this much of the greatest result.
TOLERANCE: Final = 1e-3

# The memory of a kernel: for each slot the name of its dtype and the number of elements.
Memory = list[tuple[str, int]]
Array = np.ndarray[Any, Any]


class Runner:
    """Runs programs of one kernel in a child; the first is the one that others must agree with."""

    def __init__(self, device: str, kernel: UOp) -> None:
        params = {n.arg[0]: n for n in topological(kernel) if n.op == Op.PARAM}
        self._memory = [
            (params[slot].dtype.name, largest_size(shape_of(params[slot])))
            for slot in sorted(params)
        ]
        self._variables = [
            n.arg[2] for n in sorted(_variables(kernel), key=lambda node: str(node.arg))
        ]
        self._device = device
        self._first: bytes | None = None
        self._child: Any = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *failure: object) -> None:
        self._stop()

    def measure(self, program: bytes) -> float | None:
        """The least seconds of a run; None if it fails, hangs or gives other results."""
        if not program:
            return None
        pipe = self._pipe or self._start()
        if pipe is None:
            return None
        patience = SECONDS_TO_START if self._first is None else SECONDS_TO_RUN
        seconds = self._ask(pipe, program, patience)
        if self._first is None and seconds is not None:
            self._first = program
        return seconds

    def _start(self) -> Connection | None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (theirs, self._device, self._memory, self._variables)
        self._child = context.Process(target=_serve, args=arguments, daemon=True)
        with _no_main_module():
            self._child.start()
        theirs.close()
        if self._first is None:
            return self._pipe
        seconds = self._ask(self._pipe, self._first, SECONDS_TO_START)
        return None if seconds is None else self._pipe

    def _ask(self, pipe: Connection, program: bytes, patience: float) -> float | None:
        try:
            pipe.send_bytes(program)
            if pipe.poll(patience):
                seconds = float(pipe.recv())
                return seconds if seconds >= 0 else None
        except (EOFError, OSError):
            pass
        self._stop()
        return None

    def _stop(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            self._child.kill()
            self._child.join()
            self._pipe = self._child = None


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Start a child that does not run the user's program, which may have no guard against it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _variables(kernel: UOp) -> list[UOp]:
    return [node for node in topological(kernel) if node.op == Op.VARIABLE]


def _serve(pipe: Connection, device_name: str, memory: Memory, variables: list[int]) -> None:
    """The child: reply to each program with its seconds, or with -1 if its results differ."""
    from weft.engine.devices import device
    from weft.engine.stored.program import unpack
    from weft.ir.sizes import size_value

    on = device(device_name)
    start = [_random_bytes(slot, *each) for slot, each in enumerate(memory)]
    handles = [on.allocate(max(len(data), 1)) for data in start]
    expected: list[Array] | None = None
    while True:
        try:
            program = unpack(pipe.recv_bytes())
        except EOFError:
            return
        for handle, data in zip(handles, start, strict=True):
            if data:
                on.copy_in(handle, memoryview(data))
        names = {n.arg[0]: value for n, value in zip(program.variables, variables, strict=True)}
        groups = tuple(size_value(size, names) for size in program.groups)
        run = functools.partial(on.load(program), handles, variables, groups)
        run()
        results = [_numbers(on, *each) for each in zip(handles, memory, strict=True)]
        expected = expected or results
        right = all(map(_agree, expected, results))
        pipe.send(_least_seconds(on, run) if right else -1.0)


def _least_seconds(on: Device, run: Callable[[], None]) -> float:
    best, spent, rounds = float("inf"), 0.0, 0
    while rounds < ROUNDS or spent < LEAST_SECONDS:
        seconds = seconds_of(on, run)
        best, spent, rounds = min(best, seconds), spent + seconds, rounds + 1
    return best


def _random_bytes(slot: int, name: str, count: int) -> bytes:
    """Floats around zero, small integers; the same in every process."""
    dtype = by_name(name)
    numbers = np.random.default_rng(slot)
    if dtype.kind == FLOAT and dtype.bits >= 32:
        kind = np.float32 if dtype.bits == 32 else np.float64
        return numbers.standard_normal(count).astype(kind).tobytes()
    if dtype.kind == FLOAT:
        # Bits with a small exponent in any format of 8 or 16 bits.
        return numbers.integers(0, 2, count * dtype.itemsize, dtype=np.uint8).tobytes()
    small = numbers.integers(0, 2, (count, dtype.itemsize), dtype=np.uint8)
    small[:, 1:] = 0
    return small.tobytes()


def _numbers(on: Device, handle: Any, kept: tuple[str, int]) -> Array:
    dtype, count = by_name(kept[0]), kept[1]
    data = bytearray(count * dtype.itemsize)
    if data:
        on.copy_out(memoryview(data), handle)
    is_wide = dtype.kind == FLOAT and dtype.bits >= 32
    kind = {32: np.float32, 64: np.float64}[dtype.bits] if is_wide else np.uint8
    return np.frombuffer(data, kind)


def _agree(x: Array, y: Array) -> bool:
    if x.dtype == np.uint8:
        return bool(np.mean(x != y) < TOLERANCE) if x.size else True
    scale = float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x)))
    return np.allclose(x, y, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True)

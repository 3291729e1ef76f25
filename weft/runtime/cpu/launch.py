"""Kernels that run: one at a time (`CpuExecutable`), or a whole list in one call (`RunList`).

Both write the records of `pool_code` and hand them to the pool, so that launching one kernel is
running a list of one.
"""

from __future__ import annotations

import ctypes
import math
import struct
import time
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from weft.ir.program import Estimate, Program
from weft.ir.sizes import most
from weft.runtime.cpu.memory import CpuMemory
from weft.runtime.cpu.pool import ThreadPool
from weft.runtime.cpu.pool_code import RECORD_WORDS
from weft.runtime.llvm.linker import Library
from weft.support.errors import InternalError
from weft.target.memory import GLOBAL
from weft.target.target import Target

# More chunks than threads, so that a thread that is slow or late leaves its share to others.
CHUNKS_PER_THREAD: Final = 4

# Where a record has its number of groups, how many of them are a chunk, and its own size.
_COUNT: Final = 1
_CHUNK: Final = 2
_SIZE: Final = 4

_address: Final = attrgetter("address")
# A kernel, its arguments (None: a run brings it), its variables and its grid.
Launch = tuple["CpuExecutable", Sequence[CpuMemory | None], Sequence[int], tuple[int, ...]]


def chunk_size(groups: int, threads: int, nanoseconds: float, wake: float) -> int:
    """How many groups a thread takes at a time; all of them if sharing does not pay.

    That is where a share would take less than it takes to `wake` a thread.

    >>> [chunk_size(100, 4, nanoseconds=spent, wake=2e4) for spent in (1e6, 500)]
    [7, 100]
    """
    chunks = min(groups, threads * CHUNKS_PER_THREAD, nanoseconds / wake)
    if threads == 1 or chunks < 2:
        return max(groups, 1)
    return -(-groups // int(chunks))


def nanoseconds(estimate: Estimate, target: Target) -> float:
    """What a run takes on one thread; without an estimate, long enough to be shared."""
    moved = estimate.moved * target.memory(GLOBAL).cost
    return (estimate.operations * target.costs.op + moved) or math.inf


class CpuExecutable:
    """A program in memory. It is unloaded when this object goes."""

    def __init__(
        self, program: Program, library: Library, pool: ThreadPool, target: Target
    ) -> None:
        self.name = program.name
        self.pool = pool
        self._library = library
        self._cost = nanoseconds(program.estimate, target)
        self._wake = target.costs.wake
        self._most_groups = math.prod([most(size) for size in program.groups]) or 1
        self._arguments = len(program.parameters)
        variables = len(program.variables)
        self._words = RECORD_WORDS + self._arguments + variables
        self._struct = struct.Struct(f"{RECORD_WORDS + self._arguments}Q{variables}q")
        self._function = library.address(program.name)
        self._plan: tuple[tuple[int, ...], int, int] = ((0,), 0, 1)

    def __call__(
        self, memory: Sequence[CpuMemory], variables: Sequence[int], groups: tuple[int, ...]
    ) -> None:
        """Run over a grid of groups; returns when it is done."""
        pool = self.pool
        pool.run(pool.state, self.record(memory, variables, groups), 1)

    def grid(self, groups: tuple[int, ...]) -> tuple[int, int]:
        """How many groups there are, and how many a thread takes at a time."""
        count = math.prod(groups)
        share = count / self._most_groups  # a symbolic grid is estimated at its greatest
        chunk = chunk_size(count, self.pool.threads, self._cost * share, self._wake)
        self._plan = groups, count, chunk
        return count, chunk

    def record(
        self,
        memory: Sequence[CpuMemory | None],
        variables: Sequence[int],
        groups: tuple[int, ...],
    ) -> bytes:
        """The record of a run. It holds addresses, so whoever keeps it keeps the memory."""
        planned, count, chunk = self._plan
        if planned != groups:
            count, chunk = self.grid(groups)
        # A list comprehension is a call of its own; most launches have all of their memory.
        addresses = (
            [0 if part is None else part.address for part in memory]
            if None in memory
            else map(_address, memory)
        )
        try:
            return self._struct.pack(
                *(self._function, count, chunk, self._arguments, self._words),
                *addresses,
                *variables,
            )
        except struct.error as error:
            raise InternalError(
                f"{self.name}: the arguments do not fit the program: {error}",
                facts=[("memory", len(memory)), ("variables", len(variables))],
            ) from error


class RunList:
    """Kernels that run one after the other in one native call.

    What they run on can be exchanged between calls: `set_memory` keeps the memory alive, and
    whoever writes an address to `words` at a `position` keeps it alive himself. Behind the
    addresses of a kernel are the values of its variables.
    """

    is_timed = True

    def __init__(self, launches: Sequence[Launch], pool: ThreadPool) -> None:
        self._pool = pool
        self._launches = [(kernel, list(memory)) for kernel, memory, _, _ in launches]
        records = [
            kernel.record(memory, values, groups) for kernel, memory, values, groups in launches
        ]
        self._starts: list[int] = []
        size = 0
        for record in records:
            self._starts.append(size // 8 + RECORD_WORDS)
            size += len(record)
        self.words = (ctypes.c_int64 * (size // 8)).from_buffer_copy(b"".join(records))
        self._address = ctypes.addressof(self.words)

    def __len__(self) -> int:
        return len(self._launches)

    def __call__(self) -> None:
        pool = self._pool
        pool.run(pool.state, self._address, len(self._launches))

    def run_timed(self) -> list[float]:
        """Run all of them: `time.perf_counter` before the first one and after each."""
        run, state, first = self._pool.run, self._pool.state, self._address
        addresses = [first + 8 * (start - RECORD_WORDS) for start in self._starts]
        now = time.perf_counter
        clock = [now()]
        for address in addresses:
            run(state, address, 1)
            clock.append(now())
        return clock

    def run_one(self, number: int, memory: Sequence[CpuMemory]) -> None:
        """Run one kernel of the list on other memory; the list stays as it is."""
        first = self._starts[number]
        begin = first - RECORD_WORDS
        record = self.words[begin : begin + self.words[begin + _SIZE]]
        record[RECORD_WORDS : RECORD_WORDS + len(memory)] = [part.address for part in memory]
        self._pool.run(self._pool.state, struct.pack(f"{len(record)}q", *record), 1)

    def position(self, number: int, slot: int) -> int:
        """Which of the words is an argument of a kernel: an address, or behind those a value."""
        return self._starts[number] + slot

    def memory_at(self, number: int, slot: int, size: int) -> CpuMemory:
        """The memory that an argument of a kernel has now."""
        return CpuMemory(self.words[self.position(number, slot)], size)

    def set_grid(self, numbers: Sequence[int], groups: tuple[int, ...]) -> None:
        """Let some launches of one kernel run over another grid."""
        count, chunk = self._launches[numbers[0]][0].grid(groups)
        for number in numbers:
            start = self._starts[number] - RECORD_WORDS
            self.words[start + _COUNT], self.words[start + _CHUNK] = count, chunk

    def set_memory(self, number: int, slot: int, memory: CpuMemory) -> None:
        """Let a kernel of the list use other memory for one of its arguments."""
        self._launches[number][1][slot] = memory
        self.words[self.position(number, slot)] = memory.address

"""The memories of a machine, its grid, and copies that run beside the arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REGISTER: Final = "register"
LOCAL: Final = "local"
GLOBAL: Final = "global"
# The caches, the nearest first.
LEVELS: Final = ("level1", "level2", "level3")
# Who shares a memory.
THREAD: Final = "thread"
GROUP: Final = "group"
UNIT: Final = "unit"
MACHINE: Final = "machine"


@dataclass(frozen=True)
class Memory:
    """One memory: `size` bytes (0: not known) for each `scope`.

    `access_bits` is the widest load or store of a thread. `cost` is nanoseconds per byte for one
    core or multiprocessor, while the others are busy too (0: not known). Lines that are a power of
    two apart share a set of a cache, which has room for `ways` of them. Memory that a kernel is
    given starts at a multiple of `alignment` bytes; 1 is that of an element.
    """

    name: str
    size: int
    scope: str
    access_bits: int = 0
    cost: float = 0.0
    ways: int = 0
    alignment: int = 1
    source: str = ""

    @property
    def bandwidth(self) -> float:
        """Bytes per second of one core or multiprocessor; 0 where that is not known.

        >>> Memory("global", 0, "machine", cost=0.1).bandwidth
        10000000000.0
        """
        return 1e9 / self.cost if self.cost else 0.0


@dataclass(frozen=True)
class Grid:
    """How many groups and threads a launch has at most, along each axis and in a group.

    No limits are any number. A machine without groups runs one thread in each.
    """

    group_threads: int = 1
    group_limits: tuple[int, ...] = ()
    thread_limits: tuple[int, ...] = ()


@dataclass(frozen=True)
class AsyncCopy:
    """A copy between memories that goes on while threads compute.

    `widths` are the bytes that one instruction moves; a tile of `box_limits` elements along each
    axis is moved by one instruction where those are given. `waits` is what a reader waits for.
    """

    name: str
    source: str
    destination: str
    waits: str
    widths: tuple[int, ...] = ()
    box_limits: tuple[int, ...] = ()
    alignment: int = 16
    swizzles: tuple[int, ...] = ()  # bytes of the rows whose parts can be exchanged

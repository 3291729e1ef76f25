"""Memory for the temporaries of replays: one for all of a device, as large as the largest needs.

Temporaries hold nothing between two runs, so traces of one function, or of many, need no memory
of their own. A run takes the arena; one that comes while another thread runs gets memory for
itself, and gives it back.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from typing import Final
from weakref import WeakValueDictionary

from weft.engine.buffers import ArenaOwner, Buffer
from weft.runtime.device import Device
from weft.support.fork import renew_in_child

_ARENAS: Final[WeakValueDictionary[Device, SharedArena]] = WeakValueDictionary()


class ArenaShare:
    """The part that one replay has in the arena of its device; it ends with the replay.

    The arena is as large as the largest run that replays have had so far.
    """

    def __init__(self, on: Device) -> None:
        self._arena = arena = SharedArena.of(on)
        self._size = size = [0]
        weakref.finalize(self, _leave, arena, size).atexit = False

    def take(self, size: int, owner: ArenaOwner) -> Buffer:
        """Memory of at least so many bytes until `release`, the same as last time if it can be."""
        if size > self._size[0]:
            self._arena.join(size)
            if self._size[0]:
                self._arena.leave(self._size[0])
            self._size[0] = size
        return self._arena.take(size, owner)

    def release(self, buffer: Buffer) -> None:
        self._arena.release(buffer)


def _leave(arena: SharedArena, size: list[int]) -> None:
    if size[0]:
        arena.leave(size[0])


class SharedArena:
    """What the replays of a device share. `take` and `release` go around a run."""

    def __init__(self, on: Device) -> None:
        self._device = on
        self._lock = threading.Lock()
        renew_in_child(self._lock)
        self._sizes: Counter[int] = Counter()
        self._buffer: Buffer | None = None

    @classmethod
    def of(cls, on: Device) -> SharedArena:
        """The arena of a device, as long as somebody holds it."""
        return _ARENAS.setdefault(on, cls(on))

    @property
    def size(self) -> int:
        """The bytes that are held now."""
        return 0 if self._buffer is None else self._buffer.size

    def join(self, size: int) -> None:
        """Let runs come that need so many bytes."""
        self._sizes[size] += 1

    def leave(self, size: int) -> None:
        """One that needed so many bytes is gone; memory that nobody needs is given back."""
        self._sizes[size] -= 1
        if not self._sizes[size]:
            del self._sizes[size]
        # A run that goes on needs what there is; this may be called in the middle of it.
        if self.size > max(self._sizes, default=0) and self._lock.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._lock.release()

    def take(self, size: int, owner: ArenaOwner) -> Buffer:
        """Memory of at least so many bytes until `release`, the same as last time if it can be."""
        if not self._lock.acquire(blocking=False):
            return Buffer(self._device, size, owner=owner)
        buffer = self._buffer
        if buffer is None or buffer.size < size:
            self._drop()
            self._buffer = buffer = Buffer(self._device, size, owner=owner)
        buffer.owner = owner
        return buffer

    def release(self, buffer: Buffer) -> None:
        if buffer is self._buffer:
            self._lock.release()
        else:
            buffer.free()

    def _drop(self) -> None:
        if self._buffer is not None:
            self._buffer.free()
            self._buffer = None

"""Memory that was freed and waits to be used again."""

from __future__ import annotations

from typing import Final

from weft.runtime.device import Device, Handle
from weft.support.errors import OutOfMemory


class Spare:
    """Memory that was freed and is handed out again: steps of a loop ask for the same sizes.

    At most `LIMIT` bytes of a device lie idle, and none when the device has no more to give.
    """

    LIMIT: Final = 256 << 20

    def __init__(self) -> None:
        self._handles: dict[tuple[str, int], list[Handle]] = {}
        self._idle: dict[str, int] = {}

    def take(self, device: Device, size: int) -> Handle:
        waiting = self._handles.get((device.name, size))
        if waiting:
            self._idle[device.name] -= size
            return waiting.pop()
        try:
            return device.allocate(size)
        except OutOfMemory:
            self.release(device)
            return device.allocate(size)

    def give(self, device: Device, size: int, handle: Handle) -> None:
        idle = self._idle.get(device.name, 0)
        if idle + size > self.LIMIT:
            device.free(handle)
            return
        self._idle[device.name] = idle + size
        self._handles.setdefault((device.name, size), []).append(handle)

    def release(self, device: Device) -> None:
        """Give all idle memory of a device back to it."""
        for (name, size), handles in self._handles.items():
            while name == device.name and handles:
                device.free(handles.pop())
                self._idle[name] -= size


SPARE: Final = Spare()

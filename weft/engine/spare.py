"""Memory that was freed and waits to be used again."""

from __future__ import annotations

from typing import Final

from weft.runtime.device import Device, Handle


class Spare:
    """Memory that was freed and is handed out again: steps of a loop ask for the same sizes.

    At most `LIMIT` bytes of a device lie idle, of at most `SIZES` sizes, and none when the device
    has no more to give. What goes first is of the size that was first met. A
    device that does this itself is left to it.
    """

    LIMIT: Final = 256 << 20
    SIZES: Final = 256

    def __init__(self) -> None:
        self._handles: dict[tuple[str, int], list[Handle]] = {}
        self._idle: dict[str, int] = {}
        self._devices: dict[str, Device] = {}

    def take(self, device: Device, size: int) -> Handle:
        name = device.name
        waiting = self._handles.get((name, size))
        if not waiting:
            return device.allocate(size)
        try:
            handle = waiting.pop()
        except IndexError:  # another thread was quicker
            return device.allocate(size)
        self._idle[name] -= size
        return handle

    def give(self, device: Device, size: int, handle: Handle) -> None:
        if device.reuses_memory or size > self.LIMIT:
            device.free(handle)
            return
        name = device.name
        idle = self._idle[name] = self._idle.get(name, 0) + size
        waiting = self._handles.get((name, size))
        if waiting is not None and idle <= self.LIMIT:  # as in every step of a loop
            waiting.append(handle)
            return
        self._devices[name] = device
        self._handles.setdefault((name, size), []).append(handle)
        while idle > self.LIMIT or len(self._handles) > self.SIZES:
            oldest = next(iter(self._handles), None)
            if oldest is None:  # another thread was quicker
                return
            self._free(oldest)
            idle = self._idle[name]

    def release(self, device: Device) -> None:
        """Give all idle memory of a device back to it."""
        for key in [key for key in list(self._handles) if key[0] == device.name]:
            self._free(key)

    def _free(self, key: tuple[str, int]) -> None:
        name = key[0]
        handles = self._handles.pop(key, [])
        while handles:
            try:
                handle = handles.pop()  # one by one: another thread may take the next
            except IndexError:
                break
            self._devices[name].free(handle)
        # Counted anew: other threads free memory, too.
        sizes = [size * len(own) for (on, size), own in list(self._handles.items()) if on == name]
        self._idle[name] = sum(sizes)


SPARE: Final = Spare()

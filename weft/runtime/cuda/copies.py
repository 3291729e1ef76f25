"""Bytes between the host and a GPU, through memory that the GPU reads itself.

A GPU reads and writes only pinned memory at full speed. Bytes in other memory go through pinned
blocks, chunk by chunk: several threads copy chunks while the GPU moves those before, since one
thread alone is slower than the bus. Memory that is pinned already is used as it is.
"""

from __future__ import annotations

import ctypes
import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from weft.runtime.cpu.memory import wrap
from weft.runtime.cuda.driver import SUCCESS, require_success
from weft.runtime.cuda.watch import LaunchWatch

CHUNK: Final = 4 << 20
BLOCKS: Final = 12
WORKERS: Final = 6
# The driver itself takes a copy of so many bytes before it returns.
SMALL: Final = 64 << 10
_PORTABLE: Final = 1
_MEMORY_TYPE: Final = 2
_HOST_TYPE: Final = 1
_NO_TIMING: Final = 2


class _PinnedBlock(NamedTuple):
    """Pinned memory of one chunk, and the event behind its last use."""

    address: int
    event: Any


class Copies:
    """The copies of one GPU. `enter` makes its context current in a thread."""

    def __init__(
        self, api: Any, watch: LaunchWatch, enter: Callable[[], None], stream: Any
    ) -> None:
        self._api, self._watch, self._enter, self._stream = api, watch, enter, stream
        self._blocks: queue.SimpleQueue[_PinnedBlock] = queue.SimpleQueue()
        self._workers: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def copy_in(self, address: int, data: memoryview) -> None:
        """Write bytes of the host; they may be changed as soon as this returns."""
        self._watch.require_alive()
        self._enter()
        source, size = wrap(data).address, data.nbytes
        if size <= SMALL:
            self._require(self._api.cuMemcpyHtoDAsync_v2(address, source, size, self._stream))
        elif self._is_pinned(source):
            self._require(self._api.cuMemcpyHtoDAsync_v2(address, source, size, self._stream))
            self._watch.wait()
        else:
            self._in_chunks(self._chunk_in, address, source, size)

    def copy_out(self, data: memoryview, address: int) -> None:
        """Read bytes into memory of the host, once all that was queued is over."""
        self._watch.require_alive()
        self._enter()
        target, size = wrap(data).address, data.nbytes
        if size <= SMALL or self._is_pinned(target):
            self._watch.wait()  # a fault is told by the kernel's name, not by that of a copy
            self._require(self._api.cuMemcpyDtoHAsync_v2(target, address, size, self._stream))
            self._watch.wait()
        else:
            self._watch.wait()
            self._in_chunks(self._chunk_out, address, target, size)

    def _in_chunks(self, move: Callable[[int, int, int], None], *where: int) -> None:
        """Move chunks side by side."""
        address, host, size = where
        workers = self._open()
        starts = range(0, size, CHUNK)
        chunks = [(address + at, host + at, min(CHUNK, size - at)) for at in starts]
        for done in [workers.submit(self._moved, move, chunk) for chunk in chunks]:
            done.result()

    def _moved(self, move: Callable[[int, int, int], None], chunk: tuple[int, int, int]) -> None:
        self._enter()
        move(*chunk)

    def _chunk_in(self, address: int, host: int, size: int) -> None:
        block = self._blocks.get()
        try:
            self._watch.wait_for(block.event)
            ctypes.memmove(block.address, host, size)
            code = self._api.cuMemcpyHtoDAsync_v2(address, block.address, size, self._stream)
            self._require(code or self._api.cuEventRecord(block.event, self._stream))
        finally:
            self._blocks.put(block)

    def _chunk_out(self, address: int, host: int, size: int) -> None:
        block = self._blocks.get()
        try:
            self._watch.wait_for(block.event)
            code = self._api.cuMemcpyDtoHAsync_v2(block.address, address, size, self._stream)
            self._require(code or self._api.cuEventRecord(block.event, self._stream))
            self._watch.wait_for(block.event)
            ctypes.memmove(host, block.address, size)
        finally:
            self._blocks.put(block)

    def _open(self) -> ThreadPoolExecutor:
        """The threads, with their blocks; made when they are first needed."""
        with self._lock:
            if self._workers is None:
                self._watch.wait()  # pinning may wait for what runs, and this finds its faults
                for _ in range(BLOCKS):
                    event = ctypes.c_void_p()
                    code = self._api.cuEventCreate(ctypes.byref(event), _NO_TIMING)
                    require_success(self._api, code, "making an event")
                    self._blocks.put(_PinnedBlock(self._pinned(CHUNK), event))
                self._workers = ThreadPoolExecutor(WORKERS, "weft-copy")
            return self._workers

    def pinned(self, size: int) -> Any:
        """Memory of the host that the GPU copies at full speed, with the buffer protocol."""
        self._enter()
        address = self._pinned(max(size, 1))
        block = (ctypes.c_ubyte * size).from_address(address)
        weakref.finalize(block, self._unpin, address).atexit = False
        return block

    def _pinned(self, size: int) -> int:
        found = ctypes.c_void_p()
        code = self._api.cuMemHostAlloc(ctypes.byref(found), size, _PORTABLE)
        require_success(self._api, code, f"pinning {size} bytes of the host")
        return found.value or 0

    def _unpin(self, address: int) -> None:
        if self._watch.lost is None:
            self._enter()
            self._api.cuMemFreeHost(address)

    def _is_pinned(self, address: int) -> bool:
        kind = ctypes.c_uint()
        code = self._api.cuPointerGetAttribute(ctypes.byref(kind), _MEMORY_TYPE, address)
        return code == SUCCESS and kind.value == _HOST_TYPE

    def _require(self, code: int) -> None:
        if code != SUCCESS:
            raise self._watch.fault(code)

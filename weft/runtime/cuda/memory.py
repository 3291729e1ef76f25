"""Memory of a GPU: blocks, parts of them, and the pool that they come from.

The pool is the driver's: what is freed stays in it and is handed out again in the order of the
stream, without waiting, and it joins and splits pieces behind the addresses, so that sizes that
change from step to step leave no holes. It gives memory back when it is told to. Where a system
has no pools (some virtual GPUs), each block is asked for and given back.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, Final

from weft.runtime.cuda.driver import OUT_OF_MEMORY, SUCCESS, require_success
from weft.runtime.cuda.watch import LaunchWatch
from weft.support.errors import OutOfMemory
from weft.support.message import bytes_text

# What every block starts at a multiple of; kernels rely on 16, the widest access of a thread.
ALIGNMENT: Final = 256
_RELEASE_THRESHOLD: Final = 4
_RESERVED: Final = 5
_PINNED_TYPE: Final = 1
_ON_DEVICE: Final = 1
_READ_WRITE: Final = 3


class CudaMemory:
    """`size` bytes at `address`. A block of the pool goes back to it by `free`, or with this."""

    __slots__ = ("__weakref__", "_pool", "address", "size")

    def __init__(self, address: int, size: int, pool: MemoryPool | None = None) -> None:
        self.address = address
        self.size = size
        self._pool = pool

    def free(self) -> None:
        """Give a block back; a part, or memory of another library, gives back nothing."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.give(self.address, self.size)
            self.address = 0

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_ending():  # names may be gone when the interpreter ends
            self.free()


class _Properties(ctypes.Structure):
    """CUmemPoolProps."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("handle_kinds", ctypes.c_int),
        ("location_kind", ctypes.c_int),
        ("location_number", ctypes.c_int),
        ("security", ctypes.c_void_p),
        ("rest", ctypes.c_ubyte * 64),
    )


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (
        ("location_kind", ctypes.c_int),
        ("location_number", ctypes.c_int),
        ("flags", ctypes.c_int),
    )


class MemoryPool:
    """Memory of one GPU in the order of its stream. `enter` makes its context current.

    `used` and `peak` are bytes that are handed out, now and at most; `taken` counts the blocks.
    """

    def __init__(self, api: Any, watch: LaunchWatch, enter: Any, stream: Any, number: int) -> None:
        self._api, self._watch, self._enter, self._stream = api, watch, enter, stream
        self._number = number
        self._pool: Any = None
        self.used = 0
        self.peak = 0
        self.taken = 0

    def open(self) -> None:
        """Take from a pool of the driver from now on."""
        wanted = _Properties(_PINNED_TYPE, 0, _ON_DEVICE, self._number)
        pool = ctypes.c_void_p()
        code = self._api.cuMemPoolCreate(ctypes.byref(pool), ctypes.byref(wanted))
        require_success(self._api, code, "making a pool of memory")
        everything = ctypes.c_uint64(2**64 - 1)
        code = self._api.cuMemPoolSetAttribute(pool, _RELEASE_THRESHOLD, ctypes.byref(everything))
        require_success(self._api, code, "keeping freed memory")
        self._pool = pool

    def take(self, size: int) -> CudaMemory:
        """A new block; raises OutOfMemory."""
        self._watch.require_alive()
        self._enter()
        size = max(size, 1)
        code, address = self._take(size)
        if code == OUT_OF_MEMORY:
            self.release()
            code, address = self._take(size)
        if code == OUT_OF_MEMORY:
            raise self._error(size)
        if code != SUCCESS:
            raise self._watch.fault(code)
        self.used += size
        self.peak = max(self.peak, self.used)
        self.taken += 1
        return CudaMemory(address, size, self)

    def _take(self, size: int) -> tuple[int, int]:
        found = ctypes.c_uint64()
        if self._pool is None:
            code = self._api.cuMemAlloc_v2(ctypes.byref(found), size)
        else:
            code = self._api.cuMemAllocFromPoolAsync(
                ctypes.byref(found), size, self._pool, self._stream
            )
        return code, found.value

    def give(self, address: int, size: int) -> None:
        """Take a block back; what is queued may still use it."""
        self.used -= size
        if self._watch.lost is not None:  # the driver would wait for a kernel without end
            return
        self._enter()
        if self._pool is None:
            self._api.cuMemFree_v2(address)
        else:
            self._api.cuMemFreeAsync(address, self._stream)

    def release(self) -> None:
        """Give what lies idle back to the driver, for other processes and libraries."""
        if self._pool is not None:
            self._enter()
            self._watch.wait()
            require_success(self._api, self._api.cuMemPoolTrimTo(self._pool, 0), "freeing memory")

    @property
    def reserved(self) -> int:
        """Bytes that this process holds, handed out or idle."""
        if self._pool is None:
            return self.used
        found = ctypes.c_uint64()
        self._enter()
        code = self._api.cuMemPoolGetAttribute(self._pool, _RESERVED, ctypes.byref(found))
        require_success(self._api, code, "asking for the memory of the pool")
        return found.value

    def allow(self, number: int) -> None:
        """Let another GPU read and write this memory."""
        if self._pool is not None:
            self._enter()
            wanted = _Access(_ON_DEVICE, number, _READ_WRITE)
            code = self._api.cuMemPoolSetAccess(self._pool, ctypes.byref(wanted), 1)
            require_success(self._api, code, f"letting GPU {number} use the memory")

    def free_and_total(self) -> tuple[int, int]:
        """Bytes of the GPU that nobody has, and all that it has."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._enter()
        code = self._api.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        require_success(self._api, code, "asking for free memory")
        return free.value, total.value

    def _error(self, size: int) -> OutOfMemory:
        free, total = self.free_and_total()
        name = "CUDA" if not self._number else f"CUDA:{self._number}"
        return OutOfMemory(
            f"{name}: {bytes_text(size)} are not to be had",
            facts=[
                ("in use by this process", bytes_text(self.used)),
                ("free", bytes_text(free)),
                ("memory of the GPU", bytes_text(total)),
            ],
            fix="free what is not used any more, or compute in smaller parts",
        )

"""Memory of this process: aligned blocks, parts of them, and buffers that belong to others."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from typing import Any, Final

from weft.support.errors import ArgumentError, OutOfMemory
from weft.support.message import bytes_text

ALIGNMENT: Final = 64  # a cache line, and the widest vector
# Blocks from this size on are asked to be made of huge pages, where the system has them: walking
# through them then seldom waits for the table of pages.
HUGE_BLOCK: Final = 4 << 20
HUGE_PAGE: Final = 2 << 20
_MADV_HUGEPAGE: Final = 14


class CpuMemory:
    """`size` bytes at `address`. Whatever owns them is kept alive by `owner`.

    A block of our own is given back by `free`, or when nobody holds it any more.
    """

    __slots__ = ("__weakref__", "_is_ours", "address", "owner", "size")

    def __init__(self, address: int, size: int, owner: object = None) -> None:
        self.address = address
        self.size = size
        self.owner = owner
        self._is_ours = False

    @property
    def view(self) -> memoryview:
        """The bytes, to be read and written."""
        return memoryview((ctypes.c_char * self.size).from_address(self.address)).cast("B")

    def free(self) -> None:
        """Give a block of our own back; nobody may use it any more. A part gives back nothing."""
        if self._is_ours:
            self._is_ours = False
            _free(self.address)
        self.owner = None
        self.address = 0

    def __del__(self) -> None:
        if self._is_ours and _free is not None:  # names may be gone when the interpreter ends
            self._is_ours = False
            _free(self.address)


def allocate(size: int) -> CpuMemory:
    """A new block, aligned to a cache line; its contents are not defined."""
    memory = CpuMemory(_allocate(size), size)
    memory._is_ours = True
    return memory


def allocate_zeros(size: int) -> CpuMemory:
    """A new block of zeros; the system gives it pages as they are first touched."""
    try:
        block = mmap.mmap(-1, max(size, 1))  # aligned to a page
    except (OSError, ValueError, OverflowError):
        raise _not_to_be_had(size) from None
    start = ctypes.c_char.from_buffer(block)  # keeps the block
    return CpuMemory(ctypes.addressof(start), size, start)


def part(memory: CpuMemory, offset: int, size: int) -> CpuMemory:
    """Some bytes of other memory; they are valid as long as that is."""
    if offset < 0 or size < 0 or offset + size > memory.size:
        raise ArgumentError(
            f"view: bytes {offset} to {offset + size} are not inside {memory.size} bytes",
            rule="a view is a part of some memory",
        )
    return CpuMemory(memory.address + offset, size)


def share(memory: CpuMemory) -> Any:
    """An object with the buffer protocol over the bytes; the memory lives as long as it does."""
    lent = (ctypes.c_ubyte * memory.size).from_address(memory.address)
    lent.memory = memory  # type: ignore[attr-defined]  # an attribute of our own
    return lent


class _PyBuffer(ctypes.Structure):
    """CPython's Py_buffer."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


def wrap(buffer: Any) -> CpuMemory:
    """The bytes of any object with a contiguous buffer, without a copy; it is kept alive."""
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise ArgumentError(
            "wrap: the buffer has gaps",
            rule="memory without gaps can be used in place",
            fix="copy it first, with numpy.ascontiguousarray for example",
        )
    # Only the buffer protocol tells the address of bytes that may not be written.
    raw = _PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(raw), 0)
    address = raw.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(raw))
    return CpuMemory(address, view.nbytes, view)


if os.name == "nt":
    _runtime = ctypes.CDLL("msvcrt")
    _runtime._aligned_malloc.restype = ctypes.c_void_p
    _runtime._aligned_malloc.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
    _runtime._aligned_free.argtypes = (ctypes.c_void_p,)

    def _try_allocate(size: int) -> int:
        return _runtime._aligned_malloc(size, ALIGNMENT) or 0

    _free = _runtime._aligned_free
else:
    _runtime = ctypes.CDLL(None)
    _runtime.posix_memalign.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
    _runtime.free.argtypes = (ctypes.c_void_p,)
    if sys.platform == "linux":
        _runtime.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def _try_allocate(size: int) -> int:
        found = ctypes.c_void_p()
        is_huge = size >= HUGE_BLOCK and sys.platform == "linux"
        alignment = HUGE_PAGE if is_huge else ALIGNMENT
        failed = _runtime.posix_memalign(ctypes.byref(found), alignment, size)
        if is_huge and not failed:
            _runtime.madvise(found, size, _MADV_HUGEPAGE)  # advice: it may be refused
        return 0 if failed else found.value or 0

    _free = _runtime.free


def _allocate(size: int) -> int:
    address = _try_allocate(max(size, 1))
    if not address:
        raise _not_to_be_had(size)
    return address


def _not_to_be_had(size: int) -> OutOfMemory:
    return OutOfMemory(
        f"CPU: {bytes_text(size)} are not to be had",
        fix="free what is not used any more, or compute in smaller parts",
    )

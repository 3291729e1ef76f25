"""`DISK:path`: the bytes of a file as memory; it stores and computes nothing.

The file is mapped, so nothing is read before somebody asks for it. A file that is only read needs
no right to write; the first write maps it again. `engine/disk.py` carries values to and fro.
"""

from __future__ import annotations

import mmap
import os
from typing import Final
from weakref import WeakValueDictionary

from weft.ir.dtypes import SCALARS, dtypes
from weft.ir.program import Program
from weft.runtime.device import Abilities, Executable
from weft.support.errors import ArgumentError, DeviceError, NotSupported, file_error
from weft.target.target import Target

_DTYPES = frozenset(SCALARS.values()) - {dtypes.void}


class DiskFile:
    """A mapped file. `bytes` is the whole of it; `for_writing` makes it writable."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._map: mmap.mmap | None = None
        self._is_writable = False
        self.size = 0
        self._open("rb", mmap.ACCESS_READ)
        _IN_USE[path] = self

    def _open(self, mode: str, access: int) -> None:
        try:
            with open(self.path, mode) as file:
                self.size = os.fstat(file.fileno()).st_size
                if self.size:  # an empty file cannot be mapped
                    self._map = mmap.mmap(file.fileno(), self.size, access=access)
        except (OSError, ValueError) as failure:
            law = "a tensor on DISK is a file that exists and may be read"
            what = f"DISK: {self.path} cannot be opened"
            if isinstance(failure, OSError):
                raise file_error(what, failure, law=law) from None
            raise DeviceError(f"{what}: {failure}", law=law) from None

    def for_writing(self) -> None:
        if not self._is_writable:
            self._open("r+b", mmap.ACCESS_WRITE)
            self._is_writable = True

    @property
    def bytes(self) -> memoryview:
        """All bytes. A file that another program has cut short is found here, not by a crash."""
        if self._map is None:
            return memoryview(b"")
        if self._map.size() < self.size:
            raise DeviceError(
                f"DISK: {self.path} has become shorter",
                facts=[("was", f"{self.size} bytes"), ("is", f"{self._map.size()} bytes")],
                law="a file that is mapped keeps its length",
            )
        return memoryview(self._map)


# Files of this process that are mapped now; to cut one short would be a crash of its readers.
_IN_USE: Final[WeakValueDictionary[str, DiskFile]] = WeakValueDictionary()


class HeldBytes:
    """Bytes that a file had before it was written, for those who asked for them earlier."""

    def __init__(self, data: memoryview) -> None:
        self.bytes = memoryview(bytes(data))

    def for_writing(self) -> None:
        raise NotSupported("DISK: contents of the past cannot be written")


class DiskMemory:
    """Some bytes of a file."""

    __slots__ = ("_first", "file", "size")

    def __init__(self, file: DiskFile | HeldBytes, first: int, size: int) -> None:
        self.file = file
        self._first = first
        self.size = size

    @property
    def view(self) -> memoryview:
        return self.file.bytes[self._first : self._first + self.size]

    def writable(self) -> memoryview:
        self.file.for_writing()
        return self.view

    def part(self, offset: int, size: int) -> DiskMemory:
        if offset < 0 or size < 0 or offset + size > self.size:
            raise ArgumentError(
                f"view: bytes {offset} to {offset + size} are not inside {self.size} bytes",
                law="a view is a part of some memory",
            )
        return DiskMemory(self.file, self._first + offset, size)


class DiskDevice(Abilities):
    """One file. Its name is `DISK:` and the path."""

    stores_files = True
    compiler = ""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = name.partition(":")[2]
        if not self.path:
            raise DeviceError(
                "DISK needs a path", law="the device is named DISK:path", fix="write DISK:file.bin"
            )
        self.target = Target("DISK", "NONE", "any", frozenset(), frozenset(), _DTYPES)

    def open(self) -> DiskMemory:
        """The file as it is."""
        file = DiskFile(self.path)
        return DiskMemory(file, 0, file.size)

    def allocate(self, size: int) -> DiskMemory:
        """A new file of zeros; one of this name is replaced, unless a tensor shows it."""
        if self.path in _IN_USE:
            raise DeviceError(
                f"DISK: {self.path} is in use",
                law="a file is not replaced while a tensor shows it",
                fix="write to that tensor with assign, or choose another name",
            )
        try:
            with open(self.path, "wb") as file:
                file.truncate(size)
        except OSError as failure:
            raise file_error(
                f"DISK: {self.path} cannot be made",
                failure,
                law="a tensor on DISK is a file in a folder that exists and may be written",
            ) from None
        return self.open()

    def free(self, handle: DiskMemory) -> None:
        """The file stays; the map goes when nobody holds it."""

    def view(self, handle: DiskMemory, offset: int, size: int) -> DiskMemory:
        return handle.part(offset, size)

    def copy_in(self, handle: DiskMemory, data: memoryview) -> None:
        handle.writable()[: data.nbytes] = data.cast("B")

    def copy_out(self, data: memoryview, handle: DiskMemory) -> None:
        data.cast("B")[:] = handle.view[: data.nbytes]

    def render(self, program: Program) -> str:
        raise computes_nothing()

    def compile(self, program: Program) -> bytes:
        raise computes_nothing()

    def load(self, program: Program) -> Executable:
        raise computes_nothing()

    def synchronize(self) -> None:
        return None


def computes_nothing() -> NotSupported:
    """The error of a graph that would have to run on DISK."""
    return NotSupported(
        "DISK computes nothing",
        law="a file holds values; slices, reshapes, transposes and bitcasts of it are views",
        fix="bring the tensor to a device first, for example x.to('CPU')",
    )

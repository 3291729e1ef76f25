"""`DISK:path`: the bytes of a file as memory; it stores and computes nothing.

The file is mapped, so nothing is read before somebody asks for it. A file that is only read needs
no right to write; the first write maps it again. Opening a file changes nothing in it: it is made
if there is none, and grows when more is written than it has. What is written has room on the disk
first, because a map has no way but a signal to say that the disk is full. `engine/disk.py` carries
values to and fro.
"""

from __future__ import annotations

import errno
import mmap
import os
from typing import Final
from weakref import WeakSet

from weft.ir.dtypes import SCALARS, dtypes
from weft.ir.program import Program
from weft.runtime.device import Abilities, Executable
from weft.support.atomic_write import write_atomically
from weft.support.errors import ArgumentError, DeviceError, NotSupported, file_error
from weft.target.target import Target

# What a file system answers that cannot reserve.
_NO_RESERVE: Final = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_CLOEXEC: Final = getattr(os, "O_CLOEXEC", 0)
_DTYPES = frozenset(SCALARS.values()) - {dtypes.void}


class DiskFile:
    """A mapped file. `bytes` is the whole of it; `prepare_write` makes some of it writable."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._map: mmap.mmap | None = None
        self.size = 0
        self._open("rb", mmap.ACCESS_READ)
        _IN_USE.add(self)

    def _open(self, mode: str, access: int, first: int = 0, stop: int = 0) -> None:
        """Map the file, with room on the disk from `first` to `stop`."""
        try:
            with open(self.path, mode) as file:
                if first < stop:
                    reserve(file.fileno(), first, stop)
                self.size = os.fstat(file.fileno()).st_size
                if self.size:  # an empty file cannot be mapped
                    self._map = mmap.mmap(file.fileno(), self.size, access=access)
        except (OSError, ValueError) as failure:
            rule = "a tensor on DISK is a file that exists and may be read"
            verb = "opened" if access == mmap.ACCESS_READ else "written"
            what = f"DISK: {self.path} cannot be {verb}"
            if isinstance(failure, OSError):
                raise file_error(what, failure, rule=rule) from None
            raise DeviceError(f"{what}: {failure}", rule=rule) from None

    def prepare_write(self, first: int, stop: int) -> None:
        """Make the bytes from `first` to `stop` writable; the file grows where it ends before."""
        self._open("r+b", mmap.ACCESS_WRITE, first, stop)

    @property
    def bytes(self) -> memoryview:
        """All bytes. A file that another program has cut short is found here, not by a crash."""
        if self._map is None:
            return memoryview(b"")
        if self._map.size() < self.size:
            raise DeviceError(
                f"DISK: {self.path} has become shorter",
                facts=[("was", f"{self.size} bytes"), ("is", f"{self._map.size()} bytes")],
                rule="a file that is mapped keeps its length",
            )
        return memoryview(self._map)


# Files of this process that are mapped now: what replaces one would not be seen by its readers.
_IN_USE: Final[WeakSet[DiskFile]] = WeakSet()


class HeldBytes:
    """Bytes that a file had before it was written, for those who asked for them earlier."""

    def __init__(self, path: str, data: memoryview) -> None:
        self.path = path
        self.bytes = memoryview(bytes(data))
        self.size = len(self.bytes)

    def prepare_write(self, first: int, stop: int) -> None:
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
        found = self.file.bytes[self._first : self._first + self.size]
        if len(found) < self.size:
            raise DeviceError(
                f"DISK: {self.file.path} is shorter than its tensor",
                facts=[
                    ("expected", f"{self._first + self.size} bytes"),
                    ("got", f"{self._first + len(found)} bytes"),
                ],
                rule="a file grows when it is written; what is read is there",
            )
        return found

    def writable(self, first: int = 0, stop: int | None = None) -> memoryview:
        """All the bytes, of which those from `first` to `stop` may be written."""
        stop = self.size if stop is None else stop
        if self._first + self.size > self.file.size:
            stop = self.size  # it grows, and is whole then
        self.file.prepare_write(self._first + first, self._first + stop)
        return self.view

    def part(self, offset: int, size: int) -> DiskMemory:
        if offset < 0 or size < 0 or offset + size > self.size:
            raise ArgumentError(
                f"view: bytes {offset} to {offset + size} are not inside {self.size} bytes",
                rule="a view is a part of some memory",
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
                "DISK needs a path",
                rule="the device is named DISK:path",
                fix="write DISK:file.bin",
            )
        self.target = Target("DISK", "NONE", "any", frozenset(), frozenset(), _DTYPES)

    def open(self) -> DiskMemory:
        """The file as it is."""
        file = DiskFile(self.path)
        return DiskMemory(file, 0, file.size)

    def allocate(self, size: int) -> DiskMemory:
        """The first bytes of the file; one of zeros is made if there is none."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CLOEXEC, 0o666)
        except FileExistsError:
            return DiskMemory(DiskFile(self.path), 0, size)
        except (OSError, ValueError) as failure:
            raise self._refusal(failure) from None
        try:
            reserve(file, 0, size)
        except OSError as failure:
            os.unlink(self.path)
            raise self._refusal(failure) from None
        finally:
            os.close(file)
        return DiskMemory(DiskFile(self.path), 0, size)

    def replace(self, data: memoryview) -> DiskMemory:
        """A new file of these bytes, which replaces one of this name that no tensor may show."""
        if any(file.path == self.path for file in list(_IN_USE)):
            raise DeviceError(
                f"DISK: {self.path} is in use",
                rule="a file is not replaced while a tensor shows it",
                fix="write to that tensor with assign, or choose another name",
            )
        try:
            write_atomically(self.path, [data])
        except (OSError, ValueError) as failure:
            raise self._refusal(failure) from None
        return self.open()

    def _refusal(self, failure: OSError | ValueError) -> DeviceError:
        rule = "a tensor on DISK is a file in a folder that exists and may be written"
        what = f"DISK: {self.path} cannot be made"
        if isinstance(failure, OSError):
            return file_error(what, failure, rule=rule)
        return DeviceError(f"{what}: {failure}", rule=rule)

    def free(self, handle: DiskMemory) -> None:
        """The file stays; the map goes when nobody holds it."""

    def view(self, handle: DiskMemory, offset: int, size: int) -> DiskMemory:
        return handle.part(offset, size)

    def copy_in(self, handle: DiskMemory, data: memoryview) -> None:
        handle.writable(0, data.nbytes)[: data.nbytes] = data.cast("B")

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


def reserve(file: int, first: int, stop: int) -> None:
    """Let a file have room on the disk from `first` to `stop`; raises OSError where there is none.

    What it holds stays as it is. It grows where it ends before `stop`.
    """
    if stop <= first:
        return
    try:
        os.posix_fallocate(file, first, stop - first)
        return
    except AttributeError:  # macOS and Windows
        pass
    except OSError as failure:
        if failure.errno not in _NO_RESERVE:
            raise
    position = os.fstat(file).st_size  # zeros are written instead
    while position < stop:
        position += os.pwrite(file, bytes(min(stop - position, 1 << 20)), position)


def computes_nothing() -> NotSupported:
    """The error of a graph that would have to run on DISK."""
    return NotSupported(
        "DISK computes nothing",
        rule="a file holds values; slices, reshapes, transposes and bitcasts of it are views",
        fix="bring the tensor to a device first, for example x.to('CPU')",
    )

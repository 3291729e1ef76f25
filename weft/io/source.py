"""The bytes that every reader reads: a file or a tensor of bytes, with checked reads.

A file is mapped, so a reader takes what it needs and the rest is never read. Whatever a file says
about itself is checked here before it is believed: offsets and sizes lie inside of the file, and a
shape has as many elements as there are bytes for it.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from weft.engine.devices import is_file
from weft.engine.disk import View, mapped_bytes, part_of_file, try_view
from weft.ir.dtypes import DType, dtypes
from weft.support.errors import ArgumentTypeError, FileFormatError, ShapeError
from weft.tensor.tensor import Tensor

FileLike = Tensor | str | Path

# Sizes that no file of this world has, and axes that NumPy does not take.
_MOST_SIZE: Final = 1 << 48
_MOST_AXES: Final = 64


class Source:
    """Bytes with a name and a format, for messages. `tensor` has them as uint8."""

    def __init__(self, data: FileLike, format: str) -> None:
        self.format = format
        if isinstance(data, (str, Path)):
            data = Tensor(Path(data))
        if not isinstance(data, Tensor):
            raise ArgumentTypeError(
                f"{format}: cannot be read from {type(data).__name__}",
                rule="a file is given by its path, or as a uint8 tensor of its bytes",
            )
        if data.dtype is not dtypes.uint8 or data.ndim != 1:
            raise ShapeError(
                f"{format}: expected bytes, got {data.dtype.name} of shape {data.shape}",
                rule="the bytes of a file are a uint8 tensor with one axis",
            )
        self.tensor = data
        view = try_view(data.uop) if is_file(data.device) else None
        self._view: View | None = view if view is not None and view.is_whole else None
        if view is not None and self._view is None:
            raise ShapeError(
                f"{format}: the bytes have gaps", rule="the bytes of a file are side by side"
            )
        self.name = data.device.partition(":")[2] if self._view else "a tensor"
        self.bytes = mapped_bytes(self._view) if self._view else data.data().cast("B")
        self.size = self.bytes.nbytes

    def fault(self, what: str, at: int | None = None, rule: str = "") -> FileFormatError:
        """The error that says what is wrong with the file, and where."""
        facts: list[tuple[object, ...]] = [("file", self.name), ("size", f"{self.size} bytes")]
        if at is not None:
            facts.append(("at", f"byte {at}"))
        return FileFormatError(f"{self.format}: {what}", facts=facts, rule=rule)

    def require_inside(self, first: int, size: int, what: str) -> None:
        if first < 0 or size < 0 or first + size > self.size:
            raise self.fault(
                f"{what} lies outside of the file",
                first,
                f"bytes {first} to {first + size} of {self.size} were asked for; "
                "the file may be cut short",
            )

    def read(self, first: int, size: int, what: str) -> bytes:
        self.require_inside(first, size, what)
        return bytes(self.bytes[first : first + size])

    def unpack(self, layout: str, first: int, what: str) -> tuple[Any, ...]:
        """Numbers at an offset, as `struct` reads them; little-endian."""
        return struct.unpack("<" + layout, self.read(first, struct.calcsize("<" + layout), what))

    def elements(self, shape: Sequence[object], what: str) -> int:
        """The number of elements of a shape that a file states."""
        if len(shape) > _MOST_AXES:
            raise self.fault(
                f"{what} has {len(shape)} axes", rule=f"at most {_MOST_AXES} are read"
            )
        count = 1
        for size in shape:
            if type(size) is not int or not 0 <= size < _MOST_SIZE:
                raise self.fault(f"{what} has a size of {size!r}"[:200], rule="sizes are counts")
            count *= size
        return count

    def tensor_at(self, first: int, dtype: DType, shape: Sequence[int], what: str) -> Tensor:
        """A lazy tensor of a part of the file."""
        size = self.elements(shape, what) * dtype.itemsize
        self.require_inside(first, size, what)
        if self._view is not None:
            view = self._view._replace(first=self._view.first + first, shape=(size,))
            node = part_of_file(view, dtype, tuple(shape))
            return Tensor._value(node, self.tensor.device)
        part = self.tensor[first : first + size]
        if dtype is dtypes.bool:
            return (part != 0).reshape(tuple(shape))
        return part.bitcast(dtype).reshape(tuple(shape))

    def stream(self) -> Stream:
        return Stream(self.bytes)


class Stream(io.RawIOBase):
    """Bytes as a file object, for the parsers of the standard library."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._offset = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes. A size that a file states is not believed: no room is made."""
        end = len(self._data) if size is None or size < 0 else self._offset + size
        part = bytes(self._data[self._offset : min(end, len(self._data))])
        self._offset += len(part)
        return part

    def readinto(self, target: Any) -> int:
        part = self._data[self._offset : self._offset + len(target)]
        target[: len(part)] = part
        self._offset += len(part)
        return len(part)

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._offset, len(self._data))[whence]
        if base + offset < 0:
            raise ValueError("an offset before the first byte")
        self._offset = min(base + offset, len(self._data))
        return self._offset

    def tell(self) -> int:
        return self._offset

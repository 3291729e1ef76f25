"""GGUF: metadata and tensors of a language model in one file, often quantized.

`gguf_load` reads the metadata and the list of tensors. The tensors stay lazy: their bytes are read
when a value is asked for, and `gguf_blocks` unpacks quantized blocks inside of the kernels that
use them. Counts and lengths are checked against what is left of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from weft.io.gguf_blocks import PLAIN, QUANTIZED
from weft.io.gguf_write import Typed
from weft.io.source import FileLike, Source
from weft.ir.dtypes import dtypes
from weft.tensor.tensor import Tensor

_SCALARS: Final = ("B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d")
_STRING: Final = 8
_ARRAY: Final = 9
_SIZE: Final = struct.Struct("<Q")
_MOST_NESTED: Final = 8
_ALIGNMENT: Final = 32


class TensorEntry(NamedTuple):
    """A tensor as the file lists it; the shape is that of the tensor, rows first."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


class StoredTensor(NamedTuple):
    """A tensor as it is stored: `data` is its bytes in blocks, or its numbers if they are plain.

    What it is made of beside the data is its format and its shape.
    """

    data: Tensor
    format: str
    shape: tuple[int, ...]
    unpack: Callable[[Tensor], Tensor] | None
    has_table: bool = False  # values are read from memory beside the data

    def over(self, data: Tensor) -> Tensor:
        """The values, of data that may be elsewhere."""
        return data if self.unpack is None else self.unpack(data).reshape(self.shape)


def gguf_load(fn: FileLike, device: str | None = None) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The metadata and the tensors of a GGUF file.

    Tensors are on `device`, the default one if none is named. A quantized tensor is a float32
    expression over its packed bytes, so it fuses into what uses it; `realize` unpacks it.
    """
    metadata, stored = gguf_stored(fn, device)
    return metadata, {name: each.over(each.data) for name, each in stored.items()}


def gguf_stored(
    fn: FileLike, device: str | None = None
) -> tuple[dict[str, Any], dict[str, StoredTensor]]:
    """The metadata, and the tensors before they are unpacked."""
    source = Source(fn, "GGUF")
    metadata, entries, start = _read(source)
    name = Tensor.empty(0, device=device).device
    return metadata, {each.name: _stored(source, start, each, name) for each in entries}


def gguf_metadata(fn: FileLike) -> dict[str, Any]:
    """The metadata of a GGUF file alone."""
    return _read(Source(fn, "GGUF"))[0]


def gguf_typed_metadata(fn: FileLike) -> dict[str, Typed]:
    """The metadata of a GGUF file with the types that its values have there."""
    source = Source(fn, "GGUF")
    kinds: dict[str, tuple[int, int]] = {}
    metadata = _read(source, kinds)[0]
    return {key: Typed(kinds[key][0], value, kinds[key][1]) for key, value in metadata.items()}


def _stored(source: Source, start: int, entry: TensorEntry, device: str) -> StoredTensor:
    what = f"the tensor {entry.name!r}"
    offset, shape = start + entry.offset, entry.shape
    if entry.kind in PLAIN:
        dtype = PLAIN[entry.kind]
        data = source.tensor_at(offset, dtype, shape, what).to(device)
        return StoredTensor(data, dtype.name, shape, None)
    row = QUANTIZED[entry.kind]
    count = source.elements(shape, what) // row.elements
    if not count:
        return StoredTensor(Tensor.zeros(*shape, device=device), "float32", shape, None)
    blocks = source.tensor_at(offset, dtypes.uint8, (count, row.bytes), what).to(device)
    return StoredTensor(blocks, row.name, shape, row.unpack, row.has_table)


class _FileReader:
    """Reads values one after the other."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.offset = 0

    def number(self, layout: str, what: str) -> Any:
        (value,) = self.source.unpack(layout, self.offset, what)
        self.offset += struct.calcsize("<" + layout)
        return value

    def count(self, least: int, what: str) -> int:
        """A number of things of at least so many bytes each; the file has room for them."""
        value: int = self.number("Q", what)
        self.source.require_inside(self.offset, value * least, what)
        return value

    def text(self, what: str) -> str:
        size = self.count(1, what)
        data = self.source.read(self.offset, size, what)
        self.offset += size
        return data.decode("utf-8", "replace")

    def value(self, kind: int, what: str, depth: int = 0) -> Any:
        if kind == _STRING:
            return self.text(what)
        if kind == _ARRAY and depth < _MOST_NESTED:
            return self._array(what, depth)
        layout = _SCALARS[kind] if kind < len(_SCALARS) else None
        if layout is None:
            raise self.source.fault(
                f"{what} has the unknown type {kind}", self.offset, "types are 0 to 12"
            )
        return self.number(layout, what)

    def _array(self, what: str, depth: int) -> list[Any]:
        kind = self.number("I", what)
        layout = _SCALARS[kind] if kind < len(_SCALARS) else None
        if layout is None:
            count = self.count(8, what)
            if kind == _STRING:
                return self._texts(count, what)
            return [self.value(kind, what, depth + 1) for _ in range(count)]
        count = self.count(struct.calcsize(layout), what)
        size = count * struct.calcsize(layout)
        values = struct.unpack(f"<{count}{layout}", self.source.read(self.offset, size, what))
        self.offset += size
        return list(values)

    def _texts(self, count: int, what: str) -> list[str]:
        """So many texts: a vocabulary has a hundred thousand, so none costs a call of ours."""
        source, size_at = self.source, _SIZE.unpack_from
        data, end, at = source.bytes, source.size, self.offset
        texts = []
        for _ in range(count):
            first = at + _SIZE.size
            if first > end:
                source.require_inside(at, _SIZE.size, what)
            (size,) = size_at(data, at)
            at = first + size
            if at > end:
                source.require_inside(first, size, what)
            texts.append(str(data[first:at], "utf-8", "replace"))
        self.offset = at
        return texts


def _read(
    source: Source, kinds: dict[str, tuple[int, int]] | None = None
) -> tuple[dict[str, Any], list[TensorEntry], int]:
    if source.read(0, 4, "the beginning") != b"GGUF":
        raise source.fault("expected a GGUF file", 0, "a GGUF file begins with GGUF")
    reader = _FileReader(source)
    reader.offset = 4
    version = reader.number("I", "the version")
    if version not in (2, 3):
        raise source.fault(
            f"the version is {version}", 4, "versions 2 and 3 are read, little-endian"
        )
    tensors = reader.count(0, "the number of tensors")
    pairs = reader.count(13, "the number of metadata")
    metadata = {}
    for _ in range(pairs):
        key = reader.text("a key of the metadata")
        kind, begin = reader.number("I", key), reader.offset
        metadata[key] = reader.value(kind, f"the value of {key!r}"[:200])
        if kinds is not None:
            kinds[key] = kind, source.unpack("I", begin, key)[0] if kind == _ARRAY else -1
    source.require_inside(reader.offset, tensors * 24, "the list of tensors")
    entries = [_entry(reader) for _ in range(tensors)]
    if len({entry.name for entry in entries}) != tensors:
        raise source.fault("two tensors have one name", reader.offset)
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    if type(alignment) is not int or not 0 < alignment <= 1 << 20 or alignment % 8:
        raise source.fault("the alignment is wrong", rule="it is a multiple of 8")
    start = -(-reader.offset // alignment) * alignment
    for entry in entries:
        _require_inside(source, start, entry)
    return metadata, entries, start


def _entry(reader: _FileReader) -> TensorEntry:
    name = reader.text("the name of a tensor")
    what = f"the tensor {name!r}"[:200]
    axes = reader.number("I", what)
    reader.source.require_inside(reader.offset, axes * 8, what)
    sizes = [reader.number("Q", what) for _ in range(axes)]
    reader.source.elements(sizes, what)
    kind, offset = reader.number("I", what), reader.number("Q", what)
    return TensorEntry(name, tuple(reversed(sizes)), kind, offset)


def _require_inside(source: Source, start: int, entry: TensorEntry) -> None:
    what = f"the tensor {entry.name!r}"[:200]
    count = source.elements(entry.shape, what)
    if entry.kind in PLAIN:
        size = count * PLAIN[entry.kind].itemsize
    elif entry.kind in QUANTIZED:
        row = QUANTIZED[entry.kind]
        if not entry.shape or entry.shape[-1] % row.elements:
            raise source.fault(
                f"{what} has rows of {entry.shape[-1:]}",
                rule=f"a row of {row.name} is a whole number of {row.elements} elements",
            )
        size = count // row.elements * row.bytes
    else:
        known = sorted([row.name for row in QUANTIZED.values()])
        raise source.fault(
            f"{what} has the unknown type {entry.kind}",
            rule="plain numbers are read, and " + ", ".join(known),
        )
    source.require_inside(start + entry.offset, size, what)

"""GGUF files written: metadata, and tensors as bytes of a type that `gguf_blocks` reads.

The bytes of a tensor may come from an iterator, one tensor after the other, so a model is written
in as little memory as its largest tensor takes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from weft.io.write import Bytes, write_whole
from weft.support.errors import ArgumentTypeError

_ALIGNMENT: Final = 32
_BOOL, _STRING, _ARRAY = 7, 8, 9
_INTEGERS: Final = ((4, "I", 0, 1 << 32), (11, "q", -(1 << 63), 1 << 63), (10, "Q", 0, 1 << 64))


class PackedTensor(NamedTuple):
    """A tensor of a file: its shape, rows first, its type, how many bytes, and where they are."""

    shape: tuple[int, ...]
    kind: int
    size: int
    data: Callable[[], Bytes]


class Typed(NamedTuple):
    """A value of metadata with its type in the file, and that of the elements of a list."""

    kind: int
    value: Any
    element: int = -1


def gguf_save(
    path: str | os.PathLike[str],
    metadata: Mapping[str, Any],
    tensors: Mapping[str, PackedTensor],
) -> None:
    """Write a GGUF file; a value of the metadata may be `Typed`, else its type is the usual."""
    head = [struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))]
    for key, value in metadata.items():
        typed = value if isinstance(value, Typed) else _typed(key, value)
        head += [_text(key), struct.pack("<I", typed.kind), _value(typed)]
    offset = 0
    for name, tensor in tensors.items():
        sizes = tuple(reversed(tensor.shape))
        row = struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, tensor.kind, offset)
        head += [_text(name), row]
        offset += _aligned(tensor.size)
    write_whole(path, _parts(b"".join(head), tensors))


def _parts(head: bytes, tensors: Mapping[str, PackedTensor]) -> Iterator[Bytes]:
    yield head + bytes(_aligned(len(head)) - len(head))
    for name, tensor in tensors.items():
        data = memoryview(tensor.data()).cast("B")
        if len(data) != tensor.size:
            raise ArgumentTypeError(
                f"GGUF: the tensor {name!r} has {len(data)} bytes and not {tensor.size}"
            )
        yield data
        yield bytes(_aligned(tensor.size) - tensor.size)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _typed(key: str, value: Any) -> Typed:
    """The usual type of a value of Python."""
    if isinstance(value, (list, tuple)):
        return Typed(_ARRAY, value, _element(key, value))
    if isinstance(value, bool):
        return Typed(_BOOL, value)
    if isinstance(value, float):
        return Typed(6, value)
    if isinstance(value, str):
        return Typed(_STRING, value)
    if isinstance(value, int):
        for kind, _, least, end in _INTEGERS:
            if least <= value < end:
                return Typed(kind, value)
    raise ArgumentTypeError(
        f"GGUF: the value of {key!r} is a {type(value).__name__}",
        rule="metadata are numbers, strings, truth values and lists of one type",
    )


def _element(key: str, values: Sequence[Any]) -> int:
    kinds = {_typed(key, each).kind for each in values}
    if kinds == {4} and max(values) < 1 << 31:
        return 5  # lists of small numbers are signed ones, as kinds of tokens are
    if kinds <= {4, 11}:
        return 11
    if len(kinds) > 1:
        raise ArgumentTypeError(f"GGUF: the list {key!r} has values of several types")
    return kinds.pop()


_FORMATS: Final = {
    **dict(enumerate(("B", "b", "H", "h", "I", "i", "f", "?"))),
    10: "Q",
    11: "q",
    12: "d",
}


def _value(typed: Typed) -> bytes:
    if typed.kind == _STRING:
        return _text(typed.value)
    if typed.kind != _ARRAY:
        return struct.pack("<" + _FORMATS[typed.kind], typed.value)
    values, kind = typed.value, typed.element
    head = struct.pack("<IQ", kind, len(values))
    if kind in _FORMATS:
        return head + struct.pack(f"<{len(values)}{_FORMATS[kind]}", *values)
    return head + b"".join(_value(_typed("", each)) for each in values)

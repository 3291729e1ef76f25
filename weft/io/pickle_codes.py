"""The instructions of pickle: the byte, the name, and how the argument behind it is read.

`safe_pickle` reads them here and not through `pickletools`, which believes sizes and warns about
texts in the user's name.
"""

from __future__ import annotations

import codecs
import re
import struct
from collections.abc import Callable
from typing import Any, Final, Protocol


class PickleReader(Protocol):
    """Bytes that are taken one after the other; `take` raises where there are too few."""

    def take(self, size: int) -> bytes: ...

    def take_line(self) -> bytes: ...


Read = Callable[[PickleReader], Any]
# What may follow a backslash in a text of protocol 0; Python warns about everything else.
_ESCAPED: Final = re.compile(
    rb"(?:[^\\]|\\(?:[\\'\"abfnrtv]|x[0-9a-fA-F]{2}|[0-3][0-7]{2}|[0-7]{1,2}(?![0-7])))*",
    re.DOTALL,
)


def _packed(layout: str) -> Read:
    shape = struct.Struct("<" + layout)
    return lambda reader: shape.unpack(reader.take(shape.size))[0]


def _double(reader: PickleReader) -> float:
    (value,) = struct.unpack(">d", reader.take(8))
    return float(value)


def _counted(layout: str) -> Read:
    """Bytes behind their number."""
    count = _packed(layout)

    def read(reader: PickleReader) -> bytes:
        size = count(reader)
        if size < 0:
            raise ValueError("a size is negative")
        return reader.take(size)

    return read


def _text(layout: str, encoding: str = "utf-8") -> Read:
    data = _counted(layout)
    errors = "surrogatepass" if encoding == "utf-8" else "strict"
    return lambda reader: data(reader).decode(encoding, errors)


def _long(layout: str) -> Read:
    data = _counted(layout)
    return lambda reader: int.from_bytes(data(reader), "little", signed=True)


def _line(reader: PickleReader) -> str:
    return reader.take_line().decode("ascii")


def _int_line(reader: PickleReader) -> int | bool:
    text = _line(reader)
    return {"00": False, "01": True}.get(text) if text in ("00", "01") else int(text)  # type: ignore[return-value]


def _quoted_line(reader: PickleReader) -> str:
    data = reader.take_line().strip()
    if len(data) < 2 or data[:1] not in (b"'", b'"') or data[-1:] != data[:1]:
        raise ValueError("a text is not between quotes")
    inner = data[1:-1]
    if not _ESCAPED.fullmatch(inner):
        raise ValueError("a text has an unknown escape")
    return codecs.escape_decode(inner)[0].decode("ascii")


def _two_lines(reader: PickleReader) -> tuple[str, str]:
    first, second = reader.take_line(), reader.take_line()
    return first.decode("utf-8"), second.decode("utf-8")


# Without an argument.
_PLAIN: Final = {
    "MARK": b"(", "STOP": b".", "POP": b"0", "POP_MARK": b"1", "DUP": b"2", "NONE": b"N",
    "BINPERSID": b"Q", "REDUCE": b"R", "APPEND": b"a", "BUILD": b"b", "DICT": b"d",
    "EMPTY_DICT": b"}", "APPENDS": b"e", "LIST": b"l", "EMPTY_LIST": b"]", "OBJ": b"o",
    "SETITEM": b"s", "TUPLE": b"t", "EMPTY_TUPLE": b")", "SETITEMS": b"u", "NEWOBJ": b"\x81",
    "TUPLE1": b"\x85", "TUPLE2": b"\x86", "TUPLE3": b"\x87", "NEWTRUE": b"\x88",
    "NEWFALSE": b"\x89", "EMPTY_SET": b"\x8f", "ADDITEMS": b"\x90", "FROZENSET": b"\x91",
    "NEWOBJ_EX": b"\x92", "STACK_GLOBAL": b"\x93", "MEMOIZE": b"\x94", "NEXT_BUFFER": b"\x97",
    "READONLY_BUFFER": b"\x98",
}  # fmt: skip
_WITH_ARGUMENT: Final[dict[str, tuple[bytes, Read]]] = {
    "PROTO": (b"\x80", _packed("B")),
    "FRAME": (b"\x95", _packed("Q")),
    "INT": (b"I", _int_line),
    "LONG": (b"L", lambda reader: int(_line(reader).rstrip("L"))),
    "FLOAT": (b"F", lambda reader: float(_line(reader))),
    "BININT": (b"J", _packed("i")),
    "BININT1": (b"K", _packed("B")),
    "BININT2": (b"M", _packed("H")),
    "LONG1": (b"\x8a", _long("B")),
    "LONG4": (b"\x8b", _long("i")),
    "BINFLOAT": (b"G", _double),
    "STRING": (b"S", _quoted_line),
    "BINSTRING": (b"T", _text("i", "latin1")),
    "SHORT_BINSTRING": (b"U", _text("B", "latin1")),
    "UNICODE": (b"V", lambda reader: reader.take_line().decode("raw-unicode-escape")),
    "BINUNICODE": (b"X", _text("I")),
    "SHORT_BINUNICODE": (b"\x8c", _text("B")),
    "BINUNICODE8": (b"\x8d", _text("Q")),
    "BINBYTES": (b"B", _counted("I")),
    "SHORT_BINBYTES": (b"C", _counted("B")),
    "BINBYTES8": (b"\x8e", _counted("Q")),
    "BYTEARRAY8": (b"\x96", lambda reader: bytearray(_counted("Q")(reader))),
    "GET": (b"g", lambda reader: int(_line(reader))),
    "BINGET": (b"h", _packed("B")),
    "LONG_BINGET": (b"j", _packed("I")),
    "PUT": (b"p", lambda reader: int(_line(reader))),
    "BINPUT": (b"q", _packed("B")),
    "LONG_BINPUT": (b"r", _packed("I")),
    "GLOBAL": (b"c", _two_lines),
    "INST": (b"i", _two_lines),
    "PERSID": (b"P", _line),
    "EXT1": (b"\x82", _packed("B")),
    "EXT2": (b"\x83", _packed("H")),
    "EXT4": (b"\x84", _packed("i")),
}
# By the byte that they begin with.
CODES: Final[dict[int, tuple[str, Read | None]]] = {
    **{code[0]: (name, None) for name, code in _PLAIN.items()},
    **{code[0]: (name, read) for name, (code, read) in _WITH_ARGUMENT.items()},
}

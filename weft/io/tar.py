"""The table of a tar archive: where its files lie.

Read here and not by `tarfile`, which believes sizes: it makes room for a name of any length, and a
negative size sends it back to a header that it has read. Plain, GNU and POSIX names are known.
Links, folders, devices and sparse files are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from weft.io.source import Source

_BLOCK: Final = 512
_FILES: Final = (b"0", b"\0", b"7")
_LONG_NAME: Final = b"L"
_RECORDS: Final = (b"x", b"g")  # of POSIX: for the next member, and for all that follow
# Types whose header may state a size, and which have no bytes behind it all the same.
_EMPTY: Final = (b"1", b"2", b"3", b"4", b"5", b"6")


class TarMember(NamedTuple):
    name: str
    first: int
    size: int


class _Header(NamedTuple):
    name: str
    kind: bytes
    size: int


def tar_members(source: Source) -> Iterator[TarMember]:
    """The files of an archive, in order."""
    offset = 0
    everywhere: dict[str, str] = {}
    here: dict[str, str] = {}
    while (header := _header(source, offset)) is not None:
        offset += _BLOCK
        size = header.size
        if header.kind == _LONG_NAME:
            here["path"] = _text(_data(source, offset, size).rstrip(b"\0"))
        elif header.kind in _RECORDS:
            records = _records(source, offset, size)
            (everywhere if header.kind == b"g" else here).update(records)
        else:
            records = {**everywhere, **here}
            here = {}
            size = _stated_size(source, offset, records, size)
            is_sparse = any(key.startswith("GNU.sparse") for key in records)
            name = records.get("path", header.name)
            is_folder = header.kind == b"\0" and name.endswith("/")  # in archives of old
            if header.kind in _FILES and not is_sparse and not is_folder:
                source.require_inside(offset, size, "a member")
                yield TarMember(name, offset, size)
            size = 0 if header.kind in _EMPTY else size
        source.require_inside(offset, size, "a member")
        offset += -(-size // _BLOCK) * _BLOCK


def _header(source: Source, offset: int) -> _Header | None:
    """The header at an offset; None at the end, a block of zeros or the end of the file."""
    if offset == source.size and offset:
        return None
    block = source.read(offset, _BLOCK, "the header of a member")
    if not any(block):
        return None
    told = _number(source, offset, block[148:156])
    if told != sum(block) - sum(block[148:156]) + 8 * ord(" "):
        raise source.fault("expected a tar archive: a header is damaged", offset)
    name = _text(block[:100].partition(b"\0")[0])
    prefix = block[345:500].partition(b"\0")[0] if block[257:263] == b"ustar\0" else b""
    if prefix:
        name = f"{_text(prefix)}/{name}"
    return _Header(name, block[156:157], _number(source, offset, block[124:136]))


def _number(source: Source, offset: int, field: bytes) -> int:
    """A number in octal digits, or in bytes behind one whose highest bit is set."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    text = field.partition(b"\0")[0].strip()
    if not all(digit in b"01234567" for digit in text):
        raise source.fault("expected a tar archive: a number is damaged", offset)
    return int(text, 8) if text else 0


def _data(source: Source, offset: int, size: int) -> bytes:
    return source.read(offset, size, "the name of a member")


def _records(source: Source, offset: int, size: int) -> dict[str, str]:
    """What POSIX says of members: lines of a length, a key and a value."""
    data = _data(source, offset, size)
    found = {}
    first = 0
    while first < len(data) and data[first : first + 1] != b"\0":
        length, space, _ = data[first : first + 20].partition(b" ")
        end = first + (int(length) if space and length.isdigit() else 0)
        start = first + len(length) + 1
        key, equals, value = data[start : max(start, end - 1)].partition(b"=")
        if not equals or end > len(data):
            raise source.fault("expected a tar archive: a record is damaged", offset + first)
        found[_text(key)] = _text(value)
        first = end
    return found


def _stated_size(source: Source, offset: int, records: dict[str, str], size: int) -> int:
    stated = records.get("size")
    if stated is None:
        return size
    if not (stated.isascii() and stated.isdecimal() and len(stated) < 20):
        raise source.fault("expected a tar archive: a size is damaged", offset)
    return int(stated)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")

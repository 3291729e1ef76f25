"""The file of an exported function: a header of JSON, and blocks of raw bytes.

    WEFT-FUNCTION\\n | length of the header, 8 bytes | header | blocks, one after the other

The header has the version of the format, the size of each block and a checksum over all of it. The
first block is the text of a graph, the others are the contents of tensors. Nothing in a file is
code, and nothing of it is believed: `load.py` checks what the header and the graph say. What is
damaged, cut off or of another version raises FileFormatError.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from weft.io.write import write_whole
from weft.support.errors import FileFormatError, file_error

VERSION: Final = 2
_MAGIC: Final = b"WEFT-FUNCTION\n"
_LENGTH: Final = 8
_START: Final = len(_MAGIC) + _LENGTH
_CHECKSUM: Final = "sha256"
CONTAINER_KEYS: Final = frozenset(("version", "blocks", _CHECKSUM))


def write_container(
    path: str | os.PathLike[str], header: dict[str, Any], blocks: Sequence[bytes]
) -> None:
    """Write a file; it appears as a whole or not at all."""
    sizes = [len(block) for block in blocks]
    told = {**header, "version": VERSION, "blocks": sizes}
    told[_CHECKSUM] = _checksum(told, blocks)
    text = json.dumps(told).encode()
    write_whole(path, (_MAGIC, len(text).to_bytes(_LENGTH, "little"), text, *blocks))


def read_container(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[bytes]]:
    """The header and the blocks of a file."""
    try:
        data = Path(path).read_bytes()
    except OSError as failure:
        raise file_error(f"load_function: {os.fspath(path)} cannot be read", failure) from None
    if not data.startswith(_MAGIC):
        raise _bad(path, "expected an exported function", "such a file begins with WEFT-FUNCTION")
    size = int.from_bytes(data[len(_MAGIC) : _START], "little")
    if len(data) < _START or len(data) < _START + size:
        raise _bad(path, "the file ends inside of its header")
    header = _header(path, data[_START : _START + size])
    blocks = _blocks(path, header, data, _START + size)
    try:
        is_whole = _checksum(header, blocks) == header.get(_CHECKSUM)
    except RecursionError:
        raise _bad(path, "the header is nested too deeply") from None
    if not is_whole:
        raise _bad(path, "the contents do not match their checksum")
    return header, blocks


def _header(path: str | os.PathLike[str], text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise _bad(path, "the header is damaged") from None
    if not isinstance(header, dict) or header.get("version") != VERSION:
        version = header.get("version") if isinstance(header, dict) else None
        raise FileFormatError(
            f"load_function: {os.fspath(path)}: the version of the format is {version!r:.40}",
            rule=f"this Weft reads version {VERSION}",
            fix="save the function again with this Weft" if version == 1 else "",
        )
    return header


def _blocks(
    path: str | os.PathLike[str], header: dict[str, Any], data: bytes, first: int
) -> list[bytes]:
    sizes = header.get("blocks")
    if not isinstance(sizes, list) or not all(type(size) is int and size >= 0 for size in sizes):
        raise _bad(path, "the header is damaged", "blocks are sizes in bytes")
    if first + sum(sizes) != len(data):
        raise _bad(
            path,
            f"the file has {len(data)} bytes where its header tells of {first + sum(sizes)}",
        )
    blocks = []
    for size in sizes:
        blocks.append(data[first : first + size])
        first += size
    return blocks


def _checksum(header: dict[str, Any], blocks: Sequence[bytes]) -> str:
    """A checksum over everything; it finds damage, and does not prove where a file is from."""
    rest = {key: value for key, value in header.items() if key != _CHECKSUM}
    state = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for block in blocks:
        state.update(block)
    return state.hexdigest()


def _bad(path: str | os.PathLike[str], what: str, rule: str = "") -> FileFormatError:
    return FileFormatError(f"load_function: {os.fspath(path)}: {what}", rule=rule)

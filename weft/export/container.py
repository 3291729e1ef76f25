"""The file of an exported function: a header of JSON, and blocks of raw bytes.

    WEFT-FUNCTION\\n | length of the header, 8 bytes | header | blocks, one after the other

The header has the version of the format, the size of each block and a checksum over all of them.
Nothing in a file is code: reading one cannot run anything. What is damaged, cut off or newer than
this Weft raises FileFormatError.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from weft.support.errors import FileFormatError

VERSION: Final = 1
_MAGIC: Final = b"WEFT-FUNCTION\n"
_LENGTH: Final = 8


def write_container(
    path: str | os.PathLike[str], header: dict[str, Any], blocks: Sequence[bytes]
) -> None:
    """Write a file; it appears as a whole or not at all."""
    told = {
        **header,
        "version": VERSION,
        "blocks": [len(block) for block in blocks],
        "sha256": _checksum(blocks),
    }
    text = json.dumps(told).encode()
    target = Path(path)
    parts = (_MAGIC, len(text).to_bytes(_LENGTH, "little"), text, *blocks)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        unfinished.write_bytes(b"".join(parts))
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def read_container(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[bytes]]:
    """The header and the blocks of a file."""
    data = Path(path).read_bytes()
    start = len(_MAGIC) + _LENGTH
    if not data.startswith(_MAGIC):
        raise _bad(path, "it is no exported function", "such a file begins with WEFT-FUNCTION")
    size = int.from_bytes(data[len(_MAGIC) : start], "little")
    if len(data) < start or len(data) < start + size:
        raise _bad(path, "the file ends inside of its header")
    try:
        header = json.loads(data[start : start + size])
    except ValueError:
        raise _bad(path, "the header is damaged") from None
    if not isinstance(header, dict) or header.get("version") != VERSION:
        version = header.get("version") if isinstance(header, dict) else None
        raise _bad(
            path, f"the version of the format is {version}", f"this Weft reads version {VERSION}"
        )
    blocks = []
    at = start + size
    sizes = header.get("blocks")
    if not isinstance(sizes, list) or not all(isinstance(each, int) for each in sizes):
        raise _bad(path, "the header is damaged")
    for length in sizes:
        blocks.append(data[at : at + length])
        at += length
    if at != len(data):
        raise _bad(path, f"the file has {len(data)} bytes where its header tells of {at}")
    if _checksum(blocks) != header.get("sha256"):
        raise _bad(path, "the contents do not match their checksum")
    return header, blocks


def _checksum(blocks: Sequence[bytes]) -> str:
    found = hashlib.sha256()
    for block in blocks:
        found.update(block)
    return found.hexdigest()


def _bad(path: str | os.PathLike[str], what: str, law: str = "") -> FileFormatError:
    return FileFormatError(f"load_function: {os.fspath(path)}: {what}", law=law)

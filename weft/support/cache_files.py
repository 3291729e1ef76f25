"""The files of the disk cache: one entry read, written whole, and old ones removed.

`cache.py` is the only caller. An entry is a header and the value; the header has a magic word, the
length, and a checksum over the entry's own address and the value, so an entry that is cut short,
damaged or misplaced is a miss. Errors of the file system are misses too, never exceptions.
"""

from __future__ import annotations

import os
import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = struct.Struct("<8sQ32s")
_MAGIC = b"weft\x00\x01\r\n"
_ENTRY, _TEMPORARY = ".weft", ".weft-part"
# An embedded null byte in a path is a ValueError, not an OSError.
_UNUSABLE = (OSError, ValueError)

HOUR = 3600.0
# Eviction makes some room, so that the next put does not evict again.
KEPT_PERCENT = 90


def read_entry(path: str, address: bytes) -> bytes | None:
    """Return the value of an entry, or None; a damaged entry is removed."""
    try:
        with open(path, "rb") as file:
            changed = os.fstat(file.fileno()).st_mtime
            data = file.read()
    except _UNUSABLE:
        return None
    value = try_unpack(data, address)
    if value is None:
        _remove(path)
    elif abs(time.time() - changed) > HOUR:
        _touch(path)
    return value


def write_entry(path: str, address: bytes, value: bytes) -> None:
    """Write an entry, whole or not at all."""
    # The name is unique over threads, processes and machines that share the folder.
    temporary = f"{path.removesuffix(_ENTRY)}-{os.urandom(8).hex()}{_TEMPORARY}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(temporary, "xb") as file:
            file.write(pack(address, value))
        os.replace(temporary, path)
    except _UNUSABLE:
        _remove(temporary)


def pack(address: bytes, value: bytes) -> bytes:
    """Return the bytes of an entry."""
    return _HEADER.pack(_MAGIC, len(value), _checksum(address, value)) + value


def try_unpack(data: bytes, address: bytes) -> bytes | None:
    """Return the value in the bytes of an entry, or None where they are not what was packed."""
    if len(data) < _HEADER.size:
        return None
    magic, length, checksum = _HEADER.unpack_from(data)
    value = data[_HEADER.size :]
    is_whole = magic == _MAGIC and length == len(value)
    return value if is_whole and checksum == _checksum(address, value) else None


def evict(root: str, limit: int) -> None:
    """Remove the entries used least recently until the folder is below its limit in bytes.

    Other processes may remove files at the same time; a file that is gone counts as removed.
    """
    entries = []
    now = time.time()
    for item in _files(root):
        try:
            found = item.stat(follow_symlinks=False)
        except OSError:
            continue
        if item.name.endswith(_ENTRY):
            entries.append((found.st_mtime, found.st_size, item.path))
        elif item.name.endswith(_TEMPORARY) and now - found.st_mtime > HOUR:
            # Its writer was killed.
            _remove(item.path)
    total = sum(size for _, size, _ in entries)
    if total <= limit:
        return
    for _, size, path in sorted(entries):
        if total * 100 <= limit * KEPT_PERCENT:
            break
        _remove(path)
        total -= size


def _files(root: str) -> Iterator[os.DirEntry[str]]:
    """Yield the files that lie where entries lie: root, kind, two levels of one digit.

    The user may have chosen a folder that holds other things; those are not ours to remove.
    """
    for kind in _scan(root):
        for upper in _scan(kind.path) if "-v" in kind.name else ():
            for lower in _scan(upper.path) if len(upper.name) == 1 else ():
                yield from _scan(lower.path) if len(lower.name) == 1 else ()


def _scan(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as items:
            return list(items)
    except _UNUSABLE:
        return []


def _checksum(address: bytes, value: bytes) -> bytes:
    from hashlib import blake2b

    state = blake2b(address, digest_size=32)
    state.update(value)
    return state.digest()


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except _UNUSABLE:
        return


def _touch(path: str) -> None:
    try:
        os.utime(path)
    except _UNUSABLE:
        return

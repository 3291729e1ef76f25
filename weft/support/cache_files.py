"""The files of the disk cache: one entry read, written whole, and old ones removed.

`cache.py` is the only caller. An entry is a header and the value; the header has a magic word, the
length, and a checksum over the entry's own address and the value, made with the key of the user
who wrote it. So an entry that is cut short, damaged, misplaced or written by anybody else is a
miss. Errors of the file system are misses too, never exceptions.
"""

from __future__ import annotations

import os
import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = struct.Struct("<8sQ32s")
_MAGIC = b"weft\x00\x02\r\n"
_ENTRY = ".weft"
# An embedded null byte in a path is a ValueError, not an OSError.
_UNUSABLE = (OSError, ValueError)

HOUR = 3600.0
# Eviction makes some room, so that the next put does not evict again.
KEPT_PERCENT = 90


def read_entry(path: str, address: bytes, key: bytes) -> bytes | None:
    """Return the value of an entry, or None; one that this user did not write is removed."""
    try:
        with open(path, "rb") as file:
            changed = os.fstat(file.fileno()).st_mtime
            data = file.read()
    except _UNUSABLE:
        return None
    value = try_unpack(data, address, key)
    if value is None:
        _remove(path)
    elif abs(time.time() - changed) > HOUR:
        _touch(path)
    return value


def write_entry(path: str, address: bytes, value: bytes, key: bytes) -> None:
    """Write an entry, whole or not at all."""
    from weft.support.atomic_write import write_atomically

    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        # An entry that a crash of the machine damaged is a miss, so nobody waits for the disk.
        write_atomically(path, [pack(address, value, key)], durable=False)
    except _UNUSABLE:
        return


def pack(address: bytes, value: bytes, key: bytes) -> bytes:
    """Return the bytes of an entry."""
    return _HEADER.pack(_MAGIC, len(value), _checksum(address, value, key)) + value


def try_unpack(data: bytes, address: bytes, key: bytes) -> bytes | None:
    """Return the value in the bytes of an entry, or None where they are not what was packed."""
    from hmac import compare_digest

    if len(data) < _HEADER.size:
        return None
    magic, length, checksum = _HEADER.unpack_from(data)
    value = data[_HEADER.size :]
    is_whole = magic == _MAGIC and length == len(value)
    return value if is_whole and compare_digest(checksum, _checksum(address, value, key)) else None


def evict(root: str, limit: int) -> None:
    """Remove the entries used least recently until the folder is below its limit in bytes.

    Other processes may remove files at the same time; a file that is gone counts as removed.
    """
    from weft.support.atomic_write import remove_unfinished

    entries = []
    folders = set()
    for item in _files(root):
        folders.add(os.path.dirname(item.path))
        try:
            found = item.stat(follow_symlinks=False)
        except OSError:
            continue
        if item.name.endswith(_ENTRY):
            entries.append((found.st_mtime, found.st_size, item.path))
    for folder in folders:
        remove_unfinished(folder)
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


def _checksum(address: bytes, value: bytes, key: bytes) -> bytes:
    from hashlib import blake2b

    state = blake2b(address, digest_size=32, key=key)
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

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
    from collections.abc import Iterator, Sequence

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


def evict(root: str, limit: int) -> int:
    """Remove the entries used least recently until the folder is below its limit in bytes.

    Gives the bytes that are left. Other processes may remove files at the same time; a file that
    is gone counts as removed. Of each entry two numbers are held at a time, for there are many.
    """
    from array import array

    from weft.support.atomic_write import remove_unfinished

    times, sizes = array("d"), array("q")
    for folder in _folders(root):
        remove_unfinished(folder)
        for found, _ in _entries(folder):
            times.append(found.st_mtime)
            sizes.append(found.st_size)
    total = sum(sizes)
    if total <= limit:
        return total
    last = _last_to_go(times, sizes, total * 100 - limit * KEPT_PERCENT)
    for folder in _folders(root):
        for found, path in _entries(folder):
            # Those of the last moment go one by one, as far as needed.
            if found.st_mtime < last or (
                found.st_mtime == last and total * 100 > limit * KEPT_PERCENT
            ):
                _remove(path)
                total -= found.st_size
    return total


def _last_to_go(times: Sequence[float], sizes: Sequence[int], hundredths: int) -> float:
    """The time up to which entries have to go to free so many hundredths of bytes."""
    for number in sorted(range(len(times)), key=times.__getitem__):
        hundredths -= sizes[number] * 100
        if hundredths <= 0:
            return times[number]
    return max(times)


def _entries(folder: str) -> Iterator[tuple[os.stat_result, str]]:
    for item in _scan(folder):
        if item.name.endswith(_ENTRY):
            try:
                yield item.stat(follow_symlinks=False), item.path
            except OSError:
                continue


def _folders(root: str) -> Iterator[str]:
    """Yield the folders where entries lie: root, kind, two levels of one digit.

    The user may have chosen a folder that holds other things; those are not ours to remove.
    """
    for kind in _scan(root):
        for upper in _scan(kind.path) if "-v" in kind.name else ():
            for lower in _scan(upper.path) if len(upper.name) == 1 else ():
                if len(lower.name) == 1:
                    yield lower.path


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

"""A content-addressed cache on disk for what is slow to make: schedules, chosen opts, binaries.

Any number of threads and processes may share a cache folder without locks: an entry is written
beside its final path and moved there whole, and carries a checksum that only its user can make, so
a reader sees what this user wrote or a miss. Nothing here raises for the state of the disk. Where
the folder cannot be used, `private_folder.py` refuses it, or CACHE=0 forbids it, values live in a
bounded memory of this process alone.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock

from weft.support.cache_files import evict, read_entry, write_entry
from weft.support.errors import ArgumentError
from weft.support.private_folder import PrivateFolder, try_private_folder
from weft.support.settings import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MEMORY_BYTES = 64 << 20
# Beside a folder on disk memory is for what is asked for again soon.
MEMORY_BESIDE_DISK = 4 << 20
# What an entry takes beside its value.
_ENTRY_BYTES = 256
# One put in so many looks at the size of the whole folder, unless there was much room last time:
# then not before this process has put that part of it. Other processes put there, too.
PUTS_PER_SCAN = 64
_PART_OF_ROOM = 8
_room: dict[tuple[str, int], int] = {}  # bytes to put before the next look, by folder and limit


class DiskCache:
    """The entries of one kind, such as binaries, in one version of their format.

    A new version never reads the entries of another; those age out. A key must hold all that
    can change its value, so that it does not matter who puts it first.

    >>> from weft.support.settings import Context
    >>> with Context(CACHE=0):
    ...     DiskCache("example", version=1).get_or_make("key", lambda: b"value")
    b'value'
    """

    __slots__ = ("_folder", "_prefix")

    def __init__(self, kind: str, version: int) -> None:
        if not kind.replace("-", "").isalnum() or not kind.isascii():
            raise ArgumentError(
                f"DiskCache: {kind!r} cannot name a folder",
                rule="a kind is made of ASCII letters, digits and dashes",
            )
        self._folder = f"{kind}-v{version}"
        self._prefix = self._folder.encode() + b"\0"

    def get(self, key: bytes | str) -> bytes | None:
        """Return the value that was put under the key, or None."""
        digest = self._digest(key)
        value = _memory.get(digest)
        if value is None and (folder := private_folder(make=False)) is not None:
            value = read_entry(self._path(folder.path, digest), digest, folder.key)
            if value is not None:
                _memory.put(digest, value, MEMORY_BESIDE_DISK)
        return value

    def put(self, key: bytes | str, value: bytes) -> None:
        """Keep the value, on disk where that is possible."""
        digest = self._digest(key)
        folder, limit = private_folder(), settings.CACHE_SIZE_MB << 20
        if folder is None or len(value) > limit:
            _memory.put(digest, value, MEMORY_BYTES)
            return
        _memory.put(digest, value, MEMORY_BESIDE_DISK)
        write_entry(self._path(folder.path, digest), digest, value, folder.key)
        # A digest is as good as a random number, and a test can foresee it. A large entry always
        # scans, so that few of them cannot pass the limit unseen.
        room = _room.get((folder.path, limit), 0) - len(value)
        is_chosen = digest[-1] % PUTS_PER_SCAN == 0 or len(value) * PUTS_PER_SCAN > limit
        if room < 0 and is_chosen:
            room = (limit - evict(folder.path, limit)) // _PART_OF_ROOM
        _room[folder.path, limit] = room

    def get_or_make(self, key: bytes | str, make: Callable[[], bytes]) -> bytes:
        """Return the value of the key, made and put first if there is none.

        Two threads that miss at the same time both make it.
        """
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value)
        return value

    def _digest(self, key: bytes | str) -> bytes:
        from hashlib import blake2b  # Slow to import, and not needed before the first use.

        plain = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key
        return blake2b(self._prefix + plain, digest_size=32).digest()

    def _path(self, root: str, digest: bytes) -> str:
        # Two levels of sixteen folders keep each of them small.
        name = digest.hex()
        return os.path.join(root, self._folder, name[0], name[1], name[2:] + ".weft")


class _Memory:
    """The values this process used last, up to a number of bytes."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything, and whoever holds the lock: after a fork nobody can release it."""
        self._lock = allocate_lock()
        self._values: dict[bytes, bytes] = {}
        self.size = 0

    def get(self, digest: bytes) -> bytes | None:
        with self._lock:
            value = self._values.pop(digest, None)
            if value is not None:
                # A dictionary keeps the order of insertion: the last used goes to the end.
                self._values[digest] = value
            return value

    def put(self, digest: bytes, value: bytes, limit: int) -> None:
        """Remember a value; the oldest go until all of them are within the limit."""
        with self._lock:
            self._drop(digest)
            if len(value) + _ENTRY_BYTES <= limit:
                self._values[digest] = value
                self.size += len(value) + _ENTRY_BYTES
            while self.size > limit:
                self._drop(next(iter(self._values)))

    def _drop(self, digest: bytes) -> None:
        value = self._values.pop(digest, None)
        if value is not None:
            self.size -= len(value) + _ENTRY_BYTES


_memory = _Memory()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_memory.clear)


def forget_memory() -> None:
    """Drop what this process remembers, so that the next reads come from disk."""
    _memory.clear()


def cache_directory() -> str | None:
    """Return the folder of the disk cache, or None where the user has no such folder."""
    chosen = settings.CACHE_DIR
    return os.path.expanduser(chosen) if chosen else default_directory(sys.platform, os.environ)


def default_directory(platform: str, environment: Mapping[str, str]) -> str | None:
    """Return the cache folder that a platform's own conventions give to Weft."""
    home = os.path.expanduser("~")
    if platform == "win32":
        base = environment.get("LOCALAPPDATA", "")
    elif platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = environment.get("XDG_CACHE_HOME", "")
        # The XDG convention says to ignore a relative path.
        if not os.path.isabs(base):
            base = os.path.join(home, ".cache")
    # Without a home, `~` stays as it is; a folder of that name is not wanted anywhere.
    return os.path.join(base, "weft") if base and not base.startswith("~") else None


def private_folder(make: bool = True) -> PrivateFolder | None:
    """Return the folder to use now, this user's own, or None where the disk is off."""
    is_on = settings.CACHE and settings.CACHE_SIZE_MB > 0
    root = cache_directory() if is_on else None
    return None if root is None else try_private_folder(root, make)

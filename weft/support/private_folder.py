"""A folder of this user alone, and a key that nobody else can have: what the disk cache stands on.

The cache holds code that is run, so it believes only what its owner wrote. In a cache folder each
user has a folder of their own, `user-UID`, which is made with mode 0700. It is used if it is a
folder and no link, belongs to this user, and is open to nobody else; then so is all that lies in
it. Nor may another user be able to put something else in its place between two looks at it: each
folder above belongs to this user or to root, and is sticky where everybody can write. Any other is
refused with a warning, and nothing is read or written. The key in it, with mode 0600,
authenticates what is read, so that files which came there by another way are not believed either.
`cache.py` is the caller.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

KEY_BYTES = 32
_OTHERS = 0o077
# Windows has no owners and modes of this kind; the folder is the profile's, which is private.
_HAS_OWNERS = hasattr(os, "geteuid")
_BINARY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# An embedded null byte in a path is a ValueError, not an OSError.
_UNUSABLE = (OSError, ValueError)

_keys: Final[dict[tuple[int, int], bytes]] = {}
_refused: Final[set[tuple[str, str]]] = set()


class PrivateFolder:
    """A folder of this user, and the key of what this user wrote there."""

    __slots__ = ("key", "path")

    def __init__(self, path: str, key: bytes) -> None:
        self.path = path
        self.key = key


def try_private_folder(root: str, make: bool = True) -> PrivateFolder | None:
    """Return this user's folder in a folder, made now if need be; None where there is none."""
    path = os.path.join(root, f"user-{os.geteuid()}" if _HAS_OWNERS else "user")
    try:
        if make and not os.path.lexists(path):
            os.makedirs(root, 0o700, exist_ok=True)
            _make_folder(path)
        status = os.lstat(path)
        if (reason := _why_refused(status)) is not None:
            _warn_once(path, reason)
            return None
        identity = status.st_dev, status.st_ino
        key = _keys.get(identity)
        if key is None:
            if (reason := _why_replaceable(root)) is not None:
                _warn_once(path, reason)
                return None
            key = _keys[identity] = _read_or_make_key(os.path.join(path, "key"))
        return PrivateFolder(path, key)
    except _UNUSABLE:
        return None


def _make_folder(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return  # another process was first; whoever it was, the folder is looked at next


def _why_refused(status: os.stat_result) -> str | None:
    if not stat.S_ISDIR(status.st_mode):
        return "is a link or a file"
    if _HAS_OWNERS and status.st_uid != os.geteuid():
        return f"belongs to the user {status.st_uid}"
    if _HAS_OWNERS and status.st_mode & _OTHERS:
        return f"is open to others (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def _why_replaceable(root: str) -> str | None:
    """Why another user could move what lies in a folder, and put something else there."""
    folder = os.path.realpath(root)
    while _HAS_OWNERS:
        status = os.stat(folder)
        if status.st_uid not in (0, os.geteuid()):
            return f"lies in {folder}, which belongs to the user {status.st_uid}"
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            return f"lies in {folder}, where everybody can move it (mode without a sticky bit)"
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return None


def _warn_once(path: str, reason: str) -> None:
    if (path, reason) in _refused:
        return
    _refused.add((path, reason))
    import warnings

    warnings.warn(
        f"the disk cache is not used: {path} {reason}. A cache is a folder with mode 0700 that"
        " belongs to this user, because it holds code that is run. Remove it or set its mode, or"
        " name another folder: WEFT_CACHE_DIR=folder",
        RuntimeWarning,
        stacklevel=2,
    )


def _read_or_make_key(path: str) -> bytes:
    """Return the key of a folder. One that others may have read or written is made anew."""
    for _ in range(3):  # another process may be doing the same
        key = _try_read_key(path)
        if key is not None:
            return key
        _make_key(path)
    raise PermissionError(f"{path} cannot be read")


def _try_read_key(path: str) -> bytes | None:
    try:
        file = os.open(path, os.O_RDONLY | _BINARY)
    except FileNotFoundError:
        return None
    except OSError:
        os.unlink(path)  # a link, or not to be read
        return None
    try:
        status = os.fstat(file)
        key = os.read(file, KEY_BYTES + 1) if stat.S_ISREG(status.st_mode) else b""
    finally:
        os.close(file)
    is_open = _HAS_OWNERS and (status.st_uid != os.geteuid() or status.st_mode & _OTHERS)
    if is_open or len(key) != KEY_BYTES:
        os.unlink(path)
        return None
    return key


def _make_key(path: str) -> None:
    """Make a key unless there is one. A link to a whole file is made or not, in one step."""
    whole = f"{path}-{os.urandom(8).hex()}"
    file = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
    try:
        os.write(file, os.urandom(KEY_BYTES))
        os.fsync(file)
    finally:
        os.close(file)
    try:
        os.link(whole, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links; of two processes the last one wins
        os.replace(whole, path)
        return
    os.unlink(whole)

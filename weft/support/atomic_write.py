"""Files that are there whole or not at all: written under another name, synced, then renamed.

Every file that Weft saves comes to be here. Until the rename, a file of that name stays as it was,
whatever happens to the writer. Two writers of one path never meet: each has a file of its own, and
the last rename wins.

The unfinished file lies in the folder of its target, under a name that cannot be guessed, and is
opened exclusively. Its writer holds a lock on it, so an unfinished file without a lock belongs to
a writer that was killed; the next writer in that folder removes it. Where files cannot be locked,
one that was not written for a day does.

Links have one rule: a link that this user or root made is followed, so the file that it points at
is replaced and the link stays. A link that another user made is refused, as Linux does in /tmp.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Data = bytes | bytearray | memoryview

_PREFIX, _SUFFIX = ".weft-", ".part"
_RANDOM_BYTES = 16
_LONGEST_CHAIN = 40  # of links, as in Linux
_PERMISSIONS = 0o777
_NEW_FILE = 0o666  # less the umask
_DAY = 86400.0
# Windows has neither of the first two.
_EXCLUSIVE = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def write_atomically(
    path: str | os.PathLike[str], parts: Iterable[Data], *, durable: bool = True
) -> None:
    """Write a file of these parts, or leave what is there; raises OSError.

    A file that is replaced hands on its permissions. `durable` waits until the disk has the bytes,
    so that a crash of the machine leaves the old file or the new one.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(f"{folder}/a", [b"one ", b"file"])
    ...     pathlib.Path(folder, "a").read_bytes(), os.listdir(folder)
    (b'one file', ['a'])
    """
    target = resolve_link(path)
    replaced = _require_plain_file(target)
    folder = os.path.dirname(target) or os.curdir
    remove_unfinished(folder)
    with _unfinished_file(folder, replaced) as (file, unfinished):
        with open(file, "wb", closefd=False) as stream:
            for part in parts:
                stream.write(part)
        if durable:
            os.fsync(file)
        os.replace(unfinished, target)
    if durable:
        _sync_folder(folder)


def resolve_link(path: str | os.PathLike[str]) -> str:
    """Return the path of the file that a path stands for; raises OSError at a foreign link."""
    found = os.fspath(path)
    for _ in range(_LONGEST_CHAIN):
        try:
            status = os.lstat(found)
        except FileNotFoundError:
            return found
        if not stat.S_ISLNK(status.st_mode):
            return found
        if hasattr(os, "geteuid") and status.st_uid not in (0, os.geteuid()):
            raise PermissionError(errno.EPERM, "it is a link that another user made", found)
        found = os.path.join(os.path.dirname(found), os.readlink(found))
    raise OSError(errno.ELOOP, "its links lead nowhere", os.fspath(path))


def remove_unfinished(folder: str) -> None:
    """Remove what writers that were killed left in a folder."""
    try:
        names = [name for name in os.listdir(folder) if _is_unfinished(name)]
    except OSError:
        return
    for name in names:
        # A file that cannot be opened or removed is another user's, or gone already.
        with contextlib.suppress(OSError):
            _remove_if_stale(os.path.join(folder, name))


def _is_unfinished(name: str) -> bool:
    word = name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
    return len(word) == 2 * _RANDOM_BYTES and name == f"{_PREFIX}{word}{_SUFFIX}"


def _remove_if_stale(path: str) -> None:
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(file)
        is_free = _try_lock(file)
        if is_free is None:
            is_free = time.time() - status.st_mtime > _DAY
        if is_free and stat.S_ISREG(status.st_mode):
            os.unlink(path)
    finally:
        os.close(file)


def _require_plain_file(target: str) -> os.stat_result | None:
    """Return the status of the file that is to be replaced, if there is one."""
    try:
        status = os.lstat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(
            errno.EINVAL, "it is a device or a pipe, which a file cannot replace", target
        )
    return status


@contextlib.contextmanager
def _unfinished_file(folder: str, replaced: os.stat_result | None) -> Iterator[tuple[int, str]]:
    """A new file that this process alone writes, and its path; gone at the end if still there."""
    permissions = _NEW_FILE if replaced is None else replaced.st_mode & _PERMISSIONS
    file, path = _create(folder, permissions)
    try:
        if replaced is not None:
            _hand_on(file, replaced)
        yield file, path
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.close(file)


def _create(folder: str, permissions: int) -> tuple[int, str]:
    """Create and lock a file. One that is removed before it is locked is made again."""
    while True:
        name = f"{_PREFIX}{os.urandom(_RANDOM_BYTES).hex()}{_SUFFIX}"
        path = os.path.join(folder, name)
        file = os.open(path, _EXCLUSIVE, permissions)
        if _try_lock(file) is not False and os.fstat(file).st_nlink > 0:
            return file, path
        os.close(file)
        with contextlib.suppress(OSError):
            os.unlink(path)


def _try_lock(file: int) -> bool | None:
    """Lock an open file until it is closed; False if somebody has it, None if locks fail here."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _hand_on(file: int, replaced: os.stat_result) -> None:
    """Give a new file the owner and the permissions of the one that it replaces."""
    if hasattr(os, "fchown"):
        # Only root may give files away.
        with contextlib.suppress(PermissionError):
            os.fchown(file, replaced.st_uid, replaced.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(file, replaced.st_mode & _PERMISSIONS)


def _sync_folder(folder: str) -> None:
    """Make a rename last. Where folders cannot be synced, the file system does what it does."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)

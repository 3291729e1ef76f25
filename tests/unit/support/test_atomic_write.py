"""Files that are written whole or not at all, whoever writes, is killed or lays a trap."""

import contextlib
import errno
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import weft
from weft.support import atomic_write
from weft.support.atomic_write import remove_unfinished, write_atomically

LINUX_ONLY = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and locks of POSIX")
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root makes files of others"
)


def leftovers(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".part")]


def test_a_new_file_has_the_parts_and_the_permissions_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a", [b"one", bytearray(b"two"), memoryview(b"three")])
    finally:
        os.umask(before)
    assert (tmp_path / "a").read_bytes() == b"onetwothree"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666, 0o755, 0o400])
def test_the_permissions_of_a_file_that_is_replaced_stay(tmp_path, mode):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(mode)
    seen = []

    def parts():
        # What is unfinished is never more open than the file it will be.
        (unfinished,) = leftovers(tmp_path)
        seen.append(stat.S_IMODE((tmp_path / unfinished).stat().st_mode))
        yield b"new"

    write_atomically(path, parts())
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)
    assert seen == [mode]


@needs_root
def test_root_leaves_a_file_to_its_owner(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    os.chown(path, 65534, 65534)
    write_atomically(path, [b"new"])
    assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def parts(error):
        yield b"new"
        raise error

    for error in (OSError(errno.ENOSPC, "full"), KeyboardInterrupt(), ValueError()):
        with pytest.raises(type(error)):
            write_atomically(path, parts(error))
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["a"]


def test_the_bytes_are_synced_before_the_rename_and_the_folder_after(tmp_path, monkeypatch):
    events = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *args, name=name, real=real: (events.append(name), real(*args))[1]
        )
    write_atomically(tmp_path / "a", [b"x"])
    assert events == ["fsync", "replace", "fsync"]
    events.clear()
    write_atomically(tmp_path / "a", [b"x"], durable=False)
    assert events == ["replace"]


def test_names_are_not_guessed_and_never_opened_twice(tmp_path, monkeypatch):
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda *args: (opened.append(args), real(*args))[1])
    for _ in range(20):
        write_atomically(tmp_path / "a", [b"x"], durable=False)
    names = {Path(args[0]).name for args in opened}
    assert len(names) == 20
    assert all(args[1] & os.O_EXCL and args[1] & os.O_CREAT for args in opened)
    assert all(str(os.getpid()) != name.split(".")[1] for name in names)


@LINUX_ONLY
class TestLinks:
    def test_an_own_link_is_followed_and_stays(self, tmp_path):
        (tmp_path / "real").mkdir()
        (tmp_path / "real/a").write_bytes(b"old")
        (tmp_path / "hop").symlink_to("real/a")
        (tmp_path / "link").symlink_to(tmp_path / "hop")
        write_atomically(tmp_path / "link", [b"new"])
        assert (tmp_path / "real/a").read_bytes() == b"new"
        assert (tmp_path / "link").is_symlink() and (tmp_path / "hop").is_symlink()

    def test_a_link_to_nothing_makes_the_file(self, tmp_path):
        (tmp_path / "link").symlink_to("a")
        write_atomically(tmp_path / "link", [b"new"])
        assert (tmp_path / "a").read_bytes() == b"new"
        assert (tmp_path / "link").is_symlink()

    def test_a_ring_of_links_is_an_error(self, tmp_path):
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        with pytest.raises(OSError, match="lead nowhere"):
            write_atomically(tmp_path / "a", [b"x"])

    @needs_root
    def test_the_link_of_another_user_is_refused(self, tmp_path):
        (tmp_path / "precious").write_bytes(b"old")
        (tmp_path / "link").symlink_to("precious")
        os.chown(tmp_path / "link", 65534, 65534, follow_symlinks=False)
        with pytest.raises(PermissionError, match="another user"):
            write_atomically(tmp_path / "link", [b"x"])
        assert (tmp_path / "precious").read_bytes() == b"old"

    def test_what_is_no_file_is_not_replaced(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "folder").mkdir()
        with pytest.raises(OSError, match="a device or a pipe"):
            write_atomically(tmp_path / "pipe", [b"x"])
        with pytest.raises(IsADirectoryError):
            write_atomically(tmp_path / "folder", [b"x"])
        assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_threads_that_write_one_path_never_collide(tmp_path):
    path = tmp_path / "a"
    failures = []

    def write(letter: bytes):
        try:
            for _ in range(40):
                write_atomically(path, [letter * 1000, letter * 1000], durable=False)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=write, args=(bytes([65 + n]),)) for n in range(6)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        with contextlib.suppress(FileNotFoundError):
            data = path.read_bytes()
            assert len(data) == 2000 and len(set(data)) == 1
    assert failures == [] and os.listdir(tmp_path) == ["a"]


def _write_often(path, letter):
    for _ in range(40):
        write_atomically(path, [letter * 5000], durable=False)


def test_processes_that_write_one_path_never_collide(tmp_path):
    context = multiprocessing.get_context("spawn")
    arguments = [(tmp_path / "a", bytes([65 + n])) for n in range(3)]
    writers = [context.Process(target=_write_often, args=each) for each in arguments]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert len(set((tmp_path / "a").read_bytes())) == 1
    assert os.listdir(tmp_path) == ["a"]


SLOW_WRITER = """
import sys, time
from weft.support.atomic_write import write_atomically

def parts():
    yield b"x" * 100000
    print("begun", flush=True)
    time.sleep(60)

write_atomically(sys.argv[1], parts())
"""


@LINUX_ONLY
def test_what_a_killed_writer_leaves_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(Path(weft.__file__).parents[1])}
    command = [sys.executable, "-c", SLOW_WRITER, str(tmp_path / "a")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as writer:
        try:
            assert writer.stdout.readline() == b"begun\n"
            unfinished = leftovers(tmp_path)
            write_atomically(tmp_path / "b", [b"other"])
            assert leftovers(tmp_path) == unfinished and len(unfinished) == 1
        finally:
            writer.send_signal(signal.SIGKILL)
    assert leftovers(tmp_path) == unfinished
    write_atomically(tmp_path / "b", [b"other"])
    assert os.listdir(tmp_path) == ["b"]


def test_other_files_are_not_removed(tmp_path):
    kept = {"a.part", ".weft-.part", ".weft-12.part", "x.weft-" + "0" * 32 + ".part"}
    for name in kept:
        (tmp_path / name).write_bytes(b"mine")
    stale = tmp_path / f".weft-{'0' * 32}.part"
    stale.write_bytes(b"stale")
    remove_unfinished(str(tmp_path))
    assert set(os.listdir(tmp_path)) == kept


def test_without_locks_files_are_stale_after_a_day(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_write, "_try_lock", lambda file: None)
    old, young = (tmp_path / f".weft-{digit * 32}.part" for digit in "01")
    for path in (old, young):
        path.write_bytes(b"x")
    os.utime(old, (time.time() - 90_000,) * 2)
    write_atomically(tmp_path / "a", [b"x"])
    assert {path.name for path in tmp_path.iterdir()} == {"a", young.name}

"""The disk cache: what it returns, where it lies, and what it does without a usable disk."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.support import cache
from weft.support.cache import DiskCache, default_directory, forget_memory
from weft.support.errors import ArgumentError
from weft.support.settings import Context

ROOT = Path(__file__).resolve().parents[3]
UNUSABLE_FOLDERS = ["/proc/nope", "/dev/null/below", "bad\0name"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    forget_memory()
    with Context(CACHE=1, CACHE_SIZE_MB=1024, CACHE_DIR=str(tmp_path / "cache")):
        yield tmp_path / "cache"
    forget_memory()


def own(folder: Path) -> str:
    return str(folder / (f"user-{os.geteuid()}" if hasattr(os, "geteuid") else "user"))


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("user*/*/**/*") if path.is_file())


@pytest.mark.parametrize("value", [b"", b"x", bytes(range(256)) * 100])
@pytest.mark.parametrize("key", ["text", b"bytes", "\u2192\udc80", ""])
def test_put_then_get_from_disk(key, value: bytes):
    store = DiskCache("binary", 1)
    assert store.get(key) is None
    store.put(key, value)
    forget_memory()
    assert store.get(key) == value
    assert store.get(key) == value


def test_kinds_versions_and_keys_are_apart():
    DiskCache("binary", 1).put("key", b"value")
    forget_memory()
    assert DiskCache("binary", 2).get("key") is None
    assert DiskCache("opts", 1).get("key") is None
    assert DiskCache("binary", 1).get("key2") is None
    assert DiskCache("binary", 1).get(b"key") == b"value"


def test_the_last_put_wins():
    store = DiskCache("binary", 1)
    store.put("key", b"one")
    store.put("key", b"two")
    assert store.get("key") == b"two"
    forget_memory()
    assert store.get("key") == b"two"


def test_get_or_make_makes_once(folder: Path):
    store, made = DiskCache("binary", 1), []

    def make() -> bytes:
        made.append(1)
        return b"value"

    for _ in range(3):
        assert store.get_or_make("key", make) == b"value"
    forget_memory()
    assert store.get_or_make("key", make) == b"value"
    assert len(made) == 1


def test_an_empty_value_is_a_hit():
    store = DiskCache("binary", 1)
    store.put("key", b"")
    assert store.get_or_make("key", lambda: b"other") == b""


def test_files_lie_two_levels_below_their_kind(folder: Path):
    for i in range(20):
        DiskCache("binary", 3).put(f"key {i}", b"value")
    found = [path.relative_to(folder).parts for path in entries(folder)]
    assert len(found) == 20
    for user, kind, upper, lower, name in found:
        assert user == os.path.basename(own(folder))
        assert kind == "binary-v3"
        assert len(upper) == len(lower) == 1
        assert name.endswith(".weft")


@pytest.mark.parametrize("kind", ["", "a/b", "..", "a b", "é"])
def test_a_kind_must_be_able_to_name_a_folder(kind: str):
    with pytest.raises(ArgumentError):
        DiskCache(kind, 1)


@pytest.mark.parametrize("unusable", UNUSABLE_FOLDERS)
def test_an_unusable_folder_leaves_the_memory(unusable: str):
    with Context(CACHE_DIR=unusable):
        store = DiskCache("binary", 1)
        store.put("key", b"value")
        assert store.get("key") == b"value"
        forget_memory()
        assert store.get("key") is None
        assert store.get_or_make("key", lambda: b"again") == b"again"


def test_a_folder_below_a_file(tmp_path: Path):
    (tmp_path / "file").write_text("not a folder")
    with Context(CACHE_DIR=str(tmp_path / "file" / "below")):
        DiskCache("binary", 1).put("key", b"value")
        assert DiskCache("binary", 1).get("key") == b"value"
    assert (tmp_path / "file").read_text() == "not a folder"


def test_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    DiskCache("binary", 1).put("key", b"value")
    assert entries(folder) == []
    assert DiskCache("binary", 1).get("key") == b"value"


@pytest.mark.parametrize("off", [{"CACHE": 0}, {"CACHE_SIZE_MB": 0}])
def test_the_disk_can_be_switched_off(folder: Path, off: dict[str, int]):
    store = DiskCache("binary", 1)
    store.put("on disk", b"value")
    forget_memory()
    with Context(**off):
        assert store.get("on disk") is None
        store.put("key", b"value")
        assert store.get("key") == b"value"
    assert len(entries(folder)) == 1


def test_a_value_above_the_limit_stays_off_the_disk(folder: Path):
    with Context(CACHE_SIZE_MB=1):
        DiskCache("binary", 1).put("key", bytes((1 << 20) + 1))
    assert entries(folder) == []


def test_the_folder_stays_below_its_limit(folder: Path):
    with Context(CACHE_SIZE_MB=1):
        store = DiskCache("binary", 1)
        for i in range(40):
            store.put(str(i), bytes(100_000))
            assert sum(path.stat().st_size for path in entries(folder)) <= 1 << 20
        assert len(entries(folder)) >= 8


def test_small_entries_are_looked_at_now_and_then(folder: Path, monkeypatch: pytest.MonkeyPatch):
    scans = []
    monkeypatch.setattr(cache, "evict", lambda root, limit: scans.append((root, limit)) or limit)
    for i in range(640):
        DiskCache("binary", 1).put(str(i), b"x")
    assert 2 <= len(scans) <= 30
    assert set(scans) == {(own(folder), 1024 << 20)}


def test_where_there_is_room_nobody_looks_again_soon(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    scans = []
    monkeypatch.setattr(cache, "evict", lambda root, limit: scans.append(root) or limit - 8000)
    for i in range(640):
        DiskCache("binary", 1).put(str(i), b"x")
    assert len(scans) == 1
    for i in range(640):
        DiskCache("binary", 1).put(str(i), b"x" * 100)
    assert len(scans) >= 2


def test_the_memory_is_bounded():
    memory, entry = cache._Memory(), cache._ENTRY_BYTES + 9
    limit = 10 * entry
    for i in range(50):
        memory.put(bytes([i]), bytes(9), limit)
        assert memory.get(b"\0") is not None
    assert memory.size == limit
    assert memory.get(bytes([49])) is not None
    assert memory.get(bytes([1])) is None
    memory.put(b"large", bytes(limit), limit)
    assert memory.get(b"large") is None
    memory.put(bytes([49]), bytes(1), limit)
    assert memory.size == sum(cache._ENTRY_BYTES + len(x) for x in memory._values.values())


def test_beside_a_disk_little_is_kept_in_memory(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache, "MEMORY_BESIDE_DISK", 10_000)
    cache.forget_memory()
    for i in range(100):
        DiskCache("binary", 1).put(str(i), bytes(500))
    assert cache._memory.size <= 10_000
    cache.forget_memory()
    for i in range(100):
        assert DiskCache("binary", 1).get(str(i)) == bytes(500)
    assert cache._memory.size <= 10_000


def test_threads_share_a_cache():
    failures = []

    def hammer(seed: int) -> None:
        store = DiskCache("binary", 1)
        for i in range(150):
            key = str((i * 7 + seed) % 20)
            value = store.get(key)
            if value not in (None, key.encode() * 50):
                failures.append(value)
            store.put(key, key.encode() * 50)
            if i % 10 == 0:
                forget_memory()

    # Settings of this scope do not reach a new thread, so the default test folder is used.
    threads = [threading.Thread(target=hammer, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


FORK = """
import os
from weft.support.cache import DiskCache, _memory
with _memory._lock:
    child = os.fork()
    if child == 0:
        DiskCache("binary", 1).put("key", b"value")
        os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_fork_does_not_inherit_a_held_lock():
    # In a process of its own, because pytest may have threads, and those do not mix with a fork.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", FORK], env=environment, check=True, timeout=60)


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "/home/me/.cache/weft"),
        ("linux", {"XDG_CACHE_HOME": "/big/cache"}, "/big/cache/weft"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/weft"),
        ("darwin", {"XDG_CACHE_HOME": "/big/cache"}, "/home/me/Library/Caches/weft"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/weft"),
        ("win32", {}, None),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="compares paths of POSIX form")
def test_default_directory(platform, environment, expected, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert default_directory(platform, environment) == expected


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_no_home_means_no_folder(platform: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert default_directory(platform, {}) is None
    with Context(CACHE_DIR=""):
        monkeypatch.setattr(cache, "default_directory", lambda *_: None)
        DiskCache("binary", 1).put("key", b"value")
        assert DiskCache("binary", 1).get("key") == b"value"

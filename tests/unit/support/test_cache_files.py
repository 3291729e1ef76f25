"""The files of the cache: damage is a miss, eviction takes the oldest, processes share."""

import os
import subprocess
import sys
import time
import tracemalloc
from hashlib import blake2b
from pathlib import Path

import pytest

from weft.support import cache_files
from weft.support.atomic_write import _create
from weft.support.cache_files import HOUR, evict, pack, read_entry, try_unpack, write_entry

ROOT = Path(__file__).resolve().parents[3]
ADDRESS = bytes(32)
KEY = bytes(range(32))


def entry_path(folder: Path, name: str = "entry") -> Path:
    return folder / "binary-v1" / "a" / "b" / f"{name}.weft"


def write(path: Path, value: bytes = b"some value", age: float = 0.0) -> Path:
    write_entry(str(path), ADDRESS, value, KEY)
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_every_truncation_is_a_miss_and_is_removed(tmp_path: Path):
    path = write(entry_path(tmp_path))
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert read_entry(str(path), ADDRESS, KEY) is None
        assert not path.exists()
    path.write_bytes(whole)
    assert read_entry(str(path), ADDRESS, KEY) == b"some value"


def test_every_flipped_bit_is_a_miss():
    whole = pack(ADDRESS, b"some value", KEY)
    for i in range(len(whole) * 8):
        damaged = bytearray(whole)
        damaged[i // 8] ^= 1 << i % 8
        assert try_unpack(bytes(damaged), ADDRESS, KEY) is None


def test_more_bytes_than_written_is_a_miss():
    assert try_unpack(pack(ADDRESS, b"value", KEY) + b"\0", ADDRESS, KEY) is None


def test_an_entry_at_another_address_is_a_miss():
    assert try_unpack(pack(ADDRESS, b"value", KEY), b"\1" + ADDRESS[1:], KEY) is None


@pytest.mark.parametrize("key", [bytes(32), KEY[::-1], KEY[:31]])
def test_an_entry_with_another_key_is_a_miss(key: bytes):
    assert try_unpack(pack(ADDRESS, b"value", KEY), ADDRESS, KEY) == b"value"
    assert try_unpack(pack(ADDRESS, b"value", key), ADDRESS, KEY) is None


def test_the_checksum_of_an_earlier_format_is_a_miss():
    """Before there were keys anybody could make it."""
    whole = pack(ADDRESS, b"value", KEY)
    plain = blake2b(ADDRESS + b"value", digest_size=32).digest()
    assert try_unpack(whole[:16] + plain + whole[48:], ADDRESS, KEY) is None


def test_no_temporary_file_is_left(tmp_path: Path):
    path = write(entry_path(tmp_path))
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_a_hit_renews_an_entry_once_an_hour(tmp_path: Path):
    fresh = write(entry_path(tmp_path, "fresh"), age=HOUR / 2)
    stale = write(entry_path(tmp_path, "stale"), age=HOUR * 2)
    before = fresh.stat().st_mtime, stale.stat().st_mtime
    for path in (fresh, stale):
        assert read_entry(str(path), ADDRESS, KEY) is not None
    assert fresh.stat().st_mtime == before[0]
    assert stale.stat().st_mtime > before[1] + HOUR


def test_eviction_takes_the_oldest_first(tmp_path: Path):
    paths = [write(entry_path(tmp_path, str(i)), bytes(1000), age=100.0 * i) for i in range(10)]
    size = paths[0].stat().st_size
    evict(str(tmp_path), 10 * size)
    assert all(path.exists() for path in paths)
    evict(str(tmp_path), 5 * size)
    assert [path.exists() for path in paths] == [True] * 4 + [False] * 6


def test_eviction_covers_all_kinds_and_versions(tmp_path: Path):
    old = write(tmp_path / "opts-v0" / "0" / "f" / "x.weft", bytes(1000), age=500.0)
    new = write(entry_path(tmp_path), bytes(1000))
    evict(str(tmp_path), 1500)
    assert (old.exists(), new.exists()) == (False, True)


def test_eviction_leaves_what_is_not_ours(tmp_path: Path):
    others = [
        tmp_path / "notes.weft",
        tmp_path / "photos" / "a" / "b" / "cat.weft",
        tmp_path / "binary-v1" / "a" / "b" / "notes.txt",
        tmp_path / "binary-v1" / "letters" / "b" / "mother.weft",
    ]
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(1000))
    ours = write(entry_path(tmp_path), bytes(1000))
    evict(str(tmp_path), 1)
    assert all(path.exists() for path in others)
    assert not ours.exists()


def test_eviction_removes_what_killed_writers_left(tmp_path: Path):
    leaf = entry_path(tmp_path).parent
    leaf.mkdir(parents=True)
    left = leaf / f".weft-{'0a' * 16}.part"
    left.write_bytes(b"half")
    busy, path = _create(str(leaf), 0o600)
    evict(str(tmp_path), 1000)
    assert [item.name for item in leaf.iterdir()] == [os.path.basename(path)]
    os.close(busy)


def test_a_look_at_many_entries_holds_little_of_each(tmp_path: Path):
    for i in range(600):  # in as many folders as there are for each kind
        write(tmp_path / "binary-v1" / f"{i % 16:x}" / f"{i // 16 % 16:x}" / f"{i}.weft", b"")
    evict(str(tmp_path), 1 << 30)
    tracemalloc.start()
    try:
        evict(str(tmp_path), 1 << 30)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 600 * 64


def test_eviction_survives_files_that_vanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    paths = [write(entry_path(tmp_path, str(i)), bytes(1000), age=100.0 * i) for i in range(4)]
    remove = cache_files._remove

    def remove_after_another(path: str) -> None:
        os.unlink(path)
        remove(path)

    monkeypatch.setattr(cache_files, "_remove", remove_after_another)
    scan = cache_files._scan

    def scan_one_gone(folder: str):
        found = scan(folder)
        if any(item.path == str(paths[0]) for item in found):
            paths[0].unlink()
        return found

    monkeypatch.setattr(cache_files, "_scan", scan_one_gone)
    assert evict(str(tmp_path), 2200) <= 2200
    assert [path.exists() for path in paths] == [False, True, False, False]


@pytest.mark.parametrize("folder", ["/proc/nope", "/dev/null/below", "bad\0name"])
def test_eviction_of_an_unusable_folder(folder: str):
    evict(folder, 0)


HAMMER = """
import os, sys
from weft.support.cache import DiskCache, forget_memory, private_folder
from weft.support.cache_files import evict
store, seed, hits = DiskCache("binary", 1), int(sys.argv[1]), 0
for i in range(300):
    key = str((i * 7 + seed) % 25)
    expected = key.encode() * 2000
    value = store.get(key)
    assert value in (None, expected), "a damaged value was returned"
    hits += value is not None
    store.put(key, expected)
    forget_memory()
    if i % 20 == seed:
        evict(private_folder().path, 40_000)
    if i % 15 == seed:
        path = store._path(private_folder().path, store._digest(key))
        try:
            os.truncate(path, i)
        except OSError:
            pass
print(hits)
"""


def test_processes_share_a_folder(tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "WEFT_CACHE_DIR": str(tmp_path)}
    environment |= {"WEFT_CACHE": "1", "WEFT_CACHE_SIZE_MB": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", HAMMER, str(seed)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(4)
    ]
    for process in running:
        hits, failure = process.communicate()
        assert process.returncode == 0, failure
        assert int(hits) > 0
    parts = [path for path in tmp_path.rglob("*") if path.name.endswith(".part")]
    assert parts == []

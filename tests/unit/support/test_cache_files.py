"""The files of the cache: damage is a miss, eviction takes the oldest, processes share."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weft.support import cache_files
from weft.support.cache_files import HOUR, evict, pack, read_entry, try_unpack, write_entry

ROOT = Path(__file__).resolve().parents[3]
ADDRESS = bytes(32)


def entry_path(folder: Path, name: str = "entry") -> Path:
    return folder / "binary-v1" / "a" / "b" / f"{name}.weft"


def write(path: Path, value: bytes = b"some value", age: float = 0.0) -> Path:
    write_entry(str(path), ADDRESS, value)
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_every_truncation_is_a_miss_and_is_removed(tmp_path: Path):
    path = write(entry_path(tmp_path))
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert read_entry(str(path), ADDRESS) is None
        assert not path.exists()
    path.write_bytes(whole)
    assert read_entry(str(path), ADDRESS) == b"some value"


def test_every_flipped_bit_is_a_miss():
    whole = pack(ADDRESS, b"some value")
    for i in range(len(whole) * 8):
        damaged = bytearray(whole)
        damaged[i // 8] ^= 1 << i % 8
        assert try_unpack(bytes(damaged), ADDRESS) is None


def test_more_bytes_than_written_is_a_miss():
    assert try_unpack(pack(ADDRESS, b"value") + b"\0", ADDRESS) is None


def test_an_entry_at_another_address_is_a_miss():
    assert try_unpack(pack(ADDRESS, b"value"), b"\1" + ADDRESS[1:]) is None


def test_no_temporary_file_is_left(tmp_path: Path):
    path = write(entry_path(tmp_path))
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_a_hit_renews_an_entry_once_an_hour(tmp_path: Path):
    fresh = write(entry_path(tmp_path, "fresh"), age=HOUR / 2)
    stale = write(entry_path(tmp_path, "stale"), age=HOUR * 2)
    before = fresh.stat().st_mtime, stale.stat().st_mtime
    for path in (fresh, stale):
        assert read_entry(str(path), ADDRESS) is not None
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
    for name, age in (("old", HOUR * 2), ("busy", 0.0)):
        (leaf / f"{name}.weft-part").write_bytes(b"half")
        os.utime(leaf / f"{name}.weft-part", (time.time() - age,) * 2)
    evict(str(tmp_path), 1000)
    assert [item.name for item in leaf.iterdir()] == ["busy.weft-part"]


def test_eviction_survives_files_that_vanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    paths = [write(entry_path(tmp_path, str(i)), bytes(1000), age=100.0 * i) for i in range(4)]
    remove = cache_files._remove

    def remove_after_another(path: str) -> None:
        os.unlink(path)
        remove(path)

    monkeypatch.setattr(cache_files, "_remove", remove_after_another)
    items = cache_files._files

    def items_one_gone(root: str):
        found = list(items(root))
        paths[0].unlink()
        return found

    monkeypatch.setattr(cache_files, "_files", items_one_gone)
    evict(str(tmp_path), 2200)
    assert [path.exists() for path in paths] == [False, True, False, False]


@pytest.mark.parametrize("folder", ["/proc/nope", "/dev/null/below", "bad\0name"])
def test_eviction_of_an_unusable_folder(folder: str):
    evict(folder, 0)


HAMMER = """
import os, sys
from weft.support.cache import DiskCache, cache_directory, forget_memory
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
        evict(cache_directory(), 40_000)
    if i % 15 == seed:
        path = store._path(cache_directory(), store._digest(key))
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
    parts = [path for path in tmp_path.rglob("*") if path.name.endswith(".weft-part")]
    assert parts == []

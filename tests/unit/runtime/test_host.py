"""What is found out about this machine."""

import os
from pathlib import Path

from weft.runtime.host import (
    cache_sizes,
    core_count,
    forget_measured,
    host,
    host_target,
    keep_measured,
    measured,
    quota_cores,
)
from weft.support.settings import Context
from weft.target.cpu import DEFAULT_CACHES, LEVELS, Measured
from weft.target.target import Costs, Peaks


def test_this_machine_is_described():
    here = host()
    assert here.arch in LEVELS
    assert here.cpu
    assert all(feature in LEVELS[here.arch] for feature in here.features)
    assert 1 <= here.cores <= (os.cpu_count() or 1)
    assert len(here.cache_bytes) == 3


def test_the_target_has_as_many_threads_as_asked_for():
    assert host_target(3).units == 3
    with Context(THREADS=2):
        assert host_target().units == 2
        assert host_target(5).units == 5
    with Context(THREADS=0):
        assert host_target().units == core_count()


def test_the_quota_of_a_container_limits_the_cores():
    assert quota_cores("200000 100000", 8) == 2
    assert quota_cores("50000 100000", 8) == 1
    assert quota_cores("max 100000", 8) == 8
    assert quota_cores("", 8) == 8


def test_caches_are_read_by_level(tmp_path: Path):
    rows = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2M")]
    for number, (level, kind, size) in enumerate(rows):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        (folder / "level").write_text(level)
        (folder / "type").write_text(kind + "\n")
        (folder / "size").write_text(size)
    assert cache_sizes(str(tmp_path)) == (48 << 10, 2 << 20, DEFAULT_CACHES[2])
    assert cache_sizes(str(tmp_path / "none")) == DEFAULT_CACHES


def test_what_was_measured_is_found_again():
    threads = 97  # nobody measures this
    usual = host_target(threads)
    assert measured(threads) is None
    assert usual.peaks.operations > 0
    found = Measured(Costs(op=0.5, launch=7.0), Peaks(123.0, 456.0), (0.1, 0.2, 0.3, 0.4))
    keep_measured(threads, found)
    assert host_target(threads).costs == found.costs
    assert host_target(threads).peaks == found.peaks
    assert [cache.cost for cache in host_target(threads).caches] == [0.1, 0.2, 0.3]
    assert host_target(threads).memory("global").cost == 0.4
    assert host_target(threads).key != usual.key
    assert host_target(threads).name == usual.name
    forget_measured(threads)
    assert host_target(threads) == usual

"""What a pause of the collector makes counts as old, and cycles are freed all the same."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from weakref import ref

import pytest

from weft.ir import collector
from weft.ir.collector import CollectorPaused

MANY = 30_000


class Cycle:
    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def _collecting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("_unseen", "_seen"):
        monkeypatch.setattr(collector, name, 0)
    gc.enable()
    gc.collect()
    yield


def test_nobody_walks_what_a_long_pause_made():
    with CollectorPaused():
        kept = [[number] for number in range(MANY)]
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_count()[0] < 1000
    assert not any(each is kept for each in gc.get_objects(generation=0))


def test_a_short_pause_leaves_objects_young():
    with CollectorPaused():
        kept = [[number] for number in range(10)]
    assert any(each is kept for each in gc.get_objects(generation=0))


def test_cycles_of_many_pauses_are_freed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(collector, "_OLD_OBJECTS", 10 * MANY)
    gone = []
    for _ in range(12):
        with CollectorPaused():
            cycle, kept = Cycle(), [[number] for number in range(MANY)]
        gone.append(ref(cycle))
        del cycle, kept
    assert any(each() is None for each in gone)


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with CollectorPaused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_somebody_froze_stays_frozen():
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with CollectorPaused():
            kept = [[number] for number in range(MANY)]
        assert len(kept) == MANY and gc.get_freeze_count() >= before - 10
    finally:
        gc.unfreeze()

"""Batches: padding, tables of pages, and what is not a batch."""

import pytest

from tests.unit.llm.cache.test_paged import config
from weft.llm import Batch, PagedCache
from weft.llm.cache.paged import PAGE
from weft.support.errors import ArgumentError, OutOfMemory


def test_rows_and_time_are_padded_into_page_zero():
    cache = PagedCache(config(), 8 * PAGE)
    work = [(cache.allocate(), [1, 2, 3]), (cache.allocate(), [4]), (cache.allocate(), [5, 6])]
    batch = Batch.of(cache, work)
    assert batch.tokens.tolist() == [[1, 2, 3, 0], [4, 0, 0, 0], [5, 6, 0, 0], [0] * 4]
    assert batch.positions[0].tolist() == [0, 1, 2, 2]
    slots = batch.spans[0].slots
    assert slots[0].tolist() == [PAGE, PAGE + 1, PAGE + 2, 0] and not slots[3].any()
    assert batch.counts == (3, 1, 2)


def test_a_window_reads_its_last_pages_alone():
    cache = PagedCache(config(), 8 * PAGE)
    sequence = cache.allocate()
    Batch.of(cache, [(sequence, [0] * (5 * PAGE))])
    every, window = Batch.of(cache, [(sequence, [1])]).spans
    assert (every.used, every.first[0]) == (6, 0)
    assert (window.used, window.first[0]) == (2, 4)
    assert window.table[0, :2].tolist() == sequence.pages[1][4:]


def test_a_batch_that_does_not_fit_changes_no_sequence():
    cache = PagedCache(config(), 2 * PAGE)
    first, second = cache.allocate(), cache.allocate()
    with pytest.raises(OutOfMemory):
        Batch.of(cache, [(first, [1]), (second, [1] * 2 * PAGE)])
    assert (first.length, second.length, cache.free_tokens) == (0, 0, 2 * PAGE)


def test_what_is_no_batch():
    cache = PagedCache(config(), 2 * PAGE)
    sequence = cache.allocate()
    with pytest.raises(ArgumentError, match="at least one token"):
        Batch.of(cache, [(sequence, [])])
    with pytest.raises(ArgumentError, match="stands twice"):
        Batch.of(cache, [(sequence, [1]), (sequence, [2])])

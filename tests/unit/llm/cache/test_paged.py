"""Pages of sequences: who holds them, what a window gives back, and what a file keeps."""

import numpy as np
import pytest

from weft import GlobalCounters
from weft.llm.cache.paged import PAGE, PagedCache
from weft.llm.model.config import Config, Rope
from weft.support.errors import ArgumentError, FileFormatError, OutOfMemory
from weft.tensor import Tensor

WINDOW = PAGE


def config(windows: tuple[int, ...] = (0, WINDOW)) -> Config:
    return Config(
        architecture="llama",
        layers=len(windows),
        width=8,
        heads=2,
        kv_heads=1,
        head_size=4,
        context=16 * PAGE,
        epsilon=1e-5,
        rope=Rope(size=4),
        windows=windows,
    )


@pytest.fixture
def cache() -> PagedCache:
    return PagedCache(config(), 8 * PAGE)


def free(cache: PagedCache) -> list[int]:
    return [pool.free for pool in cache.pools]


def test_pages_come_as_a_sequence_grows_and_go_with_it(cache):
    sequence = cache.allocate()
    cache.extend(sequence, 1)
    assert free(cache) == [7, 7]
    cache.extend(sequence, PAGE)
    assert free(cache) == [6, 6] and sequence.length == PAGE + 1
    cache.truncate(sequence, PAGE)
    assert free(cache) == [7, 7]
    cache.free(sequence)
    assert free(cache) == [8, 8]
    with pytest.raises(ArgumentError, match="was freed"):
        cache.extend(sequence, 1)


def test_a_full_cache_changes_nothing(cache):
    first, second = cache.allocate(), cache.allocate()
    cache.extend(first, 6 * PAGE)
    with pytest.raises(OutOfMemory, match="3 more pages are needed and 2 are free"):
        cache.extend(second, 3 * PAGE)
    assert second.length == 0 and free(cache) == [2, 2]


def test_a_window_gives_back_what_it_has_passed(cache):
    sequence = cache.allocate()
    cache.extend(sequence, 4 * PAGE)
    cache.trim(sequence)
    assert free(cache) == [4, 7] and sequence.first == [0, 3]
    cache.extend(sequence, 1)
    with pytest.raises(ArgumentError, match="gave back"):
        cache.truncate(sequence, 2 * PAGE)
    cache.free(sequence)
    assert free(cache) == [8, 8]


def test_a_fork_shares_pages_until_it_writes(cache):
    first = cache.allocate()
    cache.extend(first, PAGE + 3)
    page = first.pages[0][1]
    cache.keys[0][page] = Tensor.ones(PAGE, 1, 4) * 7
    fork = cache.fork(first)
    assert free(cache) == [6, 6]
    cache.extend(fork, 1)
    assert free(cache) == [5, 5] and fork.pages[0][0] == first.pages[0][0]
    assert (cache.keys[0][fork.pages[0][1]].numpy() == 7).all()
    cache.free(first)
    assert free(cache) == [6, 6]
    cache.free(fork)
    assert free(cache) == [8, 8]


def test_a_new_cache_is_zeros_that_no_kernel_wrote():
    GlobalCounters.reset()
    cache = PagedCache(config(), 8 * PAGE)
    assert not GlobalCounters.kernel_count
    for stored in (*cache.keys, *cache.values):
        assert not stored.numpy().any()
    before = GlobalCounters.mem_used
    del cache, stored
    assert GlobalCounters.mem_used == before - 4 * 9 * PAGE * 4 * 4  # and it is given back


def test_a_sequence_is_saved_and_loaded(cache, tmp_path):
    sequence = cache.allocate()
    cache.extend(sequence, 2 * PAGE + 5)
    cache.trim(sequence)
    source = np.random.default_rng(0)
    for layer in range(2):
        for stored in (cache.keys[layer], cache.values[layer]):
            stored.assign(Tensor(source.standard_normal(stored.shape).astype(np.float32)))
    path = tmp_path / "sequence.safetensors"
    cache.save(sequence, path)
    other = PagedCache(config(), 8 * PAGE)
    other.extend(other.allocate(), 3)  # so that pages have other numbers
    found = other.load(path)
    assert (found.length, found.first) == (sequence.length, sequence.first)
    for index, layer in ((0, 0), (1, 1)):
        got = other.keys[layer].numpy()[found.pages[index]]
        np.testing.assert_array_equal(got, cache.keys[layer].numpy()[sequence.pages[index]])
    with pytest.raises(FileFormatError, match="other windows"):
        PagedCache(config((0, 0)), 8 * PAGE).load(path)


def test_a_sequence_does_not_outgrow_the_context():
    cache = PagedCache(config(), 32 * PAGE)
    with pytest.raises(ArgumentError, match="does not fit the context"):
        cache.extend(cache.allocate(), 16 * PAGE + 1)

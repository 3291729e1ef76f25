"""Bounded caches: what goes, and when."""

from weft.support import bounded_cache
from weft.support.bounded_cache import BoundedCache, clear_bounded_caches


def cache_of(monkeypatch, *args, **names) -> BoundedCache:
    """A cache that nobody else empties."""
    monkeypatch.setattr(bounded_cache, "_CACHES", [])
    return BoundedCache(*args, **names)


def test_the_oldest_goes_first(monkeypatch):
    cache = cache_of(monkeypatch, 3)
    for number in range(10):
        cache[number] = str(number)
        assert len(cache) <= 3
    assert list(cache) == [7, 8, 9]


def test_an_entry_that_is_put_again_is_new(monkeypatch):
    cache = cache_of(monkeypatch, 2)
    for key in "aba":
        cache[key] = key
    cache["c"] = "c"
    assert list(cache) == ["a", "c"]


def test_sizes_are_bounded_together(monkeypatch):
    cache = cache_of(monkeypatch, 100, size_of=len)
    for number in range(50):
        cache[number] = b"x" * 30
        assert cache.size == 30 * len(cache) <= 100
    cache[49] = b"x" * 10
    assert cache.size == 70
    cache["large"] = b"x" * 1000  # alone, and gone with the next
    assert list(cache) == ["large"]
    cache["small"] = b"x"
    assert cache.size == 1
    assert list(cache) == ["small"]


def test_all_are_emptied(monkeypatch):
    caches = [cache_of(monkeypatch, 4, size_of=len), BoundedCache(4)]
    for cache in caches:
        cache["key"] = "value"
    clear_bounded_caches()
    assert caches == [{}, {}]
    assert [cache.size for cache in caches] == [0, 0]

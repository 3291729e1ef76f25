"""Dictionaries of what can be made again, each with a bound, and one way to empty them all.

A process that meets ever new shapes must not grow, so a table that gets an entry with each new
shape is one of these. `weft.clear_caches` empties them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_CACHES: Final[list[BoundedCache[Any, Any]]] = []


class BoundedCache(dict[Key, Value]):
    """At most `most` entries or, with `size_of`, entries that take so much together.

    The entry that came first goes first. The newest stays, whatever its size. Reading is that of
    a plain dictionary.

    >>> squares = BoundedCache(most=2)
    >>> for number in range(4):
    ...     squares[number] = number**2
    >>> squares
    {2: 4, 3: 9}
    """

    __slots__ = ("_size_of", "_total", "most")

    def __init__(self, most: int, size_of: Callable[[Value], int] | None = None) -> None:
        super().__init__()
        self.most = most
        self._size_of = size_of
        self._total = 0
        _CACHES.append(self)

    def __setitem__(self, key: Key, value: Value) -> None:
        self._drop(key)
        super().__setitem__(key, value)
        if self._size_of is not None:
            self._total += self._size_of(value)
        while len(self) > 1 and self.size > self.most:
            try:
                self._drop(next(iter(self)))
            except RuntimeError:  # another thread puts something at this moment
                continue

    @property
    def size(self) -> int:
        """What `most` bounds."""
        return len(self) if self._size_of is None else self._total

    def clear(self) -> None:
        super().clear()
        self._total = 0

    def _drop(self, key: Key) -> None:
        value = self.pop(key, None)
        if value is not None and self._size_of is not None:
            self._total -= self._size_of(value)


def clear_bounded_caches() -> None:
    """Empty every bounded cache of this process."""
    for cache in _CACHES:
        cache.clear()

"""Sequences that were read before: a prompt that begins alike does not read that again.

What an answer leaves in the cache stays until room is needed; the least recently used goes first.
A prompt that goes on from a whole one takes it over. Otherwise full pages are shared, which copies
nothing; what is left of a page is read again.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weft.llm.cache.paged import PAGE, PagedCache, Sequence
from weft.llm.generate.sampling import Array
from weft.support.errors import ArgumentError


class Kept:
    """A sequence with the tokens that it has read."""

    def __init__(self, tokens: list[int], sequence: Sequence) -> None:
        self.tokens = np.array(tokens, np.int64)
        self.sequence = sequence


class Prefixes:
    """The sequences of answers that are over, in the order of their last use."""

    def __init__(self, cache: PagedCache) -> None:
        self.cache = cache
        self._kept: list[Kept] = []

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, tokens: list[int], sequence: Sequence) -> None:
        """Take a sequence over; one that is a prefix of it is of no use any more."""
        made = Kept(tokens[: sequence.length], sequence)
        for other in list(self._kept):
            if common(other.tokens, made.tokens) == len(other.tokens):
                self._drop(other)
        self._kept.append(made)

    def sequence_for(self, tokens: list[int], running: Iterable[Kept]) -> Sequence:
        """A sequence that has read as many of the first tokens as are known, but the last."""
        wanted = np.array(tokens, np.int64)[:-1]
        best, size = None, 0
        for each in (*self._kept, *running):
            alike = common(each.tokens, wanted)
            if alike > size:
                best, size = each, alike
        if best is None:
            return self.cache.allocate()
        if best in self._kept:
            self._kept.remove(best)
            if size == len(best.tokens):
                return best.sequence
            self._kept.append(best)
        return self._shared(best, size // PAGE * PAGE)

    def _shared(self, best: Kept, size: int) -> Sequence:
        if not size:
            return self.cache.allocate()
        try:
            return self.cache.fork(best.sequence, size)
        except ArgumentError:  # a window gave back what the prefix attends to
            return self.cache.allocate()

    def make_room(self) -> bool:
        """Forget the least recently used sequence; whether there was one."""
        if not self._kept:
            return False
        self._drop(self._kept[0])
        return True

    def _drop(self, kept: Kept) -> None:
        self._kept.remove(kept)
        self.cache.free(kept.sequence)


def common(a: Array, b: Array) -> int:
    """How many elements two arrays begin with that are the same.

    >>> common(np.array([1, 2, 3]), np.array([1, 2, 4, 5]))
    2
    """
    size = min(len(a), len(b))
    differ = np.flatnonzero(a[:size] != b[:size])
    return int(differ[0]) if len(differ) else size

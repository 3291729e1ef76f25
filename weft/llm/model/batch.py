"""A batch: the next tokens of several sequences, as arrays of equal rows.

Rows and time are padded to a few sizes, so that a few programs serve every batch. What is
appended is written to page 0, which nobody reads, and is not part of a result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from weft.llm.cache.paged import PAGE, PagedCache, Sequence
from weft.support.errors import ArgumentError

Wanted = Literal["last", "every", "hidden"]

TIMES: Final = (1, 2, 4, 8, 32, 128, 512)
ROWS: Final = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class SpanTables:
    """For layers of one window: own slots (rows, time), pages (rows, most) and how many are used.

    `first` (rows,) is the number, within its sequence, of the first page of each row.
    """

    slots: Any
    table: Any
    first: Any
    used: int


@dataclass(frozen=True)
class Batch:
    """Tokens and positions (rows, time), padded; `counts` are the tokens of each sequence."""

    cache: PagedCache
    tokens: Any
    positions: Any
    counts: tuple[int, ...]
    spans: tuple[SpanTables, ...]
    wanted: Wanted

    @staticmethod
    def of(
        cache: PagedCache,
        work: Iterable[tuple[Sequence, Iterable[int]]],
        wanted: Wanted = "last",
    ) -> Batch:
        """The next tokens of sequences, which are extended by them.

        A cache that is full raises before any sequence is changed.
        """
        rows = [(sequence, list(tokens)) for sequence, tokens in work]
        counts = _require_rows(rows)
        starts = [sequence.length for sequence, _ in rows]
        for index, (sequence, new) in enumerate(rows):
            try:
                cache.extend(sequence, len(new))
            except Exception:
                for (earlier, _), start in zip(rows[:index], starts[:index], strict=True):
                    cache.truncate(earlier, start)
                raise
        time, height = padded(max(counts), TIMES), padded(len(rows), ROWS)
        padded_tokens = np.zeros((height, time), np.int32)
        positions = np.zeros((height, time), np.int32)
        for row, ((_, ids), start) in enumerate(zip(rows, starts, strict=True)):
            padded_tokens[row, : len(ids)] = ids
            positions[row] = np.minimum(start + np.arange(time), start + len(ids) - 1)
        spans = tuple(
            _tables(cache, index, rows, starts, (height, time))
            for index in range(len(cache.spans))
        )
        return Batch(cache, padded_tokens, positions, counts, spans, wanted)


def padded(count: int, sizes: tuple[int, ...]) -> int:
    """The least of the sizes that has room, or a multiple of the greatest.

    >>> padded(3, (1, 2, 4)), padded(4, (1, 2, 4)), padded(9, (1, 2, 4))
    (4, 4, 12)
    """
    if count > sizes[-1]:
        return -(-count // sizes[-1]) * sizes[-1]
    return sizes[bisect_left(sizes, count)]


def table_width(cache: PagedCache, index: int, time: int) -> int:
    """The most pages that tokens of a span attend to."""
    window = cache.spans[index]
    reach = cache.config.context if not window else min(window + time, cache.config.context)
    return min(-(-reach // PAGE) + (1 if window else 0), cache.pools[index].count)


def _tables(
    cache: PagedCache,
    index: int,
    rows: list[tuple[Sequence, list[int]]],
    starts: list[int],
    shape: tuple[int, int],
) -> SpanTables:
    window = cache.spans[index]
    slots = np.zeros(shape, np.int32)
    table = np.zeros((shape[0], table_width(cache, index, shape[1])), np.int32)
    first = np.zeros(shape[0], np.int32)
    used = 1
    for row, ((sequence, ids), start) in enumerate(zip(rows, starts, strict=True)):
        pages, gone = np.array(sequence.pages[index], np.int32), sequence.first[index]
        own = np.arange(start, start + len(ids))
        slots[row, : len(ids)] = pages[own // PAGE - gone] * PAGE + own % PAGE
        least = max(start - window + 1, 0) // PAGE if window else 0
        read = pages[max(least - gone, 0) :]
        table[row, : len(read)] = read
        first[row] = max(least, gone)
        used = max(used, len(read))
    return SpanTables(slots, table, first, used)


def _require_rows(rows: list[tuple[Sequence, list[int]]]) -> tuple[int, ...]:
    if not rows or not all(tokens for _, tokens in rows):
        raise ArgumentError("batch: expected sequences with at least one token each")
    if len({id(sequence) for sequence, _ in rows}) != len(rows):
        raise ArgumentError("batch: a sequence stands twice", rule="its tokens are one list")
    return tuple(len(tokens) for _, tokens in rows)

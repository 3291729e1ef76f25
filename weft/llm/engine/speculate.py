"""Tokens that may follow, proposed cheaply and checked by the model in one step.

An answer draws after each proposed token exactly as it would have alone, and the first one that
differs ends the check. So proposals change how fast an answer comes, and not what it is.
"""

from __future__ import annotations

from typing import Protocol


class Proposer(Protocol):
    """Says which tokens may follow; none is an answer too."""

    def propose(self, tokens: list[int], most: int) -> list[int]:
        """At most so many tokens that may follow."""


class NgramProposer:
    """What followed the last few tokens where they stood before.

    >>> NgramProposer(size=2, count=3).propose([1, 2, 3, 4, 1, 2], 8)
    [3, 4, 1]
    """

    def __init__(self, size: int = 3, count: int = 7) -> None:
        self.size = size
        self.count = count

    def propose(self, tokens: list[int], most: int) -> list[int]:
        wanted = min(self.count, most)
        if wanted < 1:
            return []
        for size in range(min(self.size, len(tokens) - 1), 0, -1):
            begin = _last_match(tokens, size)
            if begin is not None:
                return tokens[begin + size : begin + size + wanted]
        return []


def _last_match(tokens: list[int], size: int) -> int | None:
    """Where the last `size` tokens stand for the last time before the end."""
    ending = tokens[-size:]
    for begin in range(len(tokens) - size - 1, -1, -1):
        if tokens[begin + size - 1] == ending[-1] and tokens[begin : begin + size] == ending:
            return begin
    return None

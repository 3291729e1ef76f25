"""Tokens that a grammar allows: a mask over the vocabulary for each state.

The tokens are sorted by their bytes. A walk over them keeps the state of every prefix, and where a
prefix is refused it goes on behind all tokens that begin with it. Masks are kept by state.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from weft.llm.generate.grammar import DEAD, Grammar, State
from weft.llm.text.tokenizer import TextTokenizer

MOST_MASKS: Final = 256


class Vocabulary:
    """The bytes of all tokens in order, and the tokens that end a text."""

    def __init__(
        self, token_bytes: list[bytes], special: Iterable[int], ends: Iterable[int]
    ) -> None:
        hidden = set(special)
        order = sorted(
            (word, token) for token, word in enumerate(token_bytes) if word and token not in hidden
        )
        self.size = len(token_bytes)
        self.token_bytes = token_bytes
        self.sorted = [word for word, _ in order]
        self.tokens = [token for _, token in order]
        self.ends = sorted(ends)

    @staticmethod
    def of(tokenizer: TextTokenizer) -> Vocabulary:
        return Vocabulary(tokenizer.token_bytes, tokenizer.special, tokenizer.marks.ends)


class Masks:
    """The masks of a grammar over a vocabulary, shared by all texts that follow it."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        self.grammar = grammar
        self.vocabulary = vocabulary
        self._masks: dict[State, np.ndarray[Any, np.dtype[np.bool_]]] = {}

    def mask(self, state: State) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which tokens may follow in a state."""
        found = self._masks.get(state)
        if found is None:
            if len(self._masks) >= MOST_MASKS:
                self._masks.pop(next(iter(self._masks)))
            found = self._masks[state] = self._made(state)
        return found

    def _made(self, start: State) -> np.ndarray[Any, np.dtype[np.bool_]]:
        vocabulary, step = self.vocabulary, self.grammar.step
        mask = np.zeros(vocabulary.size, np.bool_)
        if self.grammar.is_complete(start) or start == DEAD:
            mask[vocabulary.ends] = True
        if start == DEAD:
            return mask
        allowed: list[int] = []
        words, count, at = vocabulary.sorted, len(vocabulary.sorted), 0
        states: list[State] = [start]  # after each byte of the word before
        last = b""
        while at < count:
            word = words[at]
            depth = _common(last, word, len(states) - 1)
            del states[depth + 1 :]
            state = states[depth]
            for index in range(depth, len(word)):
                state = step(state, word[index])
                if state == DEAD:
                    at = bisect_left(words, _after(word[: index + 1]), at + 1)
                    break
                states.append(state)
            else:
                allowed.append(vocabulary.tokens[at])
                at += 1
            last = word
        mask[allowed] = True
        return mask


class Constraint:
    """One text that follows a grammar, token by token."""

    def __init__(self, masks: Masks) -> None:
        self.masks = masks
        self.state = masks.grammar.start

    def allowed(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which tokens may follow; an end where the text is whole, or nothing else is left."""
        mask = self.masks.mask(self.state)
        if not mask.any():
            mask = mask.copy()
            mask[self.masks.vocabulary.ends] = True
        return mask

    def add(self, token: int) -> None:
        if token not in self.masks.vocabulary.ends:
            word = self.masks.vocabulary.token_bytes[token]
            self.state = self.masks.grammar.walk(self.state, word)

    @property
    def is_final(self) -> bool:
        """Whether the text is whole and nothing can follow."""
        return self.masks.grammar.is_final(self.state)

    def fork(self) -> Constraint:
        made = Constraint(self.masks)
        made.state = self.state
        return made


def _common(last: bytes, word: bytes, most: int) -> int:
    size = min(len(last), len(word), most)
    for index in range(size):
        if last[index] != word[index]:
            return index
    return size


def _after(prefix: bytes) -> bytes:
    """The least bytes that are greater than all that begin with a prefix."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else b"\xff" * 256

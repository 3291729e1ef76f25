"""What an engine is asked, and what it says: requests, pieces of an answer, why it ended.

An `Answer` is the caller's end of a stream. It is iterated by one thread while the engine's
thread fills it; an engine without a thread is stepped by whoever waits for a piece.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from weft.llm.generate.constraint import Masks
from weft.llm.generate.sampling import Sampling

Ending = Literal["stop", "length", "cancelled", "error"]


@dataclass(frozen=True)
class Request:
    """A prompt and how it goes on; `client` is whom the engine is fair to."""

    prompt: tuple[int, ...]
    most: int = 0  # tokens of the answer; 0 is as many as fit
    sampling: Sampling = field(default_factory=Sampling)
    stops: tuple[str, ...] = ()
    ends: frozenset[int] | None = None  # None is the tokenizer's; empty goes on behind them
    masks: Masks | None = None
    client: str = ""


class Piece(NamedTuple):
    """The next token of an answer and the text that it completes.

    `logprob` is the logarithm of its probability, `top` has the likeliest tokens with theirs. The
    text of a stop string is in no piece. A last piece may have a text and no token, -1.
    """

    token: int
    text: str
    logprob: float
    top: list[tuple[int, float]]


class Answer:
    """The stream of one request."""

    def __init__(self, step: Callable[[], bool] | None, cancel: Callable[[Answer], None]) -> None:
        self._step = step
        self._cancel = cancel
        self._pieces: deque[Piece] = deque()
        self._changed = threading.Condition()
        self._listeners: list[Callable[[], None]] = []
        self.ending: Ending | None = None
        self.failure: Exception | None = None
        self.prompt_tokens = 0
        self.reused_tokens = 0
        self.tokens: list[int] = []

    def __iter__(self) -> Iterator[Piece]:
        """The pieces as they come; raises what ended the answer, if it is an error."""
        while True:
            pieces = self.take()
            yield from pieces
            if not pieces and self.ending is not None:
                break
            if not pieces:
                self._wait()
        if self.failure is not None:
            raise self.failure

    def take(self) -> list[Piece]:
        """The pieces that are there and were not taken yet."""
        with self._changed:
            pieces = list(self._pieces)
            self._pieces.clear()
            return pieces

    def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` after each change, on the thread of the engine."""
        self._listeners.append(wake)

    def cancel(self) -> None:
        """End the answer; its memory is free after the step that runs."""
        self._cancel(self)

    def text(self) -> str:
        """All that is still to come, as one text."""
        return "".join(piece.text for piece in self)

    def _wait(self) -> None:
        if self._step is not None:
            self._step()
            return
        with self._changed:
            while not self._pieces and self.ending is None:
                self._changed.wait()

    def add(self, piece: Piece) -> None:
        with self._changed:
            self._pieces.append(piece)
            if piece.token >= 0:
                self.tokens.append(piece.token)
            self._changed.notify_all()
        self._tell()

    def finish(self, ending: Ending, failure: Exception | None = None) -> None:
        with self._changed:
            if self.ending is not None:
                return
            self.ending, self.failure = ending, failure
            self._changed.notify_all()
        self._tell()

    def _tell(self) -> None:
        for wake in self._listeners:
            wake()

"""One request that runs: the tokens that are known, what of them is read, and how text comes out.

The state is enough to begin again: a request that had to give its pages back reads its tokens
once more and goes on where it was, with the same random numbers.
"""

from __future__ import annotations

import numpy as np

from weft.llm.cache.paged import Sequence
from weft.llm.engine.request import Answer, Ending, Piece, Request
from weft.llm.generate.constraint import Constraint
from weft.llm.generate.sampling import Array, Drawn, Sampler
from weft.llm.generate.stops import StopWatch
from weft.llm.text.tokenizer import TextStream, TextTokenizer


class Running:
    """A request between its first token and its last."""

    def __init__(
        self, request: Request, answer: Answer, tokenizer: TextTokenizer | None, most: int
    ) -> None:
        self.request = request
        self.answer = answer
        self.tokens = list(request.prompt)
        self.most = most
        self.sequence: Sequence | None = None
        self.is_cancelled = False
        self._sampler = Sampler(request.sampling, request.prompt)
        self._constraint = None if request.masks is None else Constraint(request.masks)
        self._stream = None if tokenizer is None else TextStream(tokenizer)
        self._watch = StopWatch(request.stops)
        self._ends = request.ends
        if self._ends is None:
            self._ends = frozenset() if tokenizer is None else tokenizer.marks.ends

    @property
    def made(self) -> int:
        """How many tokens the answer has."""
        return len(self.tokens) - len(self.request.prompt)

    @property
    def pending(self) -> int:
        """How many known tokens are not read."""
        return len(self.tokens) - (0 if self.sequence is None else self.sequence.length)

    @property
    def is_ready(self) -> bool:
        """Whether its last token alone is not read: the next step gives another one."""
        return self.sequence is not None and self.pending == 1

    def draw(self, logits: Array) -> tuple[int, Ending | None]:
        """Draw the next token and hand it on; why the answer ends with it, if it does."""
        allowed = None if self._constraint is None else self._constraint.allowed()
        if allowed is not None and len(allowed) < len(logits):
            allowed = _widened(allowed, len(logits))
        drawn = self._sampler.draw(logits, allowed)
        self.tokens.append(drawn.token)
        ending = self._ending(drawn)
        if ending is not None:
            self._flush()
        return drawn.token, ending

    def _ending(self, drawn: Drawn) -> Ending | None:
        assert self._ends is not None
        if drawn.token in self._ends:
            return "stop"
        text = "" if self._stream is None else self._stream.add(drawn.token)
        text = self._watch.add(text)
        self.answer.add(Piece(drawn.token, text, drawn.logprob, drawn.top))
        if self._watch.is_stopped:
            return "stop"
        if self._constraint is not None:
            self._constraint.add(drawn.token)
            if self._constraint.is_final:
                return "stop"
        return "length" if self.made >= self.most else None

    def _flush(self) -> None:
        """The text that was held back, in a piece without a token."""
        tail = "" if self._stream is None else self._stream.end()
        if self._watch.is_stopped:
            return
        rest = self._watch.add(tail) + self._watch.end()
        if rest:
            self.answer.add(Piece(-1, rest, 0.0, []))


def _widened(allowed: Array, size: int) -> Array:
    """A mask for all logits: models may have more rows than their tokenizer has tokens."""
    wide: Array = np.zeros(size, np.bool_)
    wide[: len(allowed)] = allowed
    return wide

"""Continuous batching: requests come and go while one batch runs, step by step.

A step reads a piece of one prompt, then decodes a token for every answer that is ready, so a long
prompt holds others up for one piece at most. Whose prompt is read is decided by client. Pages are
taken as answers grow; where none is left, kept prefixes go first, then the answer that came last
gives its pages back and reads its tokens again later.

Each answer has its own random numbers, penalties, stops and grammar. Rows of a batch do not see
each other, so an answer is that of a run alone, but for the rounding of sums whose order depends
on the size of a batch.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any, Final

from weft.llm.cache.paged import PAGE, PagedCache, Sequence
from weft.llm.engine.fair_queue import FairQueue
from weft.llm.engine.prefixes import Kept, Prefixes
from weft.llm.engine.request import Ending
from weft.llm.engine.running import Running
from weft.llm.engine.speculate import Proposer
from weft.llm.engine.statistics import Statistics
from weft.llm.model.batch import Batch, Wanted
from weft.llm.model.transformer import Model
from weft.support.errors import ArgumentError, OutOfMemory

# Tokens of a prompt that are read at once, each from how many on: few programs are compiled, and a
# padded piece is still faster than smaller ones.
PIECES: Final = ((96, 128), (6, 32))
# A batch may take back so many tokens of a sequence, so windows keep what those attend to.
KEPT_BACK: Final = 2 * PAGE


class Batcher:
    """The answers that run; everything but the queue belongs to the thread that steps."""

    def __init__(
        self, model: Model, cache: PagedCache, streams: int, proposer: Proposer | None
    ) -> None:
        self.model = model
        self.cache = cache
        self.streams = streams
        self.statistics = Statistics()
        self.queue: FairQueue[Running] = FairQueue()
        self.lock = threading.Condition()  # of the queue
        self.active: list[Running] = []
        self.prefixes = Prefixes(cache)
        self._proposer = proposer
        self._turns: dict[str, int] = {}

    def step(self) -> bool:
        """Read a piece of a prompt and decode a token of each answer; whether there was work."""
        self.admit()
        try:
            worked = self._read_prompt()
            return self._decode() or worked
        except Exception as failure:  # no answer may wait forever
            for running in list(self.active):
                self.finish(running, "error", failure)
            return True

    def admit(self) -> None:
        """End what was cancelled, and begin what waits for a slot."""
        for running in [each for each in self.active if each.is_cancelled]:
            self.finish(running, "cancelled")
        with self.lock:
            while len(self.active) < self.streams:
                clients = Counter(each.request.client for each in self.active)
                following = self.queue.take(clients)
                if following is None:
                    break
                self.active.append(following)

    def _read_prompt(self) -> bool:
        reading = [each for each in self.active if not each.is_ready]
        if not reading:
            return False
        running = min(reading, key=lambda each: self._turns.get(each.request.client, 0))
        self._turns[running.request.client] = 1 + max(self._turns.values(), default=0)
        if running.sequence is None:
            self._begin(running)
        if running.pending == 1:
            return True  # the prefix was all of it: the next step decodes
        sequence = running.sequence
        assert sequence is not None
        begin = sequence.length
        size = _piece(running.pending)
        tokens = running.tokens[begin : begin + size]
        # Who gives way may be another: this one goes on at once, or two drive each other out.
        while (batch := self._batch([(running, tokens)], "last")) is None:
            if running.sequence is None:
                return True
        logits = self.model.forward(batch)
        self.statistics.read += len(tokens)
        if not running.pending:
            self._advance(running, [logits.numpy()[0]], tokens[-1:], begin + len(tokens) - 1)
        else:
            self.cache.trim(sequence, KEPT_BACK)
        return True

    def _begin(self, running: Running) -> None:
        others = [
            Kept(each.tokens[: each.sequence.length], each.sequence)
            for each in self.active
            if each.sequence is not None
        ]
        running.sequence = self.prefixes.sequence_for(running.tokens, others)
        running.answer.reused_tokens = running.sequence.length
        self.statistics.reused += running.sequence.length

    def _decode(self) -> bool:
        batch = None
        while batch is None:  # those that are left go on in this step, so each step makes progress
            work = [(each, self._fed(each)) for each in self.active if each.is_ready]
            if not work:
                return False
            is_every = any(len(tokens) > 1 for _, tokens in work)
            batch = self._batch(work, "every" if is_every else "last")
        logits = self.model.forward(batch).numpy()
        self.statistics.steps += 1
        for row, (running, tokens) in enumerate(work):
            rows = logits[row, : len(tokens)] if is_every else logits[row : row + 1]
            assert running.sequence is not None
            self._advance(running, rows, tokens, running.sequence.length - len(tokens))
        return True

    def _fed(self, running: Running) -> list[int]:
        """The last token, and those that are proposed to follow it."""
        last = running.tokens[-1:]
        if self._proposer is None:
            return last
        left = min(running.most - running.made, self.model.config.context - len(running.tokens))
        return last + self._proposer.propose(running.tokens, left - 1)

    def _advance(self, running: Running, rows: Any, tokens: list[int], begin: int) -> None:
        """Draw after each token that was read, as long as what follows is what was read."""
        ending: Ending | None = None
        failure: Exception | None = None
        count = 0
        for row, following in zip(rows, [*tokens[1:], None], strict=True):
            count += 1
            try:
                drawn, ending = running.draw(row)
            except ArgumentError as refused:  # this answer's own: others go on
                ending, failure = "error", refused
            if ending is not None or drawn != following:
                break
        self.statistics.made += count
        self.statistics.proposed += len(tokens) - 1
        self.statistics.accepted += count - 1
        assert running.sequence is not None
        self.cache.truncate(running.sequence, begin + count)
        self.cache.trim(running.sequence, KEPT_BACK)
        if ending is not None:
            self.finish(running, ending, failure)

    def _batch(self, work: list[tuple[Running, list[int]]], wanted: Wanted) -> Batch | None:
        """The batch, or None if there is no room and somebody had to give pages back."""
        while True:
            rows: list[tuple[Sequence, list[int]]] = []
            for running, tokens in work:
                assert running.sequence is not None
                rows.append((running.sequence, tokens))
            try:
                return Batch.of(self.cache, rows, wanted)
            except OutOfMemory:
                if not self.prefixes.make_room():
                    self._give_way()
                    return None

    def _give_way(self) -> None:
        """The answer that came last gives its pages back; one that is alone ends."""
        holding = [each for each in self.active if each.sequence is not None]
        last = holding[-1]
        if len(holding) == 1:
            self.finish(last, "length")
            return
        assert last.sequence is not None
        self.cache.free(last.sequence)
        last.sequence = None
        self.active.remove(last)
        self.statistics.preempted += 1
        with self.lock:
            self.queue.put_back(last.request.client, last)

    def finish(self, running: Running, ending: Ending, failure: Exception | None = None) -> None:
        self.active.remove(running)
        sequence, running.sequence = running.sequence, None
        if sequence is not None and failure is None and sequence.length:
            self.prefixes.keep(running.tokens, sequence)
        elif sequence is not None:
            self.cache.free(sequence)
        if not any(each.request.client == running.request.client for each in self.active):
            self._turns.pop(running.request.client, None)
        self.statistics.ended[ending] += 1
        running.answer.finish(ending, failure)


def _piece(pending: int) -> int:
    """How many tokens of a prompt to read.

    >>> [_piece(count) for count in (1, 5, 7, 36, 95, 96, 500)]
    [1, 1, 32, 32, 32, 128, 128]
    """
    return next((size for least, size in PIECES if pending >= least), 1)

"""The engine that callers have: requests from any thread, answers as streams.

`Batcher` does the work, one step after the other, on the engine's own thread or on that of whoever
waits for an answer. What is shared between threads is the queue and the answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from weft.ir.dtypes import DType, dtypes
from weft.llm.engine.batcher import Batcher
from weft.llm.engine.request import Answer, Request
from weft.llm.engine.running import Running
from weft.llm.engine.speculate import Proposer
from weft.llm.engine.statistics import Statistics
from weft.llm.model.transformer import Model
from weft.llm.text.tokenizer import TextTokenizer
from weft.support.errors import ArgumentError, Busy

T = TypeVar("T")


class Engine:
    """Answers to requests; `with Engine(...)` runs it on a thread of its own.

    Without a thread, whoever iterates an answer steps the engine. `streams` answers run at once,
    `waiting` more may wait, and `tokens` of all of them fit the cache.
    """

    def __init__(
        self,
        model: Model,
        tokenizer: TextTokenizer | None = None,
        *,
        streams: int = 16,
        waiting: int = 64,
        tokens: int = 0,
        dtype: DType = dtypes.float32,
        proposer: Proposer | None = None,
    ) -> None:
        if streams < 1 or waiting < 0:
            raise ArgumentError(f"engine: expected streams, got {streams} and {waiting} waiting")
        self.model = model
        self.tokenizer = tokenizer
        self.streams = streams
        self.waiting = waiting
        self.room = tokens or min(model.config.context, 4096) * min(streams, 4)
        self.cache = model.new_cache(self.room, dtype)
        self._batcher = Batcher(model, self.cache, streams, proposer)
        self._lock = self._batcher.lock
        self._calls: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def submit(self, request: Request) -> Answer:
        """Begin an answer; a prompt that does not fit and a full queue are refused at once."""
        most = self._require_room(request)
        with self._lock:
            self._require_open()
            if len(self._batcher.queue) >= self.waiting + max(
                self.streams - len(self._batcher.active), 0
            ):
                self.statistics.refused += 1
                raise Busy(
                    f"engine: {len(self._batcher.queue)} requests wait already",
                    fix="try again later, or let more wait",
                )
            answer = Answer(None if self._thread else self.step, self._cancel)
            answer.prompt_tokens = len(request.prompt)
            self._batcher.queue.add(request.client, Running(request, answer, self.tokenizer, most))
            self.statistics.requests += 1
            self._lock.notify_all()
        return answer

    def call(self, function: Callable[[], T]) -> T:
        """Run a function between two steps, with the cache to itself."""
        if self._thread is None or threading.current_thread() is self._thread:
            return function()
        done = threading.Event()
        found: list[T] = []
        failed: list[BaseException] = []

        def work() -> None:
            try:
                found.append(function())
            except Exception as failure:  # the caller hears of it
                failed.append(failure)
            done.set()

        with self._lock:
            self._require_open()
            self._calls.append(work)
            self._lock.notify_all()
        done.wait()
        if failed:
            raise failed[0]
        return found[0]

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def make_room(self, tokens: int) -> None:
        """Free kept prefixes until so many tokens fit, as far as there are any; inside `call`."""
        while self.cache.free_tokens < tokens and self._batcher.prefixes.make_room():
            pass

    def forget(self) -> None:
        """Free what answers that are over have left in the cache."""
        self.call(self._forget)

    def _forget(self) -> None:
        self._batcher.admit()  # what was cancelled ends
        while self._batcher.prefixes.make_room():
            pass

    @property
    def statistics(self) -> Statistics:
        return self._batcher.statistics

    @property
    def active(self) -> int:
        return len(self._batcher.active)

    @property
    def queued(self) -> int:
        with self._lock:
            return len(self._batcher.queue)

    def start(self) -> Engine:
        """Step on a thread of its own from now on."""
        with self._lock:
            self._require_open()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="weft-engine", daemon=True)
                self._thread.start()
        return self

    def close(self) -> None:
        """Cancel every answer, end the thread and free the cache's sequences."""
        with self._lock:
            self._is_closed = True
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._lock:
            while (waiting := self._batcher.queue.take({})) is not None:
                self._batcher.active.append(waiting)
        for running in list(self._batcher.active):
            self._batcher.finish(running, "cancelled")
        self._forget()

    def __enter__(self) -> Engine:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def step(self) -> bool:
        """Do one step of an engine that has no thread; whether there was work."""
        return self._batcher.step()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not (
                    self._is_closed
                    or self._calls
                    or self._batcher.active
                    or len(self._batcher.queue)
                ):
                    self._lock.wait()
                calls, self._calls = self._calls, []
                is_closed = self._is_closed
            for work in calls:
                work()
            if is_closed:
                return
            self.step()

    def _cancel(self, answer: Answer) -> None:
        with self._lock:
            for running in list(self._batcher.active):
                if running.answer is answer:
                    running.is_cancelled = True
            waiting = self._batcher.queue.find(lambda each: each.answer is answer)
            if waiting is not None:
                self._batcher.queue.remove(waiting.request.client, waiting)
                self.statistics.ended["cancelled"] += 1
                answer.finish("cancelled")
            self._lock.notify_all()

    def _require_room(self, request: Request) -> int:
        """How many tokens the answer may have at most."""
        size, limit = len(request.prompt), min(self.model.config.context, self.room)
        if not size or size >= limit:
            raise ArgumentError(
                f"engine: a prompt of {size} tokens",
                rule=f"a prompt has a token, and with an answer it fits {limit} tokens",
            )
        if not all(0 <= token < self.model.vocabulary for token in request.prompt):
            raise ArgumentError(
                "engine: a token of the prompt is not in the vocabulary",
                rule=f"tokens are numbers from 0 to {self.model.vocabulary - 1}",
            )
        if request.most < 0:
            raise ArgumentError(f"engine: an answer of {request.most} tokens")
        if self.tokenizer is None and (request.stops or request.masks):
            raise ArgumentError("engine: stop strings and grammars need a tokenizer")
        return min(request.most or limit - size, limit - size)

    def _require_open(self) -> None:
        if self._is_closed:
            raise ArgumentError("engine: it is closed")

"""Threads that run calls beside the caller, at any time in the life of a process.

The executors of `concurrent.futures` refuse work once the main thread has ended, though other
threads and functions of `atexit` still run: training that goes on, a checkpoint that is saved at
the end. These threads are made when there is work and end with their `Workers`. Where no thread
can be had, which newer interpreters say while they end, the caller runs the calls itself.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Task(Generic[Result]):
    """A call that was handed over; `result` waits for its end."""

    __slots__ = ("_call", "_done", "_failure", "_result")

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call: Callable[[], Result] | None = call
        self._done = threading.Event()
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Carry the call out, unless it was cancelled."""
        call, self._call = self._call, None
        if call is None:
            return
        try:
            self._result = call()
        except BaseException as failure:
            self._failure = failure
        finally:
            self._done.set()

    def cancel(self) -> None:
        """Forget the call, if nobody has begun it; nobody may ask for the result any more."""
        self._call = None

    def result(self) -> Result:
        """Return what the call returned, or raise what it raised, when it is over."""
        self._done.wait()
        failure, self._failure = self._failure, None
        if failure is None:
            return self._result
        try:
            raise failure
        finally:
            del failure  # its traceback holds this frame


class Workers:
    """Up to `count` threads that take calls in order; a scope, which waits for all of them.

    Without a scope, the threads end when this object goes.

    >>> with Workers(2) as workers:
    ...     tasks = [workers.submit(pow, 2, power) for power in (3, 4)]
    ...     [task.result() for task in tasks]
    [8, 16]
    """

    def __init__(self, count: int, name: str = "weft") -> None:
        self._most = count
        self._name = name
        self._renew()

    def _renew(self) -> None:
        self._process = os.getpid()
        self._line = _Line()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def __del__(self) -> None:
        self._line.close()

    def submit(self, call: Callable[..., Result], *arguments: Any) -> Task[Result]:
        """Let a thread run a call when one is free."""
        if self._process != os.getpid():
            self._renew()  # a child of fork has none of the threads
        task: Task[Result] = Task(lambda: call(*arguments))
        if len(self._threads) < self._most and not self._line.has_idle():
            self._try_start()
        if self._threads:
            self._line.add(task)
        else:
            task.run()
        return task

    def _try_start(self) -> None:
        # A daemon, because interpreters that end wait for no others, and refuse to start them.
        thread = threading.Thread(target=self._line.work, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is ending, or there are too many threads
            return
        self._threads.append(thread)

    def close(self) -> None:
        """Wait for all calls, and end the threads; later calls start others."""
        self._line.close()
        for thread in self._threads:
            thread.join()
        self._renew()


class _Line:
    """The calls that wait. Threads hold this and not their `Workers`."""

    def __init__(self) -> None:
        self._waiting: deque[Task[Any]] = deque()
        self._changed = threading.Condition()
        self._idle = 0
        self._is_closed = False

    def has_idle(self) -> bool:
        with self._changed:
            return self._idle > len(self._waiting)

    def add(self, task: Task[Any]) -> None:
        with self._changed:
            self._waiting.append(task)
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def work(self) -> None:
        """Run calls until the line is closed and empty."""
        while (task := self._next()) is not None:
            task.run()
            del task  # what it holds is the caller's

    def _next(self) -> Task[Any] | None:
        with self._changed:
            self._idle += 1
            while not self._waiting and not self._is_closed:
                self._changed.wait()
            self._idle -= 1
            return self._waiting.popleft() if self._waiting else None

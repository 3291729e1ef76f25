"""Threads take turns with what they share: the storages of tensors, and the memory behind them.

Graphs are built without a lock: each thread builds with values that it has. A thread that computes
holds `lock`. So does one that traces a function, which meanwhile puts placeholders for
values that are not computed yet; whoever meets one of those waits until the trace is over. What
two threads do to one tensor is for the program to order, as with any object of Python.
"""

from __future__ import annotations

import threading
from _thread import get_ident
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from weft.support.fork import COMPUTE, hold_during_fork

lock: Final = threading.RLock()
# A process is forked between two computations, so that the child finds whole ones and a free lock.
hold_during_fork(lock, COMPUTE)


class _Tracer:
    """The thread that traces a function now; 0 is none."""

    __slots__ = ("thread",)
    thread: int


tracer: Final = _Tracer()
tracer.thread = 0


@contextmanager
def traced_alone() -> Iterator[None]:
    """While a function is traced, nobody computes, and others wait for what has a placeholder."""
    with lock:
        before, tracer.thread = tracer.thread, get_ident()
        try:
            yield
        finally:
            tracer.thread = before


def wait_for_trace() -> bool:
    """Wait until no other thread traces. Called where `tracer.thread` is not 0."""
    if tracer.thread == get_ident():
        return False
    with lock:
        return True

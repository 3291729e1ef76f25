"""What happens around a fork: the child finds free locks, whole computations and whole modules.

A child of `fork` has one thread. A lock that another thread held stays locked in it for ever, and
so does a module that another thread was importing. So a process forks between two computations,
and while no other thread imports: this module waits for both, in one place, because the order
matters. `hold_during_fork` names a lock that guards shared state; `renew_in_child` one that guards
only what a thread is doing just then.
"""

from __future__ import annotations

import _imp
import os
import sys
import time
from _thread import get_ident
from weakref import WeakSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Computing comes before compiling, and that before making nodes: who has one may want the next.
COMPUTE, COMPILE, NODES = range(3)
_PAUSE = 0.001
# Longer than any import; one that waits for this thread would never end.
_PATIENCE = 60.0

_held: list[tuple[int, Any]] = []
_taken: list[Any] = []  # by the fork that is going on
_renewed: WeakSet[Any] = WeakSet()


def hold_during_fork(lock: Any, rank: int) -> None:
    """Let a fork wait for a lock; the child finds it free. Ranks are taken in order."""
    _held.append((rank, lock))
    _held.sort(key=lambda pair: pair[0])


def renew_in_child(lock: Any) -> None:
    """Let a child find a lock free, whoever has it now, as long as there is the lock."""
    _renewed.add(lock)


def _before() -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        while _others_import() and time.monotonic() < end:
            time.sleep(_PAUSE)
        _take()
        if not _others_import() or time.monotonic() >= end:
            return
        _release()  # an import may want one of them


def _take() -> None:
    """Take all locks, and last the one without which no other thread begins an import."""
    locks = [lock for _, lock in _held]  # an import of another thread may add to those
    for lock in locks:
        lock.acquire()
    _imp.acquire_lock()
    _taken[:] = locks


def _release() -> None:
    locks = _taken[::-1]
    _taken.clear()
    _imp.release_lock()
    for lock in locks:
        lock.release()


def _in_child() -> None:
    _release()
    for lock in list(_renewed):
        lock._at_fork_reinit()


def _others_import() -> bool:
    """Whether another thread is inside of an import, and does not wait for one of this thread."""
    bootstrap = sys.modules["_frozen_importlib"]
    found: dict[str, Any] = getattr(bootstrap, "_module_locks", {})
    locks = [lock for each in list(found.values()) if (lock := each()) is not None]
    owners = {getattr(lock, "owner", None) for lock in locks} - {None}
    waiting: Any = getattr(bootstrap, "_blocking_on", {})  # a dict, or a weak one without a length
    stuck: set[int | None] = {get_ident()}
    while more := {each for each in owners if _owner(waiting.get(each)) in stuck} - stuck:
        stuck |= more
    return bool(owners - stuck)


def _owner(blocked_on: Any) -> int | None:
    """The thread that has the lock which a thread waits for; 3.12 and later have it in a list."""
    if isinstance(blocked_on, list):
        blocked_on = blocked_on[-1] if blocked_on else None
    owner: int | None = getattr(blocked_on, "owner", None)
    return owner


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)

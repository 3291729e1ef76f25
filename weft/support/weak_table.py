"""Things by a key, none of which the table keeps alive.

`WeakValueDictionary` and `WeakKeyDictionary` of Python run several functions at each step. Every
operation on a tensor goes through such tables, so here a step is one of a dict.
"""

from __future__ import annotations

from _weakref import _remove_dead_weakref  # type: ignore[attr-defined]
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import ref

Thing = TypeVar("Thing")


class _Entry(ref[Thing]):
    """A thing, and its key in the table."""

    __slots__ = ("key",)
    key: int


class WeakTable(Generic[Thing]):
    """Things by number, in the order in which they came; one that dies is gone.

    >>> class Thing: pass
    >>> table, thing = WeakTable(), Thing()
    >>> table.put(3, thing)
    >>> table.get(3) is thing, len(table)
    (True, 1)
    >>> del thing
    >>> table.things()
    []
    """

    __slots__ = ("_drop", "_entries")

    def __init__(self) -> None:
        self._entries: dict[int, _Entry[Thing]] = {}
        self._drop = _dropper(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: int) -> Thing | None:
        """The thing of a key, if it lives."""
        entry = self._entries.get(key)
        return None if entry is None else entry()

    def put(self, key: int, thing: Thing) -> None:
        """Let a key be that of a thing."""
        entry = _Entry(thing, self._drop)
        entry.key = key
        self._entries[key] = entry

    def pop(self, key: int) -> None:
        """Forget a key, if it is there."""
        self._entries.pop(key, None)

    def add(self, thing: Thing) -> None:
        """Enter a thing under its identity, behind the others, unless it is there."""
        key = id(thing)
        entry = self._entries.get(key)
        if entry is None or entry() is not thing:
            self._entries.pop(key, None)  # of a thing that was at this address
            self.put(key, thing)

    def discard(self, thing: Thing) -> None:
        """Forget a thing that was added."""
        self._entries.pop(id(thing), None)

    def things(self) -> list[Thing]:
        """Those that live, in their order."""
        if not self._entries:
            return []
        entries = list(self._entries.values())  # made at once, whatever other threads do
        return [thing for entry in entries if (thing := entry()) is not None]


def _dropper(entries: dict[int, _Entry[Thing]]) -> Callable[[_Entry[Thing]], None]:
    # A local name: things also die while the interpreter ends, when modules have lost theirs.
    remove = _remove_dead_weakref

    def drop(entry: _Entry[Thing]) -> None:
        # In one step: another thing may have come for the key, and then it stays.
        remove(entries, entry.key)

    return drop

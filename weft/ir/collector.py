"""Python's cyclic garbage collector, which is in the way where many objects are made that stay.

A compilation makes a million nodes and tuples within a second. `CollectorPaused` is a scope in
which nobody looks through them, and after which they count as old.
"""

from __future__ import annotations

import gc
from typing import Final

# After a scope with more new objects than this they count as old. Behind it, the collector would
# walk all of them three times on their way there, a quarter of a second for a large network.
_MANY_OBJECTS: Final = 20_000
_OLD_OBJECTS: Final = 1_000_000  # so many of them, or half of all, before their cycles are freed
_unseen, _seen = 0, 0
# How many objects are frozen while nobody froze any: some interpreters start with a few.
_NOT_FROZEN: Final = (0, gc.get_freeze_count())


def is_frozen() -> bool:
    """Whether a program hides objects from the collector, and from who looks for references."""
    return gc.get_freeze_count() not in _NOT_FROZEN


class CollectorPaused:
    """A scope without cyclic garbage collection, which would walk the nodes for nothing."""

    def __enter__(self) -> None:
        self.was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self.was_on:
            if gc.get_count()[0] > _MANY_OBJECTS:
                _make_old(gc.get_count()[0])
            gc.enable()


def _make_old(count: int) -> None:
    """Let the collector take all objects for old ones; it walks them when they are many."""
    global _unseen, _seen
    if is_frozen():  # somebody else's
        return
    _unseen += count
    gc.freeze()
    if _unseen > max(_OLD_OBJECTS, _seen // 2):
        _unseen, _seen = 0, gc.get_freeze_count()
        gc.unfreeze()
        gc.collect()
    else:
        gc.unfreeze()

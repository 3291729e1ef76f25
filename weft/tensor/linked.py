"""Storages that show one memory under two dtypes, as `bitcast` makes them.

A storage has one dtype, so a bitcast is a value with a storage of its own. The two are linked: a
write to either makes the next version of the other, and both mean the same bits. `Storage` calls
`follow` after a write. Neither keeps the other alive: what nobody holds, nobody can see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary, ref

from weft.ir.movement import Movement, apply_all
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.tensor.storage import Storage

if TYPE_CHECKING:
    from weft.tensor.core import Core


class Link(NamedTuple):
    """The other storage, and how its next version follows from this one's."""

    other: ref[Storage]
    follow: Callable[[Storage, UOp], None]


_LINKS: Final[WeakKeyDictionary[Storage, list[Link]]] = WeakKeyDictionary()


def link(view: Core, made: Core, there: Callable[[UOp], UOp], back: Callable[[UOp], UOp]) -> None:
    """Let a view and a value that shows its bits follow each other's writes."""
    steps: tuple[Movement, ...] = view._steps
    if any(step[0] == Op.EXPAND for step in steps):
        return  # elements that share memory cannot be written

    def down(other: Storage, version: UOp) -> None:
        other.become(there(apply_all(version, steps)))

    def up(other: Storage, version: UOp) -> None:
        other.write(steps, back(version), follows=False)

    _add(view._storage, Link(ref(made._storage), down))
    _add(made._storage, Link(ref(view._storage), up))


def _add(storage: Storage, new: Link) -> None:
    links = _LINKS.setdefault(storage, [])
    links[:] = [each for each in links if each.other() is not None]
    links.append(new)
    storage.is_linked = True


def follow(start: Storage) -> None:
    """Bring all storages that are linked with one that was written to its version."""
    seen = {start}
    waiting = [start]
    while waiting:
        storage = waiting.pop()
        for each in _LINKS.get(storage, ()):
            other = each.other()
            if other is not None and other not in seen:
                each.follow(other, storage.uop)
                seen.add(other)
                waiting.append(other)


Storage.follow = staticmethod(follow)

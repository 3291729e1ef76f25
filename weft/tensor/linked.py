"""Storages that show one memory under two dtypes: a bitcast, the parts of complex numbers.

A storage has one dtype, so such a view is a value with a storage of its own. The two are linked: a
write to either makes the next version of the other, and both mean the same bits. `Storage` calls
`follow` after a write. Neither keeps the other alive: what nobody holds, nobody can see. So a view
of a view is linked with both of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary, ref

from weft.ir.movement import Movement, apply_all
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.tensor.storage import Storage, updated

if TYPE_CHECKING:
    from weft.tensor.core import Core

There = Callable[[UOp], UOp]
Back = Callable[[UOp, UOp], UOp]


class Shown(NamedTuple):
    """How a storage shows a part of another one.

    `there` makes what is shown of the part. `back` makes the part of what is shown after a write,
    and of what the part was before: the real part of a number says nothing of the other one.
    """

    storage: ref[Storage]
    steps: tuple[Movement, ...]
    there: There
    back: Back

    def value(self, whole: UOp) -> UOp:
        return self.there(apply_all(whole, self.steps))

    def put_back(self, shown: UOp, whole: UOp) -> UOp:
        """The part that shows something else now."""
        return self.back(shown, apply_all(whole, self.steps))

    def then(self, inner: Shown) -> Shown:
        """How the storage is shown by what shows a part of this."""

        def back(shown: UOp, part: UOp) -> UOp:
            between = self.there(part)
            value = updated(between, inner.steps, inner.put_back(shown, between))
            return self.back(value, part)

        return self._replace(there=lambda part: inner.value(self.there(part)), back=back)


class Link(NamedTuple):
    """The other storage, and how its next version follows from this one's."""

    other: ref[Storage]
    follow: Callable[[Storage, UOp], None]


_LINKS: Final[WeakKeyDictionary[Storage, list[Link]]] = WeakKeyDictionary()
_SHOWN: Final[WeakKeyDictionary[Storage, list[Shown]]] = WeakKeyDictionary()


def link(view: Core, made: Core, there: There, back: Back) -> None:
    """Let a view and a value that shows its bits follow each other's writes."""
    whole = view._storage
    shown = Shown(ref(whole), view._steps, there, back)
    around = [outer.then(shown) for outer in _SHOWN.get(whole, ()) if outer.storage() is not None]
    for each in (shown, *around):
        _connect(each, made._storage)


def _connect(shown: Shown, made: Storage) -> None:
    whole = shown.storage()
    if whole is None:
        return

    def down(other: Storage, version: UOp) -> None:
        value = shown.value(version)
        if other.memory is None:
            other.become(value)
        else:
            other.write((), value, follows=False)

    def up(other: Storage, version: UOp) -> None:
        other.write(shown.steps, shown.put_back(version, other.uop), follows=False)

    _add(whole, Link(ref(made), down))
    if not any(step[0] == Op.EXPAND for step in shown.steps):  # such elements cannot be written
        _add(made, Link(ref(whole), up))
        _SHOWN.setdefault(made, []).append(shown)


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


def linked_with(storages: Iterable[Storage]) -> set[Storage]:
    """These storages, and all that show the same bits."""
    seen = set(storages)
    waiting = [storage for storage in seen if storage.is_linked]
    while waiting:
        others = [each.other() for each in _LINKS.get(waiting.pop(), ())]
        fresh = [other for other in others if other is not None and other not in seen]
        seen.update(fresh)
        waiting += fresh
    return seen


Storage.follow = staticmethod(follow)

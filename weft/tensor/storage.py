"""What tensors are views of: a value with versions, some of which are lazy.

A `Storage` has a current version, the node `uop`. A write makes the next version; expressions that
were built before keep the node they saw. `memory` is the BUFFER that the storage owns, once there
is one: then a version is that BUFFER, or AFTER a write to it. Each storage has memory of its own,
so a write in place is seen by the views of this storage and by nobody else.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Self
from weakref import ref

from weft.engine.buffer_nodes import BufferKind, new_buffer
from weft.engine.devices import Placement
from weft.ir import movement
from weft.ir.build import global_stage
from weft.ir.dtypes import INEXACT, dtypes
from weft.ir.layouts import Layout, layout_of
from weft.ir.movement import Movement
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.sizes import minus, plus
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.support.weak_table import WeakTable
from weft.tensor.turns import tracer, wait_for_trace

_WRITABLE: Final = frozenset((Op.RESHAPE, Op.PERMUTE, Op.SHRINK, Op.FLIP))
_KEEPS_ALL: Final = frozenset((Op.RESHAPE, Op.PERMUTE, Op.FLIP, Op.DETACH))


class Storage:
    """A value with versions, on one device or on several."""

    __slots__ = (
        "__weakref__",
        "device",
        "earlier",
        "is_linked",
        "keeps_graph",
        "memory",
        "thread",
        "uop",
    )
    is_gone: ClassVar[bool] = False  # without a value that anybody can have
    follow: ClassVar[Any]  # what linked.py does after a write to a linked storage

    def __init__(self, uop: UOp, device: Any) -> None:
        self.uop = uop
        self.device = device
        self.memory: UOp | None = None
        self.keeps_graph = True  # for gradients, once it is realized
        self.is_linked = False  # with others that show the same bits
        self.earlier: tuple[ref[UOp], ...] = ()  # versions that were overwritten
        self.thread = get_ident()  # that made the current version
        if uop.op != Op.BUFFER:
            _LAZY.add(self)
        elif _OWNERS.get(uop.arg[0]) is not None:  # it starts equal to another storage's value
            self.set_version(_copied(uop))
        else:
            self._own(uop)

    @classmethod
    def over(cls, memory: UOp, device: Any) -> Self:
        """The storage of memory that is new, so that nobody owns it."""
        made = cls.__new__(cls)
        made.uop = made.memory = memory
        made.device = device
        made.keeps_graph = True
        made.is_linked = False
        made.earlier = ()
        made.thread = get_ident()
        _OWNERS.put(memory.arg[0], made)
        return made

    @property
    def is_realized(self) -> bool:
        return self.uop.op == Op.BUFFER

    @property
    def placement(self) -> Placement:
        """The device; of several, the layout, which is whole on each where nothing says so."""
        return placement_of(self.uop, self.device)

    def _own(self, memory: UOp) -> None:
        if self.memory is not None:  # a write handed the memory over to a new node
            _OWNERS.pop(self.memory.arg[0])
        self.uop = self.memory = memory
        _OWNERS.put(memory.arg[0], self)

    def set_version(self, uop: UOp) -> None:
        """Be at a version that is not computed yet."""
        self.uop = uop
        self.thread = get_ident()
        _LAZY.add(self)
        if self.memory is not None:
            _WAITING.add(self)

    def take_memory(self) -> None:
        """Give the value memory of its own, which nobody else's value can be confused with.

        Nothing runs: the current version becomes the first write to that memory.
        """
        if tracer.thread:
            wait_for_trace()
        if self.memory is None:
            value = self.uop
            buffer = new_buffer(value.dtype, shape_of(value), self.placement)
            self._own(buffer)
            self.set_version(_after(buffer, buffer, value))

    def become(self, uop: UOp) -> None:
        """Be another value, which is not computed yet, without the memory there was."""
        if self.memory is not None:
            _OWNERS.pop(self.memory.arg[0])
            self.memory = None
        self.set_version(_copied(uop) if uop.op == Op.BUFFER else uop)

    def write(self, steps: Sequence[Movement], value: UOp, follows: bool = True) -> None:
        """Make the version in which a view of this storage has another value of its shape."""
        self._write(steps, value)
        if self.is_linked and follows:
            self.follow(self)

    def _write(self, steps: Sequence[Movement], value: UOp) -> None:
        if tracer.thread:
            wait_for_trace()
        steps = [step for step in steps if step[0] != Op.DETACH]
        if self.memory is None:
            value = updated(self.uop, steps, value)
            self.set_version(_copied(value) if value.op == Op.BUFFER else value)
            return
        self._note_earlier()
        address = self.uop
        for count, step in enumerate(steps):
            if step[0] not in _WRITABLE or _mixes_parts(address, step):
                value = updated(address, steps[count:], value)
                break
            address = movement.apply(address, step)
        self.set_version(_after(self.uop, address, value))

    def _note_earlier(self) -> None:
        """Remember the version that a write leaves, for as long as a graph reads it."""
        if self.uop.dtype.kind & INEXACT:
            alive = self.earlier
            if alive:
                alive = tuple([each for each in alive if each() is not None])
            self.earlier = (*alive, ref(self.uop))

    def note_copies(self, made: Mapping[UOp, UOp]) -> None:
        """Remember the copies of earlier versions, which are read instead of them."""
        for each in self.earlier:
            copy = None if (node := each()) is None else made.get(node)
            if copy is not None and copy is not self.uop:
                self.earlier += (ref(copy),)

    def mixes_parts(self, steps: Sequence[Movement]) -> bool:
        """Whether a view is not a view of what each of several devices has."""
        address = self.uop
        for step in steps:
            if _mixes_parts(address, step):
                return True
            address = movement.apply(address, step)
        return False

    def take_over(self, memory: UOp) -> None:
        """Be the owner of memory that has been written; no write waits any more."""
        _settle(self)
        self._own(memory)

    def write_at(self, address: UOp, value: UOp) -> None:
        """Make the version in which an address, an INDEX of the current one, has a value."""
        assert self.memory is not None
        self._note_earlier()
        self.set_version(_after(self.uop, address, value))
        if self.is_linked:
            self.follow(self)


def _mixes_parts(address: UOp, step: Movement) -> bool:
    """Whether a view of memory over several devices is not a view of what each of them has."""
    before = layout_of(address)
    if before is None or before.axis is None:
        return False
    after = layout_of(movement.apply(address, step))
    return after is None or after.axis is None


# In the order in which they became lazy, so that equal programs make equal graphs.
_LAZY: Final[WeakTable[Storage]] = WeakTable()
# Those of them that have memory: writes to it wait.
_WAITING: Final[WeakTable[Storage]] = WeakTable()
# By the number of the memory.
_OWNERS: Final[WeakTable[Storage]] = WeakTable()


def _settle(storage: Storage) -> None:
    """Let a storage be lazy no more."""
    _LAZY.discard(storage)
    if storage.memory is not None:
        _WAITING.discard(storage)


def owner_of(buffer: UOp) -> Storage | None:
    """The storage whose memory a BUFFER is."""
    return _OWNERS.get(buffer.arg[0])


def placement_of(uop: UOp, device: Any) -> Placement:
    """A device; of several, the layout of a value over them."""
    return device if isinstance(device, str) else tuple(layout_of(uop) or Layout(device))


def _after(version: UOp, address: UOp, value: UOp) -> UOp:
    store = make(Op.STORE, dtypes.void, (address, value))
    return make(Op.AFTER, version.dtype, (version, store))


def _copied(node: UOp) -> UOp:
    return global_stage(node)


def updated(base: UOp, steps: Sequence[Movement], value: UOp) -> UOp:
    """The base with a view of it replaced by a value, as a value: no memory is written.

    The value goes back through the inverses of the steps, and so does a mask of what it covers.
    """
    shapes = [shape_of(base)]
    node = base
    for step in steps:
        node = movement.apply(node, step)
        shapes.append(shape_of(node))
    value = movement.broadcast(value, shapes[-1])
    covers = all(step[0] in _KEEPS_ALL for step in steps)
    mask = movement.broadcast(const(dtypes.bool, True), shapes[-1])
    for step, before in zip(reversed(steps), reversed(shapes[:-1]), strict=True):
        value = _undone(value, step, before)
        mask = _undone(mask, step, before)
    return value if covers else make(Op.WHERE, base.dtype, (mask, value, base))


def _undone(node: UOp, step: Movement, before: Shape) -> UOp:
    """What a step made `node` of, with zeros where the step left something out."""
    op, arg, _ = step
    if op == Op.RESHAPE:
        return movement.reshape(node, before)
    if op == Op.PERMUTE:
        assert isinstance(arg, tuple)
        return movement.permute(node, [arg.index(axis) for axis in range(len(arg))])
    if op == Op.FLIP:
        return movement.apply(node, step)
    pairs = zip(movement.step_pairs(step), before, strict=True)
    if op == Op.SHRINK:
        return movement.pad(node, [(a, minus(size, b)) for (a, b), size in pairs])
    return movement.shrink(node, [(a, plus(a, size)) for (a, _), size in pairs])


def lazy_storages() -> list[Storage]:
    """All storages whose current version is not memory yet."""
    return _LAZY.things()


def waiting_storages() -> list[Storage]:
    """Those of them that have memory: writes to it wait."""
    return _WAITING.things()


def live_storages() -> list[Storage]:
    """All storages, each once."""
    return list(dict.fromkeys([*_OWNERS.things(), *lazy_storages()]))


def readers_of(memory: Iterable[UOp]) -> list[Storage]:
    """The storages whose lazy value reads some memory."""
    wanted = set(memory)
    return [each for each in lazy_storages() if not wanted.isdisjoint(topological(each.uop))]


class Placeholder:
    """Puts memory that does not exist instead of a lazy storage's value, for a while.

    What is built meanwhile sees a value that was computed before. `remove` brings the value back
    and says which version was written meanwhile, if any.
    """

    __slots__ = ("_memory", "_uop", "node", "storage")

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._uop, self._memory = storage.uop, storage.memory
        kind = BufferKind(self._uop.dtype, shape_of(self._uop), storage.placement)
        self.node = kind.without_memory()
        storage.uop = storage.memory = self.node
        _OWNERS.put(self.node.arg[0], storage)
        _settle(storage)

    def remove(self) -> UOp | None:
        storage = self.storage
        version = storage.uop
        storage.uop, storage.memory = self._uop, self._memory
        _OWNERS.pop(self.node.arg[0])
        _LAZY.add(storage)
        if storage.memory is not None:
            _WAITING.add(storage)
        return None if version is self.node else version


def drop_writes(storage: Storage) -> UOp | None:
    """Let memory forget the writes of this thread that wait; the version that it had, if any."""
    version = storage.uop
    if version is storage.memory or storage.memory is None or storage.thread != get_ident():
        return None
    storage.uop = storage.memory
    _settle(storage)
    return version


def forget(storage: Storage) -> None:
    """Take the value away from a storage that nobody may use any more."""
    _settle(storage)
    if storage.memory is not None:
        _OWNERS.pop(storage.memory.arg[0])
    storage.memory = None
    storage.uop = const(dtypes.bool, False)

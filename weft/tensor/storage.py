"""What tensors are views of: a value with versions, and how lazy versions become memory.

A `Storage` has a current version, the node `uop`. A write makes the next version; expressions that
were built before keep the node they saw. `memory` is the BUFFER that the storage owns, once there
is one: then a version is that BUFFER, or AFTER a write to it. Each storage has memory of its own,
so a write in place is seen by the views of this storage and by nobody else.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, Self
from weakref import WeakKeyDictionary, WeakValueDictionary

from weft.engine.bindings import bound_values
from weft.engine.buffer_nodes import BufferKind, new_buffer
from weft.engine.devices import DevicePlace
from weft.engine.realize import realize as realize_graphs
from weft.engine.request import Request
from weft.engine.versions import Overwritten
from weft.ir import movement
from weft.ir.build import global_stage
from weft.ir.dtypes import dtypes
from weft.ir.layouts import Layout, layout_of
from weft.ir.movement import Movement
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.shapes import Shape, largest_size, shape_of
from weft.ir.sizes import minus, plus
from weft.ir.uop import UOp, const, make
from weft.ir.walk import substitute_all, topological
from weft.support.errors import NotSupported, UsageError
from weft.tensor.autodiff import history
from weft.tensor.autodiff.leaves import leaves_with_gradient
from weft.tensor.turns import lock, tracer, wait_for_trace

_WRITABLE: Final = frozenset((Op.RESHAPE, Op.PERMUTE, Op.SHRINK, Op.FLIP))
# Graphs that are computed on other devices too.
_OTHER_DEVICES: Final = 1 << Op.COPY | 1 << Op.SHARD
# Graphs that are computed on other devices too, or with sizes of their own.
_ELSEWHERE: Final = 1 << Op.COPY | 1 << Op.BIND | 1 << Op.CALL
_WORK: Final = ELEMENTWISE | {Op.REDUCE, Op.INDEX, Op.SCATTER}
# A copy reads and writes, and what reads the copy computes its value once more.
WORTH_OF_A_COPY: Final = 4
_KEEPS_ALL: Final = frozenset((Op.RESHAPE, Op.PERMUTE, Op.FLIP, Op.DETACH))


class Storage:
    """A value with versions, on one device or on several."""

    __slots__ = ("__weakref__", "device", "keeps_graph", "memory", "thread", "uop")
    is_gone: ClassVar[bool] = False  # without a value that anybody can have

    def __init__(self, uop: UOp, device: Any) -> None:
        self.uop = uop
        self.device = device
        self.memory: UOp | None = None
        self.keeps_graph = True  # for gradients, once it is realized
        self.thread = get_ident()  # that made the current version
        if uop.op != Op.BUFFER:
            _LAZY[self] = None
        elif uop.arg[0] in _OWNERS:  # a new value that starts equal to another storage's
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
        made.thread = get_ident()
        _OWNERS[memory.arg[0]] = made
        return made

    @property
    def is_realized(self) -> bool:
        return self.uop.op == Op.BUFFER

    @property
    def place(self) -> DevicePlace:
        """The device; or how the value lies on several, where nothing says so whole on each."""
        return place_of(self.uop, self.device)

    def _own(self, memory: UOp) -> None:
        if self.memory is not None:  # a write handed the memory over to a new node
            _OWNERS.pop(self.memory.arg[0], None)
        self.uop = self.memory = memory
        _OWNERS[memory.arg[0]] = self

    def set_version(self, uop: UOp) -> None:
        """Be at a version that is not computed yet."""
        self.uop = uop
        self.thread = get_ident()
        _LAZY[self] = None

    def take_memory(self) -> None:
        """Give the value memory of its own, which nobody else's value can be confused with.

        Nothing runs: the current version becomes the first write to that memory.
        """
        if tracer.thread:
            wait_for_trace()
        if self.memory is None:
            value = self.uop
            buffer = new_buffer(value.dtype, shape_of(value), self.place)
            self._own(buffer)
            self.set_version(_after(buffer, buffer, value))

    def write(self, steps: Sequence[Movement], value: UOp) -> None:
        """Make the version in which a view of this storage has another value of its shape."""
        if tracer.thread:
            wait_for_trace()
        steps = [step for step in steps if step[0] != Op.DETACH]
        if self.memory is None:
            value = updated(self.uop, steps, value)
            self.set_version(_copied(value) if value.op == Op.BUFFER else value)
            return
        place = self.uop
        for count, step in enumerate(steps):
            if step[0] not in _WRITABLE or _mixes_parts(place, step):
                value = updated(place, steps[count:], value)
                break
            place = movement.apply(place, step)
        self.set_version(_after(self.uop, place, value))

    def mixes_parts(self, steps: Sequence[Movement]) -> bool:
        """Whether a view is no view of what each of several devices has."""
        place = self.uop
        for step in steps:
            if _mixes_parts(place, step):
                return True
            place = movement.apply(place, step)
        return False

    def take_over(self, memory: UOp) -> None:
        """Be the owner of memory that has been written; no write waits any more."""
        self._own(memory)
        _LAZY.pop(self, None)

    def write_at(self, place: UOp, value: UOp) -> None:
        """Make the version in which a place, an INDEX of the current one, has a value."""
        assert self.memory is not None
        self.set_version(_after(self.uop, place, value))


def _mixes_parts(place: UOp, step: Movement) -> bool:
    """Whether a view of memory over several devices is no view of what each of them has."""
    before = layout_of(place)
    if before is None or before.axis is None:
        return False
    after = layout_of(movement.apply(place, step))
    return after is None or after.axis is None


# In the order in which they became lazy, so that equal programs make equal graphs.
_LAZY: Final[WeakKeyDictionary[Storage, None]] = WeakKeyDictionary()
_OWNERS: Final[WeakValueDictionary[int, Storage]] = WeakValueDictionary()


def owner_of(buffer: UOp) -> Storage | None:
    """The storage whose memory a BUFFER is."""
    return _OWNERS.get(buffer.arg[0])


def place_of(uop: UOp, device: Any) -> DevicePlace:
    """A device; of several, how a value lies on them."""
    return device if isinstance(device, str) else tuple(layout_of(uop) or Layout(device))


def _after(version: UOp, place: UOp, value: UOp) -> UOp:
    store = make(Op.STORE, dtypes.void, (place, value))
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


def realize(storages: Iterable[Storage]) -> None:
    """Compute the storages; writes of this thread that are still waiting happen with them.

    State that is written every step and never read is written here, so no chain of writes grows
    without bound.
    """
    with lock:
        wanted: dict[Storage, None] = {}
        for storage in storages:
            if storage.uop.op != Op.BUFFER:
                wanted[storage] = None
        if wanted:
            _realize(wanted)


def _realize(wanted: dict[Storage, None]) -> None:
    here = get_ident()
    if any(map(_is_inside, wanted)):
        raise _not_known()
    computed = list(wanted)
    for each in lazy_storages():
        is_own = each.memory is not None and each.thread == here and each not in wanted
        if is_own and not _is_inside(each):
            computed.append(each)
    groups = [computed]
    if len(computed) > 1:
        _separate(computed)
        groups = _by_program(computed)
    for group in groups:
        try:
            _realize_group(group)
        except UsageError:
            # What cannot be carried out, and was not asked for, is the error of whoever reads it.
            asked = [each for each in group if each in wanted]
            if asked:
                _realize_group(asked, alone=True)


def _is_inside(storage: Storage) -> bool:
    """Whether a value depends on a parameter of a function that is being traced."""
    return bool(storage.uop.ops >> Op.PARAM & 1)


def _not_known() -> NotSupported:
    return NotSupported(
        "read: the function is being traced, so this value is not known yet",
        law="function, checkpoint and the transforms call a function on tensors that stand for\n"
        "its arguments; what Python reads of a value would be the same for all of them",
        fix="return the tensor and read it outside, or choose with where()",
    )


def _by_program(storages: list[Storage]) -> list[list[Storage]]:
    """The storages that are computed together: on one device, with one value of each variable."""
    groups: list[tuple[Any, dict[str, int], list[Storage]]] = []
    for storage in storages:
        values = bound_values(storage.uop)
        for device, known, group in groups:
            agree = all(known.get(name, value) == value for name, value in values.items())
            if device == storage.device and agree:
                known.update(values)
                group.append(storage)
                break
        else:
            groups.append((storage.device, values, [storage]))
    return [group for _, _, group in groups]


def _separate(storages: list[Storage]) -> None:
    """Make equal values of several storages unlike, so that each gets memory of its own."""
    seen: set[UOp] = set()
    for storage in storages:
        while storage.uop in seen:
            storage.uop = _copied(storage.uop)
        seen.add(storage.uop)


def _realize_group(wanted: list[Storage], alone: bool = False) -> None:
    """Compute storages of one device, with lazy values that are cheap now unless `alone`."""
    device = wanted[0].device
    on_one = device.__class__ is str
    if not on_one:
        _lay_out(wanted)
    request = Request([each.uop for each in wanted], device if on_one else None)
    asked = set(wanted)
    others: dict[Storage, UOp] = {}
    for each in lazy_storages():
        if each not in asked and not _is_inside(each):
            others[each] = each.uop
    written = request.overwritten.written
    if written and not alone:
        along = _cheap_now(others, device, request)
        if along:
            wanted = wanted + along
            _separate(wanted)
            if not on_one:
                _lay_out(wanted)
            request = Request([each.uop for each in wanted], request.device)
            for each in along:
                del others[each]
    graphs = _followed(wanted, request)
    pending = list(others.values())
    if written and graphs:
        pending += history.small_versions([graph for _, graph in graphs])
    made = realize_graphs(request, pending)
    _take_results(device, wanted, others, made)
    if written:
        history.forget_overwritten(request.overwritten.last)
    for storage, graph in graphs:
        history.remember_graph(storage.uop, graph, made)


def _followed(wanted: list[Storage], request: Request) -> list[tuple[Storage, UOp]]:
    """The storages whose graphs a gradient may ask for later, and those graphs."""
    follows = history.followed(request.nodes, leaves_with_gradient())
    if not follows:
        return []
    kept = [each for each in wanted if each.keeps_graph and each.memory is None]
    return [(each, each.uop) for each in kept if each.uop in follows]


def _lay_out(storages: list[Storage]) -> None:
    """Say where values are computed that nothing in memory leads to: on each of their devices."""
    for each in storages:
        if layout_of(each.uop) is None:
            each.uop = make(Op.SHARD, each.uop.dtype, (each.uop,), each.place)


def _cheap_now(others: Iterable[Storage], device: Any, request: Request) -> list[Storage]:
    """The lazy values that cost less to compute now than copies of what they read later."""
    computed = set(request.nodes)
    return [e for e in others if _is_cheap_now(e, device, request.overwritten, computed)]


def _is_cheap_now(
    storage: Storage, device: Any, overwritten: Overwritten, computed: set[UOp]
) -> bool:
    """Whether a lazy value costs less to compute now than copies of what it reads.

    That is memory which is about to be overwritten. Gradients and losses of a training step are of
    this kind: the step computes them, or most of what they need, anyway.
    """
    graph = storage.uop
    if storage.device != device or graph.ops & _ELSEWHERE:
        return False
    read = overwritten.read_by([graph])
    if not read:
        return False
    more = topological(graph, enter=lambda node: node not in computed)
    work = [node for node in more if node not in computed and node.op in _WORK]
    cost = _bytes(graph) + sum(_bytes(node.src[-1]) for node in work)
    return cost <= WORTH_OF_A_COPY * sum(map(_bytes, read))


def _bytes(node: UOp) -> int:
    return largest_size(shape_of(node)) * node.dtype.itemsize


def _take_results(
    device: Any, wanted: list[Storage], others: dict[Storage, UOp], made: dict[UOp, UOp]
) -> None:
    """Put what was computed into all storages.

    A value that nothing in memory leads to, such as a range, is the same node on every device:
    what was computed of it here stays out of graphs that may want it elsewhere. A number stays a
    number in all of them.
    """
    for storage in wanted:
        storage.take_over(made[storage.uop])
    if not others:
        return
    bound = {node: memory for node, memory in made.items() if node.ops >> Op.BUFFER & 1}
    if len(bound) < len(made):
        here = {e: g for e, g in others.items() if e.device == device and _stays_here(g)}
        _replace(here, {node: each for node, each in made.items() if node.op != Op.CONST})
        others = {each: graph for each, graph in others.items() if each not in here}
    _replace(others, bound)


def _stays_here(graph: UOp) -> bool:
    return not graph.ops & _OTHER_DEVICES


def _replace(lazy: dict[Storage, UOp], made: dict[UOp, UOp]) -> None:
    """Let lazy storages read what is memory now; but not one whose thread has gone on."""
    versions = substitute_all(list(lazy.values()), made)
    for (storage, before), version in zip(lazy.items(), versions, strict=True):
        if version is before or storage.uop is not before:
            continue
        is_own = storage.memory is not None and version.op == Op.BUFFER
        if is_own and version.arg[0] not in _OWNERS:  # written on the way: a file, another device
            storage._own(version)
            _LAZY.pop(storage, None)
            continue
        # An equal value that another storage has memory for now is copied from there.
        storage.uop = _copied(version) if version.op == Op.BUFFER else version


def lazy_storages() -> list[Storage]:
    """All storages whose current version is not memory yet."""
    storages: list[Storage] = []
    for reference in _LAZY.keyrefs():  # a list that is made at once, whatever other threads do
        storage = reference()
        if storage is not None:
            storages.append(storage)
    return storages


def live_storages() -> list[Storage]:
    """All storages, each once."""
    owners = [each for found in _OWNERS.valuerefs() if (each := found()) is not None]
    return list(dict.fromkeys([*owners, *lazy_storages()]))


def readers_of(memory: Iterable[UOp]) -> list[Storage]:
    """The storages whose lazy value reads some memory."""
    wanted = set(memory)
    return [each for each in lazy_storages() if not wanted.isdisjoint(topological(each.uop))]


class StandIn:
    """Puts memory that does not exist in the place of a lazy storage's value, for a while.

    What is built meanwhile sees a value that was computed before. `remove` brings the value back
    and says which version was written meanwhile, if any.
    """

    __slots__ = ("_memory", "_uop", "node", "storage")

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._uop, self._memory = storage.uop, storage.memory
        kind = BufferKind(self._uop.dtype, shape_of(self._uop), storage.place)
        self.node = kind.without_memory()
        storage.uop = storage.memory = self.node
        _OWNERS[self.node.arg[0]] = storage
        _LAZY.pop(storage, None)

    def remove(self) -> UOp | None:
        storage = self.storage
        version = storage.uop
        storage.uop, storage.memory = self._uop, self._memory
        _OWNERS.pop(self.node.arg[0], None)
        _LAZY[storage] = None
        return None if version is self.node else version


def drop_writes(storage: Storage) -> UOp | None:
    """Let memory forget the writes of this thread that wait; the version that it had, if any."""
    version = storage.uop
    if version is storage.memory or storage.memory is None or storage.thread != get_ident():
        return None
    storage.uop = storage.memory
    _LAZY.pop(storage, None)
    return version


def forget(storage: Storage) -> None:
    """Take the value away from a storage that nobody may use any more."""
    _LAZY.pop(storage, None)
    if storage.memory is not None:
        _OWNERS.pop(storage.memory.arg[0], None)
    storage.memory = None
    storage.uop = const(dtypes.bool, False)

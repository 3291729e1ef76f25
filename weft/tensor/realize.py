"""How lazy storages become memory: what is computed together, and who reads the results.

`realize` is what every method ends in that needs a value. It makes a `Request`, hands it to the
engine, and lets the storages own what came out; graphs that stay lazy read it from there.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol
from weakref import ref

from weft.engine.bindings import bound_values
from weft.engine.realize import realize as realize_graphs
from weft.engine.request import Request
from weft.engine.versions import Overwritten
from weft.ir.build import global_stage
from weft.ir.inline import is_inline
from weft.ir.layouts import layout_of
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute_all, topological
from weft.support.errors import NotFinite, NotSupported, UsageError
from weft.tensor.autodiff import history
from weft.tensor.autodiff.leaves import (
    earlier_with_gradient,
    leaves_with_gradient,
    may_be_followed,
    wanted_leaves,
)
from weft.tensor.storage import Storage, lazy_storages, owner_of, waiting_storages
from weft.tensor.turns import lock

# Graphs that are computed on other devices too.
_OTHER_DEVICES: Final = 1 << Op.COPY | 1 << Op.SHARD
_WORK: Final = ELEMENTWISE | {Op.REDUCE, Op.INDEX, Op.SCATTER}
# A copy reads and writes, and what reads the copy computes its value once more.
WORTH_OF_A_COPY: Final = 4


class RealizeWatch(Protocol):
    """Somebody who sees the values that a program asks for, before and after they are computed."""

    def before(self, storages: Sequence[Storage]) -> None: ...

    def after(self, storages: Sequence[Storage]) -> None: ...


# `weft diff` puts itself here.
WATCHES: Final[list[RealizeWatch]] = []


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
            asked = list(wanted) if WATCHES else []
            for watch in WATCHES:
                watch.before(asked)
            _realize(wanted)
            for watch in WATCHES:
                watch.after(asked)


def _realize(wanted: dict[Storage, None]) -> None:
    for each in wanted:
        if each.uop.ops >> Op.PARAM & 1:
            raise _not_known()
    computed = list(wanted)
    here = get_ident()
    for each in waiting_storages():
        if each.thread == here and each not in wanted and not _is_inside(each):
            computed.append(each)
    groups = [computed]
    if len(computed) > 1:
        _separate(computed)
        groups = _by_program(computed)
    for group in groups:
        try:
            _realize_group(group)
        except NotFinite:
            raise
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
        rule="function, checkpoint and the transforms call a function on tensors that stand for\n"
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
            storage.uop = global_stage(storage.uop)
        seen.add(storage.uop)


def _realize_group(wanted: list[Storage], alone: bool = False) -> None:
    """Compute storages of one device, with lazy values that are cheap now unless `alone`."""
    device = wanted[0].device
    on_one = device.__class__ is str
    if not on_one:
        _lay_out(wanted)
    request = Request([each.uop for each in wanted], device if on_one else None)
    if request.overwritten.written:
        _realize_writes(request, wanted, alone)
        return
    made = realize_graphs(request)
    _take_values(wanted, request, made)
    del request
    made = _still_held(made)
    if made:
        _let_others_read(device, _others(wanted), made)


def _realize_writes(request: Request, wanted: list[Storage], alone: bool) -> None:
    """Compute what writes memory: graphs that stay lazy may read what is there before."""
    device = wanted[0].device
    others = _others(wanted)
    if not alone:
        along = _cheap_now(others, device, request)
        if along:
            wanted = wanted + along
            _separate(wanted)
            if device.__class__ is not str:
                _lay_out(wanted)
            request = Request([each.uop for each in wanted], request.device)
            for each in along:
                del others[each]
    graphs = _followed(wanted, request, leaves_with_gradient())
    pending = list(others.values())
    if graphs:
        pending += history.small_versions([graph for _, graph in graphs])
    # What reads a leaf as it was before this write: nothing is copied for its gradient.
    if earlier := earlier_with_gradient():
        leaves = {leaf._storage for leaf in wanted_leaves()}
        late = _followed([each for each in wanted if each not in leaves], request, earlier)
        graphs += [each for each in late if each not in graphs]
    made = realize_graphs(request, pending)
    _take_over(wanted, made)
    _let_others_read(device, others, made)
    if graphs or history.has_histories():
        history.remember_copies(made)
    history.forget_overwritten(request.overwritten.last)
    for storage, graph in graphs:
        history.remember_graph(storage.uop, graph, made)


def _others(wanted: list[Storage]) -> dict[Storage, UOp]:
    """The graphs of all storages that stay lazy."""
    asked = set(wanted)
    others: dict[Storage, UOp] = {}
    for each in lazy_storages():
        if each not in asked and not _is_inside(each):
            others[each] = each.uop
    return others


def _take_values(wanted: list[Storage], request: Request, made: dict[UOp, UOp]) -> None:
    """Let storages own what was computed, and keep the graphs that gradients may ask for."""
    graphs = _followed(wanted, request, leaves_with_gradient()) if may_be_followed() else ()
    _take_over(wanted, made)
    for storage, graph in graphs:
        history.remember_graph(storage.uop, graph, made)


def _take_over(wanted: list[Storage], made: dict[UOp, UOp]) -> None:
    """Let storages own what was computed; it is noted of values that were no memory before."""
    fresh: list[UOp] = []
    for storage in wanted:
        if storage.memory is None:
            fresh.append(storage.uop)
    floats = history.from_floats(fresh)
    for storage in wanted:
        graph, is_fresh = storage.uop, storage.memory is None
        storage.take_over(made[graph])
        if storage.earlier:
            storage.note_copies(made)
        if is_fresh and graph in floats:
            history.note_computed(storage.uop)


def _weakly(node: UOp, memory: UOp) -> tuple[ref[UOp], UOp]:
    return ref(node), memory


def _still_held(made: dict[UOp, UOp]) -> dict[UOp, UOp]:
    """Those of the nodes that something else holds; no graph has the others.

    Most values are read by nobody else, and then it does not matter how many others are lazy.
    """
    pairs: list[tuple[ref[UOp], UOp]] = []
    while made:
        pairs.append(_weakly(*made.popitem()))
    for held, memory in reversed(pairs):
        found = held()
        if found is not None:
            made[found] = memory
    return made


def _followed(
    wanted: list[Storage], request: Request, leaves: list[UOp]
) -> list[tuple[Storage, UOp]]:
    """The storages whose graphs a gradient may ask for later, and those graphs."""
    follows = history.followed(request.nodes, leaves)
    if not follows:
        return []
    kept = [each for each in wanted if each.keeps_graph and each.uop not in leaves]
    return [(each, each.uop) for each in kept if each.uop in follows]


def _lay_out(storages: list[Storage]) -> None:
    """Say where values are computed that nothing in memory leads to: on each of their devices."""
    for each in storages:
        if layout_of(each.uop) is None:
            each.uop = make(Op.SHARD, each.uop.dtype, (each.uop,), each.placement)


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
    if storage.device != device or graph.ops >> Op.COPY & 1:
        return False
    read = overwritten.read_by([graph])
    if not read:
        return False
    more = topological(graph, enter=lambda node: node not in computed)
    if any(node.op == Op.BIND or (node.op == Op.CALL and not is_inline(node)) for node in more):
        return False
    cost = _bytes(graph) + sum(_work_of(node) for node in more if node not in computed)
    return cost <= WORTH_OF_A_COPY * sum(map(_bytes, read))


def _work_of(node: UOp) -> int:
    """The bytes that computing a node goes over; of a call that is written out, all of its."""
    if node.op in _WORK:
        return _bytes(node.src[-1])
    if node.op == Op.CALL:
        return _bytes(node) * sum(part.op in _WORK for part in topological(node.arg))
    return 0


def _bytes(node: UOp) -> int:
    return largest_size(shape_of(node)) * node.dtype.itemsize


def _let_others_read(device: Any, others: dict[Storage, UOp], made: dict[UOp, UOp]) -> None:
    """Put what was computed into the graphs of storages that are still lazy.

    A value that nothing in memory leads to, such as a range, is the same node on every device:
    what was computed of it here stays out of graphs that may want it elsewhere. A number stays a
    number in all of them.
    """
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
        if is_own and owner_of(version) is None:  # written on the way: a file, another device
            storage.take_over(version)
            continue
        # An equal value that another storage has memory for now is copied from there.
        storage.uop = global_stage(version) if version.op == Op.BUFFER else version

"""Memory behind views, versions and gathers: which memory a node means, and where in it.

The schedule asks these questions of the tensor graph in every pass. A gather is an index that is
loaded; until the kernel is built, a stand-in takes its place in the index arithmetic.
"""

from __future__ import annotations

from typing import Final

from weft.ir.build import index
from weft.ir.dtypes import dtypes
from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.ir.views import memory_of
from weft.ir.walk import topological
from weft.rules.simplify import simplify
from weft.schedule.indexing import Place, through

MEMORY: Final = frozenset((Op.PARAM, Op.BUFFER, Op.AFTER))
CALLS: Final = frozenset((Op.CALL, Op.ITEM))
VIEWS: Final = MOVEMENT | {Op.INDEX}


def gather_place(node: UOp, place: Place) -> tuple[Place, Place]:
    """The place in the source of an INDEX, and the place in its index tensors.

    The loaded indices are not known yet, so a stand-in stands for each: the element of a PARAM
    that no program has. `Builder` puts the loaded value there.
    """
    source, _, *indices = node.src
    rank = len(shape_of(node)) - (len(shape_of(source)) - len(indices))
    at = place.indices[:rank]
    loaded = [stand_in(node, axis, at, place.gate) for axis in range(len(indices))]
    gate = place.gate
    for i, size in zip(loaded, shape_of(source), strict=False):
        gate = gate & ~(i < 0) & (i < index(size))
    return Place((*loaded, *place.indices[rank:]), simplify(gate)), Place(at, place.gate)


def stand_in(node: UOp, axis: int, at: tuple[UOp, ...], gate: UOp) -> UOp:
    """What index number `axis` of a gather loads at a place, as an index expression."""
    slot = (node, axis)
    memory = make(Op.PARAM, dtypes.int64, (), (slot, tuple(1 << 40 for _ in at)))
    place = make(Op.INDEX, dtypes.int64, (memory, gate, *at))
    return simplify(make(Op.LOAD, dtypes.int64, (place,)).cast(dtypes.index))


def written_slots(body: UOp) -> frozenset[int]:
    """The parameters that the kernel of a call writes to."""
    if body.op == Op.PROGRAM:
        return frozenset(body.arg[4])
    stores = [node for node in topological(body) if node.op == Op.STORE]
    return frozenset(memory_of(store.src[0]).arg[0] for store in stores)


def target_of(effect: UOp) -> UOp:
    """The view of memory that a STORE writes to: where a SCATTER folds its updates in, that."""
    place, value = effect.src
    if value.op != Op.SCATTER:
        return place
    return make(Op.INDEX, place.dtype, (place, *value.src[2:]))


def resolve_view(view: UOp, place: Place) -> tuple[UOp, Place]:
    """The memory behind a view, and where in it a place of the view lies."""
    while view.op in VIEWS:
        place = through(view, place) if view.op in MOVEMENT else gather_place(view, place)[0]
        view = view.src[0]
    return view, place

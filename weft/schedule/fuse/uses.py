"""What fusion remembers of values: where each is used, and where it is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.ir.build import index, true
from weft.ir.ops import Op
from weft.ir.shapes import Shape, same_shape, shape_of
from weft.ir.uop import UOp
from weft.rules.simplify import simplify
from weft.schedule.fuse.kernel import Kernel, Path
from weft.schedule.indexing import Place
from weft.schedule.memory import MEMORY

CALLS: Final = frozenset((Op.CALL, Op.ITEM))


class Use(NamedTuple):
    """One edge: in which kernel, at which place, inside which loops a value is read."""

    kernel: Kernel
    place: Place
    path: Path


class Kept(NamedTuple):
    """A value in memory: which memory, the kernel that computes it, and the write of it."""

    memory: UOp
    kernel: Kernel
    effect: UOp  # a STORE or CALL of the tensor graph, or the value itself where it is staged


def free_ranges(place: Place) -> int:
    """The ranges that a place depends on, as a set of their numbers."""
    free = place.gate.ranges
    for i in place.indices:
        free |= i.ranges
    return free


def covers(place: Place, scope: frozenset[UOp], shape: Shape) -> bool:
    """Whether the turns of the scope meet every element of a value exactly once."""
    if place.gate is not true() or len(scope) != sum(i.op == Op.RANGE for i in place.indices):
        return False
    return all(
        (i.op == Op.RANGE and i.src[0] is simplify(index(size))) or size == 1
        for i, size in zip(place.indices, shape, strict=True)
    )


def leaf_bits(order: Sequence[UOp]) -> dict[UOp, int]:
    """For each node the memory below it, as a bit set: joined stores share some of it."""
    found: dict[UOp, int] = {}
    count = 0
    for node in order:
        bits = 0
        if node.op in MEMORY or node.op in CALLS:
            bits = 1 << count
            count += 1
        else:
            for source in node.src:
                bits |= found[source]
        found[node] = bits
    return found


def placed_results(order: list[UOp]) -> dict[UOp, UOp]:
    """The results of calls that are stored, as they are, to memory that nothing else touches.

    The call fills that memory itself, where a kernel would have to copy otherwise.
    """
    stores = [n for n in order if n.op == Op.STORE and n.src[1].op in CALLS]
    found: dict[UOp, UOp] = {}
    readers = Counter(source for node in order for source in node.src) if stores else {}
    for store in stores:
        place, value = store.src
        is_fresh = place.op == Op.PARAM and readers[place] == 1
        if is_fresh and same_shape(shape_of(place), shape_of(value)):
            found.setdefault(value, store)
    return found

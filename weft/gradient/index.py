"""The gradient of INDEX: what was gathered goes back to where it came from, and is added there.

The op table has no scatter-add yet, so `scatter` writes it as a contraction with a one-hot mask:
for each element of the memory, the fold over all positions of those whose indices name it. That
is right for repeated indices and closed gates, it fuses, and its own gradient follows from the
rules of its parts; its work is the number of positions times the number of elements, but for axes
along which an index only counts. An op that adds into memory replaces the body of `scatter` and
nothing else.
"""

from __future__ import annotations

from typing import Final

from weft.gradient.elementwise import Parts, Rule
from weft.gradient.shaping import as_shape, expand, iota, spread
from weft.ir.build import all_of, reduce_axes, true, where
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, make


def scatter(node: UOp, values: UOp, fold: int) -> UOp:
    """Values in the shape of an INDEX, folded into zeros in the shape of what it indexes."""
    shape = shape_of(node.src[0])
    count = len(node.src) - 2
    rest = shape[count:]
    own = shape_of(node)
    positions = own[: len(own) - len(rest)]
    aligned = _aligned(node, positions)
    apart = tuple(1 if axis in aligned else shape[axis] for axis in range(count))
    named, whole = (*positions, *apart), (*positions, *apart, *rest)
    moved = expand(as_shape(values, (*positions, *(1,) * count, *rest)), whole)
    condition = _is_named(node, named, aligned)
    if condition is not true():
        hit = expand(as_shape(condition, (*named, *(1,) * len(rest))), whole)
        moved = where(hit, moved, values.const_like(0))
    folded_axes = [axis for axis in range(len(positions)) if axis not in aligned.values()]
    folded = reduce_axes(moved, fold, folded_axes) if folded_axes else moved
    return as_shape(_in_place(folded, len(positions), count, aligned), shape)


def _aligned(node: UOp, positions: Shape) -> dict[int, int]:
    """The indexed axes whose index counts along an axis of the positions, and that axis.

    Such an index names every element of its axis once, so the two axes are one: `gather` counts
    along all axes but its own.
    """
    found: dict[int, int] = {}
    for axis, place in enumerate(node.src[2:]):
        along = _counts_along(place, len(positions))
        size = shape_of(node.src[0])[axis]
        if along is not None and along not in found.values() and positions[along] == size:
            found[axis] = along
    return found


def _counts_along(place: UOp, rank: int) -> int | None:
    """The axis along which an index is 0, 1, 2, …, if it is the same along all others."""
    if place.op == Op.EXPAND:
        place = place.src[0]
    shape = shape_of(place)
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    if place.op == Op.RESHAPE:
        place = place.src[0]
    is_count = place.op == Op.IOTA and len(shape) == rank and len(axes) == 1
    return axes[0] if is_count else None


def _in_place(folded: UOp, rank: int, count: int, aligned: dict[int, int]) -> UOp:
    """The axes of positions that are indexed axes in the place of those, the others in front."""
    if not aligned:
        return folded
    indexed = [aligned.get(axis, rank + axis) for axis in range(count)]
    after = range(rank + count, len(shape_of(folded)))
    front = [axis for axis in range(rank + count) if axis not in indexed]
    order = (*front, *indexed, *after)
    return make(Op.PERMUTE, folded.dtype, (folded,), order)


def _is_named(node: UOp, named: Shape, aligned: dict[int, int]) -> UOp:
    """For each position and each element of the indexed axes, whether the one names the other.

    The comparison is of exact integers: a narrow index dtype cannot number every element.
    """
    _, gate, *indices = node.src
    first = len(named) - len(indices)  # the axes before are those of the positions
    conditions = [] if gate is true() else [spread(gate, 0, named)]
    for axis, place in enumerate(indices):
        if axis in aligned:
            continue
        numbers = spread(iota(dtypes.index, named[first + axis]), first + axis, named)
        conditions.append(numbers.equal(spread(place.cast(dtypes.index), 0, named)))
    return all_of(*conditions)


def _index(node: UOp, g: UOp) -> Parts:
    """x at i0, i1, …, where the gate is open: g added at i0, i1, …, where the gate is open"""
    return scatter(node, g, Op.ADD), *(None,) * (len(node.src) - 1)


INDEX_RULES: Final[dict[int, Rule]] = {Op.INDEX: _index}

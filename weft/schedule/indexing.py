"""Movement ops as index arithmetic: where an element of a view lies in what it views.

A use of a value is a tuple with one index expression per dimension, and a gate: the condition
under which the use looks at the value at all. `through` carries a use from a movement op to its
source. Every expression is in normal form, so uses that look at the same elements have the same
tuple.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.ir.build import Size, index, true
from weft.ir.ops import Op
from weft.ir.shapes import Shape, fill_pairs, same_shape, shape_of
from weft.ir.uop import UOp
from weft.rules.simplify import simplify

Indices = tuple[UOp, ...]


class Place(NamedTuple):
    """Which element of a value is meant, and when."""

    indices: Indices
    gate: UOp


def everywhere(indices: Indices) -> Place:
    return Place(indices, true())


def through(node: UOp, place: Place) -> Place:
    """The place in the source of a movement op that a place in the op's result shows."""
    source = shape_of(node.src[0])
    indices, gate = place
    if node.op == Op.RESHAPE:
        return Place(reshape_indices(indices, shape_of(node), source), gate)
    if node.op == Op.EXPAND:
        zero = index(0)
        shown = zip(indices, source, shape_of(node), strict=True)
        return Place(tuple(i if s is n or s == n else zero for i, s, n in shown), gate)
    if node.op == Op.PERMUTE:
        back = sorted(range(len(indices)), key=node.arg.__getitem__)
        return Place(tuple(indices[axis] for axis in back), gate)
    if node.op == Op.FLIP:
        return Place(
            tuple(
                simplify(index(size) - 1 - i) if axis in node.arg else i
                for axis, (i, size) in enumerate(zip(indices, source, strict=True))
            ),
            gate,
        )
    if node.op == Op.SHRINK:
        starts = [start for start, _ in fill_pairs(node)]
        return Place(tuple(map(_shift, indices, starts)), gate)
    assert node.op == Op.PAD
    return _through_pad(node, place)


def _through_pad(node: UOp, place: Place) -> Place:
    source = shape_of(node.src[0])
    indices = []
    gate = place.gate
    for i, (before, after), size in zip(place.indices, fill_pairs(node), source, strict=True):
        inner = i if _is_zero(before) else simplify(i - index(before))
        if not _is_zero(before):
            gate = gate & ~(inner < 0)
        if not _is_zero(after):
            gate = gate & (inner < index(size))
        indices.append(inner)
    return Place(tuple(indices), simplify(gate))


def validity(node: UOp, place: Place) -> UOp:
    """The condition under which a place in the result of a PAD shows its source."""
    return _through_pad(node, everywhere(place.indices)).gate


def _is_zero(size: Size) -> bool:
    return isinstance(size, int) and size == 0


def _shift(i: UOp, start: Size) -> UOp:
    return i if _is_zero(start) else simplify(i + index(start))


def reshape_indices(indices: Indices, shape: Shape, source: Shape) -> Indices:
    """The indices into `source` of the element that `indices` mean in `shape`."""
    if same_shape(shape, source):
        return indices
    flat = flatten(indices, shape)
    return unflatten(flat, source)


def flatten(indices: Indices, shape: Shape) -> UOp:
    """The position of an element in row-major order."""
    total = index(0)
    for i, size in zip(indices, shape, strict=True):
        total = total * index(size) + i
    return simplify(total)


def unflatten(flat: UOp, shape: Shape) -> Indices:
    """The indices of the element at a position in row-major order."""
    found: list[UOp] = []
    rest = flat
    for axis in range(len(shape) - 1, -1, -1):
        size = shape[axis]
        if isinstance(size, int) and size == 1:
            found.append(index(0))
        elif all(isinstance(s, int) and s == 1 for s in shape[:axis]):
            found.append(rest)
            rest = index(0)
        else:
            found.append(simplify(rest % index(size)))
            rest = simplify(rest // index(size))
    return tuple(reversed(found))

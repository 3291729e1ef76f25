"""Gradients of INDEX and SCATTER: what was gathered is added where it came from, and back.

`scatter` is the transpose of a gather. Where no element can be named twice, as by one number for
each row, it is a comparison of the numbers, which fuses with what is around it and costs no more
than the zeros would. Elsewhere it is a SCATTER, whose work is that of the updates.
"""

from __future__ import annotations

from typing import Final

from weft.gradient.elementwise import Parts, SlopeRule
from weft.gradient.settled import settled
from weft.ir.build import all_of, true, where
from weft.ir.build import scatter as scatter_node
from weft.ir.dtypes import dtypes
from weft.ir.movement import as_shape, broadcast_axes, expand, full, iota, permute
from weft.ir.ops import Op
from weft.ir.reduction.accumulation import counts_along
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import rebuild


def scatter(node: UOp, values: UOp, reduction: int) -> UOp:
    """Values in the shape of an INDEX, reduced into zeros in the shape of what it indexes."""
    memory, mask, *indices = node.src
    shape = shape_of(memory)
    own = shape_of(node)
    positions = own[: len(own) - len(shape) + len(indices)]
    aligned = _aligned(node, positions)
    if all(axis in aligned.values() or size == 1 for axis, size in enumerate(positions)):
        return _chosen(node, values, positions, aligned)
    return scatter_node(full(values.dtype, 0, shape), values, mask, indices, reduction)


def _chosen(node: UOp, values: UOp, positions: Shape, aligned: dict[int, int]) -> UOp:
    """A scatter that reduces nothing: each element is the value that names it, or 0."""
    shape = shape_of(node.src[0])
    count = len(node.src) - 2
    rest = shape[count:]
    apart = tuple(1 if axis in aligned else shape[axis] for axis in range(count))
    named, whole = (*positions, *apart), (*positions, *apart, *rest)
    moved = expand(as_shape(values, (*positions, *(1,) * count, *rest)), whole)
    condition = _is_named(node, named, aligned)
    if condition is not true():
        hit = expand(as_shape(condition, (*named, *(1,) * len(rest))), whole)
        moved = where(hit, moved, values.const_like(0))
    return as_shape(_with_aligned_axes(moved, len(positions), count, aligned), shape)


def _aligned(node: UOp, positions: Shape) -> dict[int, int]:
    """The indexed axes whose index counts along an axis of the positions, and that axis.

    Such an index names every element of its axis once, so the two axes are one: `gather` counts
    along all axes but its own.
    """
    found: dict[int, int] = {}
    for axis, address in enumerate(node.src[2:]):
        along = counts_along(address, len(positions))
        size = shape_of(node.src[0])[axis]
        if along is not None and along not in found.values() and positions[along] == size:
            found[axis] = along
    return found


def _with_aligned_axes(reduced: UOp, rank: int, count: int, aligned: dict[int, int]) -> UOp:
    """The axes of positions: those of indexed axes where these are, the others in front."""
    if not aligned:
        return reduced
    indexed = [aligned.get(axis, rank + axis) for axis in range(count)]
    after = range(rank + count, len(shape_of(reduced)))
    front = [axis for axis in range(rank + count) if axis not in indexed]
    order = (*front, *indexed, *after)
    return permute(reduced, order)


def _is_named(node: UOp, named: Shape, aligned: dict[int, int]) -> UOp:
    """For each position and each element of the indexed axes, whether the one names the other.

    The comparison is of exact integers: a narrow index dtype cannot number every element.
    """
    _, mask, *indices = node.src
    first = len(named) - len(indices)  # the axes before are those of the positions
    conditions = [] if mask is true() else [broadcast_axes(mask, 0, named)]
    for axis, address in enumerate(indices):
        if axis in aligned:
            continue
        numbers = broadcast_axes(iota(named[first + axis], dtypes.index), first + axis, named)
        conditions.append(numbers.equal(broadcast_axes(address.cast(dtypes.index), 0, named)))
    return all_of(*conditions)


def _index(node: UOp, g: UOp) -> Parts:
    """x at i0, i1, …, where the mask holds: g added at i0, i1, …, where the mask holds"""
    return scatter(node, g, Op.ADD), *(None,) * (len(node.src) - 1)


def _picked(value: UOp, node: UOp) -> UOp:
    """What a value like the result of a SCATTER holds where each update goes."""
    return make(Op.INDEX, value.dtype, (value, *node.src[2:]))


def _spread(node: UOp, value: UOp, updates: UOp, op: int) -> UOp:
    """Another value and other updates, reduced at the same addresses."""
    return scatter_node(value, updates, node.src[2], node.src[3:], op)


def _counted(node: UOp, value: UOp, updates: UOp) -> UOp:
    """How many of a bool and of bools for the updates hold at each address."""
    return _spread(node, value.cast(dtypes.int32), updates.cast(dtypes.int32), Op.ADD)


def _sum(node: UOp, g: UOp) -> Parts:
    """x + sums of v: g, and g where each v goes"""
    return g, _picked(g, node)


def _product(node: UOp, g: UOp) -> Parts:
    """x times products of v: g times the product of the others, as for a REDUCE"""
    x, v = node.src[:2]
    one, zero = x.const_like(1), x.const_like(0)
    nonzero = where(x.equal(0), one, x), where(v.equal(0), one, v)
    product = g * _spread(node, nonzero[0], nonzero[1], Op.MUL)
    zeros = _counted(node, x.equal(0), v.equal(0))
    for_others = where(zeros.equal(0), product, zero)
    for_zero = where(zeros.equal(1), product, zero)
    return (
        where(x.equal(0), for_zero, for_others / nonzero[0]),
        where(v.equal(0), _picked(for_zero, node), _picked(for_others, node) / nonzero[1]),
    )


def _extremum(node: UOp, g: UOp) -> Parts:
    """greatest or least of x and v: g shared evenly by those equal to it"""
    x, v = (settled(source) for source in node.src[:2])
    extreme = rebuild(node, (x, v, *node.src[2:]))
    zero = g.const_like(0)
    is_chosen = x.equal(extreme), v.equal(_picked(extreme, node))
    wide = x.dtype if x.dtype.bits >= 32 else dtypes.float32
    count = _counted(node, is_chosen[0], is_chosen[1])
    share = (g.cast(wide) / count.cast(wide)).cast(g.dtype)
    return where(is_chosen[0], share, zero), where(is_chosen[1], _picked(share, node), zero)


_REDUCED: Final[dict[int, SlopeRule]] = {
    Op.ADD: _sum,
    Op.MUL: _product,
    Op.MAX: _extremum,
    Op.MIN: _extremum,
}


def _scatter(node: UOp, g: UOp) -> Parts:
    """SCATTER: the rule of its reduction"""
    return *_REDUCED[node.arg[0]](node, g), *(None,) * (len(node.src) - 2)


INDEX_RULES: Final[dict[int, SlopeRule]] = {Op.INDEX: _index, Op.SCATTER: _scatter}

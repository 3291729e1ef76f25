"""The gradient of INDEX: what was gathered goes back to where it came from, and is added there.

The op table has no scatter-add yet, so `scatter` writes it as a contraction with a one-hot mask:
for each element of the memory, the fold over all positions of those whose indices name it. That
is right for repeated indices and closed gates, it fuses, and its own gradient follows from the
rules of its parts; its work is the number of positions times the number of elements. An op that
adds into memory replaces the body of `scatter` and nothing else.
"""

from __future__ import annotations

from typing import Final

from weft.gradient.elementwise import Parts, Rule
from weft.gradient.shaping import as_shape, expand, iota, spread
from weft.ir.build import all_of, reduce_axes, true, where
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp


def scatter(node: UOp, values: UOp, fold: int) -> UOp:
    """Values in the shape of an INDEX, folded into zeros in the shape of what it indexes."""
    shape = shape_of(node.src[0])
    count = len(node.src) - 2
    rest = shape[count:]
    own = shape_of(node)
    positions = own[: len(own) - len(rest)]
    whole = (*positions, *shape)
    named = (*positions, *shape[:count])
    hit = expand(as_shape(_is_named(node, named), (*named, *(1,) * len(rest))), whole)
    moved = expand(as_shape(values, (*positions, *(1,) * count, *rest)), whole)
    kept = where(hit, moved, values.const_like(0))
    folded = reduce_axes(kept, fold, range(len(positions))) if positions else kept
    return as_shape(folded, shape)


def _is_named(node: UOp, named: Shape) -> UOp:
    """For each position and each element of the indexed axes, whether the one names the other.

    The comparison is of exact integers: a narrow index dtype cannot number every element.
    """
    _, gate, *indices = node.src
    first = len(named) - len(indices)  # the axes before are those of the positions
    conditions = [] if gate is true() else [spread(gate, 0, named)]
    for axis, place in enumerate(indices):
        numbers = spread(iota(dtypes.index, named[first + axis]), first + axis, named)
        conditions.append(numbers.equal(spread(place.cast(dtypes.index), 0, named)))
    return all_of(*conditions)


def _index(node: UOp, g: UOp) -> Parts:
    """x at i0, i1, …, where the gate is open: g added at i0, i1, …, where the gate is open"""
    return scatter(node, g, Op.ADD), *(None,) * (len(node.src) - 1)


INDEX_RULES: Final[dict[int, Rule]] = {Op.INDEX: _index}

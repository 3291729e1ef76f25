"""Axes of views followed to what they are views of, and back; orders of axes pushed into views.

Passes that choose how values lie in memory ask here. Sizes are integers; an axis that several axes
of the other side make up, or that is repeated, is not followed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from weft.ir.movement import expand, permute
from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make


def sizes_of(node: UOp) -> list[int]:
    """The sizes of a value; none where one is symbolic."""
    sizes = [size for size in shape_of(node) if isinstance(size, int)]
    return sizes if len(sizes) == len(shape_of(node)) else []


def base_of_factor(factor: UOp, views: Collection[int] = MOVEMENT) -> UOp:
    """What a factor is a view of, seen through the cast to the dtype of the sum."""
    has_cast = False
    while factor.op in views or (factor.op == Op.CAST and not has_cast):
        has_cast = has_cast or factor.op == Op.CAST
        factor = factor.src[0]
    return factor


def axis_below(view: UOp, base: UOp, axis: int) -> int | None:
    """The axis of a base along which an axis of its view runs alone."""
    found: int | None = axis
    while view is not base and found is not None:
        source = view.src[0]
        if view.op == Op.PERMUTE:
            found = view.arg[found]
        elif view.op == Op.RESHAPE:
            found = _same_axis(sizes_of(view), sizes_of(source), found)
        elif _changes(view, found):
            return None
        view = source
    return found


def _changes(view: UOp, axis: int) -> bool:
    """Whether a view repeats, pads or flips an axis."""
    if view.op == Op.EXPAND:
        return shape_of(view)[axis] != shape_of(view.src[0])[axis]
    is_padded = view.op == Op.PAD and view.arg[axis] != (0, 0)
    return is_padded or (view.op == Op.FLIP and axis in view.arg)


def axis_above(view: UOp, base: UOp, axis: int) -> int | None:
    """The axis of a view that runs along an axis of its base, and along no other."""
    chain: list[UOp] = []
    while view is not base:
        chain.append(view)
        view = view.src[0]
    found: int | None = axis
    for step in reversed(chain):
        if found is None:
            return None
        if step.op == Op.PERMUTE:
            found = step.arg.index(found)
        elif step.op == Op.RESHAPE:
            found = _same_axis(sizes_of(step.src[0]), sizes_of(step), found)
    return found


def _same_axis(sizes: Sequence[int], others: Sequence[int], axis: int) -> int | None:
    """The axis of other sizes of the same elements that is this one."""
    if not sizes or not others or sizes[axis] == 1:
        return None
    before = math.prod(sizes[:axis])
    for other, size in enumerate(others):
        if size == sizes[axis] and math.prod(others[:other]) == before:
            return other
    return None


def with_base(view: UOp, base: UOp, new: UOp) -> UOp:
    """The same view of another value of the same shape, with the casts that are between them."""
    if view is base:
        return new
    below = with_base(view.src[0], base, new)
    dtype = view.dtype if view.op == Op.CAST else below.dtype
    return make(view.op, dtype, (below, *view.src[1:]), view.arg)


def without_cast(view: UOp, base: UOp) -> UOp:
    """A view of what it is of, without the casts that are between them."""
    if view is base:
        return base
    below = without_cast(view.src[0], base)
    if view.op == Op.CAST:
        return below
    return make(view.op, below.dtype, (below, *view.src[1:]), view.arg)


def permuted(node: UOp, order: Sequence[int]) -> UOp:
    """A value with its axes in another order: one PERMUTE at most; a scalar stays."""
    if not shape_of(node):
        return node
    if node.op == Op.PERMUTE:
        order, node = [node.arg[axis] for axis in order], node.src[0]
    return node if list(order) == list(range(len(order))) else permute(node, order)


def permuted_factor(node: UOp, order: Sequence[int]) -> UOp:
    """A factor with its axes in another order, which stays one that is repeated and cast."""
    if node.op == Op.EXPAND and len(node.src) == 1:
        sizes = shape_of(node)
        return expand(permuted_factor(node.src[0], order), tuple([sizes[axis] for axis in order]))
    if node.op == Op.CAST:
        return make(Op.CAST, node.dtype, (permuted_factor(node.src[0], order),))
    return permuted(node, order)


def inverse(order: Sequence[int]) -> list[int]:
    """The order that undoes another."""
    return sorted(range(len(order)), key=order.__getitem__)


def with_last(rank: int, axis: int) -> list[int]:
    """The order of axes in which one comes last.

    >>> with_last(4, 1)
    [0, 2, 3, 1]
    """
    return [each for each in range(rank) if each != axis] + [axis]

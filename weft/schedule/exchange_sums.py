"""Sums of sums in the other order, where the inner one is in the graph already.

The gradient of attention has a sum for each query of weights times their slopes, and the slopes
are a product with a number for each query and key:

    before: sum over k: e[i, k] * (sum over d: g[i, d] * v[k, d])
    after:  sum over d: g[i, d] * (sum over k: e[i, k] * v[k, d])

The inner sum of the second form is the output of attention, but for factors of a row. Nothing is
left then that has a value for each query and key, other than what products read.

In and Out: a tensor graph of NORMALIZED_SPEC. Sums that are exchanged are those of a product whose
factors are the very nodes of another one, as reverse mode makes them, and only where that lets
these products be kernels that compute scores anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from weft.ir.build import global_stage, reduce_axes
from weft.ir.dtypes import dtypes
from weft.ir.movement import expand, reshape
from weft.ir.ops import Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp
from weft.ir.walk import rebuild, topological, users
from weft.schedule.context import ScheduleContext
from weft.schedule.fuse.chains import NEVER, find_chains
from weft.schedule.fuse.cost import size_of, sums_reused_products
from weft.support.settings import settings
from weft.target.compute import Simd

# Terms of a sum from which on it is exchanged.
LEAST_TERMS: Final = 8
# Products of attention with any gradient: scores, output, slopes of weights, and that gradient.
LEAST_PRODUCTS: Final = 4


class _Exchange(NamedTuple):
    """A sum over keys of a product over columns, and another product of the same values."""

    gradient: UOp  # g, with axes of size 1 for the keys
    axis: int  # the columns
    other: UOp  # the sum over keys of weights times values
    rows: list[UOp]  # factors of the weights that are the same for all keys


def exchange_sums(sink: UOp, context: ScheduleContext) -> UOp:
    """Exchange the sums of which another order is known."""
    if settings.FUSE_PRODUCTS == NEVER or not isinstance(context.target.compute, Simd):
        return sink
    order = topological(sink)
    sums = [node for node in order if _is_sum(node)]
    if sum(map(sums_reused_products, sums)) < LEAST_PRODUCTS:
        return sink
    readers = users(sink)
    found = {node: each for node in sums if (each := _try_exchange(node, readers)) is not None}
    if not found:
        return sink
    made: dict[UOp, UOp] = {}
    for node in order:
        if node in found:
            made[node] = _exchanged(node, found[node], made)
        else:
            made[node] = rebuild(node, tuple([made[source] for source in node.src]))
    result = made[sink]
    chains = find_chains(result, topological(result), context.target)
    return result if chains.gradients else sink


def _try_exchange(node: UOp, readers: Mapping[UOp, list[UOp]]) -> _Exchange | None:
    """How a sum is exchanged; None if it is not."""
    if node.dtype is not dtypes.float32:
        return None
    if largest_size(shape_of(node.src[0])) < LEAST_TERMS * max(size_of(node), 1):
        return None
    factors = _factors(node.src[0])
    for factor in factors:
        product = _behind(factor)
        if not _is_sum(product) or product.src[0].op != Op.MUL:
            continue
        rest = [each for each in factors if each is not factor]
        for gradient, values in (product.src[0].src, product.src[0].src[::-1]):
            for body in readers.get(values, ()):
                for other in readers.get(body, ()) if body.op == Op.MUL else ():
                    found = _match(node, rest, gradient, values, product, other)
                    if found is not None:
                        return found
    return None


def _match(
    node: UOp, rest: list[UOp], gradient: UOp, values: UOp, product: UOp, other: UOp
) -> _Exchange | None:
    """Whether another product sums what is left of a sum times the same values."""
    if not _is_sum(other) or other is product or other.src[0].op != Op.MUL:
        return None
    if other.dtype is not dtypes.float32 or product.dtype is not dtypes.float32:
        return None
    (keys,), (axis,) = other.arg[1], product.arg[1]
    x, y = other.src[0].src
    weights = y if x is values else x
    is_spread = gradient.op == Op.EXPAND and shape_of(gradient.src[0])[keys] == 1
    is_weighed = weights.op == Op.EXPAND and shape_of(weights.src[0])[axis] == 1
    if keys == axis or not is_spread or not is_weighed:
        return None
    parts, along = _factors(_behind(weights.src[0])), node.arg[1][0]
    if shape_of(weights.src[0]) != shape_of(product) or not _is_axis(product, keys, node, along):
        return None
    if any(shape_of(part) != shape_of(node.src[0]) for part in parts):
        return None
    rows = [p for p in parts if p.op == Op.EXPAND and shape_of(p.src[0])[along] == 1]
    full = [part for part in parts if part not in rows]
    if sorted(map(id, full)) != sorted(map(id, rest)):
        return None
    return _Exchange(gradient.src[0], axis, other, [row.src[0] for row in rows])


def _is_axis(product: UOp, keys: int, node: UOp, along: int) -> bool:
    """Whether an axis of a product is that of a sum, with axes of size 1 in other places alone."""
    x, y = shape_of(product), shape_of(node.src[0])
    before = [size for size in x[:keys] if size != 1], [size for size in y[:along] if size != 1]
    return before[0] == before[1] and [n for n in x if n != 1] == [n for n in y if n != 1]


def _exchanged(node: UOp, found: _Exchange, made: Mapping[UOp, UOp]) -> UOp:
    """The sum in the other order."""
    gradient, other = made[found.gradient], made[found.other]
    if shape_of(gradient) != shape_of(other):
        gradient = expand(gradient, shape_of(other))
    value = reduce_axes(gradient * other, Op.ADD, (found.axis,))
    # By itself: kernels of products that need it have loops of their own.
    value = reshape(global_stage(value), shape_of(node))
    for row in found.rows:
        value = value / made[row].cast(dtypes.float32)
    return value


def _is_sum(node: UOp) -> bool:
    return node.op == Op.REDUCE and node.arg[0] == Op.ADD and len(node.arg[1]) == 1


def _factors(node: UOp) -> list[UOp]:
    """The factors of a product of values of one shape."""
    inside = _behind_casts(node)
    if inside.op != Op.MUL:
        return [inside]
    return [factor for source in inside.src for factor in _factors(source)]


def _behind_casts(node: UOp) -> UOp:
    """What is rounded to a small float, or widened from it.

    Sums in another order round otherwise too, and less than small floats do.
    """
    while node.op == Op.CAST and _is_summed_wide(node) and _is_summed_wide(node.src[0]):
        node = node.src[0]
    return node


def _is_summed_wide(node: UOp) -> bool:
    """Whether a value is a float32, or small."""
    return node.dtype.is_float and node.dtype.bits <= dtypes.float32.bits


def _behind(node: UOp) -> UOp:
    """What is below casts, and below axes of size 1 in other places."""
    while True:
        node = _behind_casts(node)
        if node.op != Op.RESHAPE:
            return node
        node = node.src[0]

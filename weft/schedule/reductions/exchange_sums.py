"""Sums of sums in the other order, where the inner one then is an output of attention.

The gradient of attention has a sum for each query of weights times their slopes, and the slopes
are a product with a number for each query and key:

    before: sum over k: e[i, k] * (sum over d: g[i, d] * v[k, d])
    after:  sum over d: g[i, d] * (sum over k: e[i, k] * v[k, d])

The inner sum of the second form is the output of attention, but for factors of a row. It is in the
graph already, or is computed once more, where a gradient is wanted and the output is not. Nothing
is left then that has a value for each query and key, other than what products read.

In and Out: a tensor graph of NORMALIZED_SPEC. Sums that are exchanged are those of a product whose
factors are the very nodes of another one or of a softmax, as reverse mode makes them, and only
where that lets these products be kernels that compute scores anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from weft.ir.build import global_stage, reduce_axes, where
from weft.ir.dtypes import DType, dtypes
from weft.ir.movement import expand, reshape
from weft.ir.ops import Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp
from weft.ir.views import unmoved
from weft.ir.walk import map_graph, topological, users, with_sources
from weft.schedule.context import ScheduleContext
from weft.schedule.fuse.chains.chains import NEVER, can_chain, find_chains
from weft.schedule.fuse.cost import size_of, sums_reused_products
from weft.support.settings import settings

# Terms of a sum from which on it is exchanged.
LEAST_TERMS: Final = 8
# Products of attention with any gradient: scores, slopes of weights, and that gradient.
LEAST_PRODUCTS: Final = 3


def exchange_sums(sink: UOp, context: ScheduleContext) -> UOp:
    """Exchange the sums of which another order is known."""
    if settings.FUSE_PRODUCTS == NEVER or not can_chain(context.target):
        return sink
    order = topological(sink)
    sums = [node for node in order if _is_sum(node)]
    if sum(map(sums_reused_products, sums)) < LEAST_PRODUCTS:
        return sink
    readers = users(sink)
    found = {node: each for node in sums if (each := _try_exchange(node, readers)) is not None}
    if not found:
        return sink

    def below(node: UOp) -> tuple[UOp, ...]:
        return (found[node],) if node in found else node.src

    def changed(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        return made[found[node]] if node in found else with_sources(node, made)

    result = map_graph(sink, changed, sources=below)
    chains = find_chains(result, topological(result), context.target)
    return result if chains.gradients else sink


class _Factor(NamedTuple):
    """What a value is multiplied with, divided by, or masked by."""

    op: int  # MUL, DIV or WHERE
    node: UOp

    def of(self, value: UOp) -> UOp:
        """A value with this factor."""
        if self.op == Op.WHERE:
            return where(self.node, value, value.const_like(0))
        node = self.node.cast(value.dtype)
        return value / node if self.op == Op.DIV else node * value


class _Product(NamedTuple):
    """A sum over columns inside of a sum over keys, and what that multiplies it with."""

    node: UOp  # the sum over keys
    rest: list[_Factor]
    product: UOp  # the sum over columns
    gradient: UOp  # what it multiplies, the same for all keys
    values: UOp
    keys: int  # the axis of the keys in the product

    @property
    def axis(self) -> int:
        """The columns."""
        return int(self.product.arg[1][0])

    @property
    def along(self) -> int:
        """The axis of the keys in the sum over them."""
        return int(self.node.arg[1][0])


def _try_exchange(node: UOp, readers: Mapping[UOp, list[UOp]]) -> UOp | None:
    """A sum in the other order; None if it stays."""
    if node.dtype is not dtypes.float32:
        return None
    if largest_size(shape_of(node.src[0])) < LEAST_TERMS * max(size_of(node), 1):
        return None
    found = list(_products(node))
    for each in found:
        for body in readers.get(each.values, ()):
            for other in readers.get(body, ()) if body.op == Op.MUL else ():
                rows = _match(each, other)
                if rows is not None:
                    return _exchanged(each, _rounded(other, readers), rows)
    for each in found:
        total = _total(each, readers)
        if total is not None:
            return _exchanged(each, _output(each, total), [_reciprocal(total)])
    return None


def _products(node: UOp) -> Iterator[_Product]:
    """The products that a sum over keys is of."""
    factors = _factors(node.src[0])
    for factor in factors:
        product = _behind(factor.node)
        if factor.op != Op.MUL or not _is_sum(product) or product.src[0].op != Op.MUL:
            continue
        if product.dtype is not dtypes.float32:
            continue
        rest = [each for each in factors if each is not factor]
        along = node.arg[1][0]
        for gradient, values in (product.src[0].src, product.src[0].src[::-1]):
            if gradient.op != Op.EXPAND:
                continue
            for keys, size in enumerate(shape_of(gradient.src[0])):
                is_repeated = size == 1 and keys != product.arg[1][0]
                if is_repeated and _is_axis(product, keys, node, along):
                    yield _Product(node, rest, product, gradient.src[0], values, keys)


def _match(found: _Product, other: UOp) -> list[UOp] | None:
    """Whether another product sums what is left of a sum times the same values.

    If so, the factors of its weights that are the same for all keys.
    """
    if not _is_sum(other) or other is found.product or other.src[0].op != Op.MUL:
        return None
    if other.dtype is not dtypes.float32 or other.arg[1] != (found.keys,):
        return None
    x, y = other.src[0].src
    weights = y if x is found.values else x
    if weights.op != Op.EXPAND or shape_of(weights.src[0]) != shape_of(found.product):
        return None
    full = shape_of(found.node.src[0])
    parts = _factors(_behind(weights.src[0]))
    if any(shape_of(part.node) not in (full, ()) for part in parts):
        return None
    rows = [part for part in parts if _is_row(part, found.along)]
    is_same = sorted(map(_key, parts)) == sorted(map(_key, (*found.rest, *rows)))
    return [row.node.src[0] for row in rows] if is_same else None


def _is_row(factor: _Factor, along: int) -> bool:
    """Whether a factor is the same for all keys."""
    node = factor.node
    return factor.op == Op.MUL and node.op == Op.EXPAND and shape_of(node.src[0])[along] == 1


def _key(factor: _Factor) -> tuple[int, int]:
    return factor.op, id(factor.node)


def _total(found: _Product, readers: Mapping[UOp, list[UOp]]) -> UOp | None:
    """The sum of weights that a softmax divides them by: no output of attention is without it."""
    for factor in found.rest:
        for reader in readers.get(factor.node, ()):
            is_sum = _is_sum(reader) and reader.arg == found.node.arg
            if is_sum and reader is not found.node and reader.dtype is dtypes.float32:
                return where(reader.equal(0.0), reader.const_like(1.0), reader)
    return None


def _output(found: _Product, total: UOp) -> UOp:
    """The product of normalized weights and values."""
    shape = shape_of(found.node.src[0])
    weights = expand(_reciprocal(total), shape)
    for factor in found.rest:
        weights = factor.of(weights)
    weights = reshape(weights, shape_of(found.product))
    weights = expand(weights, shape_of(found.values))
    narrow = _dtype_in_memory(found.values)
    if narrow is not weights.dtype:  # as attention multiplies it
        weights = weights.cast(narrow).cast(weights.dtype)
    return reduce_axes(weights * found.values, Op.ADD, (found.keys,))


def _dtype_in_memory(values: UOp) -> DType:
    """The dtype of values, or that of the small floats that they are widened from."""
    node = unmoved(values)
    is_widened = node.op == Op.CAST and node.src[0].dtype.is_float and _is_summed_wide(node.src[0])
    return node.src[0].dtype if is_widened else values.dtype


def _reciprocal(node: UOp) -> UOp:
    return node.const_like(1.0) / node


def _is_axis(product: UOp, keys: int, node: UOp, along: int) -> bool:
    """Whether an axis of a product is that of a sum, with axes of size 1 elsewhere alone."""
    x, y = shape_of(product), shape_of(node.src[0])
    if x[keys] != y[along]:
        return False
    before = [size for size in x[:keys] if size != 1], [size for size in y[:along] if size != 1]
    return before[0] == before[1] and [n for n in x if n != 1] == [n for n in y if n != 1]


def _rounded(output: UOp, readers: Mapping[UOp, list[UOp]]) -> UOp:
    """An output as whoever else reads it has it: rounded to a small float, or as it is.

    Slopes of weights are rounded too, and memory has it once.
    """
    node = output
    while len(readers[node]) == 1 and readers[node][0].op == Op.RESHAPE:
        (node,) = readers[node]
    if [each.op for each in readers[node]] != [Op.CAST] or not _is_summed_wide(readers[node][0]):
        return output
    return reshape(readers[node][0].cast(output.dtype), shape_of(output))


def _exchanged(found: _Product, other: UOp, rows: list[UOp]) -> UOp:
    """The sum in the other order."""
    gradient = expand(found.gradient, shape_of(other))
    value = reduce_axes(gradient * other, Op.ADD, (found.axis,))
    # By itself: kernels of products that need it have loops of their own.
    value = reshape(global_stage(value), shape_of(found.node))
    for row in rows:
        value = value / row.cast(dtypes.float32)
    return value


def _is_sum(node: UOp) -> bool:
    return node.op == Op.REDUCE and node.arg[0] == Op.ADD and len(node.arg[1]) == 1


def _factors(node: UOp) -> list[_Factor]:
    """The factors of a product of values of one shape, masks that leave zeros among them."""
    inside = _behind_casts(node)
    if inside.op == Op.MUL:
        return [factor for source in inside.src for factor in _factors(source)]
    if inside.op == Op.DIV:
        return [*_factors(inside.src[0]), _Factor(Op.DIV, inside.src[1])]
    if inside.op == Op.WHERE and inside.src[2] is inside.const_like(0):
        return [*_factors(inside.src[1]), _Factor(Op.WHERE, inside.src[0])]
    return [_Factor(Op.MUL, inside)]


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
    """What is below casts, and below axes of size 1 elsewhere."""
    while True:
        node = _behind_casts(node)
        if node.op != Op.RESHAPE:
            return node
        node = node.src[0]

"""Sums of products of several factors, in the order that takes the fewest multiplications.

A linear recurrence over chunks has, for each token, a sum over earlier tokens of outer products,
and the reader of that sums over the features of a query:

    before: sum over d: q[t, d] * (sum over s: decay[t, s] * k[s, d] * v[s, e])
    after:  sum over s: (decay[t, s] * (sum over d: q[t, d] * k[s, d])) * v[s, e]

Both are one sum over s and d of four factors. Each factor depends on some of the axes; the axes
that are summed leave one by one, and with each of them the factors that depend on it become one.
A sum of two values is taken apart where that lets one of them be ordered.

In and Out: a tensor graph of NORMALIZED_SPEC, of the same values but for the rounding of sums.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from weft.ir.build import Size, global_stage, range_, reduce_axes
from weft.ir.dtypes import dtypes
from weft.ir.movement import expand, flip, pad, permute, reshape, shrink
from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import Shape, fill_pairs, largest_size, shape_of
from weft.ir.uop import UOp
from weft.ir.walk import map_graph, topological, users, with_sources
from weft.schedule.context import ScheduleContext
from weft.schedule.fuse.cost import sums_reused_products
from weft.schedule.indexing import everywhere, seen_through

# How many times fewer multiplications another order has to take.
LEAST_GAIN: Final = 4
# A multiplication of a sum that is not a contraction, in multiplications of one that is.
PLAIN_COST: Final = 8
# Columns and rows from which on a sum of products is a contraction.
LEAST_REUSE: Final = 8
# Factors of a product, axes that it is summed over, and terms of a value that is taken apart.
MOST_FACTORS: Final = 6
MOST_AXES: Final = 3
MOST_TERMS: Final = 4
_FLOATS: Final = (dtypes.float32, dtypes.float64)


class _Leaf(NamedTuple):
    """A factor of a product: a node, and the views of it up to the product, from the node on."""

    node: UOp
    views: tuple[UOp, ...]


def order_contractions(sink: UOp, context: ScheduleContext) -> UOp:
    """Put sums of products in the order that takes the fewest multiplications."""
    sums = [node for node in topological(sink) if _is_sum(node)]
    candidates = [node for node in sums if _may_be_ordered(node)]
    if not candidates:
        return sink
    orders = [each for node in candidates for each in _orders(node)]
    found = _chosen(orders, users(sink))
    if not found:
        return sink

    def below(node: UOp) -> tuple[UOp, ...]:
        return (found[node],) if node in found else node.src

    def changed(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        return made[found[node]] if node in found else with_sources(node, made)

    return map_graph(sink, changed, sources=below)


def _is_sum(node: UOp) -> bool:
    is_add = node.op == Op.REDUCE and node.arg[0] == Op.ADD and node.dtype in _FLOATS
    return is_add and all(isinstance(n, int) and n for n in shape_of(node.src[0]))


def _may_be_ordered(node: UOp) -> bool:
    leaves = _leaves(node.src[0])
    if leaves is None or len(leaves) < 2:
        return False
    return len(leaves) > 2 or any(_terms(leaf) for leaf in leaves)


def _leaves(node: UOp, views: tuple[UOp, ...] = ()) -> list[_Leaf] | None:
    """The factors of a product, seen through views; None if there are too many."""
    found: list[_Leaf] = []
    stack = [(node, views)]
    while stack:
        node, views = stack.pop()
        if node.op in MOVEMENT:
            stack.append((node.src[0], (node, *views)))
        elif node.op == Op.MUL:
            stack += [(source, views) for source in reversed(node.src)]
        else:
            found.append(_Leaf(node, views))
        if len(found) + len(stack) > MOST_FACTORS:
            return None
    return found


def _terms(leaf: _Leaf) -> list[_Leaf]:
    """The terms of a factor of which one is a sum of products; none of another factor."""
    terms: list[_Leaf] = []
    stack = [leaf]
    while stack:
        node, views = stack.pop()
        if node.op in MOVEMENT:
            stack.append(_Leaf(node.src[0], (node, *views)))
        elif node.op == Op.ADD:
            stack += [_Leaf(source, views) for source in reversed(node.src)]
        else:
            terms.append(_Leaf(node, views))
        if len(terms) + len(stack) > MOST_TERMS:
            return []
    return terms if any(map(_is_product_sum, terms)) else []


def _is_product_sum(leaf: _Leaf) -> bool:
    found = _leaves(leaf.node.src[0]) if _is_sum(leaf.node) else None
    return found is not None and len(found) > 1


# ---- one sum


class _Order(NamedTuple):
    """How a sum may be ordered: as the sum of some terms, with the products inside of them."""

    node: UOp
    plans: list[_Plan]
    inner: list[UOp]  # sums that this one needs no longer

    @property
    def cost(self) -> float:
        return sum(plan.cost for plan in self.plans)

    def result(self) -> UOp:
        total, *others = [plan.result() for plan in self.plans]
        for other in others:
            total = total + other
        return total


def _orders(node: UOp) -> Iterator[_Order]:
    leaves = _leaves(node.src[0])
    assert leaves is not None
    for at, leaf in enumerate(leaves):
        terms = _terms(leaf)
        others = [*leaves[:at], *leaves[at + 1 :]]
        plans = [plan for term in terms if (plan := _plan(node, others, term)) is not None]
        if plans and len(plans) == len(terms):
            yield _Order(node, plans, [term.node for term in terms if _is_product_sum(term)])
    plan = _plan(node, leaves, None) if len(leaves) > 2 else None
    if plan is not None:
        yield _Order(node, [plan], [])


def _chosen(orders: list[_Order], readers: Mapping[UOp, list[UOp]]) -> dict[UOp, UOp]:
    """Each sum that takes much less work in another order.

    A sum inside of others is saved if all that read it are ordered so that they do without.
    """
    while True:
        needless: dict[UOp, set[UOp]] = {}
        for order in orders:
            for each in order.inner:
                needless.setdefault(each, set()).add(order.node)
        shares = {
            each: _cost_as_it_is(each) / len(nodes)
            for each, nodes in needless.items()
            if _sums_above(each, readers) == nodes
        }
        kept = [order for order in orders if _wins(order, shares)]
        if len(kept) == len(orders):
            break
        orders = kept
    found: dict[UOp, _Order] = {}
    for order in orders:
        if order.node not in found or order.cost < found[order.node].cost:
            found[order.node] = order
    return {node: order.result() for node, order in found.items()}


def _wins(order: _Order, shares: Mapping[UOp, float]) -> bool:
    saved = _cost_as_it_is(order.node) + sum(shares.get(each, 0.0) for each in order.inner)
    return order.cost * LEAST_GAIN <= saved


def _sums_above(node: UOp, readers: Mapping[UOp, list[UOp]]) -> set[UOp]:
    """The sums of products that read a value; others that read it are among them."""
    found: set[UOp] = set()
    stack, seen = [*readers[node]], set[UOp]()
    while stack:
        above = stack.pop()
        if above in seen:
            continue
        seen.add(above)
        if above.op in MOVEMENT or above.op in (Op.ADD, Op.MUL):
            stack += readers[above]
        else:
            found.add(above)
    return found


class _Factor(NamedTuple):
    """A factor in the shape of the whole product, of size 1 along the axes that it lacks."""

    value: UOp
    axes: frozenset[int]


class _Plan(NamedTuple):
    """The order in which axes leave a product, and what that costs."""

    node: UOp
    factors: list[_Factor]
    sizes: Shape
    order: tuple[int, ...]
    cost: float

    def result(self) -> UOp:
        factors = self.factors
        for axis in self.order:
            own = [each for each in factors if axis in each.axes]
            others = [each for each in factors if axis not in each.axes]
            factors = [*others, _summed(own, axis, self.sizes)]
        value = _product(factors, self.sizes).value
        sizes = [1 if axis in self.order else n for axis, n in enumerate(self.sizes)]
        value = expand(value, tuple(sizes))
        if len(sizes) > len(shape_of(self.node)):
            # By itself: its loops are over the parts of axes, each with an index in a tile.
            value = global_stage(value)
        return reshape(value, shape_of(self.node))


def _plan(node: UOp, others: Sequence[_Leaf], term: _Leaf | None) -> _Plan | None:
    """How a sum of products is ordered, with the factors inside of a term."""
    shape = shape_of(node.src[0])
    values = [_shown(leaf) for leaf in others]
    axes = list(node.arg[1])
    if term is not None and _is_product_sum(term):
        inner = [_along_more(leaf, term) for leaf in _leaves(term.node.src[0]) or ()]
        full = shape_of(inner[0])
        axes += range(len(shape), len(full))
        ones = (1,) * (len(full) - len(shape))
        values = [
            expand(reshape(value, (*shape, *ones)), full) if shape_of(value) else value
            for value in values
        ]
        values, shape = [*values, *inner], full
    elif term is not None:
        values += [_shown(leaf) for leaf in _leaves(term.node, term.views) or (term,)]
    cut = _cut(values, shape) if len(values) <= MOST_FACTORS else None
    if cut is None:
        return None
    sizes = tuple(n for parts in cut for n in parts)
    factors = [_factor(value, sizes) for value in values]
    first = list(itertools.accumulate((len(parts) for parts in cut), initial=0))
    summed = [at for axis in axes for at in range(first[axis], first[axis + 1])]
    summed = [at for at in summed if sizes[at] != 1]
    held = frozenset[int]().union(*[factor.axes for factor in factors])
    if not 0 < len(summed) <= MOST_AXES or not held.issuperset(summed):
        return None
    orders = itertools.permutations(summed)
    cost, best = min((_cost(factors, each, sizes), each) for each in orders)
    return _Plan(node, factors, sizes, best, cost)


# ---- factors in one shape


def _shown(leaf: _Leaf, more: Shape = ()) -> UOp:
    """A factor in the shape of the product; with more axes behind, those stay as they are."""
    value = leaf.node
    count = len(more)
    if leaf.views and not shape_of(value):  # a number beside what the first view is of
        below = shape_of(leaf.views[0].src[0])
        value = expand(reshape(value, (1,) * len(below)), below)
    for view in leaf.views:
        shape = (*shape_of(view), *more)
        if view.op == Op.RESHAPE:
            value = reshape(value, shape)
        elif view.op == Op.EXPAND:
            value = expand(value, shape)
        elif view.op == Op.PERMUTE:
            value = permute(value, (*view.arg, *range(len(view.arg), len(view.arg) + count)))
        elif view.op == Op.FLIP:
            value = flip(value, view.arg)
        else:
            made = shrink if view.op == Op.SHRINK else pad
            rest = [(0, n if view.op == Op.SHRINK else 0) for n in more]
            value = made(value, [*fill_pairs(view), *rest])
    return value


def _along_more(leaf: _Leaf, term: _Leaf) -> UOp:
    """A factor inside of a term in the shape of the product, with the axes of its sum behind."""
    value, axes, rows = _shown(leaf), term.node.arg[1], shape_of(term.node)
    body = shape_of(term.node.src[0])
    more = tuple(body[axis] for axis in axes)
    if not shape_of(value):
        value = expand(reshape(value, (1,) * len(body)), body)
    others = [axis for axis in range(len(body)) if axis not in axes]
    value = reshape(permute(value, (*others, *axes)), (*rows, *more))
    return _shown(_Leaf(value, term.views), more)


def _cut(values: Iterable[UOp], shape: Shape) -> list[tuple[Size, ...]] | None:
    """Each axis in parts that factors have axes of their own for; None where they differ."""
    wanted: dict[int, set[int]] = {}
    for value in values:
        _note_strides(_indices(value, shape), wanted)
    parts: list[tuple[Size, ...]] = []
    for axis, size in enumerate(shape):
        if not isinstance(size, int):
            return None
        strides = [1, *sorted(wanted.get(axis, ())), size]
        if any(b % a for a, b in itertools.pairwise(strides)):
            return None
        found = [b // a for a, b in itertools.pairwise(strides) if b != a]
        parts.append(tuple(reversed(found)) or (1,))
    return parts


def _note_strides(indices: Sequence[UOp], wanted: dict[int, set[int]]) -> None:
    """Note for each range by how much it is divided, and what is left of it is divided."""
    known: dict[UOp, tuple[int, int]] = {}  # a quotient of a range, and by how much
    for node in topological(*indices):
        if node.op == Op.RANGE:
            known[node] = (int(node.arg), 1)
        elif node.op in (Op.FLOORDIV, Op.FLOORMOD) and node.src[1].op == Op.CONST:
            axis, stride = known.get(node.src[0], (-1, 1))
            stride *= int(node.src[1].arg)
            wanted.setdefault(axis, set()).add(stride)
            if node.op == Op.FLOORDIV and axis >= 0:
                known[node] = (axis, stride)


def _indices(value: UOp, shape: Shape) -> tuple[UOp, ...]:
    """Where an element of a product is in what its factor is a view of, and when."""
    if not shape_of(value):
        return ()
    ranges = tuple([range_(axis, size) for axis, size in enumerate(shape)])
    _, address = seen_through(value, everywhere(ranges))
    return (*address.indices, address.mask)


def _factor(value: UOp, sizes: Shape) -> _Factor:
    if not shape_of(value):
        return _Factor(reshape(value, (1,) * len(sizes)), frozenset())
    value = reshape(value, sizes)
    used = 0
    for node in _indices(value, sizes):
        used |= node.ranges
    axes = frozenset(axis for axis in range(len(sizes)) if used >> axis & 1)
    pairs = [(0, n if axis in axes else 1) for axis, n in enumerate(sizes)]
    return _Factor(shrink(value, pairs), axes)


# ---- one axis after the other


def _cost_as_it_is(node: UOp) -> float:
    """Multiplications of a sum; one that is not a contraction computes them in no tile."""
    return largest_size(shape_of(node.src[0])) * (1 if sums_reused_products(node) else PLAIN_COST)


def _cost(factors: Sequence[_Factor], order: Sequence[int], sizes: Shape) -> float:
    left = [factor.axes for factor in factors]
    cost = 0.0
    for axis in order:
        own = _groups([axes for axes in left if axis in axes])
        union = frozenset[int]().union(*own)
        cost += _count(union, sizes) * (1 if _is_contraction(own, sizes) else PLAIN_COST)
        left = [*(axes for axes in left if axis not in axes), union - {axis}]
    return cost


def _groups(parts: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """The axes of factors, without those of which another factor has all."""
    found: list[frozenset[int]] = []
    for axes in sorted(parts, key=len, reverse=True):
        if not any(axes <= other for other in found):
            found.append(axes)
    return found


def _is_contraction(groups: Sequence[frozenset[int]], sizes: Shape) -> bool:
    if len(groups) != 2:
        return False
    x, y = groups
    return min(_count(x - y, sizes), _count(y - x, sizes)) >= LEAST_REUSE


def _count(axes: Iterable[int], sizes: Shape) -> int:
    return math.prod(size for axis in axes if isinstance(size := sizes[axis], int))


def _product(factors: Sequence[_Factor], sizes: Shape) -> _Factor:
    """Factors multiplied, the small ones with one that has all their axes."""
    groups: list[_Factor] = []
    for factor in sorted(factors, key=lambda each: len(each.axes), reverse=True):
        at = next((i for i, each in enumerate(groups) if factor.axes <= each.axes), -1)
        if at < 0:
            groups.append(factor)
        else:
            groups[at] = _times(groups[at], factor, sizes)
    result = groups[0]
    for group in groups[1:]:
        result = _times(result, group, sizes)
    return result


def _times(x: _Factor, y: _Factor, sizes: Shape) -> _Factor:
    axes = x.axes | y.axes
    shape = tuple(n if axis in axes else 1 for axis, n in enumerate(sizes))
    return _Factor(expand(x.value, shape) * expand(y.value, shape), axes)


def _summed(own: Sequence[_Factor], axis: int, sizes: Shape) -> _Factor:
    """Factors multiplied and summed over an axis; rows and columns of the result lie behind."""
    groups = _groups([each.axes for each in own])
    shared = frozenset.intersection(*groups)
    order = sorted(range(len(sizes)), key=lambda at: (at == axis, at not in shared, at))
    index = {at: number for number, at in enumerate(order)}
    moved = [_Factor(permute(x, order), frozenset([index[at] for at in axes])) for x, axes in own]
    product = _product(moved, tuple([sizes[at] for at in order]))
    value = reduce_axes(product.value, Op.ADD, (index[axis],))
    back = permute(value, [index[at] for at in range(len(sizes))])
    return _Factor(back, frozenset[int]().union(*groups) - {axis})

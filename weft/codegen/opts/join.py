"""The rewrite behind the opt Join: reductions that need each other share a loop over blocks.

In: reductions over outer ranges and others, each as many iterations, of which some need another.
Out: each block is reduced by itself, by plain reductions over the other ranges, and the blocks are
joined over the outer ranges of one of them. `rules/joins` says how, from the bodies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from weft.codegen.analysis.loops import (
    extent_of,
    kinds_of,
    nodes_of,
    own_ranges,
    rebuilt,
    with_loops,
)
from weft.ir.build import index, reduce_ranges
from weft.ir.dtypes import Scalar, dtypes, holds_exactly
from weft.ir.ops import Op
from weft.ir.reduction.joined import is_joined, joined_reduction
from weft.ir.reduction.reductions import identity
from weft.ir.uop import UOp, const, make
from weft.ir.walk import map_graph, topological
from weft.rules.joins import Join, Need, Part, join_of
from weft.rules.simplify import simplify


class Blocked(NamedTuple):
    """A reduction over blocks: its outer ranges, and the ranges of a block."""

    node: UOp
    outer: tuple[UOp, ...]
    inner: tuple[UOp, ...]


class JoinPlan(NamedTuple):
    """What a Join does: the reductions, what each needs, and how their blocks are joined."""

    reductions: dict[UOp, Blocked]
    needs: dict[UOp, tuple[Need, Join]]

    @property
    def is_wide(self) -> bool:
        """Whether sums of blocks are added up in float64."""
        return any(join.has_count for _, join in self.needs.values())


def plan_join(kernel: UOp, numbers: Sequence[int]) -> JoinPlan | str:
    """How the reductions over some ranges are joined, or why they cannot be."""
    reductions: dict[UOp, Blocked] = {}
    for node in nodes_of(kernel):
        own = own_ranges(node)
        outer = tuple([r for r in own if r.arg in numbers])
        if not outer:
            continue
        if node.op != Op.REDUCE or is_joined(node):
            return f"range {outer[0].arg} is not that of plain reductions alone"
        reductions[node] = Blocked(node, outer, tuple([r for r in own if r not in outer]))
    if {r.arg for each in reductions.values() for r in each.outer} != set(numbers):
        return "nothing is reduced over one of the ranges"
    if len({_shape(each) for each in reductions.values()}) != 1:
        return "the reductions have different numbers of iterations"
    needs: dict[UOp, tuple[Need, Join]] = {}
    for node, blocked in reductions.items():
        below = _needed(node.src[0], reductions)
        if not below:
            continue
        found = _try_join(blocked, [reductions[each] for each in below], reductions)
        if found is None:
            return f"no rule joins parts of the reduction over range {blocked.outer[0].arg}"
        needs[node] = found
    return JoinPlan(reductions, needs) if needs else "no reduction needs another"


def _shape(blocked: Blocked) -> tuple[tuple[UOp, bool], ...]:
    """The extents of a reduction, and which of them are those of blocks."""
    return tuple([(r.src[0], r in blocked.outer) for r in own_ranges(blocked.node)])


def _needed(root: UOp, reductions: Mapping[UOp, Blocked]) -> list[UOp]:
    """The reductions that a value holds, but not those inside of these."""
    return [
        node
        for node in topological(root, enter=lambda each: each not in reductions)
        if node in reductions
    ]


def _try_join(
    blocked: Blocked, below: Sequence[Blocked], reductions: Mapping[UOp, Blocked]
) -> tuple[Need, Join] | None:
    """The first reference through which all that a reduction needs is joined or a factor."""
    own = sum(1 << r.arg for r in own_ranges(blocked.node))
    for other in below:
        if _needed(other.node.src[0], reductions):
            continue  # a reference needs no other
        found = _element(blocked, other)
        if found is None:
            continue
        need = Need(
            blocked.node.arg[0],
            blocked.node.src[0],
            found.reference,
            found.element,
            lambda node: bool(node.ranges & own),
            _count(blocked),
            found.is_masked,
        )
        join = join_of(need)
        if join is None:
            continue
        zero = const(need.reference.dtype, 0)
        if not _needed(join.body(Part(zero, zero)), reductions):
            return need, join
    return None


class _Element(NamedTuple):
    """Another reduction and what it reduces, as the body of this one has both."""

    reference: UOp
    element: UOp
    is_masked: bool  # by conditions that do not mask this one too


def _element(blocked: Blocked, other: Blocked) -> _Element | None:
    """What the body of a reduction has of another one.

    Small floats are reduced in float32; where the greatest of them is one again, it is cast back.
    """
    ranges = dict(zip(own_ranges(other.node), own_ranges(blocked.node), strict=True))
    below = set(topological(blocked.node.src[0]))
    own = {condition for condition, _ in _masks(blocked.node)}

    def moved(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        return rebuilt(node, made, {})

    is_masked, chosen = False, other.node.arg[0] in (Op.MAX, Op.MIN)
    for condition, each in [(None, other.node.src[0]), *_masks(other.node)]:
        if condition is not None:
            is_masked |= map_graph(condition, moved, known=ranges) not in own
        value = map_graph(each, moved, known=ranges)
        if value in below:
            return _Element(other.node, value, is_masked)
        narrow = value.src[0] if value.op == Op.CAST else value
        back = other.node.cast(narrow.dtype)
        is_kept = chosen and holds_exactly(value.dtype, narrow.dtype)
        if is_kept and narrow in below and back in below:
            return _Element(back, narrow, is_masked)
    return None


def _masks(node: UOp) -> list[tuple[UOp, UOp]]:
    """The conditions that mask the body of a reduction, and what it is where they hold."""
    found: list[tuple[UOp, UOp]] = []
    nothing, value = identity(node.arg[0], node.dtype), node.src[0]
    while value.op == Op.WHERE:
        condition, x, y = value.src
        if _is_constant(y, nothing):
            value = x
        elif _is_constant(x, nothing):
            condition, value = simplify(~condition), y
        else:
            break
        found.append((condition, value))
    return found


def _is_constant(node: UOp, value: Scalar) -> bool:
    return node.op == Op.CONST and node.arg == value


def _count(blocked: Blocked) -> UOp | int:
    """How many iterations a reduction has, without those past the end."""
    mask = _tail(blocked)
    if mask is not None:
        extent = mask.src[1]
        return int(extent.arg) if extent.op == Op.CONST else extent
    extents = [extent_of(r) for r in own_ranges(blocked.node)]
    known = [extent for extent in extents if extent is not None]
    if len(known) == len(extents):
        return math.prod(known)
    whole = simplify(_product([r.src[0] for r in own_ranges(blocked.node)]))
    return int(whole.arg) if whole.op == Op.CONST else whole


def _product(sizes: Sequence[UOp]) -> UOp:
    result = index(1)
    for size in sizes:
        result = result * size
    return result


def _tail(blocked: Blocked) -> UOp | None:
    """The comparison that keeps iterations past the end of an uneven split out."""
    value = blocked.node.src[0]
    is_split = len(blocked.outer) == len(blocked.inner) == 1
    if value.op != Op.WHERE or value.src[0].op != Op.LESS or not is_split:
        return None
    (inner,) = blocked.inner
    whole = simplify(blocked.outer[0] * inner.src[0] + inner)
    return value.src[0] if value.src[0].src[0] is whole else None


def join_reductions(kernel: UOp, numbers: Sequence[int]) -> UOp:
    """The kernel with the reductions over some outer ranges joined over the first of these."""
    plan = plan_join(kernel, numbers)
    assert isinstance(plan, JoinPlan)
    kinds = kinds_of(kernel)
    outer = first_outer(kernel, plan)
    result = map_graph(kernel, _Joining(plan, outer).changed)
    kept = [r.arg for r in outer]
    return with_loops(result, [(n, k) for n, k in kinds.items() if n in kept or n not in numbers])


def first_outer(kernel: UOp, plan: JoinPlan) -> tuple[UOp, ...]:
    """The outer ranges that stay: those of the reduction whose first one is the outermost."""
    order = list(kinds_of(kernel))
    return min(
        (each.outer for each in plan.reductions.values()), key=lambda own: order.index(own[0].arg)
    )


class _Joining:
    """Rebuilds a kernel with blocks that are joined."""

    def __init__(self, plan: JoinPlan, outer: tuple[UOp, ...]) -> None:
        self.plan = plan
        self.outer = outer
        self.blocks: dict[UOp, UOp] = {}  # a reduction -> what it is for one block
        self.wide: dict[UOp, UOp] = {}  # a sum -> itself in float64
        self.summed = {need.reference for need, join in plan.needs.values() if join.has_count}

    def changed(self, node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        blocked = self.plan.reductions.get(node)
        if blocked is None:
            return rebuilt(node, made, {})
        need = self.plan.needs.get(node)
        if need is None:
            value = self.block(blocked, node.src[0], {})
            if node not in self.summed:
                return reduce_ranges(value, node.arg[0], self.outer)
            wide = value.cast(dtypes.float64)
            self.wide[node] = reduce_ranges(wide, node.arg[0], self.outer)
            return self.wide[node].cast(node.dtype)
        return self.joined(blocked, *need, made)

    def joined(self, blocked: Blocked, need: Need, join: Join, made: Mapping[UOp, UOp]) -> UOp:
        reference = need.reference.src[0] if need.reference.op == Op.CAST else need.reference
        count = self.count(blocked)
        body = join.body(Part(need.reference, count))
        near = self.blocks[reference].cast(need.reference.dtype)
        value = self.block(blocked, body, {need.reference: near, count: count})
        refers = [made[reference]]
        if join.has_count:
            counted = reduce_ranges(count.cast(dtypes.float64), Op.ADD, self.outer)
            refers = [self.wide[reference], counted]
        two = join.two(value.dtype, refers[0].dtype, refers[-1].dtype)
        start = identity(join.op, value.dtype)
        result = joined_reduction(value, two, start, refers, self.outer)
        for op, factor in join.factors:
            result = make(op, result.dtype, (result, made[factor].cast(result.dtype)))
        return result

    def block(self, blocked: Blocked, body: UOp, known: Mapping[UOp, UOp]) -> UOp:
        """A reduction of a body over one block."""
        ranges = {**dict(zip(blocked.outer, self.outer, strict=True)), **known}

        def moved(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
            return rebuilt(node, made, {})

        value = map_graph(body, moved, known=ranges, enter=lambda node: node not in ranges)
        if blocked.inner:
            value = reduce_ranges(value, blocked.node.arg[0], blocked.inner)
        self.blocks[blocked.node] = value
        return value

    def count(self, blocked: Blocked) -> UOp:
        """How many iterations a block has, as a float: the last one of all may have fewer."""
        dtype = blocked.node.dtype if blocked.node.dtype.is_float else dtypes.float32
        size = simplify(_product([r.src[0] for r in blocked.inner]))
        mask = _tail(blocked)
        if mask is not None:
            size = simplify(size.minimum(mask.src[1] - self.outer[0] * size))
        return const(dtype, size.arg) if size.op == Op.CONST else size.cast(dtype)

"""Scatters of many updates are cut into parts that threads own, so that few wait for each other.

In and Out: a tensor graph of NORMALIZED_SPEC; a target of threads. Updates that may meet are
reduced one after the other, and a loop over all of them waits for memory in every iteration. The
results are the same in every run, so nothing is left to the order in which threads come. Three
ways are weighed:

    owners    x.scatter(ADD, v, mask, i): a thread owns `part` rows of x, and looks for the updates
              that go there in words of 32 bits, which a kernel before it has computed:
              words[o, c] = sum over j: mask[c, j] & (i[c, j] // part == o) ? 1 << j : 0
              x.scatter(ADD, v[c, j], words[o, c] >> j & 1, o * part + i[c, j] % part)
    copies    several x, of which each takes a part of the updates, are reduced to one
    compare   each element of x sums all updates that name it:
              x[s] + sum over n: where(i[n] == s, v[n], 0)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from weft.ir.build import global_stage, reduce_axes, scatter, where
from weft.ir.dtypes import FLOAT, dtypes
from weft.ir.movement import (
    as_shape,
    broadcast_axes,
    expand,
    full,
    pad,
    permute,
    positions,
    reshape,
)
from weft.ir.ops import Op
from weft.ir.reduction.accumulation import counts_along
from weft.ir.reduction.reductions import identity
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph, with_sources
from weft.schedule.context import ScheduleContext
from weft.schedule.layout.view_axes import sizes_of
from weft.schedule.reductions.scatters import computed
from weft.target.compute import Simt, UpdateNumbers
from weft.target.memory import GLOBAL
from weft.target.target import Target

WORD: Final = 32
# Operations of a comparison, and how much more than its operations a kernel of them takes.
COMPARE: Final = 3
SLACK: Final = 3.0
LANES: Final = 4
MOST_COPIES: Final = 1 << 12
# Updates that are as fast one after the other, and how much faster a cut has to be.
LEAST_UPDATES: Final = 64
GAIN: Final = 1.5


class _Sizes(NamedTuple):
    """What the cost of a scatter depends on."""

    apart: int  # positions that never meet
    updates: int  # that may meet, at each of those
    rows: int  # of the axis that is cut
    results: int  # elements of the value
    rest: int  # elements of an update


class _Cut(NamedTuple):
    """How a scatter is done: nanoseconds, copies and owners; no owners compare."""

    cost: float
    copies: int
    owners: int


class _Updates(NamedTuple):
    """A scatter whose positions are those that are apart, then one axis of those that may meet."""

    value: UOp
    updates: UOp
    mask: UOp
    indices: list[UOp]
    op: int
    apart: tuple[int, ...]
    meeting: int  # how many updates may meet
    rest: tuple[int, ...]
    axis: int  # the index that is cut
    counted: dict[int, int]  # indices that count along an axis of those apart


def parallelize_scatters(root: UOp, context: ScheduleContext) -> UOp:
    """The graph with its long scatters cut into parts."""
    target = context.target
    if not isinstance(target.compute, Simt) or not root.ops >> Op.SCATTER & 1:
        return root

    def parallel(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = with_sources(node, made)
        return _parallelized(new, target) if new.op == Op.SCATTER else new

    return map_graph(root, parallel)


def _parallelized(node: UOp, target: Target) -> UOp:
    if node.dtype.kind == FLOAT and node.dtype.bits < 32:
        value, updates = (part.cast(dtypes.float32) for part in node.src[:2])
        wide = make(node.op, value.dtype, (value, updates, *node.src[2:]), node.arg)
        cut = _parallelized(wide, target)
        return node if cut is wide else cut.cast(node.dtype)
    found = _updates(node)
    if found is None or found.meeting < LEAST_UPDATES:
        return node
    sizes = _Sizes(
        math.prod(found.apart),
        found.meeting,
        _size(found.value, found.axis),
        math.prod(sizes_of(found.value)),
        math.prod(found.rest),
    )
    single = found.meeting * _numbers(target).update * _waves(sizes, 1, 1, target)
    can_compare = not found.apart and len(found.indices) == 1
    best = min(_cuts(sizes, can_compare, target), default=None)
    if best is None or GAIN * best.cost > single:
        return node
    if not best.owners:
        return _compared(found)
    return _in_copies(found, best) if best.copies > 1 else _owned(found, best.owners)


def _size(node: UOp, axis: int) -> int:
    return sizes_of(node)[axis]


# ---- which cut


def _numbers(target: Target) -> UpdateNumbers:
    assert isinstance(target.compute, Simt)
    return target.compute.updates


def _cuts(sizes: _Sizes, can_compare: bool, target: Target) -> Iterator[_Cut]:
    rate = target.peaks.operations / 1e9 / SLACK  # per nanosecond
    launch, byte = target.costs.launch, target.memory(GLOBAL).cost / target.units
    numbers = _numbers(target)
    if can_compare:
        work = COMPARE * sizes.updates * sizes.rows * sizes.rest / rate
        yield _Cut(work + launch, 1, 0)
    copies = 1
    while copies <= MOST_COPIES and copies * LEAST_UPDATES <= max(sizes.updates, LEAST_UPDATES):
        owners = 1
        while owners <= sizes.rows:
            words = sizes.apart * owners * sizes.updates // WORD
            each = sizes.updates / copies
            wait = each / owners * (numbers.update + numbers.find) + each / WORD * numbers.skip
            cost = wait * _waves(sizes, copies, owners, target)
            cost += launch + COMPARE * words * WORD / rate + 8 * words * byte
            if copies > 1:
                cost += launch + 12 * copies * sizes.results * byte
            yield _Cut(cost, copies, owners)
            owners *= 2
        copies *= 2


def _waves(sizes: _Sizes, copies: int, owners: int, target: Target) -> float:
    """How often the multiprocessors are full of threads that wait."""
    threads = sizes.apart * copies * owners * max(sizes.rest // LANES, 1)
    return max(threads / (target.units * _numbers(target).threads), 1.0)


# ---- the positions


def _updates(node: UOp) -> _Updates | None:
    """A scatter with its positions in order; None where a size is symbolic or nothing is free."""
    value, *parts = node.src
    updates, mask, *indices = map(computed, parts)
    sizes, own = sizes_of(updates), sizes_of(value)
    if len(sizes) != len(shape_of(updates)) or len(own) != len(shape_of(value)) or not sizes:
        return None
    rank = len(sizes) - len(own) + len(indices)
    counted = {n: counts_along(each, rank) for n, each in enumerate(indices)}
    free = [n for n, along in counted.items() if along is None]
    apart = sorted({along for along in counted.values() if along is not None})
    meet = [axis for axis in range(rank) if axis not in apart]
    count, rest = math.prod(sizes[axis] for axis in meet), tuple(sizes[rank:])
    if not free or not count or 0 in own:
        return None
    outer = tuple(sizes[axis] for axis in apart)
    order = [*apart, *meet]

    def moved(part: UOp, more: tuple[int, ...] = ()) -> UOp:
        tail = range(rank, rank + len(more))
        whole = expand(part, (*sizes[:rank], *more)) if shape_of(part) else part
        if not shape_of(part):
            whole = expand(reshape(part, (1,) * rank), tuple(sizes[:rank]))
        return as_shape(permute(whole, [*order, *tail]), (*outer, count, *more))

    return _Updates(
        value,
        moved(updates, rest),
        moved(mask),
        [moved(each) for each in indices],
        node.arg[0],
        outer,
        count,
        rest,
        max(free, key=lambda n: own[n]),
        {n: apart.index(along) for n, along in counted.items() if along is not None},
    )


# ---- carried out


def _owned(found: _Updates, owners: int) -> UOp:
    """A scatter whose axis is cut into parts that are apart."""
    size = _size(found.value, found.axis)
    part = 1 << max(-(-size // owners) - 1, 0).bit_length()
    owners, words = -(-size // part), -(-found.meeting // WORD)
    rank = len(found.apart)
    shape = (*found.apart, owners, words, WORD)

    def cut(node: UOp) -> UOp:
        """A value of each update, the same for all owners."""
        more = tuple(sizes_of(node)[rank + 1 :])
        edges = [(0, 0)] * rank + [(0, words * WORD - found.meeting)] + [(0, 0)] * len(more)
        whole = pad(node, edges) if edges[rank][1] else node
        return expand(reshape(whole, (*found.apart, 1, words, WORD, *more)), (*shape, *more))

    mask, indices = cut(found.mask), [cut(each) for each in found.indices]
    for number, along in found.counted.items():
        indices[number] = positions(shape, along, dtypes.index)
    row = indices[found.axis].cast(dtypes.index)
    owner = positions(shape, rank, row.dtype)
    bits = positions(shape, rank + 2, dtypes.uint32)
    one = full(dtypes.uint32, 1, shape)
    zero = full(dtypes.uint32, 0, shape)
    is_own = mask & (row // part).equal(owner)
    named = where(is_own, make(Op.SHL, dtypes.uint32, (one, bits)), zero)
    word = expand(global_stage(reduce_axes(named, Op.ADD, (rank + 2,))), shape)
    bit = make(Op.AND, dtypes.uint32, (make(Op.SHR, dtypes.uint32, (word, bits)), one))
    chosen = ~word.equal(zero) & ~bit.equal(zero)
    position = owner * part + row % part
    if owners * part > size:
        chosen = chosen & (position < full(row.dtype, size, shape))
    indices[found.axis] = position
    return scatter(found.value, cut(found.updates), chosen, indices, found.op)


def _in_copies(found: _Updates, best: _Cut) -> UOp:
    """Scatters of a part of the updates each, into copies that are reduced behind them."""
    copies, rank = best.copies, len(found.apart)
    each = -(-found.meeting // copies)
    dtype, shape = found.value.dtype, tuple(sizes_of(found.value))
    start = full(dtype, identity(found.op, dtype), (copies, *shape))

    def cut(node: UOp) -> UOp:
        more = tuple(sizes_of(node)[rank + 1 :])
        edges = [(0, 0)] * rank + [(0, copies * each - found.meeting)] + [(0, 0)] * len(more)
        whole = pad(node, edges) if edges[rank][1] else node
        apart = reshape(whole, (*found.apart, copies, each, *more))
        order = [rank, *range(rank), *range(rank + 1, rank + 2 + len(more))]
        return permute(apart, order)

    outer = (copies, *found.apart)
    parts = _Updates(
        start,
        cut(found.updates),
        cut(found.mask),
        [positions((*outer, each), 0, dtypes.index), *map(cut, found.indices)],
        found.op,
        outer,
        each,
        found.rest,
        found.axis + 1,
        {0: 0, **{number + 1: along + 1 for number, along in found.counted.items()}},
    )
    made = reduce_axes(_owned(parts, best.owners), found.op, (0,))
    return make(found.op, dtype, (found.value, reshape(made, shape)))


def _compared(found: _Updates) -> UOp:
    """Each row reduces the updates that name it."""
    dtype, size = found.value.dtype, _size(found.value, 0)
    shape = (found.meeting, size, *found.rest)
    (row,) = found.indices
    hit = broadcast_axes(found.mask, 0, shape) & broadcast_axes(
        row.cast(dtypes.index), 0, shape
    ).equal(positions(shape, 1, dtypes.index))
    updates = expand(reshape(found.updates, (found.meeting, 1, *found.rest)), shape)
    neutral = full(dtype, identity(found.op, dtype), shape)
    total = reduce_axes(where(hit, updates, neutral), found.op, (0,))
    return make(found.op, dtype, (found.value, reshape(total, shape_of(found.value))))

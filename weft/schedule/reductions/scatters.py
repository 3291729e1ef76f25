"""Scatters become writes: memory gets the value, and then the updates are reduced into it there.

In: a tensor graph. Out: one in which each SCATTER is stored in the memory that it starts from,

    x.scatter(ADD, v, mask, i)   ->   m1 = m.after(store m = x)
                                      m1.after(store m1 = m1.scatter(ADD, v, mask, i))

which fusion makes a kernel over the updates. Small floats are reduced in float32. Where the result
is stored as a whole to memory that nothing else touches, it is reduced there; elsewhere `m` is a
temporary. What updates and indices reduce themselves is computed before: the loop over the updates
is ordered, so no other loops belong inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.ir.build import global_stage, param, scatter, store
from weft.ir.dtypes import FLOAT, dtypes
from weft.ir.ops import ELEMENTWISE, MOVEMENT, Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph, rebuild, topological, users, with_sources
from weft.schedule.context import ScheduleContext, next_slot

_REDUCTIONS: Final = 1 << Op.REDUCE | 1 << Op.SCAN
_INLINE: Final = ELEMENTWISE | MOVEMENT | {Op.INDEX, Op.COPY}
# Through these what is below is at most as large.
_REPEATS: Final = frozenset((Op.EXPAND, Op.RESHAPE, Op.PERMUTE, Op.PAD, Op.FLIP))


def store_scatters(root: UOp, context: ScheduleContext) -> UOp:
    """The graph with every SCATTER in memory."""
    wanted = _addresses(root)
    done: dict[UOp, UOp] = {}  # the STORE of a result -> that which reduces the updates
    slot = next_slot(root)

    def stored(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        nonlocal slot
        if node in done:
            return done[node]
        new = with_sources(node, made)
        if new.op == Op.SCATTER:
            memory = wanted[node].src[0] if node in wanted else _memory(new, slot)
            slot += node not in wanted
            new, effect = _stored(new, memory)
            if node in wanted and effect is not None:
                done[wanted[node]] = effect
        return new

    return map_graph(root, stored)


def _addresses(root: UOp) -> dict[UOp, UOp]:
    """For scatters that are stored to fresh memory as they are, that STORE."""
    used = users(root)
    found: dict[UOp, UOp] = {}
    for node, above in used.items():
        stores = [user for user in above if user.op == Op.STORE and user.src[1] is node]
        for each in stores if node.op == Op.SCATTER and not _is_small(node) else ():
            memory = each.src[0]
            others = [user for user in used[memory] if user is not each]
            if memory.op == Op.PARAM and all(_reads_result(user, each) for user in others):
                found.setdefault(node, each)
    return found


def _reads_result(user: UOp, effect: UOp) -> bool:
    return user.op == Op.AFTER and effect in user.src[1:]


def _is_small(node: UOp) -> bool:
    return node.dtype.kind == FLOAT and node.dtype.bits < 32


def _memory(node: UOp, slot: int) -> UOp:
    """New memory for the result of a SCATTER."""
    return param(slot, dtypes.float32 if _is_small(node) else node.dtype, shape_of(node))


def _stored(node: UOp, memory: UOp) -> tuple[UOp, UOp | None]:
    """The value of a SCATTER in memory, and the STORE that makes it."""
    value, updates, mask, *indices = node.src
    if 0 in shape_of(value) or 0 in shape_of(updates):
        return value, None
    if _is_small(node):
        value, updates = value.cast(dtypes.float32), updates.cast(dtypes.float32)
    start = make(Op.AFTER, value.dtype, (memory, store(memory, value)))
    sources = [computed(part) for part in (updates, mask, *indices)]
    effect = store(start, scatter(start, sources[0], sources[1], sources[2:], node.arg[0]))
    result = make(Op.AFTER, value.dtype, (start, effect))
    return (result.cast(node.dtype) if _is_small(node) else result), effect


def computed(node: UOp) -> UOp:
    """A value, with memory of its own where it holds a reduction."""
    below = topological(node, enter=lambda part: part.op in _INLINE)
    if not any(1 << part.op & _REDUCTIONS for part in below):
        return node
    if node.op in _REPEATS:
        return rebuild(node, (computed(node.src[0]), *node.src[1:]))
    if node.dtype is dtypes.index:  # which has no width that memory could hold
        return computed(node.cast(dtypes.int64)).cast(dtypes.index)
    return global_stage(node)

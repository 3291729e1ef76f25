"""Which hardware counter each grid and thread range becomes.

Grid ranges are spread over groups: on a CPU over one flat axis, which the runtime cuts into
slices; on a GPU over up to three, the innermost range on axis 0. Thread ranges that are open
together have different thread axes. Ranges of nests that run one after the other share an axis if
their extents agree, because the same threads run them all.
"""

from __future__ import annotations

from typing import Final

from weft.codegen.analysis.loops import (
    GRID,
    THREAD,
    extent_of,
    kinds_of,
    nodes_of,
    own_ranges,
    ranges_of,
)
from weft.ir.build import index
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make, range_ids
from weft.rules.simplify import simplify

MOST_AXES: Final = 3


def thread_axes(kernel: UOp) -> dict[int, int]:
    """The thread axis of each thread range, by its number."""
    kinds = kinds_of(kernel)
    if THREAD not in kinds.values():
        return {}
    ranges = ranges_of(kernel)
    order = [number for number, kind in reversed(kinds.items()) if kind == THREAD]
    axes: dict[int, int] = {}
    extents: list[int | None] = []
    closers = [node for node in nodes_of(kernel) if own_ranges(node)]
    closers.sort(key=lambda node: node not in kernel.src)  # the results decide, others fit in
    for node in closers:
        own = {r.arg for r in own_ranges(node)}
        taken = {axes[n] for n in range_ids(node.ranges) if n in axes}
        taken |= {axes[n] for n in own if n in axes}
        for number in order:
            if number not in own or number in axes:
                continue
            extent = extent_of(ranges[number])
            free = (a for a, e in enumerate(extents) if e == extent and a not in taken)
            axis = next(free, len(extents))
            if axis == len(extents):
                extents.append(extent)
            axes[number] = axis
            taken.add(axis)
    return axes


def grid_values(kernel: UOp, has_groups: bool) -> dict[UOp, UOp]:
    """Each grid range as an expression of group counters."""
    kinds = kinds_of(kernel)
    ranges = ranges_of(kernel)
    grid = [ranges[n] for n, kind in reversed(kinds.items()) if kind == GRID]
    apart = min(len(grid), MOST_AXES - 1 if len(grid) > MOST_AXES else MOST_AXES)
    if not has_groups:
        apart = 0 if len(grid) > 1 else 1
    values = {r: _special("group", axis, r.src[0]) for axis, r in enumerate(grid[:apart])}
    together = grid[apart:]
    if not together:
        return values
    extent = index(1)
    for r in together:
        extent = simplify(extent * r.src[0])
    rest = _special("group", apart, extent)
    for r in together[:-1]:
        values[r] = simplify(rest % r.src[0])
        rest = simplify(rest // r.src[0])
    values[together[-1]] = rest
    return values


def thread_values(kernel: UOp) -> dict[UOp, UOp]:
    """Each thread range as a thread counter."""
    ranges = ranges_of(kernel)
    axes = thread_axes(kernel)
    return {ranges[n]: _special("thread", axis, ranges[n].src[0]) for n, axis in axes.items()}


def idle_threads(kernel: UOp, node: UOp, axes: dict[int, int]) -> list[UOp]:
    """For each thread axis that a STORE or STAGE leaves alone, a range that counts it."""
    if not axes:
        return []
    own = {r.arg for r in own_ranges(node)}
    busy = {axes[n] for n in (*own, *range_ids(node.ranges)) if n in axes}
    ranges = ranges_of(kernel)
    idle: dict[int, UOp] = {}
    for number, axis in axes.items():
        if axis not in busy:
            idle.setdefault(axis, ranges[number])
    return list(idle.values())


def _special(kind: str, axis: int, extent: UOp) -> UOp:
    return make(Op.SPECIAL, dtypes.index, (extent,), (kind, axis))

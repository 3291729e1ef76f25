"""Which hardware counter each grid and thread range becomes.

Grid ranges are distributed over groups: on a CPU over one flat axis, which the runtime cuts into
slices; on a GPU over up to three, the innermost range on axis 0, within the limits of each. Thread
ranges that are open together have different thread axes. Ranges of nests that run one after the
other share an axis if their extents agree, because the same threads run them all. The innermost
range has axis 0, along which threads are neighbors.
"""

from __future__ import annotations

import math
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
from weft.ir.bounds import bounds
from weft.ir.build import index
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make, range_ids
from weft.rules.simplify import simplify
from weft.support.errors import NotSupported
from weft.target.target import Target

MOST_AXES: Final = 3


def thread_axes(kernel: UOp) -> dict[int, int]:
    """The thread axis of each thread range, by its number."""
    kinds = kinds_of(kernel)
    if THREAD not in kinds.values():
        return {}
    ranges = ranges_of(kernel)
    together = _open_together([node for node in nodes_of(kernel) if own_ranges(node)])
    axes: dict[int, int] = {}
    extents: list[int | None] = []
    for number in [n for n, kind in reversed(kinds.items()) if kind == THREAD]:
        extent = extent_of(ranges[number])
        taken = {axes[n] for n in together.get(number, ()) if n in axes}
        free = (a for a, e in enumerate(extents) if e == extent and a not in taken)
        axis = next(free, len(extents))
        if axis == len(extents):
            extents.append(extent)
        axes[number] = axis
    return axes


def _open_together(closers: list[UOp]) -> dict[int, set[int]]:
    """For each range that a node closes, those that are open with it."""
    found: dict[int, set[int]] = {}
    for node in closers:
        own = {r.arg for r in own_ranges(node)}
        for number in own:
            found.setdefault(number, set()).update(own, range_ids(node.ranges))
    for number, others in list(found.items()):
        others.discard(number)
        for other in others:
            found.setdefault(other, set()).add(number)
    return found


def group_threads(kernel: UOp) -> dict[int, int]:
    """The threads of a group along each axis."""
    ranges = ranges_of(kernel)
    return {axis: extent_of(ranges[number]) or 1 for number, axis in thread_axes(kernel).items()}


def fits_a_group(kernel: UOp, target: Target) -> bool:
    """Whether a group of the target has the threads of a kernel."""
    axes, grid = group_threads(kernel), target.grid
    is_long = any(axes.get(n, 1) > limit for n, limit in enumerate(grid.thread_limits))
    count = math.prod(axes.values())
    return count <= grid.group_threads and len(axes) <= MOST_AXES and not is_long


def grid_values(kernel: UOp, target: Target) -> dict[UOp, UOp]:
    """Each grid range as an expression of group counters."""
    kinds = kinds_of(kernel)
    ranges = ranges_of(kernel)
    grid = [ranges[n] for n, kind in reversed(kinds.items()) if kind == GRID]
    if not grid:
        return {}
    axes = _axes_within(grid, target.grid.group_limits) if target.has_groups else [grid]
    values: dict[UOp, UOp] = {}
    for axis, together in enumerate(axes):
        rest = _special("group", axis, _extent_of_all(together))
        for r in together[:-1]:
            values[r] = simplify(rest % r.src[0])
            rest = simplify(rest // r.src[0])
        values[together[-1]] = rest
    return values


def _axes_within(grid: list[UOp], limits: tuple[int, ...]) -> list[list[UOp]]:
    """Which ranges share an axis, so that no axis has more groups than the target allows.

    Ranges have axes of their own, the innermost first, as long as there are axes. Else all are on
    axis 0, which is the longest; else axis 0 has the longest range alone.
    """
    longest = max(grid, key=lambda r: bounds(r.src[0])[1])
    others = [r for r in grid if r is not longest]
    for order in (grid, [longest, *others]):
        apart = len(order) if len(order) <= MOST_AXES else MOST_AXES - 1
        natural = [[r] for r in order[:apart]] + ([order[apart:]] if order[apart:] else [])
        for axes in (natural, [order]):
            sizes = [bounds(_extent_of_all(together))[1] for together in axes]
            if all(size <= limit for size, limit in zip(sizes, limits or sizes, strict=False)):
                return axes
    raise NotSupported(
        "a kernel has more groups than the target allows",
        facts=[("groups", [bounds(r.src[0])[1] for r in grid]), ("limits", limits)],
        fix="compute in smaller parts",
    )


def _extent_of_all(together: list[UOp]) -> UOp:
    """How many groups an axis has that counts these ranges."""
    extent = index(1)
    for r in together:
        extent = simplify(extent * r.src[0])
    return extent


def thread_values(kernel: UOp, axes: dict[int, int]) -> dict[UOp, UOp]:
    """Each thread range as the counter of its axis."""
    ranges = ranges_of(kernel)
    return {
        ranges[n]: _special("thread", axis, ranges[n].src[0])
        for n, axis in axes.items()
        if n in ranges
    }


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


def idle_groups(kernel: UOp, node: UOp) -> list[UOp]:
    """The grid ranges that a STORE leaves alone: the first group does it."""
    own = {r.arg for r in own_ranges(node)}
    ranges = ranges_of(kernel)
    grid = [number for number, kind in kinds_of(kernel).items() if kind == GRID]
    return [ranges[n] for n in grid if n not in own and not node.ranges >> n & 1]


def _special(kind: str, axis: int, extent: UOp) -> UOp:
    return make(Op.SPECIAL, dtypes.index, (extent,), (kind, axis))

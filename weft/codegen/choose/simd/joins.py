"""The part of the heuristic that reads a row once for all reductions of it that need each other.

Softmax takes the greatest of a row first and sums afterwards: a row that does not fit into a near
cache comes twice from far away. In blocks, each is read twice while it is near, and the row once.
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.analysis.loops import LOOP, kinds_of, nodes_of, own_ranges
from weft.codegen.choose.chooser import Chooser
from weft.codegen.opts.join import JoinPlan, plan_join
from weft.codegen.opts.table import Join
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.support.settings import settings

ALWAYS: Final = "always"
NEVER: Final = "never"
# The share of the first cache that a block takes: what is read beside it has room too.
BLOCK_SHARE: Final = 8
# Iterations of a block where joins are asked for whatever they cost, for tests of short rows.
SHORT_BLOCK: Final = 4


def join_long_rows(chooser: Chooser) -> None:
    """Join reductions that need each other, where their data is far away the second time."""
    if settings.JOIN == NEVER or not chooser.kernel.ops >> Op.REDUCE & 1:
        return
    tried: set[UOp] = set()
    while True:
        fresh = [node for node in _needing(chooser) if node not in tried]
        if not fresh:
            return
        tried.update(fresh)
        for node in fresh:
            numbers = _joinable(chooser, node)
            if len(numbers) > 1 and _split_and_join(chooser, numbers):
                break  # the kernel is another one


def _needing(chooser: Chooser) -> list[UOp]:
    """The reductions that need another of as many iterations."""
    reductions = _over_loops(chooser)
    return [node for node in reductions if len(_alike(node, reductions)) > 1]


def _over_loops(chooser: Chooser) -> list[UOp]:
    kinds = kinds_of(chooser.kernel)
    return [
        node
        for node in nodes_of(chooser.kernel)
        if node.op == Op.REDUCE and all(kinds[r.arg] == LOOP for r in own_ranges(node))
    ]


def _outer(node: UOp) -> int:
    """The range of a reduction whose iterations become blocks."""
    return int(own_ranges(node)[0].arg)


def _alike(node: UOp, reductions: list[UOp]) -> list[UOp]:
    """The reductions below a value with as many iterations, sources first; itself is the last."""
    below = set(topological(node))
    extents = [r.src[0] for r in own_ranges(node)]
    return [
        each
        for each in reductions
        if each in below and [r.src[0] for r in own_ranges(each)] == extents
    ]


def _joinable(chooser: Chooser, node: UOp) -> list[int]:
    """The outer ranges of a reduction, of what it needs, and of others that can be joined too."""
    reductions = _over_loops(chooser)
    chosen: list[int] = []
    wanted = _alike(node, reductions)
    others = [each for each in reductions if len(_alike(each, reductions)) > 1]
    for each in (*wanted, *others):
        number = _outer(each)
        is_first = not chosen
        if number in chosen:
            continue
        if is_first or isinstance(plan_join(chooser.kernel, [*chosen, number]), JoinPlan):
            chosen.append(number)
        if each is node and _outer(node) not in chosen:
            return []
    return chosen


def _split_and_join(chooser: Chooser, numbers: list[int]) -> bool:
    """Split the ranges into blocks that stay near, and join those."""
    plan = plan_join(chooser.kernel, numbers)
    if not isinstance(plan, JoinPlan):
        return False
    if plan.is_wide and dtypes.float64 not in chooser.target.native_dtypes:
        return False
    inner = next(iter(plan.reductions.values())).inner
    size = _block(chooser, numbers, math.prod(chooser.extent(r.arg) or 1 for r in inner))
    mark = chooser.mark()
    is_split = size > 1 and all(chooser.split(n, size, "mask") not in (-1, n) for n in numbers)
    if (is_split or (size == 1 and inner)) and chooser.take(Join(tuple(numbers))):
        return True
    chooser.undo_to(mark)
    return False


def _block(chooser: Chooser, numbers: list[int], inner: int) -> int:
    """The iterations of the outer ranges in a block; 0 where blocks gain nothing.

    Each has `inner` iterations of the other ranges.
    """
    extent = chooser.extent(numbers[0]) or 0
    if settings.JOIN == ALWAYS:
        return SHORT_BLOCK if extent > SHORT_BLOCK else 0
    near, *far = chooser.target.caches
    width = 0  # bytes from one iteration to the next: a vector where lanes are other elements
    loops = {r.arg for node in _over_loops(chooser) for r in own_ranges(node)}
    for access in chooser.accesses():
        steps = [abs(access.stride(number) or 0) for number in loops]
        apart = min([step for step in steps if step], default=0) * access.dtype.itemsize
        width = max(width, min(apart, chooser.target.access_bits // 8))
    if not width or extent * inner * width <= far[0].size // 2:
        return 0
    wanted = near.size // BLOCK_SHARE // width
    if inner > 2 * BLOCK_SHARE * wanted:
        return 0  # a block would not be near
    wanted = max(wanted // inner, 1)
    even = [n for n in range(wanted // 2 + 1, 2 * wanted + 1) if extent % n == 0]
    return min(even, key=lambda n: abs(n - wanted), default=wanted)

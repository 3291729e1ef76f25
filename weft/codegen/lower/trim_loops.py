"""Loops end where a mask says that nothing follows: causal rows are read up to their diagonal.

In and Out: a kernel of KERNEL_SPEC. `choose_opts` calls `trim_loops` behind all opts, because a
range whose extent depends on another one cannot be split. `hoist_masks` comes before them, so that
opts and trimming see one form of a mask.

    reduce MAX over k (16 blocks), j (64): where(k * 64 + j < i + 1, x, -inf)
    ->  k ends at min(16, i // 64 + 1)

What the end of a loop does not settle, the mask does as before. Conditions that are not linear in
ranges, as a mask in memory, say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from weft.codegen.analysis.loops import (
    GRID,
    LOOP,
    ORDERED,
    THREAD,
    extent_of,
    kinds_of,
    loops_of,
    nodes_of,
    own_ranges,
    rebuilt,
    replace_ranges,
)
from weft.codegen.lower.mask_limits import (
    choice_of,
    end_under,
    is_constant,
    needed_by,
    start_under,
)
from weft.ir.bounds import bounds
from weft.ir.build import index, range_, where
from weft.ir.ops import Op
from weft.ir.reduction.joined import is_joined
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph, topological
from weft.rules.logic import conditions
from weft.rules.simplify import simplify

# Iterations of a loop that is worth a bound of its own.
LEAST_LOOP: Final = 8
# Blocks of a row, of which each is a loop of its own.
LEAST_BLOCKS: Final = 2


def trim_loops(kernel: UOp) -> UOp:
    """End the loops of masked reductions behind the last iteration that counts."""
    kinds = kinds_of(kernel)
    has_threads = THREAD in kinds.values() and not kernel.ops >> Op.CONTRACT & 1
    if not kernel.ops >> Op.REDUCE & 1 or has_threads:
        return kernel
    closers: dict[UOp, list[UOp]] = {}
    for node in nodes_of(kernel):
        for r in own_ranges(node):
            closers.setdefault(r, []).append(node)
    trimmed: dict[UOp, UOp] = {}
    starts: dict[UOp, UOp] = {}
    for loop, nodes in closers.items():
        is_loop = kinds.get(loop.arg) == LOOP and not kernel.ops >> Op.CONTRACT & 1
        least = LEAST_LOOP if is_loop else LEAST_BLOCKS
        is_plain = kinds.get(loop.arg) in (LOOP, ORDERED) and (extent_of(loop) or 0) >= least
        if is_plain and all(node.op == Op.REDUCE for node in nodes):
            found = _bounded(kernel, loop, nodes)
            if found is not None:
                starts[loop], extent = found
                trimmed[loop] = range_(loop.arg, extent)
    # An end is in terms of loops as they are: one that others depend on keeps its own.
    needed = [*(loop.src[0] for loop in closers), *(new.src[0] for new in trimmed.values())]
    needed += starts.values()
    trimmed = {
        loop: new
        for loop, new in trimmed.items()
        if not any(extent.ranges >> loop.arg & 1 for extent in needed)
    }
    if not trimmed:
        return kernel
    closed = {old: (new,) for old, new in trimmed.items()}
    values = {old: _moved(old, new, starts[old]) for old, new in trimmed.items()}
    return replace_ranges(kernel, values, closed, loops_of(kernel))


def _moved(old: UOp, new: UOp, start: UOp) -> UOp:
    """An iteration of a loop that starts later; never one past the end, which is to be proven."""
    if start is index(0):
        return new
    return simplify((new + start).minimum(old.src[0] - 1))


def _bounded(kernel: UOp, loop: UOp, nodes: Sequence[UOp]) -> tuple[UOp, UOp] | None:
    """The first iteration that counts for any of these reductions, and how many follow."""
    is_carried = kinds_of(kernel)[loop.arg] == ORDERED
    needed = [(node, needed_by(node, is_carried)) for node in nodes]
    ends = [_end(kernel, loop, node, conditions) for node, conditions in needed]
    starts = [_start(kernel, loop, node, conditions) for node, conditions in needed]
    has_end, has_start = None not in ends, None not in starts
    if not has_end and not has_start:
        return None
    end = _greatest([e for e in ends if e is not None]) if has_end else loop.src[0]
    start = _least([s for s in starts if s is not None]) if has_start else index(0)
    # A joined row of nothing but masked elements is what its first block makes of it.
    least = 1 if any(map(is_joined, nodes)) else 0
    if has_start:  # a row that ends before it starts has no iteration
        start = simplify(start.minimum(loop.src[0] - 1))
        return start, simplify((end - start).maximum(index(least)))
    return start, simplify(end.maximum(index(least)))


def _least(starts: list[UOp]) -> UOp:
    result = starts[0]
    for start in starts[1:]:
        result = result if start is result else result.minimum(start)
    return simplify(result)


def _greatest(ends: list[UOp]) -> UOp:
    result = ends[0]
    for end in ends[1:]:
        result = result if end is result else result.maximum(end)
    return simplify(result)


def _end(kernel: UOp, loop: UOp, node: UOp, needed: Iterable[UOp]) -> UOp | None:
    """The first iteration of a loop from which on a condition of a reduction over it is false.

    None if there is none.
    """
    outside = _outside(kernel, loop, node)
    extent = loop.src[0]
    for condition in needed:
        end = end_under(condition, loop, outside)
        if end is not None:
            extent = extent.minimum(end.maximum(index(0)))
    result = simplify(extent)
    return None if result is loop.src[0] or bounds(result)[0] < 0 else result


def _start(kernel: UOp, loop: UOp, node: UOp, needed: Iterable[UOp]) -> UOp | None:
    """The first iteration of a loop for which no condition is false throughout.

    None if that is the first one of all.
    """
    found = [start_under(each, loop, _outside(kernel, loop, node)) for each in needed]
    starts = [simplify(start.maximum(index(0))) for start in found if start is not None]
    return _greatest(starts) if starts else None


def _outside(kernel: UOp, loop: UOp, node: UOp) -> int:
    """The loops around another one that a reduction over it depends on, as a set of numbers."""
    order = [number for number, _ in loops_of(kernel)]
    kinds, before = kinds_of(kernel), order[: order.index(loop.arg)]
    return node.ranges & sum(1 << n for n in before if kinds[n] in (LOOP, GRID))


def hoist_masks(kernel: UOp) -> UOp:
    """Mask the exponential where its exponent is masked by -inf.

    before: reduce ADD over k: exp(where(c, s, -inf) - reduce MAX over k: where(c, s, -inf))
    after:  reduce ADD over k: where(c, exp(s - reduce MAX over k: where(c, s, -inf)), 0.0)

    The two differ in rows of nothing but masked elements, which have to be impossible, and where m
    is infinite or NaN there is an element that says so.
    """

    powers = [node for node in nodes_of(kernel) if node.op in (Op.EXP, Op.EXP2)]
    if len(powers) != 1:  # what is computed once more is found by its form
        return kernel

    def hoisted(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = rebuilt(node, made, {})
        is_sum = new.op == Op.REDUCE and not is_joined(new) and new.arg[0] == Op.ADD
        if not is_sum or len(own_ranges(new)) != 1 or new.src[0].op not in (Op.EXP, Op.EXP2):
            return new
        value = _masked_power(kernel, new)
        return new if value is None else make(new.op, new.dtype, (value, *new.src[1:]), new.arg)

    return map_graph(kernel, hoisted)


def _masked_power(kernel: UOp, node: UOp) -> UOp | None:
    """The exponential of a masked exponent less its maximum, masked itself."""
    power, loop = node.src[0], node.src[1]
    if power.src[0].op != Op.ADD:
        return None
    for masked, other in (power.src[0].src, power.src[0].src[::-1]):
        choice = choice_of(masked, -math.inf)
        if choice is None or other.op != Op.NEG:
            continue
        top = other.src[0]
        is_finite = top.op == Op.WHERE and is_constant(top.src[1], 0)  # where it would be infinite
        if not _is_maximum(top.src[2] if is_finite else top, masked, loop):
            continue
        end = _end(kernel, loop, node, conditions(choice[0]))
        if end is not None and (is_finite or bounds(end)[0] >= 1):
            inner = make(power.op, power.dtype, (choice[1] + other,))
            return where(choice[0], inner, power.const_like(0))
    return None


def _is_maximum(node: UOp, masked: UOp, loop: UOp) -> bool:
    """Whether a node is the maximum of a masked value over a loop like this one."""
    if node.op != Op.REDUCE or is_joined(node) or node.arg[0] != Op.MAX or len(node.src) != 2:
        return False
    own = node.src[1]
    if own.src[0] is not loop.src[0]:
        return False

    def moved(part: UOp, made: Mapping[UOp, UOp]) -> UOp:
        return rebuilt(part, made, {})

    order = topological(node.src[0])
    return map_graph(node.src[0], moved, known={own: loop}, order=order) is masked

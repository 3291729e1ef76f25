"""When an opt is legal. Each function yields, in words, the reasons why it is not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from weft.codegen.analysis.accesses import accesses_of, walks_as_one
from weft.codegen.analysis.loops import (
    GRID,
    LOOP,
    ORDERED,
    SEQUENTIAL,
    THREAD,
    UPCAST,
    VECTOR,
    extent_of,
    is_index_arithmetic,
    kinds_of,
    loops_of,
    nodes_of,
    own_ranges,
    ranges_of,
)
from weft.codegen.opts.accumulate import carried_sum
from weft.codegen.opts.join import first_outer, plan_join
from weft.codegen.opts.split_range import has_room
from weft.codegen.opts.stage_value import (
    AGAIN,
    COMMON,
    FACTOR,
    LOADED,
    NODES,
    SPACES,
    Layout,
    Node,
    Ranges,
    faults_of_layout,
    reduction_over,
    value_of,
)
from weft.codegen.opts.windows import windowed
from weft.ir.bounds import bounds, divisor
from weft.ir.ops import Op
from weft.ir.reduction.joined import is_joined
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.ir.walk import topological

# What the program level can say (lanes), and what a compiler takes quickly (unrolled copies).
LANES: Final = (2, 4, 8, 16, 32, 64)
MOST_UNROLLED: Final = 64
# What stays near the core from block to block of a reduction.
MOST_CARRIED: Final = 1 << 12
# What is computed once per value of the ranges it depends on.
_PLACED: Final = (Op.REDUCE, Op.SCAN, Op.STAGE)


def known_range(kernel: UOp, number: int) -> Iterator[str]:
    if number not in kinds_of(kernel):
        yield f"the kernel has no range {number}"


def keeps_tiles(kernel: UOp, *numbers: int) -> Iterator[str]:
    """Loops of a tile stay as matrix units leave it in registers."""
    if kernel.ops >> Op.CONTRACT & 1:
        kinds = kinds_of(kernel)
        for number in numbers:
            if kinds.get(number) != GRID:
                yield f"range {number} is bound as a tile lies in registers"


def keeps_thread_order(kernel: UOp, loops: Sequence[tuple[int, str]]) -> Iterator[str]:
    """The threads of a tile are counted in the order in which warps are."""
    threads = [[n for n, kind in each if kind == THREAD] for each in (loops, loops_of(kernel))]
    if kernel.ops >> Op.CONTRACT & 1 and threads[0] != threads[1]:
        yield "the threads of a tile have an order"


def _closers(kernel: UOp, number: int) -> list[UOp]:
    """The nodes that close a range."""
    return [
        node
        for node in nodes_of(kernel)
        if node.op in (Op.STORE, Op.REDUCE, Op.STAGE)
        and any(r.arg == number for r in own_ranges(node))
    ]


def can_be_split(kernel: UOp, number: int, factor: int, tail: str) -> Iterator[str]:
    extent = ranges_of(kernel)[number].src[0]
    least, most = bounds(extent)
    if kinds_of(kernel)[number] in (*UPCAST, SEQUENTIAL):
        yield f"range {number} is a loop no more"
    elif kinds_of(kernel)[number] == ORDERED:
        yield f"the iterations of range {number} are ordered"
    elif extent.ranges:
        yield f"the extent of range {number} depends on another range"
    elif not 1 < factor < (2 * most if tail == "mask" else most) or factor == most:
        # Lanes may be more than iterations, the last ones masked.
        yield f"the factor {factor} is not between 1 and the extent {most}"
    elif factor > most and _is_in_an_index(kernel, number):
        yield f"an index is computed from a reduction over range {number}, which vanishes there"
    elif divisor(extent) % factor:
        if tail == "clamp" and least < 1:
            yield f"range {number} may have no last iteration to clamp to"
        for node in _closers(kernel, number):
            if node.op == Op.STAGE and not has_room(node, number):
                yield f"{extent} % {factor} != 0, and the stage has no room past the end"


def _is_in_an_index(kernel: UOp, number: int) -> bool:
    """Whether a reduction over a range decides where memory is touched.

    An index is kept in normal form, without loops of one iteration, and the reduction inside of it
    would be another one than outside.
    """
    return any(node.op == Op.REDUCE for node in _closers(kernel, number)) and any(
        node.ops >> Op.REDUCE & 1 and is_index_arithmetic(node) for node in nodes_of(kernel)
    )


def can_be_merged(kernel: UOp, outer: int, inner: int) -> Iterator[str]:
    kinds, ranges = kinds_of(kernel), ranges_of(kernel)
    if outer == inner:
        yield "a range cannot be merged with itself"
        return
    if ORDERED in (kinds[outer], kinds[inner]):
        yield "the iterations of one of them are ordered"
    if kinds[outer] != kinds[inner] or kinds[outer] in (*UPCAST, SEQUENTIAL):
        yield f"range {outer} is a {kinds[outer]} and range {inner} a {kinds[inner]}"
    if ranges[inner].src[0].ranges or ranges[outer].src[0].ranges:
        yield "an extent depends on another range"
    if _closers(kernel, outer) != _closers(kernel, inner):
        yield "a node closes only one of them"
    count = extent_of(ranges[inner])
    if count is None or extent_of(ranges[outer]) is None:
        yield "an extent is symbolic"
    elif not walks_as_one(accesses_of(kernel), outer, inner, count):
        yield "an index would need a division"
    both = 1 << outer | 1 << inner
    for node in nodes_of(kernel):
        if node.op in _PLACED and node.ranges & both not in (0, both):
            yield "a reduction or stage depends on only one of them"
            return
        if node.op == Op.RANGE and node.src[0].ranges & both:
            yield "the extent of another range depends on them"
            return


def keeps_extents_outside(kernel: UOp, loops: Sequence[tuple[int, str]]) -> Iterator[str]:
    ranges = ranges_of(kernel)
    seen = 0
    for number, _ in loops:
        if ranges[number].src[0].ranges & ~seen:
            yield f"the extent of range {number} depends on a loop inside it"
        seen |= 1 << number


def keeps_scans_inside(kernel: UOp, loops: Sequence[tuple[int, str]]) -> Iterator[str]:
    inside = 0
    for number, _ in reversed(loops):
        for node in nodes_of(kernel):
            if node.op == Op.SCAN and node.src[1].arg == number and node.ranges & inside:
                yield f"range {number} is scanned over inside the loops that the scan depends on"
                return
        inside |= 1 << number


def keeps_iterations(kernel: UOp, loops: Sequence[tuple[int, str]]) -> Iterator[str]:
    before = [number for number, kind in kinds_of(kernel).items() if kind == ORDERED]
    if before != [number for number, kind in loops if kind == ORDERED]:
        yield "ordered loops would change their order"


def is_plain_loop(kernel: UOp, number: int, kinds: Sequence[str]) -> Iterator[str]:
    kind = kinds_of(kernel)[number]
    if kind not in kinds:
        yield f"range {number} is of kind {kind}"


def is_independent(kernel: UOp, number: int) -> Iterator[str]:
    """Whether no iteration of a loop reads memory that another iteration writes."""
    nodes = nodes_of(kernel)
    writes = [node.src[0] for node in nodes if node.op == Op.STORE]
    written = {behind(address.src[0]): address for address in writes}
    for node in nodes:
        if node.op != Op.LOAD:
            continue
        address = node.src[0]
        other = written.get(behind(address.src[0]))
        if other is None or other.src[2:] == address.src[2:]:
            continue
        pairs = zip(address.src[2:], other.src[2:], strict=True)
        if not any(a is b and a.op == Op.RANGE and a.arg == number for a, b in pairs):
            yield f"iterations of range {number} read what others write"
            return


def can_be_bound(kernel: UOp, number: int, kind: str) -> Iterator[str]:
    closers = _closers(kernel, number)
    stores = [node for node in kernel.src if node.op == Op.STORE]
    if kinds_of(kernel)[number] == ORDERED:
        yield f"the iterations of range {number} are ordered"
    if kind == GRID and any(node.op == Op.REDUCE for node in closers):
        yield f"range {number} is reduced over, which the threads of a group can share"
    if kind == THREAD:
        yield from _meet(kernel, number)
    if ranges_of(kernel)[number].src[0].ranges:
        yield f"the extent of range {number} depends on another range"
    stages = [node for node in closers if node.op == Op.STAGE]
    if kind == GRID and stages:
        yield f"range {number} fills a stage, which a group does alone"
    if kind == GRID and not any(store in closers for store in stores):
        yield f"no store is inside range {number}"
    if kind != GRID and not extent_of(ranges_of(kernel)[number]):
        yield f"the extent of range {number} is symbolic or 0"
    if kind != GRID and any(node.arg[0] != "local" for node in stages):
        yield f"range {number} fills a stage that each thread has for itself"


def _meet(kernel: UOp, number: int) -> Iterator[str]:
    """Whether all threads arrive together where they reduce: no loop ends sooner for some."""
    kinds = kinds_of(kernel)
    threads = {n for n, kind in kinds.items() if kind == THREAD} | {number}
    reduced = {
        r.arg for node in nodes_of(kernel) if node.op == Op.REDUCE for r in own_ranges(node)
    }
    if threads & reduced:
        if kernel.ops >> Op.SCAN & 1:
            yield "threads reduce together inside the loop of a scan"
        for r in ranges_of(kernel).values():
            if any(r.src[0].ranges >> n & 1 for n in threads):
                yield f"threads reduce together, and have different numbers of range {r.arg}"
                return


def can_be_lanes(kernel: UOp, number: int) -> Iterator[str]:
    extent = extent_of(ranges_of(kernel)[number])
    if extent not in LANES:
        yield f"{extent} lanes; a vector has one of {', '.join(map(str, LANES))}"
    vectors = sum(1 << n for n, kind in kinds_of(kernel).items() if kind == VECTOR)
    for node in nodes_of(kernel):
        if node.ranges >> number & 1 and node.ranges & vectors & ~(1 << number):
            yield "a value would have two vector ranges"
            return


def can_be_unrolled(kernel: UOp, number: int) -> Iterator[str]:
    extent = extent_of(ranges_of(kernel)[number])
    if not extent or extent > MOST_UNROLLED:
        iterations = "a symbolic number of" if extent is None else str(extent)
        yield f"{iterations} iterations cannot be written out; it takes 1 to {MOST_UNROLLED}"


def is_reduced(kernel: UOp, number: int) -> Iterator[str]:
    """Whether an accumulator can take the iterations of a range one behind the other."""
    closers = _closers(kernel, number)
    if any(node.op != Op.REDUCE for node in closers):
        yield f"range {number} is not only reduced over"
    yield from _is_plain(closers)
    for node in nodes_of(kernel):
        if node.op in (Op.STAGE, Op.SCAN) and node.ranges >> number & 1:
            yield f"a stage or scan is computed once per iteration of range {number}"
            return


def _is_plain(closers: Sequence[UOp]) -> Iterator[str]:
    if any(map(is_joined, closers)):
        yield "a joined reduction takes its iterations in one loop"


def can_be_copied(kernel: UOp, number: int) -> Iterator[str]:
    """Whether no memory and no loop would have to be copied with the iterations of a range."""
    if kernel.ops >> Op.AFTER & 1 and any(n.op == Op.REDUCE for n in _closers(kernel, number)):
        yield "a reduction without a loop would read memory too late, which the kernel writes"
    for node in nodes_of(kernel):
        if node.op == Op.STAGE and node.ranges >> number & 1:
            yield f"a stage is filled once per iteration of range {number}"
            return
        if node.op == Op.AFTER and node.ranges >> number & 1:
            yield f"memory is written once per iteration of range {number}"
            return
        if node.op == Op.RANGE and node.src[0].ranges >> number & 1:
            yield f"the extent of range {node.arg} depends on range {number}"
            return


def can_be_staged(
    kernel: UOp, node: Node, ranges: Ranges, space: str, layout: Layout
) -> Iterator[str]:
    """Whether a value can be computed ahead over these ranges, and kept in this layout."""
    if not node or NODES.get(str(node[0])) != len(node):
        yield (
            "a stage is of (reduction, range), (factor, range, which), (again, range, other),"
            " (common, range, other) or (load, slot)"
        )
        return
    if space not in SPACES:
        yield f"a stage is in one of {', '.join(SPACES)}, not in {space!r}"
    positions = [each if isinstance(each, int) else each[0] for each in ranges]
    taps = [each[1] for each in ranges if not isinstance(each, int)]
    count = {FACTOR: 2, LOADED: 1}.get(str(node[0]), len(node))
    named = [int(number) for number in node[1:count]]
    for number in (*named, *positions, *taps):
        if number not in ranges_of(kernel):
            yield from known_range(kernel, number)
            return
    value = value_of(kernel, node)
    if value is None:
        yield _no_value(node)
        return
    if len({*positions, *taps}) != len(positions) + len(taps) or not positions:
        yield "a stage is filled over one or more ranges and taps, each named once"
        return
    if node[0] == AGAIN:
        yield from _can_be_filled_by(kernel, node, ranges)
    else:
        yield from _can_be_copied_over(kernel, value, ranges, [*positions, *taps])
    yield from is_for_all_copies(kernel, value, (*positions, *taps))
    if layout:
        yield from faults_of_layout(layout, [_extent_of(kernel, value, each) for each in ranges])


def _no_value(node: Node) -> str:
    number = node[1]
    if node[0] == FACTOR:
        return f"range {number} is not that of a sum of products, with factors 0 and 1"
    if node[0] == AGAIN:
        return f"no value of the reduction over {number} is computed again over {node[2]}"
    if node[0] == COMMON:
        return f"reductions over {number} and {node[2]} have no value in common"
    if node[0] == LOADED:
        return f"argument {number} is not one that the kernel loads once and does not write"
    return f"range {number} is not that of one reduction"


def _can_be_filled_by(kernel: UOp, node: Node, ranges: Ranges) -> Iterator[str]:
    """Whether the loop of a reduction can fill a stage of what it computes."""
    for number in node[1:]:
        yield from is_plain_loop(kernel, int(number), (LOOP,))
    if ranges != node[1:2]:
        yield f"the loop over range {node[1]} fills the stage, and no other"


def _can_be_copied_over(
    kernel: UOp, value: UOp, ranges: Ranges, numbers: Sequence[int]
) -> Iterator[str]:
    """Whether a value can be computed over ranges of its own."""
    known = ranges_of(kernel)
    if value.ops >> Op.SCAN & 1:
        yield "the value goes on from iteration to iteration of a loop"
    for number in numbers:
        if not value.ranges >> number & 1:
            yield f"the value does not depend on range {number}"
        if extent_of(known[number]) is None or known[number].src[0].ranges:
            yield f"the extent of range {number} is not constant"
    for each in ranges:
        if isinstance(each, tuple) and not windowed(
            value, known[each[0]], known[each[1]], 1 + max(known)
        ):
            position, tap = each
            yield f"the value does not depend on {position} and {tap} by overlapping windows"


def _extent_of(kernel: UOp, value: UOp, each: int | tuple[int, int]) -> int:
    """How many positions a range or window has."""
    known = ranges_of(kernel)
    if isinstance(each, int):
        return extent_of(known[each]) or 1
    positions, taps = (extent_of(known[number]) or 1 for number in each)
    window = windowed(value, known[each[0]], known[each[1]], 1 + max(known))
    return (positions - 1) * (window.step if window else 1) + taps


def is_for_all_copies(kernel: UOp, value: UOp, numbers: Sequence[int]) -> Iterator[str]:
    """Whether lanes and copies of a loop can read one stage, filled over these ranges."""
    for number, kind in kinds_of(kernel).items():
        is_copied = kind in UPCAST or kind == SEQUENTIAL
        if is_copied and value.ranges >> number & 1 and number not in numbers:
            yield f"a stage is filled once per iteration of range {number}"


def can_be_nested(kernel: UOp, number: int) -> Iterator[str]:
    """Whether all that closes a range are reductions, over others too."""
    for node in _closers(kernel, number):
        if node.op != Op.REDUCE:
            yield f"range {number} is not that of reductions alone"
        elif is_joined(node):
            yield f"range {number} is that of a joined reduction"
        elif len(own_ranges(node)) < 2:
            yield f"range {number} is the only one of a reduction"
        else:
            loops = [n for n, kind in kinds_of(kernel).items() if kind not in UPCAST]
            inside = loops[loops.index(number) + 1 :]
            if any(r.arg in inside for r in own_ranges(node)):
                yield f"range {number} is not the innermost loop of a reduction"


def can_be_joined(kernel: UOp, numbers: Sequence[int]) -> Iterator[str]:
    """Whether reductions need each other, in a way that parts of them can be joined."""
    if len(numbers) < 2 or len(set(numbers)) != len(numbers):
        yield "two or more ranges are joined, each named once"
        return
    plan = plan_join(kernel, numbers)
    if isinstance(plan, str):
        yield plan
        return
    kinds = kinds_of(kernel)
    order = [number for number, kind in kinds.items() if kind not in UPCAST]
    last = max(order.index(r.arg) for r in first_outer(kernel, plan))
    inner = {r.arg for blocked in plan.reductions.values() for r in blocked.inner}
    if any(number in inner for number in order[:last]):
        yield f"a range of a block stands outside range {order[last]}"
    if len({tuple(kinds[r.arg] for r in each.outer) for each in plan.reductions.values()}) != 1:
        yield "the outer ranges are of different kinds"


def can_be_carried(kernel: UOp, number: int) -> Iterator[str]:
    """Whether reductions can go on in arrays, for each iteration of the loops inside of theirs."""
    kinds, ranges = kinds_of(kernel), ranges_of(kernel)
    closers = _closers(kernel, number)
    if not closers or any(node.op != Op.REDUCE for node in closers):
        yield f"range {number} is not that of reductions alone"
    if any(kind in (ORDERED, THREAD) for kind in kinds.values()) or kernel.ops >> Op.SCAN & 1:
        yield "the kernel has ordered loops or threads"
    order = list(kinds)
    inside = order[order.index(number) + 1 :]
    for node in closers:
        depends = [n for n in inside if node.ranges >> n & 1 and kinds[n] not in UPCAST]
        if any(extent_of(ranges[n]) is None for n in depends):
            yield "the number of accumulators is symbolic"
        size = math.prod(extent_of(ranges[n]) or 1 for n in depends)
        if size > MOST_CARRIED:
            yield f"{size} accumulators; an array has at most {MOST_CARRIED}"


def can_be_accumulated(kernel: UOp, number: int) -> Iterator[str]:
    """Whether a reduction can be continued, block by block, in the memory of its store."""
    reduction = reduction_over(kernel, number)
    if reduction is None:
        yield f"range {number} is not that of one reduction"
        return
    if len(kernel.src) != 1 or kernel.src[0].op != Op.STORE:
        yield "the kernel has more than one store"
        return
    address, value = kernel.src[0].src[:2]
    if reduction.dtype is not address.dtype:
        yield f"the reduction is {reduction.dtype}, and its memory {address.dtype}"
    extent = extent_of(ranges_of(kernel)[number])
    if extent is None:
        yield f"the extent of range {number} is symbolic"
    if extent == 0:
        yield f"range {number} has no iteration in which an empty reduction could be stored"
    if kernel.ops >> Op.SCAN & 1:
        yield "the kernel has a scan"
    memory = behind(address.src[0])
    loads = [n for n in nodes_of(kernel) if n.op == Op.LOAD]
    own = carried_sum(kernel.src[0], reduction)
    if any(behind(n.src[0].src[0]) is memory for n in loads if n is not own):
        yield "the kernel reads the memory that it writes"
    direct = topological(value, enter=lambda node: node.op not in _PLACED)
    if reduction not in direct:
        yield "the reduction is not stored, but used by another reduction, scan or stage"

"""The rewrite behind the opt Stage: a value is computed over some ranges and materialized near.

`value_of` finds the value that an opt names, and `stage_value` puts a STAGE of it into the kernel,
with a READ for each use. Where the stage is filled follows from what it still depends on: all
ranges that it is not filled over. A factor of a contraction is a packed panel on a CPU and a tile
in the memory of the group on a GPU; a whole reduction is the tile of accumulators that the store
then walks over; what a reduction computes and a later loop would compute again is a row.

The layout is one function from positions to indices. It is applied to the ranges that write and to
the positions that read, so both agree whatever it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from weft.codegen.analysis.loops import (
    LOOP,
    extent_of,
    kinds_of,
    nodes_of,
    own_ranges,
    ranges_of,
    rebuilt,
    with_loops,
)
from weft.codegen.opts.windows import windowed
from weft.ir.bounds import bounds
from weft.ir.build import range_, true, variable
from weft.ir.dtypes import INDEX
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.reduction.contraction import factors_of, with_factor
from weft.ir.scalar import evaluate
from weft.ir.text import parse
from weft.ir.uop import UOp, make
from weft.ir.views import behind
from weft.ir.walk import map_graph, substitute, topological
from weft.rules.simplify import simplify
from weft.support.errors import TextError

# What is staged: ("reduction", range), ("factor", range, which), ("again", range, other range),
# ("common", range, other range) or ("load", slot).
Node = tuple[str | int, ...]
# What a stage is filled over: a range, or a window, which is a position and a tap that it adds.
Ranges = tuple[int | tuple[int, int], ...]
# An index expression over i0, i1, … for each axis of the memory; none for the ranges in order.
Layout = tuple[str, ...]

REDUCTION: Final = "reduction"
FACTOR: Final = "factor"
AGAIN: Final = "again"
COMMON: Final = "common"
LOADED: Final = "load"
NODES: Final = {REDUCTION: 2, FACTOR: 3, AGAIN: 3, COMMON: 3, LOADED: 2}
SPACES: Final = ("local", "register")
MOST_ELEMENTS: Final = 1 << 16  # of a stage whose layout is not in the order of its ranges


def reduction_over(kernel: UOp, number: int) -> UOp | None:
    """The reduction that closes a range, if it is the only node that does."""
    found = [n for n in nodes_of(kernel) if any(r.arg == number for r in own_ranges(n))]
    return found[0] if len(found) == 1 and found[0].op == Op.REDUCE else None


def value_of(kernel: UOp, node: Node) -> UOp | None:
    """The value that an opt names; None where there is none."""
    kind, number, *rest = node
    if kind == LOADED:
        return _load_of(kernel, int(number))
    if kind == AGAIN:
        return value_again(kernel, int(number), int(rest[0]))
    if kind == COMMON:
        return common_value(kernel, int(number), int(rest[0]))
    reduction = reduction_over(kernel, int(number))
    if reduction is None or kind == REDUCTION:
        return reduction
    factors = factors_of(reduction)
    return None if factors is None or rest[0] not in (0, 1) else factors[int(rest[0])]


def _load_of(kernel: UOp, slot: int) -> UOp | None:
    """The load of an argument, if there is one and the kernel does not write the argument."""
    nodes = [node for node in nodes_of(kernel) if node.op in (Op.LOAD, Op.STORE)]
    found = [node for node in nodes if behind(node.src[0].src[0]).arg[0] == slot]
    return found[0] if len(found) == 1 and found[0].op == Op.LOAD else None


def value_again(kernel: UOp, reduction: int, again: int) -> UOp | None:
    """The largest value of a reduction's iteration that a loop over another range computes again.

    Softmax sums exponentials, and then computes them again to divide them.
    """
    node = reduction_over(kernel, reduction)
    ranges = ranges_of(kernel)
    if node is None or len(own_ranges(node)) != 1 or again == reduction:
        return None
    old, new = ranges[reduction], ranges[again]
    if extent_of(old) is None or old.src[0] is not new.src[0]:
        return None
    inside = topological(node)
    if any(new in own_ranges(part) for part in inside):
        return None  # that loop ends before the reduction begins
    present = set(nodes_of(kernel)).difference(inside)  # what it reads is there before it ends
    around = node.ranges | 1 << reduction
    body = topological(node.src[0], enter=lambda part: bool(part.ranges >> reduction & 1))
    for part in reversed(body):
        is_row = part.ranges >> reduction & 1 and not part.ranges & ~around
        if part.op in ELEMENTWISE and is_row:
            twin = substitute(part, {old: new})
            if twin is not part and twin in present and part.ops >> Op.LOAD & 1:
                return part
    return None


def common_value(kernel: UOp, number: int, other: int) -> UOp | None:
    """The largest value that reductions over two ranges have in common, as the first has it.

    A block of scores has a maximum, a sum of exponentials and a product with values; each of them
    computes the score anew.
    """
    ranges = ranges_of(kernel)
    old, new = ranges[number], ranges[other]
    reductions = [n for n in nodes_of(kernel) if n.op == Op.REDUCE and old in own_ranges(n)]
    if old is new or old.src[0] is not new.src[0] or not reductions:
        return None
    present = set(nodes_of(kernel))
    for reduction in reductions:
        body = topological(reduction.src[0], enter=lambda part: bool(part.ranges >> number & 1))
        for part in reversed(body):
            is_value = part.op in ELEMENTWISE or part.op == Op.REDUCE
            is_value = is_value and part.ops & (1 << Op.LOAD | 1 << Op.READ) != 0
            is_value = is_value and part.dtype.kind != INDEX
            if is_value and part.ranges >> number & 1 and moved(part, old, new) in present:
                return part
    return None


def moved(value: UOp, old: UOp, new: UOp) -> UOp:
    """A value at another range, with indices in normal form."""

    def rewritten(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        return rebuilt(node, made, {})

    return map_graph(value, rewritten, known={old: new})


def _with_common(kernel: UOp, value: UOp, old: UOp, read: UOp) -> dict[UOp, UOp]:
    """A value at the range of each reduction that computes it, and where each reads it."""
    found = {value: read}
    present = set(nodes_of(kernel))
    for new in ranges_of(kernel).values():
        twin = moved(value, old, new) if new.src[0] is old.src[0] else value
        if twin is not value and twin in present:
            found[twin] = substitute(read, {old: new})
    return found


def stage_value(kernel: UOp, node: Node, ranges: Ranges, space: str, layout: Layout) -> UOp:
    """The kernel with a value materialized over ranges, and read from there."""
    value = value_of(kernel, node)
    assert value is not None
    if node[0] == AGAIN:
        # The loop of the reduction fills it: both hold the same range and the same value.
        old, new = (ranges_of(kernel)[int(number)] for number in node[1:])
        read = _read(_stage(value, [old], space, layout), [new], layout)
        return substitute(kernel, {substitute(value, {old: new}): read})
    copy = _copied(kernel, value, ranges)
    read = _read(_stage(copy.value, copy.fresh, space, layout), copy.addresses, layout)
    loops = [*kinds_of(kernel).items(), *((r.arg, LOOP) for r in copy.fresh)]
    replaced = {value: read}
    if node[0] == COMMON:
        replaced = _with_common(kernel, value, ranges_of(kernel)[int(node[1])], read)
    if node[0] == FACTOR:  # the other factor may be the same value
        reduction = reduction_over(kernel, int(node[1]))
        assert reduction is not None
        replaced = {reduction: with_factor(reduction, int(node[2]), read)}
    return with_loops(substitute(kernel, replaced), loops)


class _Copy(NamedTuple):
    """A value over fresh ranges, and the positions at which its users find it."""

    value: UOp
    fresh: list[UOp]
    addresses: list[UOp]


def _copied(kernel: UOp, value: UOp, ranges: Ranges) -> _Copy:
    """A value over the next free ranges; a window has one instead of two."""
    known, first = ranges_of(kernel), 1 + max(kinds_of(kernel))
    fresh: list[UOp] = []
    addresses: list[UOp] = []
    for number, each in enumerate(ranges, first):
        old = known[each if isinstance(each, int) else each[0]]
        address, extent = old, extent_of(old) or 1
        if not isinstance(each, int):
            tap = known[each[1]]
            window = windowed(value, old, tap, number)
            assert window is not None
            value, address = window.value, simplify(old * window.step + tap)
            extent = (extent - 1) * window.step + (extent_of(tap) or 1)
        addresses.append(address)
        fresh.append(range_(number, extent))
        value = substitute(value, {old: fresh[-1]})
    return _Copy(value, fresh, addresses)


def _stage(value: UOp, ranges: list[UOp], space: str, layout: Layout) -> UOp:
    indices = laid_out(layout, ranges)
    sizes = tuple(bounds(index)[1] + 1 for index in indices)
    return make(Op.STAGE, value.dtype, (value, *indices, *ranges), (space, sizes))


def _read(stage: UOp, addresses: list[UOp], layout: Layout) -> UOp:
    return make(Op.READ, stage.dtype, (stage, true(), *laid_out(layout, addresses)))


def laid_out(layout: Layout, addresses: Sequence[UOp]) -> list[UOp]:
    """The indices of a position: the one function that writers and readers share.

    >>> from weft.ir.build import range_
    >>> laid_out(("i0", "(i0 + i1) % 8"), [range_(0, 4), range_(1, 8)])
    [r0, ((r0 + r1) % 8)]
    """
    if not layout:
        return list(addresses)
    names = {
        variable(f"i{axis}", *bounds(address)): address for axis, address in enumerate(addresses)
    }
    return [simplify(substitute(_parsed(text, list(names)), names)) for text in layout]


def _parsed(text: str, names: Sequence[UOp]) -> UOp:
    """An index expression over variables."""
    rows = [f'{n.arg[0]} = variable "{n.arg[0]}" {n.arg[1]}..{n.arg[2]}' for n in names]
    return parse("\n".join([*rows, f"return {text}"]))


def faults_of_layout(layout: Layout, extents: Sequence[int]) -> Iterator[str]:
    """Why a layout cannot be taken for positions below these extents."""
    if not layout:
        return
    names = [variable(f"i{axis}", 0, size - 1) for axis, size in enumerate(extents)]
    try:
        indices = [_parsed(text, names) for text in layout]
    except TextError as error:
        yield f"the layout cannot be read: {error.what}"
        return
    boxes = list(itertools.islice(itertools.product(*map(range, extents)), MOST_ELEMENTS + 1))
    if len(boxes) > MOST_ELEMENTS:
        yield f"a layout of its own takes at most {MOST_ELEMENTS} elements"
        return
    seen = {
        tuple(_value(index, dict(zip(names, box, strict=True))) for index in indices)
        for box in boxes
    }
    if len(seen) != len(boxes):
        yield "two elements have one address in the layout"
    if any(number < 0 for address in seen for number in address):
        yield "an index of the layout is below 0"


def _value(index: UOp, at: dict[UOp, int]) -> int:
    values: dict[UOp, int] = dict(at)
    for node in topological(index):
        if node.op == Op.CONST:
            values[node] = int(node.arg)
        elif node not in values:
            src = tuple(values[source] for source in node.src)
            values[node] = int(evaluate(node.op, node.dtype, src, node.src[-1].dtype))
    return values[index]

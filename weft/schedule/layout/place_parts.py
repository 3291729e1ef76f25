"""Results of products that are parts of one value are stored where they are in it.

The gradient of a value that is cut into parts, as queries, keys and values are cut from one
product, is the sum of their gradients, each padded with zeros to the size of the whole. Where the
parts are results of two products in one kernel, which have memory in any case, that is the memory
of the sum:

    a.pad(to the whole) + b.pad(to the whole)   ->   m.after(store m[the part of a] = a,
                                                            store m[the part of b] = b)

In: a tensor graph of STORED_SPEC. Out: one in which such sums are memory. They have to be all of
the sum and must not meet; of parts that are moved, the memory is seen as they were before that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from weft.ir.build import param, store
from weft.ir.movement import permute, reshape, shrink
from weft.ir.ops import Op
from weft.ir.shapes import Shape, fill_pairs, shape_of
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph, topological, users, with_sources
from weft.schedule.context import ScheduleContext, next_slot
from weft.schedule.fuse.chains.chains import Chains, find_chains

Box = tuple[tuple[int, int], ...]


class _Part(NamedTuple):
    """A value that is a part of another one, and what moves it there."""

    value: UOp
    moves: list[UOp]  # from the part to the value
    box: Box


def place_parts(root: UOp, context: ScheduleContext) -> UOp:
    """The graph with sums of padded parts in memory, where the parts are stored."""
    order = topological(root)
    if not any(node.op == Op.ADD and _is_padded(node) for node in order):
        return root
    chains = find_chains(root, order, context.target)
    if not chains.is_on_units:
        return root
    readers = users(root)
    found = {node: parts for node in order if (parts := _parts_of(node, readers, chains))}
    slots = {node: next_slot(root) + number for number, node in enumerate(found)}

    def placed(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        if node not in found:
            return with_sources(node, made)
        memory = param(slots[node], node.dtype, shape_of(node))
        stores = [store(_view(memory, part), made[part.value]) for part in found[node]]
        return make(Op.AFTER, node.dtype, (memory, *stores))

    return map_graph(root, placed)


def _is_padded(node: UOp) -> bool:
    return any(source.op == Op.PAD for source in node.src)


def _parts_of(node: UOp, readers: Mapping[UOp, list[UOp]], chains: Chains) -> list[_Part]:
    """The parts that a sum is put together from; none if it is something else."""
    if node.op != Op.ADD or any(user.op == Op.ADD for user in readers[node]):
        return []
    padded, stack = list[UOp](), [node]
    while stack:
        each = stack.pop()
        if each is not node and len(readers[each]) != 1:
            return []
        if each.op == Op.ADD:
            stack += each.src
        elif each.op == Op.PAD:
            padded.append(each)
        else:
            return []
    parts = [part for each in padded if (part := _part(each, readers, chains)) is not None]
    return parts if len(parts) == len(padded) and _is_whole(parts, shape_of(node)) else []


def _part(node: UOp, readers: Mapping[UOp, list[UOp]], chains: Chains) -> _Part | None:
    """A padded result of two products in one kernel, which nothing else reads."""
    pairs = zip(fill_pairs(node), shape_of(node.src[0]), strict=True)
    box = [(before, size) for (before, _), size in pairs]
    value, moves = node.src[0], list[UOp]()
    while value.op in (Op.RESHAPE, Op.PERMUTE) and len(readers[value]) == 1:
        moves.append(value)
        value = value.src[0]
    known = tuple([(a, a + n) for a, n in box if isinstance(a, int) and isinstance(n, int)])
    is_end = chains.result_of(value) is not None and len(readers[value]) == 1
    return _Part(value, moves, known) if is_end and len(known) == len(box) else None


def _is_whole(parts: list[_Part], shape: Shape) -> bool:
    """Whether parts are all of a shape, and none meets another."""
    sizes = [size for size in shape if isinstance(size, int)]
    volumes = [math.prod(end - start for start, end in part.box) for part in parts]
    if len(sizes) != len(shape) or sum(volumes) != math.prod(sizes) or len(parts) < 2:
        return False
    return all(
        any(x[1] <= y[0] or y[1] <= x[0] for x, y in zip(one.box, other.box, strict=True))
        for number, one in enumerate(parts)
        for other in parts[:number]
    )


def _view(memory: UOp, part: _Part) -> UOp:
    """A part of memory, as its value is before it is moved."""
    view = shrink(memory, part.box)
    for move in part.moves:
        if move.op == Op.RESHAPE:
            view = reshape(view, shape_of(move.src[0]))
        else:
            view = permute(view, sorted(range(len(move.arg)), key=move.arg.__getitem__))
    return view

"""The layout rules of INDEX and SCATTER, which name addresses by indices.

The value of an INDEX has the axes of the indices in front, then those axes of the memory that are
not indexed. So a cut can come from either. An index that counts along one of its axes, as those of
`gather` do for all axes but one, ties an axis of the memory to one of the indices: both are cut
alike, and each device finds what it needs in its own part.
"""

from __future__ import annotations

from weft.ir.layouts import Flow, Given, Layout
from weft.ir.ops import Op
from weft.ir.shapes import Shape, same_size, shape_of
from weft.ir.sizes import times
from weft.ir.uop import UOp


def indexed(node: UOp, given: Given) -> Flow:
    """INDEX(x, mask, i0, …)"""
    memory, addresses = given[0], node.src[1:]
    whole = Layout(next(each.devices for each in given if each))
    rank = len(shape_of(node)) - len(shape_of(node.src[0])) + len(addresses) - 1
    cut = _cut_of(given[1:])
    if memory is not None and memory.axis is not None:
        count = len(addresses) - 1
        if memory.axis >= count:
            result = memory._replace(axis=memory.axis - count + rank)
            return Flow((memory, *[whole] * len(addresses)), result)
        tied = counts_along(addresses[1 + memory.axis])
        if tied is not None and same_size(shape_of(node)[tied], sum(memory.sizes)):
            cut = memory._replace(axis=tied)
            return Flow((memory, *_each(addresses, cut, whole)), cut)
    return Flow((whole, *_each(addresses, cut or whole, whole)), cut or whole)


def scattered(node: UOp, given: Given) -> Flow:
    """SCATTER(x, v, mask, i0, …)"""
    memory, updates, addresses = given[0], given[1], node.src[2:]
    whole = Layout(next(each.devices for each in given if each))
    count = len(addresses) - 1
    rank = len(shape_of(node.src[1])) - len(shape_of(node)) + count
    cut = updates if updates is not None and updates.axis is not None else None
    if memory is not None and memory.axis is not None and memory.axis >= count:
        cut = memory._replace(axis=memory.axis - count + rank)
    if cut is not None and cut.axis is not None and cut.axis >= rank:
        result = cut._replace(axis=cut.axis - rank + count)
        return Flow((result, cut, *[whole] * len(addresses)), result)
    cut = cut or _cut_of(given[2:])
    if cut is None:
        return Flow((whole,) * len(given), whole)
    sources = (cut, *_each(addresses, cut, whole))
    for axis, address in enumerate(addresses[1:]):
        if counts_along(address) == cut.axis and same_size(shape_of(node)[axis], sum(cut.sizes)):
            result = cut._replace(axis=axis)
            return Flow((result, *sources), result)
    if node.arg[0] == Op.ADD:
        return Flow((whole, *sources), whole, reduction=Op.ADD)
    return Flow((whole,) * len(given), whole)


def _cut_of(given: Given) -> Layout | None:
    """The cut of the first index, or mask, that is cut."""
    return next((each for each in given if each is not None and each.axis is not None), None)


def _each(addresses: tuple[UOp, ...], cut: Layout, whole: Layout) -> list[Layout]:
    return [cut if shape_of(address) else whole for address in addresses]


def counts_along(index: UOp) -> int | None:
    """The axis along which an index is 0, 1, 2, …, if it is that."""
    reshapes: list[UOp] = []
    while index.op != Op.IOTA:
        if index.op == Op.RESHAPE:
            reshapes.append(index)
        if index.op == Op.WHERE and _is_below_zero(index.src[0], index.src[2]):
            # An index that counts from the end, made to count from 0: where(i < 0, i + size, i).
            index = index.src[2]
        elif index.op in (Op.CAST, Op.EXPAND, Op.RESHAPE) or _changes_nothing(index):
            index = index.src[0]
        else:
            return None
    axis: int | None = 0
    for step in reversed(reshapes):
        if axis is not None:
            axis = _same_axis(shape_of(step.src[0]), shape_of(step), axis)
    return axis


def _is_below_zero(condition: UOp, index: UOp) -> bool:
    if condition.op != Op.LESS or condition.src[0] is not index:
        return False
    return condition.src[1].op == Op.CONST and condition.src[1].arg == 0


def _same_axis(before: Shape, after: Shape, axis: int) -> int | None:
    """Where an axis is after a reshape that leaves it alone."""
    outer = times(*before[:axis])
    for number, size in enumerate(after):
        if same_size(size, before[axis]) and same_size(times(*after[:number]), outer):
            return number
    return None


def _changes_nothing(node: UOp) -> bool:
    """A product with 1 or a sum with 0: how `arange` begins."""
    if node.op not in (Op.ADD, Op.MUL) or node.src[1].op != Op.CONST:
        return False
    return bool(node.src[1].arg == (1 if node.op == Op.MUL else 0))

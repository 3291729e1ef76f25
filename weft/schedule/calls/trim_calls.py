"""Calls without what nobody needs: results that are not read, and arguments that are not used.

In and Out: a tensor graph. The gradient of a convolution gives two results; where only that of the
weight is wanted, the other is not computed. A call runs by itself, so nothing inside it would
notice otherwise. A result that is an argument, such as the gradient of a term of a sum, is taken
from outside. Bodies that write to memory are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.ir.build import call, item, param
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import fill_sizes
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph, substitute, topological, users, with_sources
from weft.schedule.context import ScheduleContext


def trim_calls(root: UOp, context: ScheduleContext) -> UOp:
    """Drop unread results and unused arguments of calls.

    before: f(p0, p1).item(0) + f(p0, p1).item(1)    where f(p0, p1) = (p1, p0 * 2)
    after:  p1 + f(p0)                               where f(p0) = p0 * 2
    """
    readers = users(root)
    addresses: dict[UOp, dict[int, int]] = {}  # where a result of a call has gone

    def trimmed(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        slot = _given_slot(node)
        if slot is not None:
            (call,) = node.src
            return made[call.src[slot]]
        new = with_sources(node, made)
        if node.op == Op.CALL and _is_value(node):
            computed = [reader for reader in readers[node] if _given_slot(reader) is None]
            new, addresses[node] = _trimmed(new, computed)
        elif node.op == Op.ITEM and node.src[0] in addresses:
            position = addresses[node.src[0]][node.arg]
            new = item(new.src[0], position, node.dtype) if _is_tuple(new) else new.src[0]
        return new

    return map_graph(root, trimmed)


def _given_slot(item: UOp) -> int | None:
    """The slot of the argument that a result of a call is; None where the call computes it."""
    if item.op != Op.ITEM or item.src[0].op != Op.CALL or item.src[0].arg.op != Op.TUPLE:
        return None
    part = item.src[0].arg.src[item.arg]
    is_given = part.op == Op.PARAM and _is_value(item.src[0])
    return int(part.arg[0]) if is_given else None


def _is_tuple(item: UOp) -> bool:
    return item.src[0].dtype is dtypes.void


def _is_value(node: UOp) -> bool:
    """Whether a call computes values from values, and does nothing else."""
    effects = 1 << Op.STORE | 1 << Op.KERNEL | 1 << Op.PROGRAM | 1 << Op.LINEAR
    return not (node.arg.ops & effects or node.arg.op in (Op.KERNEL, Op.PROGRAM, Op.LINEAR))


def _trimmed(node: UOp, readers: list[UOp]) -> tuple[UOp, dict[int, int]]:
    """The call with what is used, and the new position of each result."""
    if not readers:  # all of its results are arguments
        return node, {}
    body = node.arg
    count = len(body.src) if body.op == Op.TUPLE else 1
    wanted = list(range(count))
    if body.op == Op.TUPLE and all(reader.op == Op.ITEM for reader in readers):
        wanted = sorted({int(reader.arg) for reader in readers})
    if body.op == Op.TUPLE and len(wanted) < count:
        parts = tuple([body.src[position] for position in wanted])
        body = make(Op.TUPLE, body.dtype, parts)
    slots = {part.arg[0]: part for part in topological(body) if part.op == Op.PARAM}
    if len(slots) < len(node.src):
        renumbered = {
            part: param(number, part.dtype, fill_sizes(part, part.arg[1], 0))
            for number, (_, part) in enumerate(sorted(slots.items()))
        }
        body = substitute(body, renumbered)
    given = [node.src[slot] for slot in sorted(slots)]
    is_less = body is not node.arg or len(given) < len(node.src)
    new = call(body, *given) if is_less else node
    return new, {position: number for number, position in enumerate(wanted)}

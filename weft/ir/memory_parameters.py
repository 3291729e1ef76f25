"""Graphs over parameters that are numbered as memory is met, so that equal work is one graph."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.build import param
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import rebuild, topological


def over_parameters(roots: Sequence[UOp], memory_op: int) -> tuple[list[UOp], list[UOp]]:
    """The memory below the roots, and the roots with a parameter for each.

    `memory_op` says what memory is: BUFFERs, or the PARAMs of a larger graph.

    >>> from weft.ir.dtypes import dtypes
    >>> from weft.ir.ops import Op
    >>> x, y = (param(slot, dtypes.int32, (2,)) for slot in (7, 3))
    >>> memory, (body,) = over_parameters([x * 2 + y], Op.PARAM)
    >>> memory == [x, y], body is param(0, dtypes.int32, (2,)) * 2 + param(1, dtypes.int32, (2,))
    (True, True)
    """
    memory: list[UOp] = []
    made: dict[UOp, UOp] = {}
    for node in topological(*roots):
        if node.op == memory_op:
            made[node] = param(len(memory), node.dtype, shape_of(node))
            memory.append(node)
        else:
            made[node] = rebuild(node, tuple([made[source] for source in node.src]))
    return memory, [made[root] for root in roots]

"""What a node with several values gives: the one place that knows it.

ITEM picks from these. The nodes that are returned describe the values, their dtypes and shapes; in
a CALL they belong to the scope of its body.
"""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import topological

# Bodies that fill memory: what they are not given as an argument is what they give.
FILLING: Final = frozenset((Op.KERNEL, Op.PROGRAM))


def results_of(node: UOp) -> tuple[UOp, ...] | None:
    """The values of a TUPLE, of a CALL or of what stands for either; None for other nodes."""
    if node.op == Op.CUSTOM_GRADIENT:
        node = node.src[0]
    if node.op == Op.CALL and isinstance(node.arg, UOp):
        if node.arg.op in FILLING:
            return tuple(filled_by(node.arg, len(node.src)).values())
        node = node.arg
    return node.src if node.op == Op.TUPLE else None


def filled_by(body: UOp, arguments: int) -> dict[int, UOp]:
    """The PARAMs of a KERNEL or PROGRAM that no argument stands for, by slot, in order."""
    beyond = {
        part.arg[0]: part
        for part in topological(body)
        if part.op == Op.PARAM and part.arg[0] >= arguments
    }
    return dict(sorted(beyond.items()))


def result_nodes(call: UOp) -> list[UOp]:
    """The nodes that name the results of a call: itself, or an ITEM for each of several."""
    values = results_of(call)
    if values is None:
        return [] if call.dtype is dtypes.void else [call]
    return [make(Op.ITEM, value.dtype, (call,), number) for number, value in enumerate(values)]

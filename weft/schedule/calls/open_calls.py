"""Calls of bodies with convolutions on matrix units are written out.

In and Out: a tensor graph. The gradients of a convolution are a call, which runs by itself over
memory in the order of its arguments. Where images lie with their channels last (`channels_last`),
these arguments are values of such a layout, so the body has to be seen together with them.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.ir.dtypes import DType
from weft.ir.inline import filled, is_inline, written_out
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import map_graph, topological, with_sources
from weft.schedule.context import ScheduleContext
from weft.schedule.layout.align_factors import is_large, matrix_inputs
from weft.schedule.layout.convolutions import convolution_of


def open_calls(root: UOp, context: ScheduleContext) -> UOp:
    """Put the bodies of calls that convolve into their places."""
    dtypes, _ = matrix_inputs(context.target)
    if not dtypes:
        return root
    bodies: dict[UOp, UOp | None] = {}

    def opened(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = with_sources(node, made)
        if new.op != Op.CALL or is_inline(new):
            return new
        if new.arg not in bodies:
            bodies[new.arg] = written_out(new.arg) if _convolves(new.arg, dtypes) else None
        body = bodies[new.arg]
        return new if body is None else filled(body, list(new.src))

    return map_graph(root, opened)


def _convolves(body: UOp, dtypes: frozenset[DType]) -> bool:
    """Whether values that nobody writes are made of a large convolution."""
    if body.ops & (1 << Op.STORE | 1 << Op.AFTER) or not body.ops >> Op.REDUCE & 1:
        return False
    return any(
        node.op == Op.REDUCE
        and is_large(node.src[0])
        and convolution_of(node, dtypes, ()) is not None
        for node in topological(body)
    )

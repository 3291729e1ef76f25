"""Calls of bodies with convolutions on matrix units are written out.

In and Out: a tensor graph. The gradients of a convolution are a call, which runs by itself over
memory in the order of its arguments. Where images lie with their channels last (`channels_last`),
these arguments are values of such a layout, so the body has to be seen together with them. So are
those of pools, whose gradient looks at the windows of an image again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.ir.dtypes import DType
from weft.ir.inline import filled, is_inline, written_out
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import map_graph, topological, with_sources
from weft.schedule.context import ScheduleContext
from weft.schedule.layout.align_factors import is_large, matrix_inputs
from weft.schedule.layout.convolutions import LEAST_AXES, convolution_of

_WRITES: Final = 1 << Op.STORE | 1 << Op.AFTER


def open_calls(root: UOp, context: ScheduleContext) -> UOp:
    """Replace calls that convolve by their bodies."""
    dtypes, _ = matrix_inputs(context.target)
    if not dtypes:
        return root
    bodies: dict[UOp, UOp | None] = {}
    calls = {node.arg for node in topological(root) if node.op == Op.CALL}
    has_images = any(_convolves(graph, dtypes) for graph in (root, *calls))

    def opened(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = with_sources(node, made)
        if new.op != Op.CALL or is_inline(new):
            return new
        if new.arg not in bodies:
            is_pure = not new.arg.ops & _WRITES
            pools = has_images and _pools(new.arg)
            is_open = is_pure and (pools or _convolves(new.arg, dtypes))
            bodies[new.arg] = written_out(new.arg) if is_open else None
        body = bodies[new.arg]
        return new if body is None else filled(body, list(new.src))

    return map_graph(root, opened)


def _pools(body: UOp) -> bool:
    """Whether windows of images are reduced, along axes that lie behind those of the images."""
    if not body.ops >> Op.REDUCE & 1:
        return False
    order = topological(body)
    rank = max((len(shape_of(node)) for node in order if node.op == Op.PARAM), default=0)
    return rank > LEAST_AXES and any(
        node.op == Op.REDUCE and min(node.arg[1], default=0) >= rank for node in order
    )


def _convolves(body: UOp, dtypes: frozenset[DType]) -> bool:
    """Whether values are made of a large convolution."""
    if not body.ops >> Op.REDUCE & 1:
        return False
    return any(
        node.op == Op.REDUCE
        and is_large(node.src[0])
        and convolution_of(node, dtypes, ()) is not None
        for node in topological(body)
    )

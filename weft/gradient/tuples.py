"""Gradients of TUPLE and ITEM, and what the gradient of several values is.

The gradient of a TUPLE, or of a CALL that gives one, is a TUPLE with the gradients of its values;
`nothing()` stands for a value that has none. No result of reverse mode holds it.
"""

from __future__ import annotations

from typing import Final

from weft.gradient.elementwise import Parts, SlopeRule
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.results import results_of
from weft.ir.uop import UOp, make
from weft.support.errors import InternalError


def nothing() -> UOp:
    """What stands in a TUPLE of gradients for a value without one."""
    return make(Op.TUPLE, dtypes.void)


def values_of(node: UOp) -> tuple[UOp, ...]:
    """The values of a TUPLE, or of a CALL that gives one, as its body names them."""
    values = results_of(node)
    if values is None:
        raise InternalError("a gradient of several values reached a node with one")
    return values


def add(a: UOp, b: UOp) -> UOp:
    """The sum of two gradients of one node."""
    if a.op != Op.TUPLE:
        return a + b
    # Only ITEMs contribute to a TUPLE, and there is one node for each item: no two meet.
    empty = nothing()
    pairs = zip(a.src, b.src, strict=True)
    return make(Op.TUPLE, dtypes.void, tuple(x if y is empty else y for x, y in pairs))


def _tuple(node: UOp, g: UOp) -> Parts:
    """(x, y, …): each has its own"""
    empty = nothing()
    return tuple(None if part is empty else part for part in g.src)


def _item(node: UOp, g: UOp) -> Parts:
    """One of (x, y, …): g for it, nothing for the others"""
    empty = nothing()
    width = len(values_of(node.src[0]))
    src = tuple(g if position == node.arg else empty for position in range(width))
    return (make(Op.TUPLE, dtypes.void, src),)


TUPLE_RULES: Final[dict[int, SlopeRule]] = {Op.TUPLE: _tuple, Op.ITEM: _item}

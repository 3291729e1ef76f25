"""Calls that are written out where they stand: a body under INLINE is a way to build a graph once.

Random numbers are of this kind: a hundred nodes over one piece of memory. As a CALL they are one
node for whoever builds, names or copies a graph, and the scheduler replaces it
by the nodes of the body, so that fusion sees what it would have seen.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph, rebuild, topological, with_sources


def inline_body(value: UOp) -> UOp:
    """A value over PARAMs as the body of calls that are written out."""
    return make(Op.INLINE, value.dtype, (value,))


def is_inline(node: UOp) -> bool:
    """Whether a node is a call that is written out."""
    return node.op == Op.CALL and node.arg.op == Op.INLINE


def written_out(root: UOp) -> UOp:
    """The graph with the bodies of such calls instead of them.

    >>> from weft.ir.build import call, param
    >>> from weft.ir.dtypes import dtypes
    >>> x, y = (param(slot, dtypes.int32, (2,)) for slot in (0, 1))
    >>> written_out(call(inline_body(x * 2), y) + 1) is y * 2 + 1
    True
    """
    bodies: dict[UOp, UOp] = {}

    def written(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        if node.op == Op.INLINE:
            return made[node.src[0]]
        if not is_inline(node):
            return with_sources(node, made)
        body = bodies.get(node.arg)
        if body is None:
            body = bodies[node.arg] = written_out(node.arg)
        new = filled(body, [made[source] for source in node.src])
        if new.line is None:
            new.line = node.line
        return new

    return map_graph(root, written)


def filled(body: UOp, arguments: list[UOp]) -> UOp:
    """A body with arguments instead of its parameters, whose number is their slot."""
    made: dict[UOp, UOp] = {}
    for node in topological(body):
        if node.op == Op.PARAM:
            made[node] = arguments[node.arg[0]]
        else:
            made[node] = rebuild(node, tuple([made[source] for source in node.src]))
    return made[body]

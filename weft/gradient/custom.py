"""The gradient of CUSTOM_GRADIENT: what its body says, instead of that of the value below it.

The body is a function of (inputs…, values…, gradients of the values…, what else it reads…) that
gives a TUPLE with a gradient for each of its slots. It is called like any other function, so it
can be differentiated again; the values that it is handed are those with the custom gradient. A
body that keeps nothing in memory is written out instead, so that it becomes part of the kernels
around it: a call runs by itself.
"""

from __future__ import annotations

from typing import Final

from weft.gradient.elementwise import Parts, SlopeRule
from weft.gradient.tuples import nothing, values_of
from weft.ir.build import call_results, items
from weft.ir.dtypes import dtypes
from weft.ir.movement import as_shape, zeros_like
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import substitute, topological

# What makes a body one to call.
_BY_ITSELF: Final = 1 << Op.STAGE | 1 << Op.CALL | 1 << Op.CUSTOM_GRADIENT | 1 << Op.STORE


def _custom_gradient(node: UOp, g: UOp) -> Parts:
    """CUSTOM_GRADIENT(y, x…): body(x…, y, g) for x, and nothing for y"""
    body, inputs, slots = node.arg
    given, others = node.src[1 : 1 + inputs], node.src[1 + inputs :]
    values: tuple[UOp, ...] = (node,)
    seeds: tuple[UOp, ...] = (g,)
    if node.dtype is dtypes.void:
        kinds = values_of(node)
        values = tuple(items(node, kinds))
        seeds = _seeds(values, g)
    found = _results(body, (*given, *values, *seeds, *others))
    parts: list[UOp | None] = [None] * len(node.src)
    for part, slot in zip(found, slots, strict=True):
        parts[1 + slot] = as_shape(part, shape_of(given[slot]))
    return tuple(parts)


def _results(body: UOp, arguments: tuple[UOp, ...]) -> tuple[UOp, ...]:
    """What a body gives for some arguments."""
    if body.ops & _BY_ITSELF and not all(map(_is_staged_argument, body.src)):
        return tuple(call_results(body, *arguments))
    parameters = [node for node in topological(body) if node.op == Op.PARAM]
    return substitute(body, {node: arguments[node.arg[0]] for node in parameters}).src


def _is_staged_argument(result: UOp) -> bool:
    """Whether a result is an argument in memory of its own, which is not work for a call."""
    return result.op == Op.STAGE and result.src[0].op == Op.PARAM and len(result.src) == 1


def _seeds(values: tuple[UOp, ...], g: UOp) -> tuple[UOp, ...]:
    """The gradients of the values that are floats; 0 for those that nothing depends on."""
    empty = nothing()
    return tuple(
        zeros_like(value) if part is empty else part
        for value, part in zip(values, g.src, strict=True)
        if value.dtype.is_inexact
    )


def _inline(node: UOp, g: UOp) -> Parts:
    """INLINE(x): g"""
    return (g,)


CUSTOM_RULES: Final[dict[int, SlopeRule]] = {
    Op.CUSTOM_GRADIENT: _custom_gradient,
    Op.INLINE: _inline,
}

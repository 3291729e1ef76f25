"""The gradient of CUSTOM_GRADIENT: what its body says, instead of that of the value below it.

The body is a function of (inputs…, values…, gradients of the values…, what else it reads…) that
gives a TUPLE with a gradient for each of its slots. It is called like any other function, so it
can be differentiated again; the values that it is handed are those with the custom gradient.
"""

from __future__ import annotations

from typing import Final

from weft.gradient.elementwise import Parts, Rule
from weft.gradient.shaping import as_shape, full
from weft.gradient.tuples import nothing, values_of
from weft.ir.build import call
from weft.ir.dtypes import FLOAT, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make


def _custom_gradient(node: UOp, g: UOp) -> Parts:
    """CUSTOM_GRADIENT(y, x…): body(x…, y, g) for x, and nothing for y"""
    body, inputs, slots = node.arg
    given, others = node.src[1 : 1 + inputs], node.src[1 + inputs :]
    values: tuple[UOp, ...] = (node,)
    seeds: tuple[UOp, ...] = (g,)
    if node.dtype is dtypes.void:
        kinds = values_of(node)
        values = tuple(
            make(Op.ITEM, kind.dtype, (node,), position) for position, kind in enumerate(kinds)
        )
        seeds = _seeds(values, g)
    done = call(body, *given, *values, *seeds, *others)
    parts: list[UOp | None] = [None] * len(node.src)
    for position, slot in enumerate(slots):
        part = make(Op.ITEM, body.src[position].dtype, (done,), position)
        parts[1 + slot] = as_shape(part, shape_of(given[slot]))
    return tuple(parts)


def _seeds(values: tuple[UOp, ...], g: UOp) -> tuple[UOp, ...]:
    """The gradients of the values that are floats; 0 for those that nothing depends on."""
    empty = nothing()
    return tuple(
        full(value.dtype, shape_of(value), 0) if part is empty else part
        for value, part in zip(values, g.src, strict=True)
        if value.dtype.kind == FLOAT
    )


CUSTOM_RULES: Final[dict[int, Rule]] = {Op.CUSTOM_GRADIENT: _custom_gradient}

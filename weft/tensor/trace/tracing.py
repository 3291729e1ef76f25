"""Functions of tensors, traced on placeholders: what `@function` and all transforms share.

While a function is traced, a placeholder stands for each of its arguments: a PARAM with a number
that nothing else has. Then the arguments replace the placeholders again (`stands_for`),
or `close_over` makes graphs that mention nothing but numbered PARAMs: whatever else was read
(weights, the random state, values of an enclosing function) becomes a further argument.

The JIT traces on memory instead (`tensor/storage.py`), because it records writes to arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from weft.ir.build import param
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp
from weft.ir.walk import substitute_all, topological
from weft.tensor.trace.pure import pure

_numbers: Final = itertools.count(1 << 40)
_MEMORY: Final = frozenset((Op.BUFFER, Op.AFTER, Op.PARAM))


def placeholder(node: UOp, shape: Shape | None = None) -> UOp:
    """A parameter like a node, or of another shape, which is not another node."""
    return param(next(_numbers), node.dtype, shape_of(node) if shape is None else shape)


class Traced:
    """The arguments of a function as nodes, and their placeholders inside."""

    def __init__(self) -> None:
        self.arguments: list[UOp] = []
        self.parameters: list[UOp] = []

    @property
    def stands_for(self) -> dict[UOp, UOp]:
        """The argument of each placeholder."""
        return dict(zip(self.parameters, self.arguments, strict=True))

    def enter(self, node: UOp, shape: Shape | None = None) -> UOp:
        """The placeholder of an argument; of another shape where it stands for a part of it."""
        inside = placeholder(node, shape)
        self.arguments.append(node)
        self.parameters.append(inside)
        return inside


def close_over(outputs: Sequence[UOp], traced: Traced) -> tuple[list[UOp], list[UOp]]:
    """The outputs over PARAMs, and the arguments: those that were traced, then what was read."""
    outputs = pure(outputs, traced.parameters)
    renamed: dict[UOp, UOp] = {}
    arguments = list(traced.arguments)
    for slot, inside in enumerate(traced.parameters):
        renamed[inside] = param(slot, inside.dtype, shape_of(inside))
    nodes = topological(*outputs, enter=lambda node: node.op not in _MEMORY)
    outer = _outer_copies(nodes, traced.parameters)
    if outer:
        nodes = topological(
            *outputs, enter=lambda node: node.op not in _MEMORY and node not in outer
        )
    for node in nodes:
        if (node.op in _MEMORY or node in outer) and node not in renamed:
            renamed[node] = param(len(arguments), node.dtype, shape_of(node))
            arguments.append(node)
    return substitute_all(outputs, renamed), arguments


def _outer_copies(nodes: Sequence[UOp], parameters: Sequence[UOp]) -> set[UOp]:
    """The copies from other devices that have nothing to do with the arguments.

    They are carried out before the call, because its arguments are on one device.
    """
    if not any(node.op == Op.COPY for node in nodes):
        return set()
    inside = set(parameters)
    for node in nodes:
        if not inside.isdisjoint(node.src):
            inside.add(node)
    return {node for node in nodes if node.op == Op.COPY and node not in inside}

"""Python functions of tensors made into bodies: what `@function` and custom gradients share.

While a function is traced, parameters that nothing else has stand for its arguments. `close_over`
then makes graphs that mention nothing but numbered PARAMs: whatever else was read (weights, the
random state, values of an enclosing function) becomes a further argument.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.ir.build import param
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import substitute_all, topological
from weft.tensor.trace.pure import pure

_numbers: Final = itertools.count(1 << 40)
_MEMORY: Final = frozenset((Op.BUFFER, Op.AFTER, Op.PARAM))


class Traced(NamedTuple):
    """The arguments of a function as nodes, and what stands for them inside."""

    arguments: list[UOp]
    parameters: list[UOp]

    def enter(self, node: UOp) -> UOp:
        """What stands for an argument inside the function."""
        stand_in = param(next(_numbers), node.dtype, shape_of(node))
        self.arguments.append(node)
        self.parameters.append(stand_in)
        return stand_in


def close_over(outputs: Sequence[UOp], traced: Traced) -> tuple[list[UOp], list[UOp]]:
    """The outputs over PARAMs, and the arguments: those that were traced, then what was read."""
    outputs = pure(outputs, traced.parameters)
    renamed: dict[UOp, UOp] = {}
    arguments = list(traced.arguments)
    for slot, stand_in in enumerate(traced.parameters):
        renamed[stand_in] = param(slot, stand_in.dtype, shape_of(stand_in))
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

"""Values that a graph compares with their own greatest or least element.

A cheap value is computed again in each kernel that reads it, and kernels may round it differently:
a product beside a sum becomes one fused multiply-add. Of elements that are all equal, `x - min(x)`
would then not be 0, and a division by the greatest difference would make numbers of what is left.
Such a value is computed once. An exponential does not tell: 0 and what rounding leaves give 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.gradient.settled import settled
from weft.ir.ops import MOVEMENT, Op
from weft.ir.uop import UOp
from weft.tensor.tensor import Tensor

_EXTREMES = ("ReduceMax", "ReduceMin")


def compared_names(nodes: Iterable[Any]) -> frozenset[str]:
    """Names that are read by the reduction to an extreme and by what may tell a difference."""
    readers: dict[str, list[Any]] = {}
    for node in nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    found = set()
    for name, read_by in readers.items():
        others = [node for node in read_by if node.op not in _EXTREMES]
        if len(others) < len(read_by) and not all(_ends_in_exp(node, readers) for node in others):
            found.add(name)
    return frozenset(found)


def _ends_in_exp(node: Any, readers: dict[str, list[Any]]) -> bool:
    """Whether a node is the difference in a softmax that is written out."""
    then = readers.get(node.outputs[0], ()) if node.op == "Sub" else ()
    return bool(then) and all(each.op == "Exp" for each in then)


def computed_once(value: Any) -> Any:
    """The value, whose elements are the same bits for all who read it."""
    if not isinstance(value, Tensor) or not value.dtype.is_float:
        return value
    is_steady = settled(value.uop) is value.uop and not _is_product(value.uop)
    return value if is_steady else value.contiguous()


def _is_product(node: UOp) -> bool:
    """Whether a difference from a value is a product and a sum."""
    while node.op in MOVEMENT or node.op == Op.NEG:
        node = node.src[0]
    return node.op == Op.MUL

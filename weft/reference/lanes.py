"""Elementwise ops on Python values, and the value of a symbolic size.

A value is a scalar or, for a vector dtype, the tuple of its lanes. Ops on vectors work lane by
lane through `weft.ir.scalar`, so a lane holds exactly what constant folding would give.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from weft.ir.dtypes import DType, Scalar
from weft.ir.ops import ELEMENTWISE, Op, name
from weft.ir.scalar import evaluate
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.reference.fault import fault
from weft.reference.memory import Value

_OPS = ELEMENTWISE | {Op.VECTOR, Op.LANES}


def is_arithmetic(op: int) -> bool:
    """Whether `apply` knows the op."""
    return op in _OPS


def apply(node: UOp, values: tuple[Value, ...]) -> Value:
    """The value of an elementwise or vector op, given the values of its sources."""
    if node.op == Op.VECTOR:
        return tuple(lane for value in values for lane in lanes_of(value))
    if node.op == Op.LANES:
        vector = lanes_of(values[0])
        picked = tuple(vector[lane] for lane in node.arg)
        return picked if node.dtype.lanes > 1 else picked[0]
    source = node.src[-1].dtype
    count = node.dtype.lanes
    if count == 1:
        return evaluate(node.op, node.dtype, cast("tuple[Scalar, ...]", values), source)
    rows = [lanes_of(value) for value in values]
    if any(len(row) != count for row in rows):
        raise fault(f"{name(node.op)} of vectors with unlike numbers of lanes", node)
    result, scalar = node.dtype.scalar, source.scalar
    return tuple(evaluate(node.op, result, lanes, scalar) for lanes in zip(*rows, strict=True))


def lanes_of(value: Value) -> tuple[Scalar, ...]:
    return value if isinstance(value, tuple) else (value,)


def constant(dtype: DType, value: Scalar) -> Value:
    """The value of a CONST: a constant of a vector dtype has it in every lane."""
    return value if dtype.lanes == 1 else (value,) * dtype.lanes


def variable_value(node: UOp, variables: Mapping[str, int]) -> int:
    """The value of a VARIABLE in this run, which must lie in its bounds."""
    variable, least, most = node.arg
    if variable not in variables:
        raise fault(f"the variable {variable!r} has no value", node)
    value = variables[variable]
    if not least <= value <= most:
        raise fault(f"the variable {variable!r} is {value}, out of its bounds", node)
    return value


def size_value(node: UOp, variables: Mapping[str, int]) -> int:
    """The value of an index expression over constants and variables."""
    values: dict[UOp, Value] = {}
    for part in topological(node):
        if part.op == Op.CONST:
            values[part] = part.arg
        elif part.op == Op.VARIABLE:
            values[part] = variable_value(part, variables)
        elif part.op == Op.BIND:
            values[part] = values[part.src[1]]
        elif is_arithmetic(part.op):
            values[part] = apply(part, tuple(values[source] for source in part.src))
        else:
            raise fault(f"a size depends on {name(part.op)}", part)
    return int(cast("Scalar", values[node]))

"""What a REDUCE computes, apart from where its values come from.

Floats are folded in float64 and rounded to their dtype once, at the end: the order of a fold is
not specified, and the most accurate answer is the one that every order comes close to. Integers
wrap, so all orders agree.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir.dtypes import FLOAT, INDEX, DType, Scalar, canonical, dtypes
from weft.ir.ops import Op, name
from weft.ir.scalar import evaluate
from weft.reference.fault import fault


def accumulator(dtype: DType) -> DType:
    """The dtype in which values of `dtype` are folded."""
    return dtypes.float64 if dtype.kind == FLOAT else dtype


def identity(op: int, dtype: DType) -> Scalar:
    """The value of an empty fold: what changes nothing when it is folded in.

    >>> identity(Op.MAX, dtypes.int8), identity(Op.AND, dtypes.uint8)
    (-128, 255)
    """
    if op in (Op.ADD, Op.OR):
        return canonical(dtype, 0)
    if op == Op.MUL:
        return canonical(dtype, 1)
    if op == Op.AND and dtype.kind != FLOAT:
        return canonical(dtype, -1)
    if op in (Op.MAX, Op.MIN) and dtype.kind != INDEX:
        return dtype.min if op == Op.MAX else dtype.max
    raise fault(f"a fold of {dtype.name} by {name(op)} has no identity")


def fold(op: int, dtype: DType, values: Iterable[Scalar]) -> Scalar:
    """The fold of scalars, in order.

    >>> fold(Op.ADD, dtypes.int8, [100, 100])
    -56
    """
    wide = accumulator(dtype)
    total: Scalar | None = None
    for value in values:
        total = value if total is None else evaluate(op, wide, (total, value), wide)
    return identity(op, dtype) if total is None else canonical(dtype, total)

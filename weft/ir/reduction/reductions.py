"""What a reduction over ranges or axes starts from: the value that changes nothing."""

from __future__ import annotations

from weft.ir.dtypes import COMPLEX, FLOAT, INDEX, DType, Scalar, canonical
from weft.ir.ops import Op, name
from weft.support.errors import InternalError


def identity(op: int, dtype: DType) -> Scalar:
    """The value of an empty reduction: what changes nothing when it is combined with a value.

    >>> from weft.ir.dtypes import dtypes
    >>> identity(Op.MAX, dtypes.int8), identity(Op.AND, dtypes.uint8)
    (-128, 255)
    """
    if dtype.kind == COMPLEX:
        return 0 if op == Op.ADD else 1
    if op in (Op.ADD, Op.OR):
        return canonical(dtype, 0)
    if op == Op.MUL:
        return canonical(dtype, 1)
    if op == Op.AND and dtype.kind != FLOAT:
        return canonical(dtype, -1)
    if op == Op.LOGADD:
        return canonical(dtype, dtype.min)
    if op in (Op.MAX, Op.MIN) and dtype.kind != INDEX:
        return dtype.min if op == Op.MAX else dtype.max
    raise InternalError(f"a reduction of {dtype.name} by {name(op)} has no identity")

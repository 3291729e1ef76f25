"""What a REDUCE or SCAN computes, apart from where its values come from.

Floats are folded in float64 and rounded to their dtype once, at the end: the order of a fold is
not specified, and the most accurate answer is the one that every order comes close to. Integers
wrap, so all orders agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.ir.dtypes import FLOAT, DType, Scalar, canonical, dtypes
from weft.ir.folds import identity
from weft.ir.scalar import evaluate


def accumulator(dtype: DType) -> DType:
    """The dtype in which values of `dtype` are folded."""
    return dtypes.float64 if dtype.kind == FLOAT else dtype


def fold(op: int, dtype: DType, values: Iterable[Scalar]) -> Scalar:
    """The fold of scalars, in order.

    >>> from weft.ir.ops import Op
    >>> fold(Op.ADD, dtypes.int8, [100, 100])
    -56
    """
    wide = accumulator(dtype)
    total: Scalar | None = None
    for value in values:
        total = value if total is None else evaluate(op, wide, (total, value), wide)
    return identity(op, dtype) if total is None else canonical(dtype, total)


def prefixes(op: int, dtype: DType, values: Iterable[Scalar]) -> Iterator[Scalar]:
    """The folds of one scalar, of two, of three, as they come.

    >>> from weft.ir.ops import Op
    >>> list(prefixes(Op.ADD, dtypes.int8, [100, 100, 1]))
    [100, -56, -55]
    """
    wide = accumulator(dtype)
    total: Scalar | None = None
    for value in values:
        total = value if total is None else evaluate(op, wide, (total, value), wide)
        yield canonical(dtype, total)

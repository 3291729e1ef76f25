"""What a REDUCE or SCAN computes, apart from where its values come from.

Floats are reduced in float64 and rounded to their dtype once, at the end: the order of a reduction
is not specified, and the most accurate result is the one that every order comes close to. Integers
wrap, so all orders agree.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from weft.ir.dtypes import FLOAT, DType, Scalar, canonical, dtypes
from weft.ir.ops import Op
from weft.ir.reduction.joined import references, start_of
from weft.ir.reduction.reductions import identity
from weft.ir.scalar import evaluate
from weft.ir.uop import UOp
from weft.ir.walk import topological


def accumulator(dtype: DType) -> DType:
    """The dtype in which values of `dtype` are reduced."""
    if dtype.is_complex:
        return dtypes.complex128
    return dtypes.float64 if dtype.kind == FLOAT else dtype


def reduction(op: int, dtype: DType, values: Iterable[Scalar]) -> Scalar:
    """The reduction of scalars, in order.

    >>> from weft.ir.ops import Op
    >>> reduction(Op.ADD, dtypes.int8, [100, 100])
    -56
    """
    wide = accumulator(dtype)
    total: Scalar | None = None
    for value in values:
        total = value if total is None else evaluate(op, wide, (total, value), wide)
    return identity(op, dtype) if total is None else canonical(dtype, total)


def prefixes(op: int, dtype: DType, values: Iterable[Scalar]) -> Iterator[Scalar]:
    """The reductions of one scalar, of two, of three, as they come.

    >>> from weft.ir.ops import Op
    >>> list(prefixes(Op.ADD, dtypes.int8, [100, 100, 1]))
    [100, -56, -55]
    """
    wide = accumulator(dtype)
    total: Scalar | None = None
    for value in values:
        total = value if total is None else evaluate(op, wide, (total, value), wide)
        yield canonical(dtype, total)


def joined_value(node: UOp, states: list[list[Scalar]]) -> Scalar:
    """The result of a joined REDUCE: each state has a part of it and of each of its references.

    Which neighbors are joined first is drawn at random, from a fixed seed: a join that is not
    associative shows here.
    """
    draw = random.Random(len(states))
    while len(states) > 1:
        at = draw.randrange(len(states) - 1)
        states[at : at + 2] = [_joined(node, *states[at : at + 2])]
    return canonical(node.dtype.scalar, states[0][0]) if states else start_of(node)


def _joined(node: UOp, left: Sequence[Scalar], right: Sequence[Scalar]) -> list[Scalar]:
    values = [left[0], right[0]]
    done: list[Scalar] = []
    for each, x, y in zip(references(node), left[1:], right[1:], strict=True):
        wide = accumulator(each.dtype.scalar)
        done.append(evaluate(each.arg[0], wide, (x, y), wide))
        values += [x, y, done[-1]]
    return [body_value(node.arg[0], values), *done]


def body_value(body: UOp, values: Sequence[Scalar]) -> Scalar:
    """The value of a scalar body at these arguments, floats in float64."""
    known: dict[UOp, Scalar] = {}
    for part in topological(body):
        if part.op == Op.PARAM:
            known[part] = values[part.arg[0]]
        elif part.op == Op.CONST:
            known[part] = part.arg
        else:
            src = tuple([known[source] for source in part.src])
            known[part] = evaluate(
                part.op, accumulator(part.dtype), src, accumulator(part.src[-1].dtype)
            )
    return known[body]

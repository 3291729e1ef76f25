"""Intervals and divisors of integer nodes; `fuzz.index_expressions` checks them at large."""

import itertools

import pytest

from weft.ir.bounds import bounds, divisor
from weft.ir.build import range_, variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.scalar import KINDS, evaluate
from weft.ir.uop import const, make

i, j = range_(0, 8), range_(1, 4)
n = variable("n", 3, 10)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (i, (0, 7)),
        (i * -2 + 3, (-11, 3)),
        (i // 3, (0, 2)),
        (i % 3, (0, 2)),
        (i % 100, (0, 7)),
        (range_(2, n), (0, 9)),
        (i * n, (0, 70)),
        (i < 8, (1, 1)),
        (i < 9 - n, (0, 1)),
        (i.maximum(j), (0, 7)),
        ((i < 4).where(i, j), (0, 7)),
        (i.cast(dtypes.int8) * 100, (-128, 127)),
        (i.cast(dtypes.int8) * 10, (0, 70)),
    ],
)
def test_bounds(node, expected):
    assert bounds(node) == expected


@pytest.mark.parametrize(
    ("node", "expected"), [(i * 6, 6), (i * 6 + j * 4, 2), (i * 6 % 4, 2), (i, 1), (i * 0, 0)]
)
def test_divisor(node, expected):
    assert divisor(node) == expected


EDGES = {
    dtypes.int8: (-128, -100, -3, -1, 0, 1, 2, 3, 7, 100, 127),
    dtypes.uint8: (0, 1, 2, 3, 7, 8, 100, 200, 255),
    dtypes.index: (-9, -3, -1, 0, 1, 2, 3, 8, 40),
    dtypes.bool: (False, True),
}


def spans(dtype):
    """A node with each small interval, and the values in it."""
    for low, high in itertools.combinations_with_replacement(EDGES[dtype], 2):
        if dtype is dtypes.index:
            yield variable("v", low, high), range(low, high + 1)
        elif dtype is dtypes.bool:
            leaf = const(dtype, low) if low == high else make(Op.PARAM, dtype, (), (0, ()))
            yield leaf, (low, high)
        else:
            yield variable("v", low, high).cast(dtype), range(low, high + 1)


@pytest.mark.parametrize("dtype", EDGES, ids=lambda d: d.name)
@pytest.mark.parametrize(
    "op",
    [
        *(Op.ADD, Op.MUL, Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCDIV, Op.TRUNCMOD, Op.MAX, Op.MIN),
        *(Op.AND, Op.OR, Op.XOR, Op.LESS, Op.LESS_EQUAL, Op.EQUAL, Op.SHL, Op.SHR),
    ],
    ids=lambda op: str(op),
)
def test_every_value_lies_in_the_bounds(op, dtype):
    if not KINDS[op] & dtype.kind:
        return
    nodes = list(spans(dtype))
    is_compare = op in (Op.LESS, Op.LESS_EQUAL, Op.EQUAL)
    result = dtypes.bool if is_compare else dtype
    for (x, xs), (y, ys) in itertools.product(nodes[::3], nodes[::4]):
        if op in (Op.SHL, Op.SHR) and min(ys) < 0:
            continue
        low, high = bounds(make(op, result, (x, y)))
        ends = itertools.product(
            (xs[0], xs[len(xs) // 2], xs[-1]), (ys[0], ys[len(ys) // 2], ys[-1])
        )
        for a, b in ends:
            got = evaluate(op, result, (a, b), dtype)
            assert low <= got <= high, (x, y, a, b, got, low, high)

"""Every op on every dtype: arrays against scalars, to the bit; and reductions."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest

from tests.unit.reference.edge_values import DTYPES, edge_values, same
from weft.ir.arrays.values import Array, value_dtype
from weft.ir.dtypes import FLOAT, INDEX, DType, Scalar, canonical, dtypes
from weft.ir.ops import BINARY, COMPARE, INFO, UNARY, Op, name
from weft.ir.scalar import KINDS, evaluate
from weft.reference.numpy_ops import elementwise, reduction
from weft.reference.reductions import accumulator, identity
from weft.support.errors import InternalError

ARITHMETIC = [row.number for row in INFO if row.number in UNARY | BINARY | COMPARE]

every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)


def array(dtype: DType, values: list[Scalar]) -> Array:
    return np.array(values, value_dtype(dtype))


def accepts(op: int, dtype: DType) -> bool:
    return bool(KINDS[op] & dtype.kind)


def cases(op: int, dtype: DType) -> list[tuple[Any, ...]]:
    """The operands to try: all combinations of edge values that the op allows."""
    values = edge_values(dtype)
    pairs = list(itertools.product(values, repeat=INFO[op].least))
    if op in (Op.SHL, Op.SHR) or (op == Op.POW and dtype.kind != FLOAT):
        pairs = [(x, y) for x, y in pairs if 0 <= y < 200]
    if dtype.kind == INDEX and op in (Op.MUL, Op.SHL, Op.POW):
        pairs = [(x, y) for x, y in pairs if abs(x) < 200 and abs(y) < 8]
    return pairs


@every_dtype
@pytest.mark.parametrize("op", ARITHMETIC, ids=name)
def test_arrays_agree_with_scalars(op: int, dtype: DType):
    result = dtypes.bool if op in COMPARE else dtype
    if not accepts(op, dtype):
        ones = [array(dtype, [1])] * INFO[op].least
        with pytest.raises(InternalError, match="no meaning"):
            elementwise(op, result, dtype, *ones)
        return
    operands = cases(op, dtype)
    columns = [array(dtype, list(column)) for column in zip(*operands, strict=True)]
    found = elementwise(op, result, dtype, *columns)
    assert found.dtype == value_dtype(result)
    for row, value in zip(operands, found.tolist(), strict=True):
        expected = evaluate(op, result, row, dtype)
        assert same(value, expected), f"{name(op)}{row} is {value}, not {expected}"


def test_every_op_is_accepted_by_some_dtype():
    assert all(any(accepts(op, dtype) for dtype in DTYPES) for op in ARITHMETIC)


@every_dtype
def test_scalars_stand_with_any_shape(dtype: DType):
    x = array(dtype, [0, 1])
    for left, right in ((x, x[1]), (x[1], x), (x[1], x[1])):
        found = elementwise(Op.ADD, dtype, dtype, np.asarray(left), np.asarray(right))
        assert isinstance(found, np.ndarray)
        assert found.shape == np.broadcast_shapes(left.shape, right.shape)


@every_dtype
def test_where(dtype: DType):
    values = edge_values(dtype)
    x, y = array(dtype, values), array(dtype, values[::-1])
    mask = np.arange(len(values)) % 2 == 0
    found = elementwise(Op.WHERE, dtype, dtype, mask, x, y)
    assert found.dtype == x.dtype
    assert all(map(same, found.tolist(), np.where(mask, x, y).tolist()))


@every_dtype
@pytest.mark.parametrize("target", DTYPES, ids=lambda dtype: dtype.name)
def test_casts_agree_with_scalars(dtype: DType, target: DType):
    values = edge_values(dtype)
    if dtype.kind == FLOAT:
        values += [canonical(dtype, x) for x in (2.0**31, 2.0**32, 2.0**63, 2.0**64, 3e9, 255.9)]
        values += [canonical(dtype, -x) for x in (2.0**31, 2.0**33, 2.0**63, 2.0**64, 3e9, 0.9)]
        if target.kind == INDEX:
            values = [x for x in values if not abs(x) >= 2.0**63]
    elif target.kind == INDEX:
        values = [x for x in values if x < 2**63]
    elif dtype.bits == 64:  # integers that round twice on their way through a double
        odd = (2**62 + 2**38 + 1, 2**62 + 2**54 + 1, 2**60 + 2**56 - 1, 2**62 - 1, 2**53 + 1)
        values += [canonical(dtype, x) for x in (*odd, *(-x for x in odd))]
    found = elementwise(Op.CAST, target, dtype, array(dtype, values))
    assert found.dtype == value_dtype(target)
    for value, result in zip(values, found.tolist(), strict=True):
        expected = evaluate(Op.CAST, target, (value,), dtype)
        assert same(result, expected), f"{value} becomes {result}, not {expected}"


SAME_WIDTH = [
    pytest.param(a, b, id=f"{a.name}-{b.name}")
    for a, b in itertools.product(DTYPES, DTYPES)
    if a.bits == b.bits and INDEX not in (a.kind, b.kind) and a.bits > 1
]


@pytest.mark.parametrize(("source", "target"), SAME_WIDTH)
def test_bitcasts_agree_with_scalars(source: DType, target: DType):
    values = edge_values(source)
    found = elementwise(Op.BITCAST, target, source, array(source, values))
    assert found.dtype == value_dtype(target)
    for value, result in zip(values, found.tolist(), strict=True):
        assert same(result, evaluate(Op.BITCAST, target, (value,), source))


def test_bitcast_to_another_width_is_refused():
    with pytest.raises(InternalError, match="another width"):
        elementwise(Op.BITCAST, dtypes.int16, dtypes.int8, array(dtypes.int8, [1]))


def test_index_arithmetic_does_not_wrap_silently():
    big = array(dtypes.index, [2**62])
    with pytest.raises(InternalError, match="64 bits"):
        elementwise(Op.ADD, dtypes.index, dtypes.index, big, big)


REDUCTIONS = [Op.ADD, Op.MUL, Op.MAX, Op.MIN, Op.AND, Op.OR]


@every_dtype
@pytest.mark.parametrize("op", REDUCTIONS, ids=name)
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_reduction_is_the_reduction_of_the_op(op: int, dtype: DType, count: int):
    if not accepts(op, dtype):
        return
    values = edge_values(dtype)
    if op in (Op.ADD, Op.MUL) and dtype.kind & (FLOAT | INDEX):
        values = [x for x in values if abs(x) < 10]
    cycles = [itertools.islice(itertools.cycle(values), i, i + 40) for i in range(count)]
    rows = [list(row) for row in zip(*cycles, strict=True)]
    found = reduction(op, dtype, array(dtype, rows), (1,))
    assert found.shape == (40, 1)
    wide = accumulator(dtype)
    for row, result in zip(rows, found.reshape(-1).tolist(), strict=True):
        total = functools.reduce(lambda x, y: evaluate(op, wide, (x, y), wide), row)
        if op not in (Op.ADD, Op.MUL) or dtype.kind != FLOAT:
            assert same(result, canonical(dtype, total))
        else:  # the order of a reduction is not specified
            np.testing.assert_allclose(result, canonical(dtype, total), rtol=1e-6)


@every_dtype
@pytest.mark.parametrize("op", REDUCTIONS, ids=name)
def test_empty_reduction_is_the_identity(op: int, dtype: DType):
    if not accepts(op, dtype) or (dtype.kind == INDEX and op in (Op.MAX, Op.MIN)):
        return
    found = reduction(op, dtype, np.zeros((2, 0, 3), value_dtype(dtype)), (1,))
    assert found.shape == (2, 1, 3)
    neutral = identity(op, dtype)
    assert found.tolist() == [[[neutral] * 3]] * 2
    for x in edge_values(dtype):
        if x == x and x not in (np.inf, -np.inf):
            assert evaluate(op, dtype, (x, neutral), dtype) == x


def test_index_has_no_least_value():
    with pytest.raises(InternalError, match="no identity"):
        reduction(Op.MAX, dtypes.index, np.zeros((0,), np.int64), (0,))


def test_small_floats_are_reduced_wide():
    ones = np.ones((1000,), np.float32)
    assert reduction(Op.ADD, dtypes.bfloat16, ones, (0,)).tolist() == [1000.0]

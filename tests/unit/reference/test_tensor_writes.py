"""Writes through views, against NumPy running every line at once."""

import random

import numpy as np
import pytest

from tests.unit.reference.test_tensor import input_of, iota, move, random_movement
from weft.ir.arrays.values import Array
from weft.ir.build import buffer, call, index_of, param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.reference.tensor import evaluate
from weft.support.errors import InternalError


def after(node: UOp, *others: UOp) -> UOp:
    return make(Op.AFTER, node.dtype, (node, *others))


def shrink(node: UOp, *pairs: tuple[int, int]) -> UOp:
    return move(Op.SHRINK, node, pairs)


START = np.arange(6, dtype=np.int64)
X = buffer(0, dtypes.int64, (6,), "CPU")


def test_a_write_makes_a_version_and_keeps_the_old():
    second = after(X, store(shrink(X, (1, 3)), iota(2, dtypes.int64) + 10))
    old, new = evaluate([X + 0, second + 0], {0: START})
    assert old.tolist() == [0, 1, 2, 3, 4, 5]
    assert new.tolist() == [0, 10, 11, 3, 4, 5]
    assert START.tolist() == [0, 1, 2, 3, 4, 5]


def test_overlapping_views_of_one_buffer():
    """x[1:] = x[:-1]; x += flip(x)"""
    second = after(X, store(shrink(X, (1, 6)), shrink(X, (0, 5))))
    third = after(second, store(second, second + move(Op.FLIP, second, (0,))))
    expected = START.copy()
    expected[1:] = expected[:-1].copy()
    expected += expected[::-1].copy()
    found = evaluate([third, second, X], {0: START})
    np.testing.assert_array_equal(found[0], expected)
    assert found[1].tolist() == [0, 0, 1, 2, 3, 4]
    np.testing.assert_array_equal(found[2], START)
    final = evaluate(sink(third), {0: START})
    np.testing.assert_array_equal(final[0], expected)


def test_writes_through_views_of_views():
    matrix = move(Op.PERMUTE, move(Op.RESHAPE, X, (2, 3)), (1, 0))
    corner = move(Op.FLIP, shrink(matrix, (1, 3), (0, 2)), (0, 1))
    values = np.array([[10, 20], [30, 40]], np.int64)
    written = after(X, store(corner, input_of(values, 1)))
    expected = START.copy()
    expected.reshape(2, 3).T[1:3, 0:2][::-1, ::-1] = values
    np.testing.assert_array_equal(evaluate(written, {0: START, 1: values}), expected)


def test_a_scalar_fills_a_view():
    written = after(X, store(shrink(X, (2, 4)), const(dtypes.int64, 7)))
    assert evaluate(written, {0: START}).tolist() == [0, 1, 7, 7, 4, 5]


def test_padding_of_a_address_is_not_written():
    address = move(Op.PAD, shrink(X, (0, 2)), ((1, 1),))
    written = after(X, store(address, iota(4, dtypes.int64) + 50))
    assert evaluate(written, {0: START}).tolist() == [51, 52, 2, 3, 4, 5]


def test_scatter_through_index():
    rows = np.array([4, 9, 1], np.int64)
    i = input_of(rows, 1)
    written = after(X, store(index_of(X, [i], i < 6), iota(3, dtypes.int64) + 70))
    found = evaluate(written, {0: START, 1: rows})
    assert found.tolist() == [0, 72, 2, 3, 70, 5]


def test_several_stores_of_one_after():
    one = store(shrink(X, (0, 3)), const(dtypes.int64, 1))
    two = store(shrink(X, (2, 5)), const(dtypes.int64, 2))
    assert evaluate(after(X, one, two), {0: START}).tolist() == [1, 1, 2, 2, 2, 5]
    assert evaluate(after(X, two, one), {0: START}).tolist() == [1, 1, 1, 2, 2, 5]


def test_order_of_dependent_stores_is_not_that_of_the_sources():
    one = store(shrink(X, (0, 3)), const(dtypes.int64, 1))
    two = store(shrink(after(X, one), (2, 5)), const(dtypes.int64, 2))
    expected = [1, 1, 2, 2, 2, 5]
    for order in ((one, two), (two, one), (two,)):
        assert evaluate(after(X, *order), {0: START}).tolist() == expected
        assert evaluate(sink(*order), {0: START})[0].tolist() == expected


def test_expressions_below_an_after_read_the_new_version():
    written = store(X, const(dtypes.int64, 9))
    view = shrink(X, (0, 2))
    assert evaluate(after(view, written), {0: START}).tolist() == [9, 9]
    assert evaluate(after(view + 1, written), {0: START}).tolist() == [10, 10]
    # and so does a view of an older version
    second = after(X, store(shrink(X, (0, 1)), const(dtypes.int64, 5)))
    third = store(shrink(second, (1, 2)), const(dtypes.int64, 6))
    assert evaluate(after(shrink(second, (0, 3)), third), {0: START}).tolist() == [5, 6, 2]
    assert evaluate(after(after(view + 0, third), written), {0: START}).tolist() == [9, 9]


def test_write_through_an_after_of_a_view():
    view = after(shrink(X, (1, 4)), store(shrink(X, (0, 2)), const(dtypes.int64, 5)))
    written = after(X, store(shrink(view, (0, 1)), const(dtypes.int64, 8)))
    assert evaluate(view, {0: START}).tolist() == [5, 2, 3]
    assert evaluate(written, {0: START}).tolist() == [5, 8, 2, 3, 4, 5]


def test_sink_returns_all_buffers():
    y = buffer(1, dtypes.int64, (2,), "CPU")
    arrays = {0: START, 1: np.zeros(2, np.int64)}
    found = evaluate(sink(store(y, shrink(X, (3, 5)))), arrays)
    assert {number: array.tolist() for number, array in found.items()} == {
        0: START.tolist(),
        1: [3, 4],
    }
    assert arrays[1].tolist() == [0, 0]


def test_a_call_can_store_to_its_arguments():
    p, q = param(0, dtypes.int64, (2,)), param(1, dtypes.int64, (2,))
    body = sink(store(p, p + q), store(q, p))
    done = call(body, shrink(X, (0, 2)), shrink(X, (4, 6)))
    expected = [4, 6, 2, 3, 0, 1]
    assert evaluate(after(X, done), {0: START}).tolist() == expected
    assert evaluate(sink(done), {0: START})[0].tolist() == expected


def test_illegal_addresses():
    expanded = move(Op.EXPAND, move(Op.RESHAPE, X, (6, 1)), (6, 2))
    with pytest.raises(InternalError, match="expanded view"):
        evaluate(sink(store(expanded, const(dtypes.int64, 1))), {0: START})
    with pytest.raises(InternalError, match="expected memory"):
        evaluate(sink(store(X + 1, const(dtypes.int64, 1))), {0: START})
    with pytest.raises(InternalError, match="does not hold values of int64"):
        evaluate(sink(store(X, const(dtypes.int32, 1))), {0: START})


def test_a_long_chain_of_writes():
    version = X
    for step in range(2000):
        address = shrink(version, (step % 6, step % 6 + 1))
        version = after(version, store(address, address + 1))
    found = evaluate(version, {0: START})
    counts = np.bincount(np.arange(2000) % 6, minlength=6)
    np.testing.assert_array_equal(found, START + counts)


def without_expansion(generator: random.Random, node: UOp, array: Array) -> tuple[UOp, Array]:
    """A few random movement ops that a write can go through; NumPy must see a view, too."""
    for _ in range(generator.randint(0, 3)):
        moved, view = random_movement(generator, node, array)
        if moved.op not in (Op.PAD, Op.EXPAND) and np.shares_memory(view, array):
            node, array = moved, view
    return node, array


@pytest.mark.parametrize("case", range(80))
def test_random_programs(case: int):
    """Random reads and writes of views of two buffers; old values are read at the end."""
    generator = random.Random(case)
    arrays = {number: np.arange(12, dtype=np.int64) * (number + 1) for number in range(2)}
    live = {number: array.reshape(3, 4).copy() for number, array in arrays.items()}
    start = {number: array.copy() for number, array in live.items()}
    version: dict[int, UOp] = {
        number: buffer(number, dtypes.int64, (3, 4), "CPU") for number in arrays
    }
    kept: list[tuple[UOp, Array]] = []
    for _ in range(6):
        target, other = generator.randrange(2), generator.randrange(2)
        address, view = without_expansion(generator, version[target], live[target])
        read, values = without_expansion(generator, version[other], live[other])
        kept.append((read + 0, values.copy()))
        kept.append((address + 1, view + 1))
        if read.shape == address.shape:
            value, result = read * 3 + address, values * 3 + view
        else:
            value, result = address * 2 + 1, view * 2 + 1
        view[...] = result
        version[target] = after(version[target], store(address, value))
    found = evaluate([node for node, _ in kept] + [version[0], version[1]], start)
    for value, (_, expected) in zip(found, kept, strict=False):
        np.testing.assert_array_equal(value, expected)
    np.testing.assert_array_equal(found[-2], live[0])
    np.testing.assert_array_equal(found[-1], live[1])
    final = evaluate(sink(version[1], version[0]), start)
    np.testing.assert_array_equal(final[0], live[0])
    np.testing.assert_array_equal(final[1], live[1])

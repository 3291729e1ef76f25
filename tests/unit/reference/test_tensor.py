"""Tensor graphs against NumPy: leaves, movement, reductions, indexing, symbolic sizes, calls."""

import math
import random
from typing import Any

import numpy as np
import pytest

from weft.ir.arrays.values import Array
from weft.ir.build import bind, buffer, call, index, index_of, param, reduce_axes, sink, variable
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.reference.tensor import evaluate
from weft.support.errors import InternalError


def iota(size: int | UOp, dtype: DType = dtypes.int32) -> UOp:
    if isinstance(size, int):
        return make(Op.IOTA, dtype, (), (size,))
    return make(Op.IOTA, dtype, (size,), (None,))


def move(op: int, source: UOp, arg: tuple[Any, ...], *symbolic: UOp) -> UOp:
    return make(op, source.dtype, (source, *symbolic), arg)


def input_of(array: Array, number: int = 0) -> UOp:
    return buffer(number, getattr(dtypes, str(array.dtype)), array.shape, "CPU")


def test_leaves():
    assert evaluate(const(dtypes.float32, 0.1)) == np.float32(0.1)
    assert evaluate(const(dtypes.float32, 0.1)).shape == ()
    np.testing.assert_array_equal(evaluate(iota(4)), np.arange(4, dtype=np.int32))
    assert evaluate(iota(3, dtypes.float16)).tolist() == [0.0, 1.0, 2.0]
    assert evaluate(iota(258, dtypes.uint8)).tolist()[-3:] == [255, 0, 1]
    assert evaluate(iota(0)).shape == (0,)


def test_several_roots_give_a_tuple():
    one, two = const(dtypes.int32, 1), const(dtypes.int32, 2)
    assert evaluate([one, two, one + two]) == (1, 2, 3)


def test_buffers_are_checked():
    x = buffer(7, dtypes.int32, (2,), "CPU")
    with pytest.raises(InternalError, match="buffer 7 has no contents"):
        evaluate(x)
    with pytest.raises(InternalError, match="BUFFER 7 has another shape"):
        evaluate(x, {7: np.zeros(3, np.int32)})
    with pytest.raises(InternalError, match="does not hold values of int32"):
        evaluate(x, {7: np.zeros(2, np.int64)})


def test_results_do_not_share_memory_with_buffers():
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    x = input_of(array)
    for graph in (x, move(Op.PERMUTE, x, (1, 0)), move(Op.SHRINK, x, ((0, 1), (0, 2)))):
        result = evaluate(graph, {0: array})
        result[...] = -1
        assert array.min() == 0


def random_movement(random: random.Random, node: UOp, array: Array) -> tuple[UOp, Array]:
    """A random movement op on a value, in Weft and in NumPy."""
    shape = array.shape
    op = random.choice([Op.RESHAPE, Op.EXPAND, Op.PERMUTE, Op.PAD, Op.SHRINK, Op.FLIP])
    if op == Op.RESHAPE:
        merged = math.prod(shape)
        options = [(merged,), (1, *shape), (*shape, 1), shape[::-1]]
        new = random.choice(options)
        return move(op, node, new), array.reshape(new)
    if op == Op.EXPAND:
        new = tuple(random.choice((1, 2, 3)) if size == 1 else size for size in shape)
        return move(op, node, new), np.broadcast_to(array, new)
    if op == Op.PERMUTE:
        axes = tuple(random.sample(range(len(shape)), len(shape)))
        return move(op, node, axes), array.transpose(axes)
    if op == Op.PAD:
        pads = tuple((random.randint(0, 1), random.randint(0, 1)) for _ in shape)
        return move(op, node, pads), np.pad(array, pads)
    if op == Op.SHRINK:
        starts = [random.randint(0, size) for size in shape]
        ends = [
            random.randint(max(start, min(size, 1)), size)
            for start, size in zip(starts, shape, strict=True)
        ]
        pairs = tuple(zip(starts, ends, strict=True))
        return move(op, node, pairs), array[tuple(slice(*pair) for pair in pairs)]
    axes = tuple(axis for axis in range(len(shape)) if random.random() < 0.5)
    return move(op, node, axes), np.flip(array, axes)


@pytest.mark.parametrize("case", range(60))
def test_random_movement(case: int):
    generator = random.Random(case)
    shape = tuple(generator.randint(1, 3) for _ in range(generator.randint(1, 3)))
    start = np.arange(1, 1 + math.prod(shape), dtype=np.int64).reshape(shape)
    node, array = input_of(start), start
    for _ in range(generator.randint(1, 6)):
        if array.size < 2000 and array.ndim < 7:
            node, array = random_movement(generator, node, array)
    found = evaluate(node, {0: start})
    assert found.shape == array.shape == node.shape
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    ("op", "arg"),
    [
        (Op.RESHAPE, (5,)),
        (Op.EXPAND, (4, 3)),
        (Op.EXPAND, (1, 2, 3)),
        (Op.SHRINK, ((0, 3), (0, 3))),
        (Op.SHRINK, ((-1, 1), (0, 3))),
        (Op.PAD, ((0, 0), (-1, 0))),
    ],
)
def test_movement_that_does_not_fit_is_refused(op: int, arg: tuple[Any, ...]):
    array = np.zeros((2, 3), np.int32)
    with pytest.raises(InternalError, match="does not fit"):
        evaluate(move(op, input_of(array), arg), {0: array})


def test_symbolic_sizes():
    n = variable("n", 1, 8)
    doubled = move(Op.PAD, iota(n), ((None, 0),), n)
    cut = move(Op.SHRINK, doubled, ((1, None),), n * 2 - 1)
    table = move(Op.EXPAND, move(Op.RESHAPE, iota(n), (1, None), n), (2, None), n)
    for size in (1, 3, 8):
        numbers = np.arange(size, dtype=np.int32)
        padded = np.pad(numbers, (size, 0))
        found = evaluate([doubled, cut, table], {}, {"n": size})
        np.testing.assert_array_equal(found[0], padded)
        np.testing.assert_array_equal(found[1], padded[1 : 2 * size - 1])
        np.testing.assert_array_equal(found[2], np.stack([numbers, numbers]))


def test_variables_must_have_a_value_in_their_bounds():
    n = variable("n", 1, 8)
    assert evaluate(n * 2, {}, {"n": 4}) == 8
    with pytest.raises(InternalError, match="'n' has no value"):
        evaluate(n)
    with pytest.raises(InternalError, match="'n' is 9"):
        evaluate(n, {}, {"n": 9})


def test_bind_gives_a_variable_its_value():
    n = variable("n", 1, 8)
    bound = bind(n, 3)
    assert evaluate([bound + n, iota(n)], {}, {"n": 3})[0] == 6
    total = make(Op.TUPLE, dtypes.void, (bound, iota(n)))
    assert evaluate(total)[1].tolist() == [0, 1, 2]
    with pytest.raises(InternalError, match="bound to two values"):
        evaluate(bound, {}, {"n": 4})


@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 2), (0, 1, 2)])
def test_reduce_axes(axes: tuple[int, ...], seed: int):
    values = np.random.default_rng(seed).integers(-9, 9, (2, 3, 4))
    x = input_of(values)
    functions = {Op.ADD: np.sum, Op.MUL: np.prod, Op.MAX: np.max, Op.MIN: np.min,
                 Op.AND: np.bitwise_and.reduce, Op.OR: np.bitwise_or.reduce}  # fmt: skip
    for op, function in functions.items():
        found = evaluate(reduce_axes(x, op, axes), {0: values})
        expected = values if axes == () else function(values, axis=axes, keepdims=True)
        np.testing.assert_array_equal(found, expected)


def test_empty_reduction():
    values = np.zeros((2, 0), np.float32)
    x = input_of(values)
    for op, expected in ((Op.ADD, 0.0), (Op.MUL, 1.0), (Op.MAX, -np.inf), (Op.MIN, np.inf)):
        found = evaluate(reduce_axes(x, op, (1,)), {0: values})
        assert found.tolist() == [[expected], [expected]]


def test_matmul():
    generator = np.random.default_rng(0)
    a = generator.standard_normal((3, 4)).astype(np.float32)
    b = generator.standard_normal((4, 5)).astype(np.float32)
    left = move(Op.EXPAND, move(Op.RESHAPE, input_of(a, 0), (3, 4, 1)), (3, 4, 5))
    right = move(Op.EXPAND, move(Op.RESHAPE, input_of(b, 1), (1, 4, 5)), (3, 4, 5))
    product = move(Op.RESHAPE, reduce_axes(left * right, Op.ADD, (1,)), (3, 5))
    found = evaluate(product, {0: a, 1: b})
    np.testing.assert_allclose(found, a @ b, rtol=1e-6, atol=1e-6)


def test_index_gathers_rows_and_elements():
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows = np.array([[3, 0], [1, 1]], np.int32)
    columns = np.array([[2, 1], [0, 2]], np.int32)
    x, i, j = input_of(table, 0), input_of(rows, 1), input_of(columns, 2)
    arrays = {0: table, 1: rows, 2: columns}
    np.testing.assert_array_equal(evaluate(index_of(x, [i]), arrays), table[rows])
    np.testing.assert_array_equal(evaluate(index_of(x, [i, j]), arrays), table[rows, columns])
    fixed = evaluate(index_of(x, [const(dtypes.int32, 2), j]), arrays)
    np.testing.assert_array_equal(fixed, table[2, columns])
    assert evaluate(index_of(x, [index(1), index(2)]), arrays) == table[1, 2]


def test_index_masks():
    table = np.arange(12, dtype=np.float32).reshape(4, 3) + 1
    rows = np.array([-1, 2, 4, 0], np.int32)
    x, i = input_of(table, 0), input_of(rows, 1)
    mask = (const(dtypes.int32, -1) < i) & (i < 4)
    found = evaluate(index_of(x, [i], mask), {0: table, 1: rows})
    assert found.tolist() == [[0, 0, 0], [7, 8, 9], [0, 0, 0], [1, 2, 3]]
    closed = const(dtypes.bool, False)
    assert evaluate(index_of(x, [i], closed), {0: table, 1: rows}).tolist() == [[0.0] * 3] * 4
    empty = buffer(0, dtypes.float32, (0, 3), "CPU")
    found = evaluate(index_of(empty, [i], closed), {0: table[:0], 1: rows})
    assert found.shape == (4, 3)
    with pytest.raises(InternalError, match="axis 0 out of bounds at -1") as error:
        evaluate(index_of(x, [i]), {0: table, 1: rows})
    assert "size" in str(error.value)


def test_identities():
    array = np.arange(3, dtype=np.int32)
    x = input_of(array)
    copied = make(Op.COPY, x.dtype, (x,), "CUDA")
    kept = make(Op.STAGE, x.dtype, (make(Op.DETACH, x.dtype, (copied,)),), ("global", ()))
    np.testing.assert_array_equal(evaluate(kept, {0: array}), array)


def test_tuples_and_items():
    pair = make(Op.TUPLE, dtypes.void, (iota(2), iota(3)))
    first, second = evaluate(pair)
    assert (first.shape, second.shape) == ((2,), (3,))
    assert evaluate(make(Op.ITEM, dtypes.int32, (pair,), 1)).shape == (3,)


def test_calls_nest():
    x, y = param(0, dtypes.int32, (3,)), param(1, dtypes.int32, (3,))
    inner = x * y + 1
    swapped = call(inner, y, x + 1)
    outer = make(Op.TUPLE, dtypes.void, (swapped, call(inner, x, x)))
    result = call(outer, iota(3), iota(3) + 10)
    a, b = np.arange(3), np.arange(3) + 10
    found = evaluate(result)
    np.testing.assert_array_equal(found[0], b * (a + 1) + 1)
    np.testing.assert_array_equal(found[1], a * a + 1)
    item = make(Op.ITEM, dtypes.int32, (result,), 0)
    np.testing.assert_array_equal(evaluate(item), found[0])


def test_calls_take_symbolic_shapes():
    n = variable("n", 1, 8)
    x = param(0, dtypes.int32, (n,))
    body = reduce_axes(x, Op.ADD, (0,))
    assert evaluate(call(body, iota(n)), {}, {"n": 5}).tolist() == [10]
    with pytest.raises(InternalError, match="another shape"):
        evaluate(call(body, iota(4)), {}, {"n": 5})
    with pytest.raises(InternalError, match="argument 0 is missing"):
        evaluate(call(body), {}, {"n": 5})


def test_deep_graphs_are_no_problem():
    node = const(dtypes.int32, 0)
    for _ in range(5000):
        node = node + 1
    assert evaluate(node) == 5000


def test_other_levels_are_refused():
    with pytest.raises(InternalError, match="BARRIER has no meaning in a tensor graph"):
        evaluate(sink(make(Op.BARRIER, dtypes.void)))

"""Gradients through writes, against central differences and against torch writing in place."""

import random

import numpy as np
import pytest

import weft
from tests.unit.gradient.numeric import check, check_torch, derive, memory, move, on
from tests.unit.reference.test_tensor import random_movement
from weft.gradient.reverse import gradients
from weft.ir.arrays.values import Array
from weft.ir.build import call, index_of, param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.reference.tensor import evaluate

X, V = memory(0, 6), memory(1, 2)
ARRAYS = {0: np.linspace(-1, 1.5, 6), 1: np.array([0.4, -0.7])}


def after(node: UOp, *effects: UOp) -> UOp:
    return make(Op.AFTER, node.dtype, (node, *effects))


def shrink(node: UOp, *pairs: tuple[int, int]) -> UOp:
    return move(Op.SHRINK, node, pairs)


def square(node: UOp) -> UOp:
    return node * node


def test_a_write_into_a_view():
    written = after(X, store(shrink(X, (1, 3)), V * 2))
    check(square(written), [X, V], ARRAYS)
    check(square(written) * X, [X, V], ARRAYS)  # and the old version


def test_a_write_over_everything_leaves_nothing_of_the_old():
    y = memory(1, 6)
    written = after(X, store(X, y * 3))
    assert gradients(written, [X]) == [None]
    check(square(written), [y], {0: ARRAYS[0], 1: ARRAYS[0] + 1})
    flipped = after(X, store(move(Op.FLIP, X, (0,)), X * y))
    check(square(flipped), [X, y], {0: ARRAYS[0], 1: ARRAYS[0] + 1})


def test_updates_in_place():
    second = after(X, store(X, X * X))
    view = shrink(second, (2, 5))
    third = after(second, store(view, on(Op.SIN, view)))
    check(third * second, [X], ARRAYS)
    by_second, by_x = derive(square(third), [second, X])
    (chained,) = derive(second, [X], by_second)
    np.testing.assert_allclose(*evaluate([chained, by_x], ARRAYS))


def test_a_scalar_value_has_the_sum():
    s = memory(2)
    written = after(X, store(shrink(X, (2, 6)), s * 2))
    check(square(written), [X, s], {**ARRAYS, 2: np.array(0.8)})


def test_views_of_views():
    matrix = move(Op.PERMUTE, move(Op.RESHAPE, X, (2, 3)), (1, 0))
    corner = move(Op.FLIP, shrink(matrix, (1, 3), (0, 2)), (0, 1))
    values = memory(1, 2, 2)
    written = after(X, store(corner, values))
    check(square(written), [X, values], {0: ARRAYS[0], 1: np.arange(4.0).reshape(2, 2) - 1.2})


def test_a_write_through_indices():
    rows = memory(2, 2, dtype=dtypes.int32)
    arrays = {**ARRAYS, 2: np.array([4, 1], np.int32)}
    check(square(after(X, store(index_of(X, [rows]), V))), [X, V], arrays)
    masked = index_of(X, [rows], rows < 3)
    check(square(after(X, store(masked, V))), [X, V], arrays)
    table = move(Op.RESHAPE, X, (3, 2))
    picked = index_of(table, [rows])
    values = memory(1, 2, 2)
    written = after(X, store(picked, values))
    arrays = {0: ARRAYS[0], 1: np.arange(4.0).reshape(2, 2) / 3, 2: np.array([2, 0], np.int32)}
    check(square(written), [X, values], arrays)


def test_several_stores_of_one_after():
    w = memory(2, 2)
    arrays = {**ARRAYS, 2: np.array([1.4, 0.3])}
    one, two = store(shrink(X, (0, 2)), V), store(shrink(X, (1, 3)), w)
    check(square(after(X, one, two)), [X, V, w], arrays)
    check(square(after(X, two, one)), [X, V, w], arrays)


def test_a_store_to_another_version_than_that_which_is_read():
    one = store(shrink(X, (0, 2)), V)
    two = store(shrink(after(X, one), (1, 4)), const(dtypes.float64, 0.5))
    for order in ((one, two), (two, one), (two,)):
        check(square(after(X, *order)), [X, V], ARRAYS)
        check(square(after(shrink(X, (0, 5)), *order)), [X, V], ARRAYS)


def test_after_reads_a_view_again():
    written = store(shrink(X, (1, 3)), V)
    view = shrink(X, (2, 5))
    check(square(after(view, written)), [X, V], ARRAYS)
    table = move(Op.EXPAND, move(Op.RESHAPE, X, (6, 1)), (6, 2))
    check(square(after(table, written)), [X, V], ARRAYS)
    check(square(after(view, after(X, written))), [X, V], ARRAYS)
    rewritten = after(view, store(shrink(view, (0, 2)), V * 2))
    check(square(rewritten), [X, V], ARRAYS)
    again = after(rewritten, store(shrink(rewritten, (1, 2)), shrink(rewritten, (0, 1))))
    check(square(again), [X, V], ARRAYS)


def test_effects_on_other_memory_change_nothing():
    other = memory(2, 2)
    arrays = {**ARRAYS, 2: np.zeros(2)}
    done = store(other, V)
    check(square(after(X, done)), [X], arrays)
    check(square(after(X * X, done)), [X], arrays)
    assert gradients(after(X, done), [V]) == [None]
    p = param(0, dtypes.float64, (2,))
    check(square(after(X, call(sink(store(p, p + 1)), other))), [X], arrays)


def test_writes_inside_a_call():
    p, q = param(0, dtypes.float64, (6,)), param(1, dtypes.float64, (2,))
    body = square(after(p, store(shrink(p, (1, 3)), q * q)))
    check(call(body, X, V), [X, V], ARRAYS)


def test_what_has_no_gradient_says_so():
    written = store(shrink(X, (1, 3)), V)
    with pytest.raises(weft.NotSupported, match="reads memory again through a computation"):
        gradients(after(X * X, written), [X])
    p = param(0, dtypes.float64, (2,))
    done = call(sink(store(p, p * 2)), shrink(X, (0, 2)))
    with pytest.raises(weft.NotSupported, match="waits for a CALL that writes"):
        gradients(after(X, done), [X])
    part = after(shrink(X, (0, 4)), written)
    with pytest.raises(weft.NotSupported, match="different views"):
        gradients(after(X, store(shrink(part, (0, 1)), const(dtypes.float64, 1))), [X])
    moving = index_of(X, [on(Op.FLOOR, X).cast(dtypes.int32)], X < 1)
    with pytest.raises(weft.NotSupported, match="reads memory again"):
        gradients(after(moving, written), [X])


def test_a_long_chain_of_writes():
    version = X
    for step in range(3000):
        address = shrink(version, (step % 6, step % 6 + 1))
        version = after(version, store(address, address * 0.999))
    (found,) = gradients(version, [X])
    assert found is not None
    np.testing.assert_allclose(evaluate(found, ARRAYS), np.full(6, 0.999**500))


def test_the_gradient_does_not_write():
    written = after(X, store(shrink(X, (1, 3)), V))
    (found,) = derive(written * 2, [V])
    assert not any(node.op == Op.STORE for node in topological(found))


@pytest.mark.peers("torch")
def test_writes_as_torch():
    pytest.importorskip("torch")

    def graph(x: UOp, v: UOp) -> UOp:
        base = memory(7, 6)
        first = after(base, store(base, x * 1.5))
        second = after(first, store(shrink(first, (1, 3)), v))
        address = shrink(second, (2, 5))
        third = after(second, store(address, address * address))
        return third * first

    def eager(x, v):
        first = x * 1.5
        base = first.clone()
        base[1:3] = v
        base[2:5] = base[2:5].clone() ** 2  # torch must not see its saved value change
        return base * first

    # The buffer in between needs contents in the interpreter, and they never matter.
    x, v = memory(0, 6), memory(1, 2)
    found = derive(graph(x, v), [x, v])
    values = evaluate(found, {**ARRAYS, 7: np.full(6, np.nan)})
    inlined = eager_gradients(eager, ARRAYS[0], ARRAYS[1])
    for ours, theirs in zip(values, inlined, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.peers("torch")
def test_repeated_indices_of_a_write_as_torch():
    torch = pytest.importorskip("torch")
    addresses = [3, 1, 3]
    numbers = make(Op.IOTA, dtypes.int32, (), (3,))
    rows = numbers.equal(1).where(const(dtypes.int32, 1), 3)

    def eager(x, v):
        written = x.clone()
        written[torch.tensor(addresses)] = v
        return written

    def graph(x: UOp, v: UOp) -> UOp:
        return after(x, store(index_of(x, [rows]), v))

    check_torch(graph, eager, ARRAYS[0], np.array([0.5, 0.5, 0.5]))


def eager_gradients(function, *arrays: Array) -> list[Array]:
    import torch

    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    function(*tensors).sum().backward()
    return [tensor.grad.numpy() for tensor in tensors]


def address_in(generator: random.Random, node: UOp, array: Array) -> tuple[UOp, Array]:
    """A random view that a write can go through."""
    for _ in range(generator.randint(0, 3)):
        moved, view = random_movement(generator, node, array)
        if moved.op not in (Op.PAD, Op.EXPAND) and np.shares_memory(view, array):
            node, array = moved, view
    return node, array


@pytest.mark.parametrize("case", range(30))
def test_random_programs(case: int):
    """Random writes of views of two buffers; old versions are read at the end."""
    generator = random.Random(case)
    arrays = {n: np.random.default_rng(n).uniform(-1, 1, (2, 3)) for n in range(2)}
    start = [memory(n, 2, 3) for n in range(2)]
    version = list(start)
    total = start[0] * start[1]
    for _ in range(4):
        target, other = generator.randrange(2), generator.randrange(2)
        address, _ = address_in(generator, version[target], arrays[target])
        read, _ = address_in(generator, version[other], arrays[other])
        value = read * 0.7 * address if read.shape == address.shape else on(Op.SIN, address)
        version[target] = after(version[target], store(address, value))
        total = total + version[generator.randrange(2)] * version[target]
    check(total, start, arrays, seed=case, tolerance=1e-5)

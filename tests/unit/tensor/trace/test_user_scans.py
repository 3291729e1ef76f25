"""`scan` and `associative_scan`: values, gradients, work, and what they refuse."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft import associative_reduce, associative_scan, function, grad, jit, scan, vmap
from weft.engine.counters import GlobalCounters
from weft.ir.walk import bodies
from weft.support.errors import ArgumentError, ArgumentTypeError, NotSupported, ShapeError
from weft.tensor import Tensor

SIZES = (0, 1, 2, 3, 7, 8)


def random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape)


def join(first: Any, then: Any) -> Any:
    """Two steps h -> a h + b as one."""
    return {"a": first["a"] * then["a"], "b": then["a"] * first["b"] + then["b"]}


def recurrence(a: Any, b: Any) -> Any:
    state, found = np.zeros(b.shape[1:]), []
    for rate, add in zip(a, b, strict=True):
        state = rate * state + add
        found.append(state)
    return np.array(found).reshape(b.shape)


@pytest.mark.parametrize("size", SIZES)
def test_associative_scan_of_a_tree(size: int):
    a, b = random(size, 2), random(size, 2)
    found = associative_scan(join, {"a": Tensor(a), "b": Tensor(b)})
    np.testing.assert_allclose(found["b"].numpy(), recurrence(a, b), rtol=1e-12)


@pytest.mark.parametrize(("axis", "reverse"), [(1, False), (-3, True), (0, True)])
def test_associative_scan_along_an_axis(axis: int, reverse: bool):
    """Products of matrices do not commute, so the order shows."""
    array = random(5, 5, 2, 2)
    found = associative_scan(lambda a, b: a @ b, Tensor(array), axis, reverse)
    moved = np.moveaxis(array, axis, 0)
    wanted = list(moved[::-1] if reverse else moved)
    for number in range(1, 5):
        wanted[number] = wanted[number - 1] @ wanted[number]
    wanted = wanted[::-1] if reverse else wanted
    np.testing.assert_allclose(
        found.numpy(), np.moveaxis(np.array(wanted), 0, axis), rtol=1e-9, atol=1e-12
    )


def test_gradients_of_an_associative_scan():
    x = Tensor(random(9))
    ours = associative_scan(lambda a, b: a + b, x).square().sum().gradient(x)[0]
    wanted = x.cumsum(0).square().sum().gradient(x)[0]
    np.testing.assert_allclose(ours.numpy(), wanted.numpy(), rtol=1e-12)


def test_the_work_of_an_associative_scan_is_linear():
    def count(size: int) -> tuple[int, int]:
        x = Tensor(random(size)).realize()
        GlobalCounters.reset()
        associative_scan(lambda a, b: a * b, x).sum().gradient(x)[0].realize()
        return GlobalCounters.kernel_count, GlobalCounters.global_ops

    (few, small), (more, large) = count(64), count(256)
    assert large < 4.5 * small
    assert more - few <= 2 * 8  # two levels more


def cell(weight: Tensor) -> Callable[[Any, Any], Any]:
    def step(state: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        state = (state @ weight + x).tanh()
        return state, state * 2

    return step


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("reverse", [False, True])
def test_scan(size: int, reverse: bool):
    weight, rows, state = random(3, 3), random(size, 3), random(3)
    last, found = scan(cell(Tensor(weight)), Tensor(state), Tensor(rows), reverse=reverse)
    wanted = []
    for row in rows[::-1] if reverse else rows:
        state = np.tanh(state @ weight + row)
        wanted.append(state * 2)
    wanted = wanted[::-1] if reverse else wanted
    np.testing.assert_allclose(last.numpy(), state, rtol=1e-12)
    np.testing.assert_allclose(found.numpy(), np.array(wanted).reshape(size, 3), rtol=1e-12)


def test_gradients_of_a_scan_are_those_of_the_loop():
    weight, rows, state = (Tensor(random(*shape)) for shape in ((3, 3), (7, 3), (3,)))
    targets = (weight, rows, state)
    ours = scan(cell(weight), state, rows)[1].square().sum().gradient(*targets)
    step, total, current = cell(weight), Tensor(0.0, dtype="float64"), state
    for number in range(7):
        current, y = step(current, rows[number])
        total = total + y.square().sum()
    for a, b in zip(ours, total.gradient(*targets), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)


def test_trees_and_iterations_without_inputs():
    def fibonacci(pair: tuple[Tensor, Tensor], x: None) -> Any:
        assert x is None
        a, b = pair
        return (b, a + b), {"a": a}

    (a, b), found = scan(fibonacci, (Tensor(0), Tensor(1)), length=10)
    assert (a.item(), b.item()) == (55, 89)
    assert found["a"].tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]


def test_a_graph_of_many_iterations_has_few_bodies():
    found = scan(cell(Tensor(random(3, 3))), Tensor(random(3)), Tensor(random(1000, 3)))[1]
    assert len(bodies(found.uop)) <= 10


def test_scans_nest_with_transforms():
    weight, rows = Tensor(random(3, 3)), Tensor(random(2, 5, 3))

    def loss(rows: Tensor) -> Tensor:
        return scan(cell(weight), rows[0] * 0, rows)[1].sum()

    batched = vmap(grad(loss))(rows)
    for number in range(2):
        np.testing.assert_allclose(
            batched[number].numpy(), grad(loss)(rows[number]).numpy(), rtol=1e-9
        )
    np.testing.assert_allclose(jit(loss)(rows[0]).item(), function(loss)(rows[0]).item())


def written(state: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    KEPT.assign(x)
    return state, x


KEPT = Tensor.zeros(3).contiguous().realize()


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: scan(lambda c, x: c, x[0], x), ArgumentTypeError, "returned Tensor"),
        (lambda x: scan(lambda c, x: (c[:2], x), x[0], x), ShapeError, "shape or dtype changes"),
        (lambda x: scan(lambda c, x: (c, x), x[0], x, length=4), ArgumentError, r"\[2, 4\]"),
        (lambda x: scan(lambda c, x: (c, x), x[0]), ArgumentError, "how many iterations"),
        (lambda x: scan(written, x[0], x), NotSupported, "writes to a tensor"),
        (lambda x: scan(lambda c, x: (c, x), None, None), ArgumentTypeError, "no tensor"),
        (lambda x: associative_scan(lambda a, b: a[:, :1], x), ShapeError, "fn: a shape"),
        (lambda x: associative_scan(lambda a, b: a, (x, x[:1])), ArgumentError, r"\[1, 2\]"),
        (lambda x: associative_scan(lambda a, b: a, [x, 3]), ArgumentTypeError, "no tensor"),
    ],
)
def test_what_is_refused(call: Callable[[Tensor], Any], kind: type, text: str):
    with pytest.raises(kind, match=text):
        call(Tensor.ones(2, 3))
    assert KEPT.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 64, 65, 130, 1000])
def test_associative_reduce_is_the_last_prefix(size: int):
    rng = np.random.default_rng(size)
    a, b = (rng.uniform(0.5, 1.0, (size, 3)).astype(np.float32) for _ in range(2))
    total = associative_reduce(join, {"a": Tensor(a), "b": Tensor(b)})
    last = associative_scan(join, {"a": Tensor(a), "b": Tensor(b)})
    for name in "ab":
        np.testing.assert_allclose(total[name].numpy(), last[name].numpy()[-1], rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_associative_reduce_keeps_the_order_of_an_axis(axis: int):
    array = np.random.default_rng(0).standard_normal((13, 13, 2, 2)).astype(np.float32) / 2
    if axis == -1:
        found = associative_reduce(lambda a, b: a, Tensor(array), axis)
        np.testing.assert_array_equal(found.numpy(), array[..., 0])
        return
    found = associative_reduce(lambda a, b: a @ b, Tensor(array), axis)
    wanted = np.moveaxis(array, axis, 0)
    product = wanted[0]
    for each in wanted[1:]:
        product = product @ each
    np.testing.assert_allclose(found.numpy(), product, rtol=1e-3, atol=1e-6)


def test_gradients_of_an_associative_reduce():
    x = Tensor(np.random.default_rng(1).uniform(0.9, 1.1, 100).astype(np.float32))
    ours = associative_reduce(lambda a, b: a * b, x).gradient(x)[0]
    np.testing.assert_allclose(ours.numpy(), x.prod().gradient(x)[0].numpy(), rtol=1e-4)


def test_an_associative_reduce_reads_its_data_once():
    x = Tensor(np.ones(1 << 18, dtype=np.float32)).realize()
    GlobalCounters.reset()
    associative_reduce(lambda a, b: a * b, x).realize()
    assert GlobalCounters.kernel_count <= 8
    # The argument of the first call is copied once; the levels read it once and an eighth of it.
    assert GlobalCounters.global_mem < 4 * (1 << 18) * 3.5


def test_an_empty_axis_has_no_reduction():
    with pytest.raises(ShapeError, match="empty axis"):
        associative_reduce(lambda a, b: a + b, Tensor.zeros(0, 2))

"""The walk: which nodes have a gradient, sums of contributions, seeds, depth."""

import numpy as np
import pytest

import weft
from tests.unit.gradient.numeric import check, derive, memory, move, on, reduced
from weft.gradient.reverse import gradients
from weft.gradient.table import RULES
from weft.ir.build import param, true
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.reference.tensor import evaluate

X, Y = memory(0, 2, 3), memory(1, 2, 3)
ARRAYS = {0: np.linspace(-1, 1.2, 6).reshape(2, 3), 1: np.linspace(0.3, 2, 6).reshape(2, 3)}


def rows(value: UOp, count: int) -> UOp:
    """A vector of shape (n,) as `count` equal rows."""
    (size,) = value.shape
    return move(Op.EXPAND, move(Op.RESHAPE, value, (1, size)), (count, size))


def test_the_gradient_of_a_node_by_itself_is_the_seed():
    assert derive(X, [X], Y) == [Y]
    assert evaluate(derive(X, [X])[0]).tolist() == [[1.0] * 3] * 2
    assert derive(memory(0), [memory(0)])[0] is const(dtypes.float64, 1)


def test_shared_subexpressions_are_added():
    shared = on(Op.SIN, X * Y)
    check(shared * shared + shared * X, [X, Y], ARRAYS)


def test_an_intermediate_target_and_those_below_it():
    middle = X * Y
    output = middle * middle + X
    by_middle, by_x = derive(output, [middle, X])
    found = evaluate([by_middle, by_x], ARRAYS)
    x, y = ARRAYS[0], ARRAYS[1]
    np.testing.assert_allclose(found[0], 2 * x * y)
    np.testing.assert_allclose(found[1], 2 * x * y * y + 1)


def test_a_target_is_asked_twice():
    first, second = derive(X * X, [X, X])
    assert first is second


def test_unrelated_targets_have_none():
    z = memory(2, 2, 3)
    assert gradients(X * 2, [z, X * 3]) == [None, None]
    assert gradients(X * 2, []) == []
    assert gradients(X < Y, [X]) == [None]


def test_detach_stops_gradients():
    held = make(Op.DETACH, X.dtype, (X * Y,))
    assert gradients(held, [X]) == [None]
    (found,) = derive(held * X, [X])
    np.testing.assert_allclose(evaluate(found, ARRAYS), ARRAYS[0] * ARRAYS[1])


def test_bits_and_integers_stop_gradients():
    bits = make(Op.BITCAST, dtypes.int64, (X,))
    assert gradients(make(Op.BITCAST, dtypes.float64, (bits + 1,)), [X]) == [None]
    choice = make(Op.WHERE, X.dtype, (X < Y, const(X.dtype, 1), const(X.dtype, 2)))
    assert gradients(choice, [X, Y]) == [None, None]


def test_only_nodes_on_a_path_are_asked(monkeypatch: pytest.MonkeyPatch):
    asked: list[UOp] = []
    for op, rule in list(RULES.items()):
        monkeypatch.setitem(
            RULES, op, lambda node, g, rule=rule: asked.append(node) or rule(node, g)
        )
    beside = on(Op.EXP, Y)
    above = on(Op.SIN, X)
    below = on(Op.COS, memory(2, 2, 3))
    middle = beside * below
    derive(above * middle, [X, middle])
    assert set(asked) == {above * middle, above}


def test_broadcasting():
    bias = memory(2, 3)
    arrays = {**ARRAYS, 2: np.array([0.3, -0.8, 1.1])}
    check(on(Op.TANH, X + rows(bias, 2)), [X, bias], arrays)


def test_matmul_and_softmax():
    a, b = memory(0, 2, 3), memory(1, 3, 2)
    arrays = {0: ARRAYS[0], 1: ARRAYS[1].reshape(3, 2)}
    left = move(Op.EXPAND, move(Op.RESHAPE, a, (2, 3, 1)), (2, 3, 2))
    right = move(Op.EXPAND, move(Op.RESHAPE, b, (1, 3, 2)), (2, 3, 2))
    product = move(Op.RESHAPE, reduced(Op.ADD, left * right, 1), (2, 2))
    top = move(Op.EXPAND, reduced(Op.MAX, product, 1), (2, 2))
    weights = on(Op.EXP, product - top)
    total = move(Op.EXPAND, reduced(Op.ADD, weights, 1), (2, 2))
    check(weights / total, [a, b], arrays)
    assert derive(product, [a])[0].shape == (2, 3)


def test_third_order():
    x = memory(0, 3)
    graph = on(Op.SIN, x)
    for _ in range(3):
        (graph,) = derive(graph, [x])
    values = np.array([0.3, 1.0, -2.0])
    np.testing.assert_allclose(evaluate(graph, {0: values}), -np.cos(values), rtol=1e-12)


def test_seeds():
    scalar = memory(2)
    (found,) = derive(X * Y, [X], scalar)
    np.testing.assert_allclose(evaluate(found, {**ARRAYS, 2: np.array(2.0)}), 2 * ARRAYS[1])
    with pytest.raises(weft.ShapeError, match="another shape"):
        gradients(X, [X], memory(3, 3, 2))
    with pytest.raises(weft.DTypeError, match="the seed is float32 and the output float64"):
        gradients(X, [X], memory(3, 2, 3, dtype=dtypes.float32))


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32])
def test_gradients_have_the_dtype_of_their_node(dtype):
    x = memory(0, 3, dtype=dtype)
    wide = on(Op.EXP, x.cast(dtypes.float64) * 2).cast(dtypes.float32)
    (found,) = derive(reduced(Op.MAX, wide, 0), [x])
    assert found.dtype is dtype


def test_identities():
    copied = make(Op.COPY, X.dtype, (X * 2,), "CUDA")
    kept = make(Op.STAGE, X.dtype, (copied,), ("global", ()))
    check(kept * kept, [X], ARRAYS)
    (found,) = derive(kept * kept, [X])
    copies = [node.arg for node in topological(found) if node.op == Op.COPY]
    assert sorted(copies) == ["CPU", "CUDA"]


def test_a_copy_of_an_argument_is_refused():
    x = param(0, dtypes.float32, (3,))
    with pytest.raises(weft.NotSupported, match="the device that a COPY reads from"):
        gradients(make(Op.COPY, x.dtype, (x,), "CUDA"), [x])


def test_deep_graphs():
    x = memory(0)
    node = x
    for _ in range(50_000):
        node = (node * 0.5) + x
    (found,) = gradients(node, [x])
    assert found is not None
    assert evaluate(found) == pytest.approx(2.0)


def test_an_op_without_a_rule_is_our_bug():
    loaded = make(
        Op.LOAD, X.dtype, (make(Op.INDEX, X.dtype, (X, true(), const(dtypes.index, 0))),)
    )
    with pytest.raises(weft.InternalError, match="LOAD has no gradient rule"):
        gradients(loaded, [X])

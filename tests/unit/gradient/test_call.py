"""Calls: the derived body, nesting, tuples, captured memory; all against the inlined graph."""

import numpy as np

from tests.unit.gradient.numeric import check, derive, memory, on, reduced
from weft.gradient.reverse import gradients
from weft.ir.build import call, param, variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import bodies, topological
from weft.reference.tensor import evaluate

X, Y, W = memory(0, 3), memory(1, 3), memory(2, 3)
ARRAYS = {
    0: np.array([0.3, -0.7, 1.2]),
    1: np.array([1.1, 0.4, -0.5]),
    2: np.array([0.9, 1.3, -0.2]),
}
P, Q = param(0, dtypes.float64, (3,)), param(1, dtypes.float64, (3,))


def layer(x: UOp, w: UOp) -> UOp:
    return on(Op.TANH, x * w + x)


def pair(*values: UOp) -> UOp:
    return make(Op.TUPLE, dtypes.void, values)


def item(values: UOp, position: int) -> UOp:
    return make(Op.ITEM, dtypes.float64, (values,), position)


def derived_bodies(node: UOp, body: UOp) -> list[UOp]:
    return [each for each in bodies(node) if each is not body]


def test_one_call():
    check(call(layer(P, Q), X, Y), [X, Y], ARRAYS)
    check(call(layer(P, Q), X, X) * X, [X], ARRAYS)


def test_a_layer_used_many_times_has_one_backward_body():
    body = layer(P, Q)
    node = X
    weights = [memory(3 + number, 3) for number in range(5)]
    for weight in weights:
        node = call(body, node, weight)
    arrays = {**ARRAYS, **{3 + number: ARRAYS[1] + number / 9 for number in range(5)}}
    check(node, [X, *weights], arrays, tolerance=1e-5)
    found = derive(node, [X, *weights])
    assert len(derived_bodies(pair(*found), body)) == 1


def test_only_what_is_wanted_is_derived():
    body = layer(P, Q)
    (found,) = derive(call(body, X, Y), [Y])
    (derived,) = derived_bodies(found, body)
    assert len(derived.src) == 1


def test_an_argument_without_gradient():
    body = (P < 0.5).cast(dtypes.float64) * Q
    assert gradients(call(body, X, Y), [X]) == [None]
    check(call(body, X, Y), [Y], ARRAYS)
    whole = param(0, dtypes.int32, (3,))
    mixed = whole.cast(dtypes.float64) * Q
    numbers = memory(5, 3, dtype=dtypes.int32)
    check(call(mixed, numbers, X), [X], {**ARRAYS, 5: np.array([1, 2, 3], np.int32)})


def test_calls_nest():
    inner = layer(P, Q)
    outer = call(inner, call(inner, P, Q), P * Q) + P
    check(call(outer, X, call(outer, Y, W)), [X, Y, W], ARRAYS, tolerance=1e-5)


def test_second_order_through_calls():
    outer = call(layer(P, Q), P, Q) * P
    first, second = derive(call(outer, X, Y), [X, Y])
    check(first * second, [X, Y], ARRAYS, tolerance=1e-5)


def test_several_values():
    body = pair(P * Q, on(Op.SIN, P), Q * Q)
    done = call(body, X, Y)
    check(item(done, 0) * item(done, 1), [X, Y], ARRAYS)
    check(item(done, 1), [X], ARRAYS)
    assert gradients(item(done, 1), [Y]) == [None]
    check(item(done, 0) * item(done, 0) + item(done, 2), [X, Y], ARRAYS)
    plain = pair(X * Y, X)
    check(item(plain, 0) * item(plain, 1), [X, Y], ARRAYS)


def test_several_values_of_nested_calls():
    inner = pair(P * Q, P + Q)
    done = call(inner, P, Q)
    outer = pair(item(done, 1) * P, item(done, 0))
    result = call(outer, X, Y)
    check(item(result, 0) * item(result, 1), [X, Y], ARRAYS, tolerance=1e-5)


def test_an_intermediate_target_above_a_call():
    middle = X * Y
    done = call(layer(P, Q), middle, W)
    (found,) = derive(done, [middle])
    (expected,) = derive(layer(middle, W), [middle])
    np.testing.assert_allclose(evaluate(found, ARRAYS), evaluate(expected, ARRAYS))


def test_memory_held_by_a_body():
    body = layer(P, W)
    check(call(body, X) * W, [X, W], ARRAYS)
    check(call(body, X), [W], ARRAYS)
    outer = call(body, P) * P
    check(call(outer, X), [W], ARRAYS)


def test_scalars_and_reductions_in_a_body():
    scale = param(1, dtypes.float64, ())
    body = reduced(Op.ADD, P * scale * P, 0)
    s = memory(4)
    check(call(body, X, s), [X, s], {**ARRAYS, 4: np.array(0.6)})


def test_symbolic_sizes():
    n = variable("n", 1, 8)
    p = param(0, dtypes.float64, (n,))
    body = reduced(Op.ADD, p * p, 0)
    x = memory(0, n)
    check(call(body, x), [x], ARRAYS, variables={"n": 3})
    (found,) = derive(call(body, X), [X])
    assert found.shape == (3,)
    np.testing.assert_allclose(evaluate(found, ARRAYS, {"n": 3}), 2 * ARRAYS[0])


def test_the_result_holds_no_leftovers():
    body = pair(P * Q, P)
    done = call(body, X, Y)
    found = derive(item(done, 0), [X])
    for scope in (*bodies(*found), *found):
        for node in topological(scope):
            assert node.op != Op.TUPLE or node.src


def test_calls_nest_deeper_than_the_stack():
    body = layer(P, Q) * 0.5
    for _ in range(600):
        body = call(body, P, Q) + P * 0
    (found,) = derive(call(body, X, Y), [X])
    assert found.shape == (3,)
    assert len(bodies(found)) > 600

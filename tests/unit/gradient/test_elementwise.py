"""Every elementwise rule against central differences, and against torch where it has a kink."""

import numpy as np
import pytest

from tests.unit.gradient.numeric import (
    check,
    check_second_order,
    check_torch,
    derive,
    memory,
    on,
)
from weft.gradient.elementwise import ELEMENTWISE_RULES
from weft.gradient.reverse import gradients
from weft.ir.build import where
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op, name
from weft.ir.uop import complex_from, const
from weft.reference.tensor import evaluate

X, Y = memory(0, 2, 3), memory(1, 2, 3)
SCALAR = memory(2)
ANY = np.array([[-1.7, -0.4, 0.3], [0.9, 1.6, 2.2]])
POSITIVE = np.array([[0.2, 0.7, 1.1], [1.9, 2.5, 0.4]])
OTHER = np.array([[0.8, -1.2, 0.6], [1.3, 0.7, -2.1]])

SMOOTH = {
    Op.NEG: ANY,
    Op.SQRT: POSITIVE,
    Op.EXP: ANY,
    Op.EXP2: ANY,
    Op.LOG: POSITIVE,
    Op.LOG2: POSITIVE,
    Op.SIN: ANY,
    Op.COS: ANY,
    Op.TANH: ANY,
    Op.ERF: ANY,
}
STEPS = (Op.FLOOR, Op.TRUNC, Op.ROUND)
BINARY = {
    Op.ADD: (ANY, OTHER),
    Op.MUL: (ANY, OTHER),
    Op.DIV: (ANY, OTHER),
    Op.POW: (POSITIVE, OTHER),
    Op.LOGADD: (ANY, OTHER),
    Op.MAX: (ANY, OTHER),
    Op.MIN: (ANY, OTHER),
    Op.FLOORMOD: (ANY, OTHER),
    Op.TRUNCMOD: (ANY, OTHER),
    Op.FLOORDIV: (ANY, OTHER),
}


def test_every_rule_is_tested_here():
    others = {Op.WHERE, Op.CAST, Op.COMPLEX, Op.REAL, Op.IMAG}
    assert {*SMOOTH, *STEPS, *BINARY, *others} == ELEMENTWISE_RULES.keys()
    assert all(rule.__doc__ for rule in ELEMENTWISE_RULES.values())


def test_parts_of_complex_numbers():
    z = complex_from(X, Y)
    values = {0: ANY, 1: OTHER}
    check((z * z).real, [X, Y], values)
    check((z / (z + z * z)).imag, [X, Y], values)
    check((z * z.conjugate() * z).imag, [X, Y], values)


@pytest.mark.parametrize("op", [*SMOOTH, *STEPS])
def test_unary(op: int):
    check(on(op, X), [X], {0: SMOOTH.get(op, ANY)})


@pytest.mark.parametrize("op", SMOOTH)
def test_unary_second_order(op: int):
    check_second_order(on(op, X * X), X, {0: SMOOTH[op]})


@pytest.mark.parametrize("op", BINARY)
def test_binary(op: int):
    x, y = BINARY[op]
    check(on(op, X, Y), [X, Y], {0: x, 1: y})


@pytest.mark.parametrize("op", BINARY)
def test_a_scalar_source_has_the_sum(op: int):
    x, y = BINARY[op]
    arrays = {0: x, 1: y, 2: np.array(1.37)}
    check(on(op, X, SCALAR), [X, SCALAR], arrays)
    check(on(op, SCALAR, Y), [SCALAR, Y], arrays)
    check(on(op, SCALAR, SCALAR * 1.1), [SCALAR], arrays)


@pytest.mark.parametrize("op", [Op.MUL, Op.DIV, Op.POW])
def test_binary_second_order(op: int):
    x, y = BINARY[op]
    (by_x, by_y) = derive(on(op, X, Y), [X, Y])
    check(by_x * by_y, [X, Y], {0: x, 1: y}, tolerance=1e-5)


def test_where():
    arrays = {0: ANY, 1: OTHER, 2: np.array(0.4)}
    check(where(X < Y, X * X, Y), [X, Y], arrays)
    check(where(X < Y, SCALAR, Y), [SCALAR, Y], arrays)
    check(where(SCALAR < 1.0, X, SCALAR), [X, SCALAR], arrays)


def test_cast_between_floats():
    narrow = memory(0, 3, dtype=dtypes.float16)
    (found,) = derive(narrow.cast(dtypes.float32) * 3, [narrow])
    assert evaluate(found).tolist() == [3.0] * 3
    wide = memory(0, 3)
    (found,) = derive(wide.cast(dtypes.bfloat16) * 2, [wide])
    assert found.dtype is dtypes.float64


def test_integers_stop_gradients():
    assert gradients(X.cast(dtypes.int32).cast(dtypes.float64), [X]) == [None]
    assert gradients((X < Y).cast(dtypes.float64), [X, Y]) == [None, None]
    assert gradients(X.cast(dtypes.int32), [X]) == [None]
    whole = memory(3, 2, 3, dtype=dtypes.int64)
    found = gradients(whole.cast(dtypes.float64) * X, [whole, X])
    assert found[0] is None and found[1] is not None


def test_both_sources_are_one_node():
    arrays = {0: POSITIVE}
    check(X * X, [X], arrays)
    check(on(Op.POW, X, X), [X], arrays)
    check(X / X, [X], arrays)


def test_tanh_far_out_keeps_its_slope():
    x = memory(0, 1)
    (found,) = derive(on(Op.TANH, x), [x])
    slope = evaluate(found, {0: np.array([15.0])})[0]
    np.testing.assert_allclose(slope, 1 / np.cosh(15.0) ** 2, rtol=1e-2)


KINKS = np.array([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan])
PAIRS = [np.ascontiguousarray(grid.reshape(-1)) for grid in np.meshgrid(KINKS, KINKS)]


@pytest.mark.peers("torch")
@pytest.mark.parametrize(
    ("op", "function"),
    [(Op.MAX, "maximum"), (Op.MIN, "minimum"), (Op.POW, "pow"), (Op.DIV, "divide")],
)
def test_kinks_of_binary_ops_as_torch(op: int, function: str):
    torch = pytest.importorskip("torch")
    check_torch(lambda x, y: on(op, x, y), getattr(torch, function), *PAIRS)


@pytest.mark.peers("torch")
@pytest.mark.parametrize(("op", "function"), [(Op.FLOORMOD, "remainder"), (Op.TRUNCMOD, "fmod")])
def test_modulo_as_torch(op: int, function: str):
    torch = pytest.importorskip("torch")
    x, y = np.meshgrid([-3.5, -2.0, -0.3, 0.0, 0.4, 2.0, 5.1], [-2.0, -0.7, 0.5, 1.0, 3.0])
    check_torch(lambda a, b: on(op, a, b), getattr(torch, function), x.copy(), y.copy())


@pytest.mark.peers("torch")
@pytest.mark.parametrize("op", [*SMOOTH, *STEPS])
def test_unary_at_special_points_as_torch(op: int):
    torch = pytest.importorskip("torch")
    function = getattr(torch, name(op).lower())
    check_torch(lambda x: on(op, x), function, np.append(KINKS, [1.5, 30.0, -2.5]))


@pytest.mark.peers("torch")
@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0, 0.5, -1.0])
def test_constant_exponent_as_torch(exponent: float):
    torch = pytest.importorskip("torch")
    check_torch(
        lambda x: on(Op.POW, x, const(dtypes.float64, exponent)),
        lambda x: torch.pow(x, exponent),
        np.array([0.0, 1.0, -1.0, 2.0, 0.5]),  # without -0.0: torch takes pow(x, 0.5) for sqrt
    )


def test_second_derivative_of_a_power_at_zero():
    x = memory(0, 1)
    for exponent, expected in ((1.0, 0.0), (2.0, 2.0), (3.0, 0.0), (0.0, 0.0)):
        (first,) = derive(on(Op.POW, x, const(dtypes.float64, exponent)), [x])
        (second,) = derive(first, [x])
        assert evaluate(second, {0: np.zeros(1)}).tolist() == [expected]

"""Complex values are taken apart before anything else: the text, and the same results."""

import numpy as np
import pytest

from weft.ir.build import call_results, param, reduce_axes, sink, store, tuple_of
from weft.ir.dtypes import dtypes
from weft.ir.movement import expand, reshape
from weft.ir.ops import Op
from weft.ir.spec.spec import verify
from weft.ir.spec.tensor import REAL_SPEC
from weft.ir.text import dump
from weft.reference.tensor import evaluate_stores
from weft.schedule.lower_complex import _Scope, lower_complex

c64 = dtypes.complex64
A, B, OUT = (param(slot, c64, (3,)) for slot in range(3))


def values(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def pairs(z):
    return z.view(np.float32).reshape(*z.shape, 2)


def test_a_product_is_two_stores_of_real_values():
    root = lower_complex(sink(store(OUT, A * B)), None)
    verify(root, REAL_SPEC)
    assert [effect.op for effect in root.src] == [Op.STORE, Op.STORE]
    assert "complex" not in dump(root)
    assert "param 2: float32[3, 2]" in dump(root)


def test_a_sum_of_products_is_four_sums():
    a, b = param(0, c64, (4, 5)), param(1, c64, (5, 3))
    left = expand(reshape(a, (4, 5, 1)), (4, 5, 3))
    right = expand(reshape(b, (1, 5, 3)), (4, 5, 3))
    product = reduce_axes(left * right, Op.ADD, (1,))
    root = lower_complex(sink(store(param(2, c64, (4, 1, 3)), product)), None)
    assert dump(root).count("reduce ADD") + dump(root).count(".reduce(ADD") == 4


CASES = {
    "sum": lambda a, b: a + b,
    "product": lambda a, b: a * b,
    "quotient": lambda a, b: a / b,
    "negated": lambda a, b: -a,
    "conjugate": lambda a, b: a.conjugate() * b,
    "chosen": lambda a, b: (a.real < b.imag).where(a, b),
    "equal": lambda a, b: a.equal(b).where(a, b * a),
}


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_that_of_the_complex_graph(name):
    graph = sink(store(OUT, CASES[name](A, B)))
    given = [values(3), values(3, seed=1), np.zeros(3, np.complex64)]
    want = evaluate_stores(graph, given)[2]
    lowered = lower_complex(graph, None)
    verify(lowered, REAL_SPEC)
    found = evaluate_stores(lowered, [pairs(z) for z in given])[2]
    np.testing.assert_allclose(found, pairs(want), rtol=1e-6, atol=1e-6)


def test_a_body_that_is_called_often_is_lowered_once(monkeypatch):
    """Bodies of loops call each other twice: a walk through all calls would be exponential."""
    made = []
    run = _Scope.run
    monkeypatch.setattr(_Scope, "run", lambda self, root: made.append(root) or run(self, root))
    body = tuple_of((A * A,))
    for _ in range(12):
        body = tuple_of(call_results(body, *call_results(body, A)))
    lower_complex(sink(store(OUT, *call_results(body, A))), None)
    assert len(made) == 14

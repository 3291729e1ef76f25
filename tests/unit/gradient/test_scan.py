"""Rules of scans against central differences; ties, zeros and NaN against torch."""

import numpy as np
import pytest

from tests.unit.gradient.numeric import check, check_second_order, check_torch, derive, memory
from weft.gradient.scan import _RULES
from weft.ir.build import scan_axis
from weft.ir.ops import Op
from weft.reference.tensor import evaluate

X = memory(0, 3, 4)
VALUES = np.array([[0.7, -1.3, 2.1, 0.2], [1.2, 0.4, -0.9, 1.7], [-0.3, 0.6, 1.1, -2.0]])


@pytest.mark.parametrize("op", _RULES)
@pytest.mark.parametrize("axis", [0, 1])
def test_scans(op: int, axis: int):
    check(scan_axis(X * 1.5, op, axis), [X], {0: VALUES})


@pytest.mark.parametrize("op", [Op.ADD, Op.MUL, Op.LOGADD])
def test_second_order(op: int):
    check_second_order(scan_axis(X * X, op, 1), X, {0: VALUES})


@pytest.mark.parametrize("zeros", [[(0, 0)], [(0, 2)], [(0, 1), (0, 3)], [(1, 3), (2, 0), (2, 1)]])
def test_products_with_zeros(zeros: list[tuple[int, int]]):
    values = VALUES.copy()
    for address in zeros:
        values[address] = 0.0
    for axis in (0, 1):
        check(scan_axis(X, Op.MUL, axis), [X], {0: values})


def test_scans_of_nothing():
    x = memory(0, 2, 0)
    for op in _RULES:
        (found,) = derive(scan_axis(x, op, 1), [x])
        assert evaluate(found, {0: np.zeros((2, 0))}).shape == (2, 0)


def test_logarithms_of_sums_do_not_overflow():
    x = memory(0, 3)
    (found,) = derive(scan_axis(x, Op.LOGADD, 0), [x])
    values = evaluate(found, {0: np.array([-np.inf, 1e4, 1e4])})
    np.testing.assert_allclose(values, [0, 1.5, 0.5])


@pytest.mark.peers("torch")
@pytest.mark.parametrize(("op", "name"), [(Op.MAX, "cummax"), (Op.MIN, "cummin")])
def test_ties_as_torch(op: int, name: str):
    torch = pytest.importorskip("torch")
    tied = np.array([[1.0, 3.0, 3.0, 2.0], [2.0, 2.0, 2.0, 2.0], [1.0, np.nan, 0.0, np.nan]])
    for axis in (0, 1):
        check_torch(
            lambda x, axis=axis: scan_axis(x, op, axis),
            lambda x, axis=axis: getattr(torch, name)(x, axis)[0],
            tied,
        )

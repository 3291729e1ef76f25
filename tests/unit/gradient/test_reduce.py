"""Rules of reductions against central differences; ties and zeros against torch."""

import numpy as np
import pytest

from tests.unit.gradient.numeric import (
    check,
    check_second_order,
    check_torch,
    derive,
    memory,
    reduced,
)
from weft.gradient.reduce import REDUCTION_RULES
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.reference.tensor import evaluate

X = memory(0, 2, 3)
VALUES = np.array([[0.7, -1.3, 2.1], [1.2, 0.4, -0.9]])


@pytest.mark.parametrize("op", REDUCTION_RULES)
@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 1)])
def test_reductions(op: int, axes: tuple[int, ...]):
    check(reduced(op, X * 1.5, *axes), [X], {0: VALUES})


@pytest.mark.parametrize("op", [Op.ADD, Op.MUL])
def test_second_order(op: int):
    check_second_order(reduced(op, X * X, 1), X, {0: VALUES})


@pytest.mark.parametrize("zeros", [[(0, 1)], [(0, 0), (0, 2)], [(0, 0), (1, 1)]])
def test_product_with_zeros(zeros: list[tuple[int, int]]):
    values = VALUES.copy()
    for address in zeros:
        values[address] = 0.0
    for axes in ((0,), (1,), (0, 1)):
        check(reduced(Op.MUL, X, *axes), [X], {0: values})


def test_reductions_of_nothing():
    x = memory(0, 2, 0)
    for op in REDUCTION_RULES:
        (found,) = derive(reduced(op, x, 1), [x])
        assert evaluate(found, {0: np.zeros((2, 0))}).shape == (2, 0)


def test_many_ties_are_counted_in_a_small_float():
    x = memory(0, 3000, dtype=dtypes.float16)
    (found,) = derive(reduced(Op.MAX, x, 0) * 6000.0, [x])
    assert evaluate(found, {0: np.ones(3000, np.float16)}).tolist() == [2.0] * 3000


@pytest.mark.peers("torch")
@pytest.mark.parametrize(("op", "name"), [(Op.MAX, "amax"), (Op.MIN, "amin")])
def test_ties_as_torch(op: int, name: str):
    torch = pytest.importorskip("torch")
    tied = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [0.0, -0.0, -1.0], [1.0, np.nan, 0.0]])
    function = getattr(torch, name)
    for axes in ((0,), (1,), (0, 1)):
        check_torch(
            lambda x, axes=axes: reduced(op, x, *axes),
            lambda x, axes=axes: function(x, dim=axes, keepdim=True),
            tied,
        )


@pytest.mark.peers("torch")
def test_product_as_torch():
    torch = pytest.importorskip("torch")
    values = np.array([[0.0, 2.0, 3.0], [0.0, -0.0, 2.0], [1.0, -2.0, 0.5], [0.0, 0.0, 0.0]])
    check_torch(lambda x: reduced(Op.MUL, x, 1), lambda x: torch.prod(x, 1, True), values)

"""Movement rules against central differences, with symbolic sizes too."""

import random

import numpy as np
import pytest

from tests.unit.gradient.numeric import check, derive, memory, move
from tests.unit.reference.test_tensor import random_movement
from weft.gradient.reverse import gradients
from weft.ir.build import variable
from weft.ir.ops import Op
from weft.reference.tensor import evaluate

X = memory(0, 2, 1, 3)
VALUES = np.arange(6.0).reshape(2, 1, 3) / 4 - 0.6


@pytest.mark.parametrize(
    ("op", "arg"),
    [
        (Op.RESHAPE, (3, 2)),
        (Op.RESHAPE, (6,)),
        (Op.EXPAND, (2, 4, 3)),
        (Op.EXPAND, (2, 1, 3)),
        (Op.EXPAND, (2, 0, 3)),
        (Op.PERMUTE, (2, 0, 1)),
        (Op.PAD, ((1, 0), (0, 2), (1, 1))),
        (Op.SHRINK, ((1, 2), (0, 1), (0, 2))),
        (Op.SHRINK, ((0, 0), (0, 1), (0, 2))),
        (Op.FLIP, (0, 2)),
        (Op.FLIP, ()),
    ],
)
def test_movement(op: int, arg: tuple):
    moved = move(op, X, arg)
    check(moved * moved, [X], {0: VALUES})


def test_a_scalar_moves_too():
    x = memory(0)
    row = move(Op.EXPAND, move(Op.RESHAPE, x, (1,)), (4,))
    check(row * row, [x], {0: np.array(0.7)})


@pytest.mark.parametrize("size", [1, 2, 5])
def test_symbolic_sizes(size: int):
    n = variable("n", 1, 8)
    x = memory(0, n)
    padded = move(Op.PAD, x, ((None, 2),), n)
    cut = move(Op.SHRINK, padded, ((1, None),), n * 2)
    table = move(Op.EXPAND, move(Op.RESHAPE, x, (1, None), n), (3, None), n)
    flat = move(Op.RESHAPE, table, (None,), n * 3)
    wide = move(Op.EXPAND, move(Op.RESHAPE, x, (None, 1), n), (None, None), n, n)
    values = np.linspace(-0.5, 0.8, size)
    for graph in (padded * padded, cut * cut, flat * flat, wide * wide):
        check(graph, [x], {0: values}, variables={"n": size})


def test_gradients_through_symbolic_boxes_have_the_shape_of_the_source():
    n = variable("n", 2, 8)
    x = memory(0, n)
    inner = move(Op.SHRINK, x, ((1, None),), n)
    shifted = move(Op.PAD, move(Op.SHRINK, x, ((0, None),), n - 1), ((0, 0),))
    (found,) = derive(inner * shifted + inner, [x])
    assert found.shape == (n,)
    values = np.array([1.0, 2.0, 4.0])
    expected = [2.0, 4.0 + 1 + 1, 2.0 + 1]
    assert evaluate(found, {0: values}, {"n": 3}).tolist() == expected


@pytest.mark.parametrize("case", range(30))
def test_random_chains(case: int):
    generator = random.Random(case)
    node, array = X, VALUES
    for _ in range(5):
        if array.size < 200 and array.ndim < 6:
            node, array = random_movement(generator, node, array)
    (found,) = derive(node * node, [X])
    numbers = np.arange(VALUES.size).reshape(VALUES.shape)
    counts = np.zeros(VALUES.size)
    # Every address that an element reaches adds twice the element.
    reached = evaluate(node, {0: numbers + 1.0}).astype(int)
    np.add.at(counts, reached[reached > 0] - 1, 1)
    expected = 2 * VALUES * counts.reshape(VALUES.shape)
    np.testing.assert_allclose(evaluate(found, {0: VALUES}), expected, atol=1e-12)


def test_sizes_have_no_gradient():
    n = variable("n", 1, 8)
    x = memory(0, n)
    assert gradients(move(Op.PAD, x, ((None, 0),), n), [n]) == [None]

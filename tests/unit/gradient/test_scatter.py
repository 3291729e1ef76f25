"""Rules of SCATTER, and of the gathers that it is the transpose of."""

import numpy as np
import pytest

from tests.unit.gradient.numeric import check, check_second_order, memory
from weft.gradient.batch import batch
from weft.gradient.index import _REDUCED, scatter
from weft.ir.build import buffer, index_of, true
from weft.ir.build import scatter as scatter_node
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.walk import topological
from weft.reference.tensor import evaluate

X, V = memory(0, 5, 2), memory(1, 4, 2)
ROWS = buffer(2, dtypes.int32, (4,), "CPU")
VALUES = {
    0: np.array([[0.7, -1.3], [2.1, 0.2], [1.2, 0.4], [-0.9, 1.7], [-0.3, 0.6]]),
    1: np.array([[1.1, -2.0], [0.8, 1.4], [-1.6, 0.9], [2.3, -0.5]]),
    2: np.array([3, 0, 3, 9], np.int32),
}
OPEN = ROWS < 5


@pytest.mark.parametrize("op", _REDUCED)
def test_scatters(op: int):
    check(scatter_node(X * 1.5, V * V, OPEN, [ROWS], op), [X, V], VALUES)


@pytest.mark.parametrize("op", [Op.ADD, Op.MUL])
def test_second_order(op: int):
    check_second_order(scatter_node(X * X, V, OPEN, [ROWS], op), X, VALUES)
    check_second_order(scatter_node(X, V * V, OPEN, [ROWS], op), V, VALUES)


@pytest.mark.parametrize("zeros", [[(0, 0)], [(0, 0), (2, 0)], [(1, 1)]])
def test_products_with_zeros(zeros: list[tuple[int, int]]):
    values = VALUES[1].copy()
    for address in zeros:
        values[address] = 0.0
    check(scatter_node(X, V, OPEN, [ROWS], Op.MUL), [X, V], {**VALUES, 1: values})


def test_the_gradient_of_a_gather():
    gathered = index_of(X * X, [ROWS], OPEN)
    check(gathered, [X], VALUES)
    check_second_order(gathered, X, VALUES)
    assert scatter(gathered, V, Op.ADD).op == Op.SCATTER


def test_what_nothing_names_twice_is_chosen():
    one = index_of(X, [buffer(2, dtypes.int32, (1,), "CPU")])
    found = scatter(one, index_of(V, [buffer(2, dtypes.int32, (1,), "CPU")]), Op.ADD)
    assert not any(node.op in (Op.SCATTER, Op.REDUCE) for node in topological(found))


@pytest.mark.parametrize("batched", [{0}, {1}, {2}, {0, 1}, {0, 1, 2}])
def test_a_batch_of_scatters(batched: set[int]):
    node = scatter_node(X, V, OPEN, [ROWS], Op.ADD)
    leaves = {0: X, 1: V, 2: ROWS}
    generator = np.random.default_rng(0)
    arrays = dict(VALUES)
    grown = {}
    for number in batched:
        leaf = leaves[number]
        arrays[number + 10] = np.stack([generator.permuted(VALUES[number]) for _ in range(3)])
        grown[leaf] = buffer(number + 10, leaf.dtype, arrays[number + 10].shape, "CPU")
    (many,) = batch([node], grown, 3)
    found = evaluate(many, arrays)
    for example in range(3):
        own = {n: arrays[n + 10][example] if n in batched else VALUES[n] for n in leaves}
        np.testing.assert_allclose(found[example], evaluate(node, own), rtol=1e-6)


def test_scatters_by_a_scalar():
    node = scatter_node(X, memory(1, 2), true(), [buffer(2, dtypes.int32, (), "CPU")], Op.ADD)
    given = {0: VALUES[0], 1: VALUES[1][0], 2: np.array(3, np.int32)}
    want = VALUES[0].copy()
    want[3] += VALUES[1][0]
    np.testing.assert_allclose(evaluate(node, given), want)

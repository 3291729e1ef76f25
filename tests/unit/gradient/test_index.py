"""The gradient of a gather: repeated indices, masks, several indexed axes, narrow dtypes."""

import numpy as np
import pytest

from tests.unit.gradient.numeric import check, check_second_order, check_torch, derive, memory
from weft.gradient.reverse import gradients
from weft.ir.build import index_of, variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.reference.tensor import evaluate

X = memory(0, 4, 3)
VALUES = np.linspace(-1.0, 1.3, 12).reshape(4, 3)
ROWS = np.array([[3, 0], [1, 1]], np.int32)
COLUMNS = np.array([[2, 1], [0, 0]], np.int32)
ROW, COLUMN = (memory(number, 2, 2, dtype=dtypes.int32) for number in (1, 2))
ARRAYS = {0: VALUES, 1: ROWS, 2: COLUMNS}


def square(node: UOp) -> UOp:
    return node * node


@pytest.mark.parametrize(
    "gathered",
    [
        index_of(X, [ROW]),
        index_of(X, [ROW, COLUMN]),
        index_of(X, [const(dtypes.int32, 2), COLUMN]),
        index_of(X, [const(dtypes.int32, 2)]),
        index_of(X, [const(dtypes.int64, 1), const(dtypes.int64, 2)]),
        index_of(X, [ROW + 2], ROW < 2),
        index_of(X, [ROW], const(dtypes.bool, False)),
        index_of(X, [const(dtypes.int32, 9)], const(dtypes.bool, False)),
    ],
)
def test_gather(gathered: UOp):
    check(square(gathered), [X], ARRAYS)


def test_second_order():
    check_second_order(square(index_of(X, [ROW])) * 0.5, X, ARRAYS)


def test_indices_have_no_gradient():
    assert gradients(index_of(X, [ROW]), [ROW]) == [None]


def test_narrow_indices_do_not_wrap():
    x, i = memory(0, 300), memory(1, 2, dtype=dtypes.int8)
    (found,) = derive(index_of(x, [i]), [x])
    result = evaluate(found, {0: np.zeros(300), 1: np.array([1, 127], np.int8)})
    assert np.flatnonzero(result).tolist() == [1, 127]


def test_symbolic_sizes():
    n, m = variable("n", 1, 8), variable("m", 1, 8)
    x = memory(0, n, 2)
    positions = make(Op.IOTA, dtypes.int32, (m,), (None,)) % 2
    gathered = square(index_of(x, [positions]))
    values = np.arange(6.0).reshape(3, 2) / 3
    check(gathered, [x], {0: values}, variables={"n": 3, "m": 5})


@pytest.mark.peers("torch")
def test_gather_as_torch():
    torch = pytest.importorskip("torch")
    rows, columns = torch.tensor(ROWS).long(), torch.tensor(COLUMNS).long()

    def constants(array: np.ndarray) -> UOp:
        """The indices as a graph, because only inputs with gradients are compared."""
        flat = make(Op.IOTA, dtypes.int32, (), (array.size,))
        result = flat * 0
        for address, value in enumerate(array.reshape(-1)):
            result = flat.equal(address).where(flat.const_like(int(value)), result)
        return make(Op.RESHAPE, dtypes.int32, (result,), array.shape)

    i, j = constants(ROWS), constants(COLUMNS)
    check_torch(lambda x: index_of(x, [i]), lambda x: x[rows], VALUES)
    check_torch(lambda x: index_of(x, [i, j]), lambda x: x[rows, columns], VALUES)

"""Builders of movement ops: the shapes they make, with ints and with symbolic sizes."""

import pytest

from weft.ir import movement
from weft.ir.build import bind, param, variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of

N = variable("n", 1, 8)
ROWS = param(0, dtypes.float32, (2, 3))
SYMBOLIC = param(1, dtypes.float32, (N, 3))


@pytest.mark.parametrize(
    ("node", "shape"),
    [
        (movement.reshape(ROWS, (3, 2)), (3, 2)),
        (movement.permute(ROWS, (1, 0)), (3, 2)),
        (movement.flip(ROWS, (0,)), (2, 3)),
        (movement.pad(SYMBOLIC, ((1, 1), (0, 2))), (N + 2, 5)),
        (movement.shrink(SYMBOLIC, ((0, N), (1, 3))), (N, 2)),
        (movement.broadcast(ROWS, (4, 2, 3)), (4, 2, 3)),
        (movement.broadcast(SYMBOLIC, (4, N, 3)), (4, N, 3)),
        (movement.broadcast_axes(ROWS, 1, (5, 2, 3, 4)), (5, 2, 3, 4)),
        (movement.full(dtypes.int32, 7, (2, N)), (2, N)),
        (movement.zeros_like(SYMBOLIC), (N, 3)),
        (movement.iota(N), (N,)),
        (movement.positions((2, N), 1), (2, N)),
    ],
)
def test_shapes(node, shape):
    assert shape_of(node) == shape


def test_what_has_its_shape_already_is_left_alone():
    assert movement.expand(ROWS, (2, 3)) is ROWS
    assert movement.broadcast(ROWS, (2, 3)) is ROWS
    assert movement.as_shape(SYMBOLIC, (N, 3)) is SYMBOLIC
    assert movement.reshape(ROWS, (2, 3)).op == Op.RESHAPE


def test_a_step_with_values_has_no_symbolic_sizes():
    n = bind(N, 4)
    step = movement.boxed_step(Op.SHRINK, ((0, n), (1, 3)))
    assert movement.step_pairs(step) == [(0, n), (1, 3)]
    assert movement.with_values(step) == (Op.SHRINK, ((0, 4), (1, 3)), ())
    sized = movement.sized_step(Op.RESHAPE, (n, 3))
    assert movement.with_values(sized) == (Op.RESHAPE, (4, 3), ())


def test_every_second_element_along_an_axis():
    node = movement.apply_all(ROWS, movement.strided_steps((2, 3), 1, 2))
    assert shape_of(node) == (2, 2)

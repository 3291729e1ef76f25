"""Layouts over several devices: the rule of each op, and where operands meet."""

import pytest

from weft.ir.build import index_of, param, reduce_axes, scan_axis, scatter, variable
from weft.ir.dtypes import dtypes
from weft.ir.layouts import Layout, even_layout, has_layout, layout_of
from weft.ir.layouts_index import counts_along
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.support.errors import DeviceError

TWO = ("CPU", "CPU:1")
f32, i32 = dtypes.float32, dtypes.int32
true = const(dtypes.bool, True)


def sharded(number: int, shape: tuple, axis: int | None, dtype=f32, sizes=None) -> UOp:
    layout = even_layout(TWO, axis, 0 if axis is None else shape[axis])
    layout = layout if sizes is None else layout._replace(sizes=sizes)
    return make(Op.BUFFER, dtype, (), (number, shape, tuple(layout)))


rows, columns = sharded(0, (6, 4), 0), sharded(1, (6, 4), 1)
whole = sharded(2, (6, 4), None)
uneven = sharded(3, (5, 4), 0)
tokens, numbers = sharded(4, (8,), 0, i32), sharded(5, (8,), None, i32)
table = sharded(6, (10, 4), None)


def move(op: int, value: UOp, arg: tuple, *sizes: UOp) -> UOp:
    return make(op, f32, (value, *sizes), arg)


def counted(size: int, shape: tuple, axis: int) -> UOp:
    ones = tuple(size if n == axis else 1 for n in range(len(shape)))
    column = make(Op.RESHAPE, i32, (make(Op.IOTA, i32, (), (size,)),), ones)
    return make(Op.EXPAND, i32, (column,), shape)


HALVES = (3, 3)
CASES = {
    "memory": (rows, (0, HALVES)),
    "whole memory": (whole, (None, ())),
    "SHARD": (make(Op.SHARD, f32, (rows,), (TWO, 1, (1, 3))), (1, (1, 3))),
    "a whole operand is cut": (rows + whole, (0, HALVES)),
    "the first cut counts": (columns + rows, (1, (2, 2))),
    "a number": (rows * const(f32, 2), (0, HALVES)),
    "PERMUTE": (move(Op.PERMUTE, rows, (1, 0)), (1, HALVES)),
    "RESHAPE that merges": (move(Op.RESHAPE, uneven, (20,)), (0, (12, 8))),
    "RESHAPE that splits": (move(Op.RESHAPE, rows, (2, 3, 4)), (0, (1, 1))),
    "RESHAPE inside": (move(Op.RESHAPE, rows, (6, 2, 2)), (0, HALVES)),
    "RESHAPE with an axis in front": (move(Op.RESHAPE, rows, (1, 6, 4)), (1, HALVES)),
    "RESHAPE that cuts rows": (move(Op.RESHAPE, uneven, (4, 5)), (None, ())),
    "RESHAPE of an inner axis": (move(Op.RESHAPE, columns, (24,)), (None, ())),
    "EXPAND": (move(Op.EXPAND, move(Op.RESHAPE, rows, (1, 6, 4)), (2, 6, 4)), (1, HALVES)),
    "SHRINK of another axis": (move(Op.SHRINK, rows, ((0, 6), (1, 3))), (0, HALVES)),
    "SHRINK of the axis": (move(Op.SHRINK, rows, ((0, 5), (0, 4))), (None, ())),
    "PAD of another axis": (move(Op.PAD, rows, ((0, 0), (1, 0))), (0, HALVES)),
    "PAD of the axis": (move(Op.PAD, rows, ((1, 0), (0, 0))), (None, ())),
    "FLIP of another axis": (move(Op.FLIP, rows, (1,)), (0, HALVES)),
    "FLIP of the axis": (move(Op.FLIP, rows, (0,)), (None, ())),
    "REDUCE of another axis": (reduce_axes(rows, Op.ADD, (1,)), (0, HALVES)),
    "REDUCE of the axis": (reduce_axes(rows, Op.ADD, (0,)), (None, ())),
    "SCAN of another axis": (scan_axis(rows, Op.ADD, 1), (0, HALVES)),
    "SCAN of the axis": (scan_axis(rows, Op.ADD, 0), (None, ())),
    "INDEX by what is cut": (index_of(table, (tokens,), true), (0, (4, 4))),
    "INDEX of another axis": (index_of(columns, (numbers,), true), (1, (2, 2))),
    "INDEX of the axis": (index_of(rows, (numbers,), true), (None, ())),
    "INDEX that counts": (
        index_of(rows, (counted(6, (6, 2), 0), counted(2, (6, 2), 1)), true),
        (0, HALVES),
    ),
    "SCATTER of updates that are cut": (
        scatter(table, index_of(table, (tokens,), true), true, (tokens,), Op.ADD),
        (None, ()),
    ),
    "SCATTER into another axis": (
        scatter(columns, index_of(columns, (numbers,), true), true, (numbers,), Op.ADD),
        (1, (2, 2)),
    ),
    "AFTER": (
        make(Op.AFTER, f32, (rows, make(Op.STORE, dtypes.void, (rows, columns)))),
        (0, HALVES),
    ),
    "a symbolic size elsewhere": (
        move(Op.SHRINK, rows, ((0, 6), (0, None)), variable("n", 1, 4)),
        (0, HALVES),
    ),
    "CALL": (make(Op.CALL, f32, (rows,), param(0, f32, (6, 4)) * 2.0), (0, HALVES)),
}


@pytest.mark.parametrize("case", CASES)
def test_rule(case: str):
    node, (axis, sizes) = CASES[case]
    assert layout_of(node) == Layout(TWO, axis, sizes)


def test_one_device_has_no_layout():
    plain = make(Op.BUFFER, f32, (), (9, (4,), "CPU"))
    assert layout_of(plain + 1.0) is None
    assert layout_of(make(Op.COPY, f32, (rows,), "CPU")) is None
    assert layout_of(counted(4, (4,), 0)) is None
    assert not has_layout(plain)
    assert has_layout(rows)


def test_cuts_that_differ_meet_in_the_first():
    first = sharded(20, (6, 4), 0)
    assert layout_of(first + sharded(21, (6, 4), 1)) == layout_of(first)
    with pytest.raises(DeviceError, match="on different devices"):
        layout_of(rows * make(Op.SHARD, f32, (rows,), (("CPU", "CPU:2"), 0, HALVES)))


def test_parts_differ_by_one():
    assert even_layout(("a", "b", "c"), 0, 8).sizes == (3, 3, 2)
    assert even_layout(("a", "b", "c"), 0, 8).bounds == [(0, 3), (3, 6), (6, 8)]
    assert even_layout(("a", "b"), None).part((4, 2), 1) == (4, 2)
    assert even_layout(("a", "b"), 1, 3).part((4, 3), 1) == (4, 1)


def test_counting_indices():
    count = counted(6, (2, 6), 1)
    wrapped = (count < 0).where(count + 6, count)
    assert counts_along(wrapped) == 1
    assert counts_along(count * 1 + 0) == 1
    assert counts_along(count + 1) is None
    assert counts_along((count < 3).where(count + 6, count)) is None
    assert counts_along(tokens) is None

"""Grids within the limits of every axis."""

import math
from dataclasses import replace

import pytest

from tests.unit.machines import machine
from weft.codegen.lower.hardware import grid_values
from weft.ir.bounds import bounds
from weft.ir.build import index_of, param, range_, store, variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.support.errors import NotSupported
from weft.target.memory import Grid

LIMITS = (1000, 20, 20)
UNLIMITED = machine(group_threads=8)
MACHINE = replace(UNLIMITED, grid=Grid(8, LIMITS))


def grid(*extents: int | UOp, on=MACHINE) -> list[int]:
    """The groups of each axis that ranges of these extents, the outermost first, are given."""
    ranges = [range_(number, extent) for number, extent in enumerate(extents)]
    address = index_of(param(0, dtypes.float32, extents), ranges)
    one = store(address, const(dtypes.float32, 1.0), ranges)
    loops = tuple((number, "grid") for number in range(len(extents)))
    values = grid_values(make(Op.KERNEL, dtypes.void, (one,), ("k", loops)), on)
    assert set(values) == set(ranges)
    for r, value in values.items():
        assert bounds(value) == bounds(r)
    counters = {n.arg[1]: n for n in topological(*values.values()) if n.op == Op.SPECIAL}
    return [bounds(counters[axis].src[0])[1] for axis in sorted(counters)]


@pytest.mark.parametrize(
    ("extents", "expected"),
    [
        ((7,), [7]),
        ((5, 6), [6, 5]),
        ((5, 6, 7), [7, 6, 5]),
        ((2, 5, 6, 7), [7, 6, 10]),
        ((21, 6), [126]),  # y is too long: both on x
        ((2, 21, 6), [252]),
        ((3, 8, 5, 6), [720]),  # z would have 24
        ((21, 500), None),  # 21 is too long for y, and both for x
        ((500, 20), [500, 20]),
        ((500, 19, 18), [500, 18, 19]),
        ((variable("n", 1, 30), 6), [180]),  # a size is as long as it can be
    ],
    ids=str,
)
def test_axes(extents: tuple[int | UOp, ...], expected: list[int] | None):
    if expected is None:
        with pytest.raises(NotSupported, match="more groups than the target allows"):
            grid(*extents)
    else:
        found = grid(*extents)
        assert found == expected
        assert all(size <= limit for size, limit in zip(found, LIMITS, strict=False))


def test_a_machine_without_limits():
    assert grid(10**6, 10**6, on=UNLIMITED) == [10**6, 10**6]


def test_a_machine_without_groups_counts_once():
    assert grid(5, 6, 7, on=machine()) == [math.prod((5, 6, 7))]

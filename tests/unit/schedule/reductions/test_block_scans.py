"""Long scans of few rows are scans of blocks, and a scan of what those sum up to."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.machines import machine
from tests.unit.schedule.fuse.test_fuse import TARGET, p
from weft.ir.build import buffer, scan_axis, sink, store
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import substitute, topological
from weft.reference.tensor import evaluate
from weft.schedule.context import Body, ScheduleContext
from weft.schedule.reductions.block_scans import block_count, block_scans
from weft.schedule.schedule import make_schedule
from weft.target.target import Target

SHORTEST = TARGET.costs.least_scan
# The same with a scan that is long sooner.
SOON = replace(TARGET, costs=replace(TARGET.costs, least_scan=32))


def sums(x: UOp, axis: int, op: int = Op.ADD) -> UOp:
    return scan_axis(x, op, axis)


def never(body: UOp) -> Body:
    raise AssertionError("nothing here calls")


def blocked(scan: UOp, target: Target = SOON) -> tuple[UOp, UOp]:
    """The graph before and after the pass."""
    root = sink(store(p(0, *shape_of(scan), dtype=scan.dtype), scan))
    return root, block_scans(root, ScheduleContext(root, target, never))


def test_a_short_or_broad_scan_is_left_whole():
    assert block_count(sums(p(1, SHORTEST - 1), 0), TARGET) == 1
    assert block_count(sums(p(1, SHORTEST, 2), 0), TARGET) == 1
    assert block_count(sums(p(1, SHORTEST), 0), TARGET) == 8
    assert block_count(sums(p(1, SHORTEST), 0), machine(units=1)) == 1
    before, after = blocked(sums(p(1, SHORTEST - 1), 0), TARGET)
    assert after is before


@pytest.mark.parametrize("size", [8 * SHORTEST, 8 * SHORTEST + 3])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_long_scan_is_two_kernels(size: int, axis: int):
    shape = (size, 1) if axis == 0 else (1, size)
    x = p(1, *shape, dtype=dtypes.int32)
    made = make_schedule(sink(store(p(0, *shape, dtype=dtypes.int32), sums(x, axis))), TARGET)
    assert [call.arg.arg[0].split("_")[0] for call in made.kernels.src] == ["reduce", "scan"]


@pytest.mark.parametrize("op", [Op.ADD, Op.MAX, Op.MUL])
@pytest.mark.parametrize("size", [36, 64, 67])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_blocks_give_what_the_scan_gives(op: int, size: int, axis: int, seed: int):
    shape = (size, 1) if axis == 0 else (1, size)
    x = p(1, *shape, dtype=dtypes.int32)
    graphs = blocked(sums(x, axis, op))
    assert graphs[0] is not graphs[1]
    numbers = np.random.default_rng(seed).integers(-3, 4, shape).astype(np.int32)
    memory = {1: numbers, 0: np.zeros(shape, np.int32)}
    results = []
    for graph in graphs:
        params = [node for node in topological(graph) if node.op == Op.PARAM]
        own = {node: buffer(node.arg[0], node.dtype, shape, "CPU") for node in params}
        values = {slot: each.copy() for slot, each in memory.items()}
        results.append(evaluate(substitute(graph, own), values)[0])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(("dtype", "wide"), [(dtypes.float32, True), (dtypes.float64, False)])
def test_a_long_sum_of_floats_is_wide_inside(dtype: DType, wide: bool):
    _, after = blocked(sums(p(1, 64, dtype=dtype), 0))
    scans = [node for node in topological(after) if node.op == Op.SCAN]
    assert {node.dtype for node in scans} == {dtypes.float64}
    assert any(node.op == Op.CAST for node in topological(after)) == wide

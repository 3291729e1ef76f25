"""Reductions over packed numbers have accumulators enough, and give what their kernels mean."""

import math

import pytest

from tests.unit.codegen.choose.simd.test_contraction import MACHINE
from tests.unit.codegen.kernels import Case
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft import Tensor
from weft.codegen.analysis.loops import UNROLL, extent_of, kinds_of, own_ranges, ranges_of
from weft.codegen.choose import heuristic
from weft.codegen.context import CodegenContext
from weft.codegen.generate import generate
from weft.codegen.lower.normalize_kernel import normalize_kernel
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.schedule import make_schedule

WIDE = machine(MACHINE, vector_bits=512, vector_registers=32)
NARROW = machine(MACHINE, vector_bits=256, vector_registers=16)


def packed_product(rows: int, blocks: int) -> UOp:
    """Rows of blocks of 32 codes, two in a byte, each block with a scale, times a vector."""
    codes = Tensor(param(1, dtypes.uint8, (rows * blocks, 1, 16)))
    scales = Tensor(param(2, dtypes.float16, (rows * blocks, 1)))
    x = Tensor(param(3, dtypes.float32, (1, blocks * 32)))
    shifts = (Tensor.arange(2) * 4).cast(dtypes.uint8).reshape(1, 2, 1)
    halves = ((codes >> shifts) & 15).flatten(1).cast(dtypes.float32)
    weights = (scales.cast(dtypes.float32) * halves).reshape(rows, blocks * 32)
    result = x @ weights.T
    graph = sink(store(param(0, result.dtype, result.shape), result.uop))
    (call,) = make_schedule(graph, MACHINE).kernels.src
    kernel: UOp = call.arg
    return kernel


def accumulators(kernel: UOp) -> int:
    """Copies of the reduction along its own ranges; rows would be other streams of memory."""
    kinds, ranges = kinds_of(kernel), ranges_of(kernel)
    (reduction,) = [node for node in topological(kernel) if node.op == Op.REDUCE]
    own = {r.arg for r in own_ranges(reduction)}
    unrolled = [n for n, kind in kinds.items() if kind == UNROLL]
    assert set(unrolled) <= own
    return math.prod(extent_of(ranges[n]) or 0 for n in unrolled)


@pytest.mark.parametrize(("blocks", "count"), [(18, 12), (48, 12), (5, 10), (7, 2), (1, 2)])
def test_accumulators_come_from_the_ranges_around_the_lanes(blocks: int, count: int) -> None:
    kernel = normalize_kernel(packed_product(64, blocks), CodegenContext(WIDE))
    assert accumulators(heuristic.choose_opts(kernel, WIDE)[1]) == count


def test_a_machine_of_few_registers_has_fewer() -> None:
    kernel = normalize_kernel(packed_product(64, 18), CodegenContext(NARROW))
    assert (
        accumulators(heuristic.choose_opts(kernel, NARROW)[1]) <= NARROW.vectors_in_registers // 2
    )


@pytest.mark.parametrize("target", [MACHINE, NARROW, WIDE])
@pytest.mark.parametrize(("rows", "blocks"), [(3, 6), (2, 7), (5, 1)])
def test_gives_what_the_kernel_means(target, rows: int, blocks: int, seed: int) -> None:
    check(Case(packed_product(rows, blocks), exact=False), target, None, seed)


def test_shifts_of_copies_are_constants_and_scales_are_converted_in_lanes() -> None:
    program = generate(packed_product(64, 18), WIDE)
    shifts = [node for node in topological(program.instructions) if node.op == Op.SHR]
    assert shifts
    assert all(node.src[1].op == Op.CONST for node in shifts)
    casts = [node for node in topological(program.instructions) if node.op == Op.CAST]
    assert {c.dtype.lanes for c in casts if c.src[0].dtype.scalar is dtypes.float16} == {16}

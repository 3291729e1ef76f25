"""Threads that reduce together, run by the interpreter with its checks of barriers and races."""

import random
from dataclasses import replace

import pytest

from tests.unit.codegen.kernels import CASES, softmax_inline
from tests.unit.codegen.opts.test_random_opts import random_schedule
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft.codegen.analysis.loops import nodes_of, own_ranges
from weft.codegen.generate import before_opts
from weft.codegen.opts.table import Bind, Split, Unroll, Vectorize
from weft.ir.build import index_of, load, param, range_, reduce_ranges, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.program import Program
from weft.ir.uop import UOp, make
from weft.support.errors import OptRefused
from weft.target.compute import Simt

# Small warps, so that small kernels have several.
WARPS = machine(group_threads=64, vector_bits=128)
WARPS = replace(WARPS, compute=Simt(warp=4, has_shuffles=True))
NO_SHUFFLES = replace(WARPS, compute=Simt(warp=4))
ROUNDS = 6
REDUCTIONS = [name for name, case in CASES.items() if case().kernel.ops >> Op.REDUCE & 1]


def reduced(kernel: UOp) -> list[int]:
    """The first range of each reduction."""
    found = [own_ranges(node)[0].arg for node in nodes_of(kernel) if node.op == Op.REDUCE]
    return sorted(set(found))


def count(program: Program, op: int) -> int:
    return sum(node.op == op for node in program.instructions.src)


@pytest.mark.parametrize("target", [WARPS, NO_SHUFFLES], ids=["shuffles", "memory"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_all_reductions_by_threads(name: str, target, seed: int):
    """Each reduction is split over four threads, where legality allows it."""
    case = CASES[name]()
    kernel, opts = before_opts(case.kernel, target), []
    for number in reduced(kernel):
        fresh = 1 + max(n for n, _ in kernel.arg[1])
        try:
            split = Split(number, 4, "mask").apply(kernel)
            kernel = Bind(fresh, "thread").apply(split)
        except OptRefused:
            continue
        opts += [Split(number, 4, "mask"), Bind(fresh, "thread")]
    check(case, target, opts, seed)


@pytest.mark.parametrize("target", [WARPS, NO_SHUFFLES], ids=["shuffles", "memory"])
@pytest.mark.parametrize("name", CASES)
def test_random_opts(name: str, target, seed: int):
    rng = random.Random(seed)
    case = CASES[name]()
    kernel = before_opts(case.kernel, target)
    for number in range(ROUNDS):
        opts = random_schedule(rng, kernel)
        print(name, number, opts)
        check(case, target, opts, seed + number)


def by_threads(columns: int, threads: int, target=WARPS) -> Program:
    """A softmax whose three loops over columns go to threads."""
    case = softmax_inline(3, columns)
    opts = []
    kernel = before_opts(case.kernel, target)
    inner = [number for number, _ in kernel.arg[1]][1:]
    fresh = 1 + max(n for n, _ in kernel.arg[1])
    for number in inner:
        if columns != threads:
            opts += [Split(number, threads, "mask"), Bind(fresh, "thread")]
            fresh += 1
        else:
            opts.append(Bind(number, "thread"))
    return check(case, target, opts)


def test_a_warp_needs_no_memory():
    program = by_threads(8, 4)
    assert count(program, Op.SHUFFLE) == 2 * 2 and count(program, Op.BARRIER) == 0


def test_warps_meet_in_memory():
    program = by_threads(16, 8)
    assert count(program, Op.SHUFFLE) == 2 * 2 and count(program, Op.BARRIER) > 0


def test_threads_that_are_no_power_of_two():
    program = by_threads(12, 12)
    assert count(program, Op.SHUFFLE) == 2 * 2  # 12 threads are three warps of 4


def test_a_part_of_a_warp_has_no_shuffles():
    assert count(by_threads(6, 6), Op.SHUFFLE) == 0


def test_copies_and_lanes_join_before_threads_do():
    case = softmax_inline(2, 64)
    kernel = before_opts(case.kernel, WARPS)
    opts, fresh = [], 1 + max(n for n, _ in kernel.arg[1])
    for number in [n for n, _ in kernel.arg[1]][1:]:
        opts += [Split(number, 4), Vectorize(fresh), Split(number, 4), Bind(fresh + 1, "thread")]
        opts.append(Unroll(number))
        fresh += 2
    program = check(case, WARPS, opts)
    assert count(program, Op.SHUFFLE) == 2 * 2
    loads = [node for node in program.instructions.src if node.op == Op.LOAD]
    assert len(loads) == 4  # each thread keeps its part of the row for all three loops


def test_threads_with_loops_of_different_lengths_do_not_meet():
    out, x = param(0, dtypes.float32, (8,)), param(1, dtypes.float32, (8, 8))
    i = range_(0, 8)
    k = range_(1, i + 1)
    value = reduce_ranges(load(index_of(x, [i, k])), Op.ADD, [k])
    kernel = make(
        *(Op.KERNEL, dtypes.void, (store(index_of(out, [i]), value, [i]),)),
        ("triangle", ((0, "loop"), (1, "loop"))),
    )
    with pytest.raises(OptRefused, match="depends on another range"):
        Bind(1, "thread").apply(kernel)

"""Every kind of kernel gives what it means, on every kind of machine, with and without opts."""

from dataclasses import replace

import pytest

from tests.unit.codegen.kernels import CASES
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft.codegen.opts.table import Stage
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.target.compute import Simt
from weft.target.target import Costs

MACHINES = {
    "one_thread": machine(),
    "vectors": machine(vector_bits=128),
    "vectors_and_threads": machine(vector_bits=128, units=2, costs=Costs(launch=0.0)),
    "groups": machine(group_threads=8),
    "groups_and_vectors": machine(group_threads=8, vector_bits=64),
    "warps": replace(
        machine(group_threads=64, vector_bits=128),
        compute=Simt(units=2, warp=4, group_threads=16, line_bytes=32, has_shuffles=True),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_without_opts(name: str, seed: int):
    check(CASES[name](), machine(), (), seed)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", CASES)
def test_with_the_heuristic(name: str, machine: str, seed: int):
    check(CASES[name](), MACHINES[machine], None, seed)


def count(program: UOp, op: int) -> int:
    return sum(node.op == op for node in program.src)


def test_two_reductions_share_a_loop():
    program = check(CASES["two_sums"](), machine(), ())
    assert count(program.instructions, Op.RANGE) == 2
    assert count(program.instructions, Op.LOAD) == 1 + 2 + 2  # x once, both accumulators twice


def test_two_runs_of_a_loop_make_what_both_use():
    share = Stage(("again", 2, 1), (2,))
    program = check(CASES["sum_of_a_sum_and_its_row"](), machine(), (share,))
    # Around the row: its loop and the inner sum. For each element: the reduction and the inner
    # sum.
    assert count(program.instructions, Op.RANGE) == 1 + 2 + 1 + 2


def test_loads_are_hoisted_out_of_loops_they_do_not_depend_on():
    program = check(CASES["broadcast"](), machine(), ())
    ops = [node.op for node in program.instructions.src]
    inner = [i for i, op in enumerate(ops) if op == Op.RANGE][2]
    assert ops[:inner].count(Op.LOAD) == 1
    assert ops[inner:].count(Op.LOAD) == 1


def test_launch_sizes_parameters_and_estimate():
    machine = MACHINES["groups"]
    program = check(CASES["matmul"](), machine, None)
    assert program.groups == (6,)
    assert program.threads == (8,)
    assert [p.is_written for p in program.parameters] == [True, False, False]
    assert [p.is_read for p in program.parameters] == [False, True, True]
    assert program.estimate.operations == 2 * 6 * 8 * 10
    assert program.estimate.bytes_read == 4 * (60 + 80)
    assert program.estimate.bytes_written == 4 * 48


def test_in_place_parameters_are_read_and_written():
    program = check(CASES["adam"](), machine(), ())
    assert [(p.is_read, p.is_written) for p in program.parameters] == [(True, True)] * 3 + [
        (True, False)
    ]


def test_symbolic_sizes_are_variables():
    program = check(CASES["symbolic"](), machine(), ())
    assert [node.arg[0] for node in program.variables] == ["n"]

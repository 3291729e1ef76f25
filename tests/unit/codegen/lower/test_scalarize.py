"""On a target of threads, vectors are loaded and stored and nothing else."""

import random

import pytest

from tests.unit.codegen.kernels import CASES
from tests.unit.codegen.opts.test_random_opts import random_schedule
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft.codegen.generate import before_opts
from weft.codegen.opts.table import Split, Vectorize
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.program import Program

THREADS = machine(group_threads=8, vector_bits=128)
ROUNDS = 4
MANY = machine(group_threads=64, vector_bits=128)


def verify_scalar(program: Program) -> None:
    for node in program.instructions.src:
        lanes = max([node.dtype.lanes, *(source.dtype.lanes for source in node.src)])
        assert node.op not in ELEMENTWISE or lanes == 1, node
        assert node.op != Op.INDEX or node.src[1].dtype.lanes == 1, node


@pytest.mark.parametrize("name", CASES)
def test_with_the_heuristic(name: str, seed: int):
    verify_scalar(check(CASES[name](), THREADS, None, seed))


@pytest.mark.parametrize("name", CASES)
def test_random_opts(name: str, seed: int):
    rng = random.Random(seed)
    case = CASES[name]()
    kernel = before_opts(case.kernel, MANY)
    for number in range(ROUNDS):
        opts = random_schedule(rng, kernel)
        print(name, number, opts)
        verify_scalar(check(case, MANY, opts, seed + number))


def accesses(program: Program) -> list[tuple[int, int]]:
    """The op and the lanes of each access."""
    found = [n for n in program.instructions.src if n.op in (Op.LOAD, Op.STORE)]
    return [(node.op, node.src[0].dtype.lanes) for node in found]


def test_memory_is_moved_in_vectors():
    program = check(CASES["elementwise"](), THREADS, None)
    assert {lanes for _, lanes in accesses(program)} == {4}


def test_lanes_with_masks_of_their_own_are_moved_one_by_one():
    case = CASES["odd_sizes"]()
    number = max(r for r, _ in before_opts(case.kernel, THREADS).arg[1])
    program = check(case, THREADS, (Split(number, 4, "mask"), Vectorize(number + 1)))
    verify_scalar(program)
    assert {lanes for _, lanes in accesses(program)} == {1}


def test_a_target_of_vectors_keeps_them():
    program = check(CASES["elementwise"](), machine(vector_bits=128), None)
    assert any(n.op in ELEMENTWISE and n.dtype.lanes > 1 for n in program.instructions.src)

"""Products that run ahead of a loop: their order, and what goes wrong in another one."""

import math

import numpy as np
import pytest

from tests.unit.codegen.linear.test_stream import (
    CASES,
    Case,
    arguments,
    computed,
    formula,
    kernel_of,
    program_of,
    scores,
    softmax,
    square,
)
from weft.ir.ops import Op
from weft.ir.program import Program
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph
from weft.reference.program import run_program
from weft.support.errors import InternalError

LONG = Case(
    ((1, 128, 16), (1, 296, 16), (1, 296, 16)),
    lambda q, k, v: q.scaled_dot_product_attention(k, v),
    lambda q, k, v: softmax(scores(q, k)) @ v,
)


def long_program(stages: int = 2) -> Program:
    kernel, _ = kernel_of(LONG)
    return program_of(kernel, (128, 64), stages)


def kind(node: UOp) -> str:
    if node.op == Op.MBARRIER and node.arg[0] == "wait" and node.src[1].op != Op.CONST:
        return "wait for others"
    if node.op in (Op.MBARRIER, Op.MMA_GROUP):
        return str(node.arg[0])
    return {Op.MMA: "multiply", Op.EXP2: "power", Op.RANGE: "loop", Op.END: "end"}.get(node.op, "")


def test_the_work_stands_between_a_product_and_the_wait_for_it():
    steps = [kind(node) for node in long_program().instructions.src]
    order = [step for n, step in enumerate(steps) if step and step != steps[n - 1]]
    first = order.index("loop")
    shown = [s for s in order[first:] if s not in ("fence", "commit", "computed", "expect")]
    shown = [step for n, step in enumerate(shown) if step != shown[n - 1]]
    assert shown == [
        *("loop", "arrive", "power", "wait", "ready", "arrive"),
        *("wait", "multiply"),  # for the scores of the next step
        *("wait for others", "loop", "end", "wait for others", "loop", "end", "ready", "end"),
        "ready",
    ]


@pytest.mark.parametrize("stages", [2, 3])
def test_slots_are_filled_again(stages: int):
    got, wanted = computed(LONG, (128, 64), stages)
    np.testing.assert_allclose(got, wanted, atol=1e-2)


def edited(program: UOp, name: str, less: bool = False) -> UOp:
    """The program without some instructions, or with waits that leave one group less."""

    def moved(node: UOp, made: dict[UOp, UOp]) -> UOp:
        if not node.src:
            return node
        if node is program:
            kept = [line for line in node.src if less or kind(line) != name]
            return make(node.op, node.dtype, tuple(made[line] for line in kept))
        if kind(node) == name and not less:
            return made[node.src[-1]]
        arg = node.arg
        if kind(node) == name:
            arg = (arg[0], arg[1] + 1)
        return make(node.op, node.dtype, tuple(made[s] for s in node.src), arg)

    return map_graph(program, moved)


FAULTS = {
    "nobody says that a slot is free": ("arrive", False, "wait for threads that do not come"),
    "nobody waits for other warps": (
        *("wait for others", False),
        "factor.* is overwritten while a warp may multiply it",
    ),
    "sums are read too soon": ("ready", True, "is not what is complete"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str):
    what, less, message = FAULTS[name]
    program = long_program()
    with pytest.raises(InternalError, match=message):
        memories = arguments(LONG, program)[0]
        run_program(edited(program.instructions, what, less), memories)


def loops(program: Program) -> int:
    return sum(node.op == Op.RANGE for node in program.instructions.src)


def test_blocks_in_front_of_a_diagonal_are_not_masked():
    """A branch masks the scores of a block, where positions bound what masks leave out."""
    plain = loops(long_program())
    for name, more in {"causal": 1, "window": 1, "mask in memory": 0}.items():
        kernel, _ = kernel_of(CASES[name])
        assert loops(program_of(kernel)) == plain + more, name


def test_a_mask_of_another_sense():
    case = Case(
        square(136, 16),
        lambda q, k, v: formula(q, k, v, behind),
        lambda q, k, v: softmax(behind(scores(q, k))) @ v,
    )
    got, wanted = computed(case)
    np.testing.assert_allclose(got, wanted, atol=1e-2)


def behind(s):
    """Scores of which each query leaves the nearest keys out."""
    from tests.unit.codegen.linear.test_stream import indices
    from weft import Tensor

    i, j = indices(s)
    where = Tensor.where if isinstance(s, Tensor) else np.where
    return where((i - j < 3) & (j - i < 70), -math.inf, s)


def test_many_registers_are_not_ahead():
    """Blocks of 256 keys leave no registers for the scores of two steps."""
    kernel, _ = kernel_of(LONG)
    program = program_of(kernel, (64, 256))
    assert not any(kind(node) == "arrive" for node in program.instructions.src)
    got, wanted = computed(LONG, (64, 256))
    np.testing.assert_allclose(got, wanted, atol=1e-2)

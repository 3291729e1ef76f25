"""Accumulators: one for each reduction, and for each iteration that holds one."""

import pytest

from tests.unit.codegen.kernel_parts import F32, Case, at, exp, kernel, put, total
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft.codegen.analysis.loops import with_loops
from weft.codegen.context import CodegenContext
from weft.codegen.generate import before_opts
from weft.codegen.lower.lower_reductions import lower_reductions
from weft.codegen.opts.table import Stage, Unroll
from weft.ir.build import param, range_
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.support.errors import OptRefused

MACHINE = machine()


def sum_of_exponentials_of_sums() -> Case:
    """out[i] = sum over j of exp(sum over k of a[i, j, k])"""
    out, a = param(0, F32, (4,)), param(1, F32, (4, 3, 5))
    i, j, k = range_(0, 4), range_(1, 3), range_(2, 5)
    value = total(exp(total(at(a, i, j, k) * 0.25, k)), j)
    return Case(kernel("nested", put(out, [i], value, [i])))


def lowered(case: Case, kinds: dict[int, str]) -> UOp:
    shaped = before_opts(case.kernel, MACHINE)
    loops = [(number, kinds.get(number, kind)) for number, kind in shaped.arg[1]]
    return lower_reductions(with_loops(shaped, loops), CodegenContext(MACHINE))


def accumulators(kernel_: UOp) -> dict[str, int]:
    """How many stores write each accumulator."""
    counts: dict[str, int] = {}
    for node in topological(kernel_):
        if node.op == Op.STORE:
            memory = node.src[0].src[0]
            while memory.op == Op.AFTER:
                memory = memory.src[0]
            if memory.op == Op.MEMORY:
                counts[memory.arg[0]] = counts.get(memory.arg[0], 0) + 1
    return counts


def test_an_accumulator_has_a_first_value_and_an_update():
    assert accumulators(lowered(sum_of_exponentials_of_sums(), {})) == {"acc0": 2, "acc1": 2}


def test_a_reduction_in_written_out_iterations_has_an_accumulator_in_each():
    counts = accumulators(lowered(sum_of_exponentials_of_sums(), {1: "sequential"}))
    assert counts == {f"acc{number}": 2 for number in range(4)}  # three inside, one outside
    check(sum_of_exponentials_of_sums(), MACHINE, [Unroll(1, sequential=True)])


def test_both_of_two_nested_reductions_are_written_out():
    counts = accumulators(
        lowered(sum_of_exponentials_of_sums(), {1: "sequential", 2: "sequential"})
    )
    assert counts == {f"acc{number}": 2 for number in range(4)}
    opts = [Unroll(1, sequential=True), Unroll(2, sequential=True)]
    check(sum_of_exponentials_of_sums(), MACHINE, opts)


def test_a_stage_that_iterations_would_each_fill_is_refused():
    out, a, b = param(0, F32, (4, 2)), param(1, F32, (4, 3)), param(2, F32, (3, 2))
    i, j, k = range_(0, 4), range_(1, 2), range_(2, 3)
    case = kernel("matmul", put(out, [i, j], total(at(a, i, k) * at(b, k, j), k), [i, j]))
    written = Unroll(2, sequential=True).apply(before_opts(case, MACHINE))
    with pytest.raises(OptRefused, match="filled once per iteration of range 2"):
        Stage(("factor", 2, 1), (1,)).apply(written)
    Stage(("factor", 2, 1), (2, 1)).apply(written)

"""Opts: the examples of their docstrings, what they refuse, and what they make of kernels."""

import inspect
import re
import textwrap

import pytest

from tests.unit.codegen.kernels import CASES
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft.codegen.opts import table as module
from weft.codegen.opts.table import (
    OPTS,
    Accumulate,
    Bind,
    Merge,
    Opt,
    Order,
    Split,
    Stage,
    Unroll,
    Vectorize,
    apply_opts,
)
from weft.ir.ops import Op
from weft.ir.spec.kernel import KERNEL_SPEC
from weft.ir.spec.spec import verify
from weft.ir.text import parse
from weft.support.errors import OptRefused

EXAMPLE = re.compile(r"opt: (.+)\nbefore:\n((?: {4}.*\n)+)after:\n((?: {4}.*\n?)+)")


@pytest.mark.parametrize("opt", OPTS, ids=lambda opt: opt.__name__)
def test_examples_are_true(opt: type[Opt]):
    examples = EXAMPLE.findall(inspect.getdoc(opt) or "")
    assert examples, "the docstring of an opt shows a kernel before and after"
    for text, before, after in examples:
        kernel = parse(textwrap.dedent(before))
        verify(kernel, KERNEL_SPEC)
        result = apply_opts(kernel, [eval(text, vars(module))])
        assert result is parse(textwrap.dedent(after)), text


REFUSED = {
    "no such range": ("elementwise", [Split(7, 2)], "the kernel has no range 7"),
    "factor": ("elementwise", [Split(1, 8)], "the factor 8 is not between 1 and the extent 8"),
    "lanes beyond": (
        "elementwise",
        [Split(1, 16, "mask")],
        "the factor 16 is not between 1 and the extent 8",
    ),
    "symbolic": ("symbolic", [Split(0, 16)], "the factor 16 is not between 1 and the extent 16"),
    "copies of a symbolic range": ("symbolic", [Unroll(2)], "symbolic"),
    "tail": ("elementwise", [Split(1, 3, "wrap")], "a tail is one of clamp, mask"),
    "lanes": ("odd_sizes", [Vectorize(1)], "5 lanes; a vector has one of 2, 4, 8"),
    "two vectors": (
        "elementwise",
        [Split(0, 2), Vectorize(2), Vectorize(1)],
        "a value would have two vector ranges",
    ),
    "scope of a stage": (
        "softmax",
        [Split(0, 2), Unroll(5)],
        "a stage is filled once per iteration",
    ),
    "grid of a reduction": ("matmul", [Bind(2, "grid")], "range 2 is reduced over"),
    "unknown kind": ("elementwise", [Bind(0, "warp")], "not to 'warp'"),
    "stage that copies share": (
        "matmul",
        [Vectorize(1), Stage(("factor", 2, 1), (2,))],
        "a stage is filled once per iteration of range 1",
    ),
    "stage of no window": (
        "matmul",
        [Stage(("factor", 2, 1), ((1, 2),))],
        "the value does not depend on 1 and 2 by overlapping windows",
    ),
    "tap of two windows": (
        "conv",
        [Stage(("factor", 4, 0), ((2, 5), (3, 5)))],
        "a stage is filled over one or more ranges and taps, each named once",
    ),
    "stage over nothing": (
        "matmul",
        [Stage(("factor", 2, 1), ())],
        "a stage is filled over one or more ranges and taps, each named once",
    ),
    "stage of no such node": (
        "matmul",
        [Stage(("store", 2), (1,))],
        "a stage is of (reduction, range), (factor, range, which), (again, range, other)",
    ),
    "stage in no such memory": (
        "matmul",
        [Stage(("factor", 2, 1), (2,), "global")],
        "a stage is in one of local, register, not in 'global'",
    ),
    "stage of a third factor": (
        "matmul",
        [Stage(("factor", 2, 2), (2,))],
        "range 2 is not that of a sum of products, with factors 0 and 1",
    ),
    "stage over a range that the value lacks": (
        "matmul",
        [Stage(("factor", 2, 1), (0,))],
        "the value does not depend on range 0",
    ),
    "layout that is not an expression": (
        "matmul",
        [Stage(("factor", 2, 1), (2, 1), "local", ("i0 +",))],
        "the layout cannot be read",
    ),
    "layout of another position": (
        "matmul",
        [Stage(("factor", 2, 1), (2,), "local", ("i1",))],
        "the layout cannot be read",
    ),
    "layout with two elements in one address": (
        "matmul",
        [Stage(("factor", 2, 1), (2, 1), "local", ("i0 + i1",))],
        "two elements have one address in the layout",
    ),
    "layout below the memory": (
        "matmul",
        [Stage(("factor", 2, 1), (2,), "local", ("i0 - 1",))],
        "an index of the layout is below 0",
    ),
    "iterations of a store": (
        "elementwise",
        [Unroll(1, sequential=True)],
        "is not only reduced over",
    ),
    "row that copies share": (
        "sum_of_a_sum_and_its_row",
        [Unroll(0), Stage(("again", 2, 1), (2,))],
        "a stage is filled once per iteration of range 0",
    ),
    "sum with a scan": ("scan_of_sums", [Accumulate(2)], "the kernel has a scan"),
    "sum of nothing": ("empty_loop", [Accumulate(1)], "range 1 has no iteration"),
    "share with a loop before": (
        "sum_behind_a_sum",
        [Stage(("again", 2, 1), (2,))],
        "no value of the reduction over 2 is computed again over 1",
    ),
    "ordered": ("accumulate_over_an_outer_loop", [Bind(0, "grid")], "range 0 is of kind ordered"),
    "split of a scan": ("scan_rows", [Split(1, 3)], "the iterations of range 1 are ordered"),
    "merge of a scan": ("scan_rows", [Merge(0, 1)], "the iterations of one of them are ordered"),
    "order of a scan": ("scan_rows", [Order((1, 0))], "range 1 is scanned over inside the loops"),
    "grid of a scan": ("scan_rows", [Bind(1, "grid")], "range 1 is of kind ordered"),
    "lanes of a scan": ("scan_of_halves", [Vectorize(1)], "range 1 is of kind ordered"),
    "merge of one": ("sum_rows", [Merge(0, 1)], "a node closes only one of them"),
    "order twice": ("elementwise", [Order((0, 0))], "a range is named twice"),
    "unrolled": ("elementwise", [Unroll(1), Split(1, 2)], "range 1 is a loop no more"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_why(case: str):
    name, opts, reason = REFUSED[case]
    with pytest.raises(OptRefused, match=re.escape(reason)) as error:
        apply_opts(CASES[name]().kernel, opts)
    assert str(error.value).startswith(f"{opts[-1]} refused: ")


SCHEDULES = {
    "uneven tile of a product": (
        "matmul_bias_relu",
        [Split(1, 4, "mask"), Vectorize(3), Split(0, 3), Unroll(4), Split(2, 2), Unroll(5)],
    ),
    "uneven reduction with lanes": ("sum_rows", [Split(1, 5), Split(2, 2), Vectorize(3)]),
    "reduction with masked lanes": ("argmax", [Split(1, 4, "mask"), Vectorize(3)]),
    "uneven stage": ("softmax", [Split(4, 3), Split(1, 3), Split(2, 5), Split(3, 3, "mask")]),
    "stage with lanes": ("softmax", [Split(4, 4), Vectorize(5), Split(1, 2), Unroll(6)]),
    "scattered lanes": ("transpose", [Vectorize(0)]),
    "backward lanes": ("flip", [Split(1, 4), Vectorize(2)]),
    "masked backward lanes": ("flip", [Split(1, 2, "mask"), Split(1, 2), Vectorize(3)]),
    "loops inside out": ("conv", [Order((6, 5, 4, 3, 2, 1, 0))]),
    "window over both axes": ("conv", [Stage(("factor", 4, 0), (4, (2, 5), (3, 6)))]),
    "window of some rows": (
        "conv",
        [
            Split(2, 2),
            Stage(("factor", 4, 0), (4, 6, (7, 5), 3)),
            Unroll(6, sequential=True),
            Unroll(7),
        ],
    ),
    "swizzled panel": (
        "matmul",
        [Stage(("factor", 2, 1), (2, 1), "local", ("i0", "i1 ^ (i0 % 8)")), Split(4, 4)],
    ),
    "rotated panel with lanes": (
        "matmul",
        [Stage(("factor", 2, 1), (2, 1), "local", ("(i1 + i0) % 8", "i0")), Vectorize(1)],
    ),
    "panel in one axis, with gaps": (
        "matmul",
        [Stage(("factor", 2, 0), (0, 2), "register", ("i0 * 12 + i1",)), Unroll(3)],
    ),
    "swizzled window": (
        "conv",
        [Stage(("factor", 4, 0), ((2, 5), (3, 6)), "local", ("i1", "i0"))],
    ),
    "tile of accumulators across": (
        "matmul_bias_relu",
        [Stage(("reduction", 2), (0, 1), "local", ("i1", "i0"))],
    ),
    "row backwards": (
        "softmax_inline",
        [Stage(("again", 2, 1), (2,), "local", ("5 - i0",))],
    ),
    "reduction without a loop": ("sum_rows", [Unroll(1, sequential=True)]),
    "iterations of several reductions": (
        "matmul_bias_relu",
        [Split(2, 3), Unroll(3, sequential=True), Split(0, 2), Unroll(4)],
    ),
    "grid of many ranges": ("conv", [Bind(n, "grid") for n in range(4)]),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str, seed: int):
    case, opts = SCHEDULES[name]
    check(CASES[case](), machine(), opts, seed)


GROUPS = machine(group_threads=64)


def test_threads_that_fill_a_stage_meet_at_barriers(seed: int):
    opts = [Bind(4, "thread"), Bind(1, "thread")]
    program = check(CASES["softmax"](), GROUPS, opts, seed)
    assert program.threads == (8,)
    barriers = [node for node in program.instructions.src if node.op == Op.BARRIER]
    assert len(barriers) == 2  # before the fill, since rows are a loop, and after it


def test_a_stage_outside_of_loops_needs_one_barrier(seed: int):
    opts = [Bind(1, "thread"), Bind(2, "thread")]
    program = check(CASES["transposed_stage"](), GROUPS, opts, seed)
    assert program.threads == (8,)
    barriers = [node for node in program.instructions.src if node.op == Op.BARRIER]
    assert len(barriers) == 1


def test_threads_with_other_extents_leave_work_to_the_first(seed: int):
    opts = [Bind(0, "thread"), Bind(2, "thread")]
    program = check(CASES["transposed_stage"](), GROUPS, opts, seed)
    assert program.threads == (8, 4)


def test_threads_have_copies_of_a_stage_that_depends_on_them(seed: int):
    opts = [Split(0, 2), Bind(5, "thread"), Bind(4, "thread")]
    check(CASES["softmax"](), GROUPS, opts, seed)


SYMBOLIC = {
    "loops": [Split(0, 4), Split(2, 4)],
    "masked loops": [Split(0, 4, "mask"), Split(2, 3, "mask")],
    "lanes": [Split(0, 4, "mask"), Vectorize(4), Split(2, 4, "mask"), Vectorize(5)],
    "copies": [Split(0, 3), Unroll(4), Split(2, 2), Unroll(5)],
    "twice": [Split(0, 2), Split(0, 3), Split(2, 4), Split(5, 2, "mask"), Unroll(6)],
}


@pytest.mark.parametrize("name", SYMBOLIC)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 16])
def test_ranges_of_symbolic_extent_are_split(name: str, size: int, seed: int):
    case = CASES["symbolic"]()._replace(variables={"n": size})
    program = check(case, machine(), SYMBOLIC[name], seed)
    assert [node.arg[0] for node in program.variables] == ["n"]


def test_multiples_of_the_factor_have_no_tail():
    text = """\
n = variable "n" 1..16
p0 = param 0: float32[n * 8]
r0 < n * 8
kernel "k" r0 loop:
  store p0[r0] = 1.0 for r0
"""
    (store,) = apply_opts(parse(text), [Split(0, 4)]).src
    assert store.src[0].src[1].op == Op.CONST


def test_an_empty_range_has_no_iteration_to_clamp_to():
    text = """\
n = variable "n" 0..16
p0 = param 0: float32[16]
r0 < n
kernel "k" r0 loop:
  store p0[r0] = 1.0 for r0
"""
    with pytest.raises(OptRefused, match="may have no last iteration to clamp to"):
        apply_opts(parse(text), [Split(0, 4)])
    assert apply_opts(parse(text), [Split(0, 4, "mask")]).op == Op.KERNEL

"""The list of codegen passes, and that no pass changes what a kernel means."""

import numpy as np
import pytest

from tests.unit.codegen.kernels import CASES
from tests.unit.codegen.oracle import arguments, is_close
from tests.unit.codegen.products import decoded, memories, product
from tests.unit.machines import machine
from weft.codegen.context import CodegenContext
from weft.codegen.generate import generate
from weft.codegen.opts.table import TensorCore
from weft.codegen.phases import CODEGEN
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.reference.kernel import run_kernel
from weft.reference.program import run_program
from weft.rewrite.phase import PassReport
from weft.support.settings import Context as Settings
from weft.target.cuda import cuda_target
from weft.target.target import Target

MACHINE = machine(vector_bits=128)


def test_a_pass_is_called_as_its_function_and_says_why():
    for step in CODEGEN.passes:
        assert step.run.__name__ == step.name.replace("-", "_")
        assert step.because


GROUPS = machine(group_threads=8, vector_bits=64)


@pytest.mark.parametrize("on", [MACHINE, GROUPS], ids=["vectors", "groups"])
@pytest.mark.parametrize("name", CASES)
def test_no_pass_changes_the_meaning_of_a_kernel(name: str, on: Target, seed: int):
    case = CASES[name]()
    expected = arguments(case.kernel, case.variables, seed)
    run_kernel(case.kernel, expected, case.variables)
    kernel, context = case.kernel, CodegenContext(on)
    for step in CODEGEN.passes:
        before, kernel = kernel, step.run(kernel, context)
        if kernel is before:
            continue
        memories = arguments(case.kernel, case.variables, seed)
        run = run_program if kernel.op == Op.LINEAR else run_kernel
        run(kernel, memories, case.variables)
        for want, got in zip(expected, memories, strict=True):
            for x, y in zip(want.values, got.values, strict=True):
                assert is_close(x, y, want.dtype, case.exact), step.name


def test_no_pass_changes_the_meaning_of_a_product_of_tiles():
    case = product(64, 40, 72, epilogue="max(bfloat16(v0) + load p3[r1], bfloat16(0.0))")
    context = CodegenContext(cuda_target("sm_90a"), (TensorCore(0, 1, 2, (64, 64, 128), 2),))
    kernel, contents = case.kernel, []
    for step in CODEGEN.passes:
        before, kernel = kernel, step.run(kernel, context)
        if kernel is before:
            continue
        memory = memories(case, kernel)
        (run_program if kernel.op == Op.LINEAR else run_kernel)(kernel, memory)
        contents.append(decoded(memory[0], dtypes.bfloat16))
    assert kernel.ops >> Op.MMA & 1 and len(contents) > 5
    for found in contents:
        np.testing.assert_array_equal(found, contents[0])


def test_reports_tell_what_each_pass_did():
    reports: list[PassReport] = []
    generate(CASES["elementwise"]().kernel, MACHINE, reports=reports)
    by_name = {report.name: report for report in reports}
    assert by_name["lower-reductions"].skipped
    assert by_name["choose-opts"].changed


def test_noopt_takes_no_opts():
    kernel = CASES["matmul"]().kernel
    with Settings(NOOPT=1):
        program = generate(kernel, MACHINE)
    assert program.instructions is generate(kernel, MACHINE, ()).instructions
    assert program.instructions is not generate(kernel, MACHINE).instructions


def test_the_same_input_gives_the_same_program():
    kernel = CASES["softmax"]().kernel
    assert generate(kernel, MACHINE) == generate(kernel, MACHINE)

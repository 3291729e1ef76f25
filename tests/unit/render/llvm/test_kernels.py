"""From kernel to machine code: what codegen makes of each kind of kernel, rendered and run."""

import pytest

from tests.unit.codegen.kernels import CASES
from tests.unit.codegen.oracle import arguments, is_close
from tests.unit.render.llvm_programs import device, run_native, targets
from weft.codegen.generate import generate
from weft.ir.dtypes import FLOAT
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.program import Program
from weft.reference.kernel import run_kernel
from weft.reference.memory import ElementMemory
from weft.render.llvm.renderer import render
from weft.runtime.host import host_target
from weft.runtime.llvm.compiler import compile_ptx
from weft.target.cuda import cuda_target
from weft.target.target import Target

MACHINES = {target.arch: target for target in targets()} | {"threads": host_target(2)}
SCHEDULES = {"plain": (), "heuristic": None}


def program(name: str, target: Target, schedule: str) -> Program:
    """What codegen makes of a case: nothing in it that the target lacks."""
    made = generate(CASES[name]().kernel, target, SCHEDULES[schedule])
    for node in made.instructions.src:
        is_native = node.op not in ELEMENTWISE or node.op in target.written_ops
        is_small_float = node.dtype.kind == FLOAT and node.dtype.scalar not in target.native_dtypes
        # Bits that an instruction of the target turns into a float32.
        is_widened = node.op == Op.BITCAST and node.dtype.scalar in target.widened_dtypes
        is_rounded = node.op == Op.CAST and node.dtype.scalar in target.rounded_dtypes
        assert is_native and (is_widened or is_rounded or not is_small_float)
    return made


def verify_same(name: str, found: list[ElementMemory], expected: list[ElementMemory]) -> None:
    for slot, (got, want) in enumerate(zip(found, expected, strict=True)):
        for address, (x, y) in enumerate(zip(got.values, want.values, strict=True)):
            assert x is not None and y is not None
            assert is_close(y, x, want.dtype, CASES[name]().exact), (
                f"argument {slot} at {address}: {x}, not {y}"
            )


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", CASES)
def test_machine_code_does_what_the_kernel_means(
    name: str, schedule: str, machine: str, seed: int
):
    target = MACHINES[machine]
    code = program(name, target, schedule)
    case = CASES[name]()
    given = arguments(case.kernel, case.variables, seed)
    expected = [part.copy() for part in given]
    run_kernel(case.kernel, expected, case.variables)
    verify_same(name, run_native(code, given, case.variables, device(target)), expected)
    contracted = run_native(code, given, case.variables, device(target, True))
    verify_same(name, contracted, expected)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", CASES)
def test_every_kernel_becomes_ptx(name: str, schedule: str):
    target = cuda_target("sm_90a")
    assert ".entry" in compile_ptx(render(program(name, target, schedule), target), target)

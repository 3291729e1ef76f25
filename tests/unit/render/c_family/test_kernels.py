"""Kernels of every kind through codegen, run on C and on OpenCL, against what they mean."""

import pytest

from tests.unit.codegen.kernels import CASES
from tests.unit.codegen.oracle import arguments, is_close
from tests.unit.render.c_family_cases import DEVICES, check, device, run_on
from weft.codegen.generate import generate
from weft.ir.dtypes import INDEX, VOID
from weft.ir.ops import ELEMENTWISE
from weft.ir.uop import UOp
from weft.reference.kernel import run_kernel
from weft.reference.lanes import size_value
from weft.target.target import Target


def is_native(instructions: UOp, target: Target) -> bool:
    listed = instructions.src
    dtypes = {node.dtype.scalar for node in listed if node.dtype.kind not in (VOID, INDEX)}
    ops = {node.op for node in listed} & ELEMENTWISE
    return ops <= target.native_ops and dtypes <= target.native_dtypes


@pytest.mark.parametrize("is_plain", [True, False], ids=["plain", "heuristic"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("where", DEVICES)
def test_kernels(where: str, name: str, is_plain: bool, seed: int):
    case = CASES[name]()
    machine = device(where)
    program = generate(case.kernel, machine.target, () if is_plain else None)
    assert is_native(program.instructions, machine.target)
    groups = [
        size if isinstance(size, int) else size_value(size, case.variables)
        for size in program.groups
    ]
    given = arguments(case.kernel, case.variables, seed)
    if is_plain:  # what the program says, to the bit
        check(where, program, given, case.variables, groups)
        return
    expected, result = ([memory.copy() for memory in given] for _ in range(2))
    run_kernel(case.kernel, expected, case.variables)
    run_on(machine, program, result, case.variables, groups)
    for slot, (want, got) in enumerate(zip(expected, result, strict=True)):
        for address, (x, y) in enumerate(zip(want.values, got.values, strict=True)):
            assert is_close(x, y, want.dtype, case.exact), f"slot {slot} at {address}: {x} != {y}"

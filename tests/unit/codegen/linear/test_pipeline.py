"""A product of tiles, copied and multiplied step by step, is what NumPy says."""

import numpy as np
import pytest

from tests.unit.codegen.products import LAYOUTS, Product, decoded, memories, product, rounded
from weft.codegen.generate import generate
from weft.codegen.opts.table import TensorCore
from weft.ir.dtypes import by_name
from weft.ir.ops import Op
from weft.ir.program import Program
from weft.ir.text import parse
from weft.reference.program import run_program
from weft.support.settings import Context
from weft.target.cuda import cuda_target

TARGET = cuda_target("sm_90a")


def program_of(
    case: Product, tile: tuple[int, int, int] = (64, 64, 128), stages: int = 2
) -> Program:
    with Context(SPEC=1):
        return generate(case.kernel, TARGET, (TensorCore(0, 1, 2, tile, stages),))


def require_equal(case: Product, program: Program, out: str) -> None:
    found = memories(case, program.instructions)
    run_program(program.instructions, found)
    dtype = by_name(out)
    np.testing.assert_array_equal(decoded(found[0], dtype), rounded(case.result, dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_layouts(layout: str):
    case = product(64, 64, 128, layout)
    require_equal(case, program_of(case), "bfloat16")


@pytest.mark.parametrize(
    ("sizes", "tile", "stages"),
    [
        ((8, 72, 200), (64, 128, 128), 3),  # more steps than stages, all sizes past a tile's edge
        ((130, 64, 64), (128, 64, 128), 4),  # two warpgroups, one step
        ((64, 64, 200), (64, 64, 256), 2),  # more of the sum in a step
    ],
)
def test_odd_sizes(sizes: tuple[int, int, int], tile: tuple[int, int, int], stages: int):
    case = product(*sizes, dtype="float16")
    require_equal(case, program_of(case, tile, stages), "float16")


def test_panels_of_several_parts():
    case = product(64, 64, 136, "km,kn")
    require_equal(case, program_of(case, (64, 64, 256)), "bfloat16")


def test_columns_that_no_vector_divides():
    case = product(16, 35, 64, "mk,nk")
    require_equal(case, program_of(case), "bfloat16")


def test_what_is_done_with_the_sum():
    case = product(*(64, 64, 64), out="float32", epilogue="max(v0 + float32(load p3[r1]), 0.0)")
    require_equal(case, program_of(case), "float32")


def test_bytes_are_summed_in_integers():
    case = product(64, 64, 128, dtype="int8", out="int32", sums="int32")
    require_equal(case, program_of(case), "int32")


def test_a_sum_of_bytes_wraps():
    case = product(64, 64, 64, dtype="int8", sums="int8")
    case = case._replace(result=(case.result + 128) % 256 - 128)
    require_equal(case, program_of(case), "int8")


def counts(program: Program) -> dict[int, int]:
    ops = [node.op for node in program.instructions.src]
    return {op: ops.count(op) for op in (Op.MMA, Op.COPY_BOX, Op.BARRIER, Op.SHUFFLE)}


def test_instructions_of_a_tile():
    program = program_of(product(256, 512, 512), (128, 256, 128), 4)
    # Four multiplications in the loop; three steps before it and one in it are two copies each; a
    # barrier before the loop and one in it; every pair of sums goes to a neighbor once.
    assert counts(program) == {Op.MMA: 4, Op.COPY_BOX: 8, Op.BARRIER: 2, Op.SHUFFLE: 64}
    assert program.threads == (4, 8, 8) and program.groups == (2, 2)
    assert program.dynamic_bytes == 4 * (128 + 256) * 128 + 4 * 8 + 1024
    assert [each.box for each in program.maps] == [(64, 128), (64, 256)]


def test_panels_of_factors_that_lie_along_columns():
    program = program_of(product(256, 512, 512, "km,kn"), (128, 256, 128), 4)
    assert counts(program)[Op.COPY_BOX] == 4 * (2 + 4)
    assert [each.box for each in program.maps] == [(64, 64), (64, 64)]


HEADS = """p0 = param 0: bfloat16[40, 256]
p1 = param 1: bfloat16[80, 40]
p2 = param 2: bfloat16[4, 80, 64]
r0 < 40
r1 < 4
r2 < 64
r3 < 80
kernel "heads" r0 loop, r1 loop, r2 loop, r3 loop:
  v0 = reduce ADD over r3: float32(load p1[r3, r0]) * float32(load p2[r1, r3, r2])
  store p0[r0, r1 * 64 + r2] = bfloat16(v0) for r0, r1, r2"""


def test_columns_of_several_heads():
    rng = np.random.default_rng(0)
    x, y = rng.integers(-8, 9, (80, 40)) / 8, rng.integers(-8, 9, (4, 80, 64)) / 8
    case = Product(parse(HEADS), (x, y), np.einsum("km,hkc->mhc", x, y))
    opt = TensorCore(0, ((2, 64), (1, 2)), 3, (64, 128, 128), 2)
    with Context(SPEC=1):
        program = generate(case.kernel, TARGET, (opt,))
    require_equal(case, program, "bfloat16")
    assert program.groups == (1, 2)

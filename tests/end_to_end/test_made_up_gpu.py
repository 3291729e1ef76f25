"""A new GPU is one file of data: kernels of the op suite compile for one that was made up.

One row in thirty of each family is compiled, which takes seconds; `test_ptx` compiles them all
where it can.
"""

import math

import pytest

from tests.end_to_end.made_up_gpu import LOOM
from tests.end_to_end.op_table import FAMILIES, LOOPS
from tests.end_to_end.test_ptx import kernels_of, kernels_of_family
from weft.codegen.generate import generate
from weft.ir.ops import Op
from weft.ir.program import Program
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.render.llvm.renderer import render
from weft.runtime.llvm.compiler import compile_ptx
from weft.target.compute import Simt
from weft.target.cuda import cuda_target
from weft.tensor import Tensor

ONE_IN = 30


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in LOOPS])
def test_kernels_compile_and_keep_its_limits(family: str):
    kernels = kernels_of_family(family, LOOM, ONE_IN)
    assert kernels
    for kernel, case in kernels.items():
        program = generate(kernel, LOOM)
        assert program.target == "LOOM:PTX:sm_75"
        assert math.prod(program.threads) <= LOOM.grid.group_threads, case
        limits = zip(program.threads, LOOM.grid.thread_limits, strict=False)
        assert all(size <= limit for size, limit in limits), case
        assert local_bytes(program) <= LOOM.local_bytes, case
        assert widest_access(program) <= LOOM.access_bits, case
        assert ".visible .entry" in compile_ptx(render(program, LOOM), LOOM), case


def local_bytes(program: Program) -> int:
    """The shared memory of a program."""
    memories = [node for node in topological(program.instructions) if node.op == Op.MEMORY]
    return sum(node.arg[2] * node.dtype.itemsize for node in memories if node.arg[1] == "local")


def widest_access(program: Program) -> int:
    """The bits of the widest load or store; small floats are computed in 32."""
    indices = [node for node in topological(program.instructions) if node.op == Op.INDEX]
    return max((node.dtype.bits * node.dtype.lanes for node in indices), default=0)


def of(target, function) -> tuple[UOp, ...]:
    x = Tensor.rand(64, 4096, device="CPU").realize()
    return tuple(kernels_of([function(x)], target))


def test_its_numbers_decide():
    """The same kernel has the threads of the machine that it is for."""
    (kernel,) = of(LOOM, lambda x: x * 2 + 1)
    assert isinstance(LOOM.compute, Simt)
    assert math.prod(generate(kernel, LOOM).threads) == 64  # a power of two, of 96 at most
    assert math.prod(generate(kernel, cuda_target("sm_90a")).threads) == 256


def test_a_small_machine_wants_fewer_parts():
    assert len(of(LOOM, lambda x: x.sum())) == len(of(cuda_target("sm_90a"), lambda x: x.sum()))
    few, many = (of(t, lambda x: x.sum())[0] for t in (LOOM, cuda_target("sm_90a")))
    assert few is not many

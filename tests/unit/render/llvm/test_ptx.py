"""Programs for NVIDIA GPUs become PTX without a GPU."""

import pytest

from tests.unit.render.llvm.test_ops import DTYPES, apply, ops_on
from tests.unit.render.llvm_programs import (
    F32,
    I32,
    after,
    argument,
    at,
    barrier,
    counter,
    end,
    get,
    memory,
    number,
    program,
    put,
    special,
    vector,
    when,
)
from weft.ir.build import variable
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import COMPARE, Op
from weft.ir.program import Program
from weft.ir.uop import UOp, const, make
from weft.render.llvm.renderer import render
from weft.runtime.llvm.compiler import compile_ptx
from weft.support.errors import InternalError, NotSupported
from weft.target.cpu import cpu_target
from weft.target.cuda import cuda_target

TARGET = cuda_target("sm_90a")


def ptx(code: Program, arch: str = "sm_90a") -> str:
    target = cuda_target(arch)
    return compile_ptx(render(code, target), target)


def grid() -> UOp:
    return special("group", 8) * 64 + special("thread", 64)


def test_a_kernel_with_groups_and_threads():
    index = grid()
    value = get(at(argument(1, size=512), index)) * 2.0
    text = ptx(program(put(at(argument(0, size=512), index), value), threads=(64,)))
    assert ".target sm_90a" in text
    assert ".visible .entry under_test(" in text
    assert "%ctaid.x" in text and "%tid.x" in text
    assert "ld.global" in text and "st.global" in text
    assert ".reqntid 64" in text


@pytest.mark.parametrize("arch", ["sm_70", "sm_80", "sm_90a", "sm_100"])
def test_other_architectures(arch: str):
    text = ptx(program(put(at(argument(0), special("thread", 32)), const(F32, 1.0))), arch)
    assert f".target {arch}" in text


def test_shared_memory_and_a_barrier():
    me = special("thread", 64)
    tile = memory("tile", "local", 64)
    fill = put(at(tile, me), get(at(argument(1), me)))
    wait = barrier(fill)
    other = get(at(after(tile, fill, wait), number(63) + me * -1))
    text = ptx(program(fill, wait, other, put(at(argument(0), me), other), threads=(64,)))
    assert ".shared" in text and "bar.sync" in text
    assert "st.shared" in text and "ld.shared" in text


def test_loops_conditions_gates_and_variables():
    size = variable("n", 1, 64)
    keeper = memory("acc", "register", 1)
    me = special("thread", 64)
    clear = put(at(keeper, 0), const(F32, 0.0))
    turn = counter(0, make(Op.CAST, I32, (size,)))
    place = at(after(keeper, clear), 0)
    loaded = get(at(argument(1), turn + me, turn + me < 64))
    add = put(place, get(place) + loaded)
    close = end(turn)
    total = get(at(after(keeper, add, close), 0))
    guard = when(me < 10)
    code = program(
        *(size, clear, turn, add, close, total, guard),
        *(put(at(argument(0), me), total), end(guard)),
        threads=(64,),
    )
    text = ptx(code)
    assert ".local" not in text  # the accumulator is in a register
    assert "@%p" in text
    assert "fma.rn.f32" not in text


def test_a_product_in_a_sum_is_fused():
    me = special("thread", 64)
    a, b, c = (get(at(argument(slot), me)) for slot in (1, 2, 3))
    code = program(put(at(argument(0), me), a * b + c), threads=(64,))
    assert "fma.rn.f32" in ptx(code)
    assert "fma" not in compile_ptx(render(code, TARGET, contract=False), TARGET)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_op_compiles(dtype: DType, lanes: int):
    index = grid() * lanes
    x, y = (get(at(argument(slot, dtype, 4096), index, lanes=lanes)) for slot in (2, 3))
    stores = []
    for position, op in enumerate(ops_on(dtype)):
        out = argument(1, dtypes.bool, 1 << 20) if op in COMPARE else argument(0, dtype, 1 << 20)
        place = at(out, index + position * 4096, lanes=lanes)
        stores.append(put(place, apply(op, x, y)))
    for slot, target in enumerate(DTYPES, 4):
        cast = make(Op.CAST, target.vector(lanes), (x,))
        stores.append(put(at(argument(slot, target, 4096), index, lanes=lanes), cast))
    assert ".entry" in ptx(program(*stores, threads=(64,)))


def test_masked_lanes_compile():
    lanes = vector(*(number(i) for i in range(4)))
    mask = lanes < vector(*[special("thread", 64)] * 4)
    value = get(at(argument(1), 0, mask, 4))
    assert ".entry" in ptx(program(put(at(argument(0), 0, mask, 4), value), threads=(64,)))


def test_an_axis_that_no_gpu_has_is_refused():
    with pytest.raises(InternalError, match="no group axis 3"):
        ptx(program(put(at(argument(0), special("group", 2, 3)), const(F32, 1.0))))


def test_ptx_of_a_cpu_target_is_refused():
    with pytest.raises(NotSupported, match="is not a target of it"):
        compile_ptx("", cpu_target())

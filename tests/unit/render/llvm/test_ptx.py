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
    when,
)
from weft import Tensor
from weft.codegen.generate import generate
from weft.codegen.opts.table import Split, Vectorize
from weft.ir.build import param, sink, store, variable
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import COMPARE, Op
from weft.ir.program import Program
from weft.ir.uop import UOp, const, make
from weft.render.llvm.renderer import render
from weft.runtime.llvm.compiler import compile_ptx
from weft.schedule.schedule import make_schedule
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


def test_loops_masks_and_variables():
    size = variable("n", 1, 64)
    keeper = memory("acc", "register", 1)
    me = special("thread", 64)
    clear = put(at(keeper, 0), const(F32, 0.0))
    iteration = counter(0, make(Op.CAST, I32, (size,)))
    address = at(after(keeper, clear), 0)
    loaded = get(at(argument(1), iteration + me, iteration + me < 64))
    add = put(address, get(address) + loaded)
    close = end(iteration)
    total = get(at(after(keeper, add, close), 0))
    guard = when(7, me < 10)
    code = program(
        *(size, clear, iteration, add, close, total, guard),
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


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_op_compiles(dtype: DType):
    index = grid()
    x, y = (get(at(argument(slot, dtype, 4096), index)) for slot in (2, 3))
    stores = []
    for position, op in enumerate(ops_on(dtype)):
        out = argument(1, dtypes.bool, 1 << 20) if op in COMPARE else argument(0, dtype, 1 << 20)
        address = at(out, index + position * 4096)
        stores.append(put(address, apply(op, x, y)))
    for slot, target in enumerate(DTYPES, 4):
        cast = make(Op.CAST, target, (x,))
        stores.append(put(at(argument(slot, target, 4096), index), cast))
    assert ".entry" in ptx(program(*stores, threads=(64,)))


def copy_of(dtype: DType, index: UOp, lanes: int) -> str:
    value = get(at(argument(1, dtype, 4096), index, lanes=lanes))
    return ptx(program(put(at(argument(0, dtype, 4096), index, lanes=lanes), value)))


@pytest.mark.parametrize(
    ("dtype", "lanes", "access"),
    [
        (dtypes.float32, 4, "v4.b32"),
        (dtypes.float32, 2, "v2.b32"),
        (dtypes.float64, 2, "v2.b64"),
        (dtypes.uint16, 8, "v4.b32"),
        (dtypes.uint8, 16, "v4.b32"),
        (dtypes.bool, 4, "b32"),
    ],
    ids=str,
)
def test_aligned_lanes_are_moved_at_once(dtype: DType, lanes: int, access: str):
    text = copy_of(dtype, grid() * lanes, lanes)
    assert f"ld.global.{access}" in text and f"st.global.{access}" in text
    assert text.count("ld.global") == text.count("st.global") == 1


def test_lanes_are_apart_where_nothing_is_known_of_their_address():
    text = copy_of(F32, grid() * 4 + 1, 4)
    assert text.count("ld.global.b32") == 4
    halves = copy_of(F32, grid() * 4 + 2, 4)
    assert halves.count("ld.global.v2.b32") == 2


def test_bools_are_bytes_in_lanes():
    index = grid() * 4
    value = get(at(argument(1, dtypes.bool, 4096), index, lanes=4))
    lanes = [make(Op.LANES, dtypes.bool, (value,), (i,)) for i in range(4)]
    reversed_lanes = make(Op.VECTOR, value.dtype, (const(dtypes.bool, True), *lanes[:0:-1]))
    text = ptx(program(put(at(argument(0, dtypes.bool, 4096), index, lanes=4), reversed_lanes)))
    assert "ld.global.b32" in text and "st.global.b32" in text


def test_arithmetic_on_lanes_is_refused():
    x = get(at(argument(1), grid() * 4, lanes=4))
    with pytest.raises(InternalError, match="arithmetic on lanes"):
        ptx(program(put(at(argument(0), grid() * 4, lanes=4), x + x)))


def test_an_axis_that_no_gpu_has_is_refused():
    with pytest.raises(InternalError, match="no group axis 3"):
        ptx(program(put(at(argument(0), special("group", 2, 3)), const(F32, 1.0))))


def test_ptx_of_a_cpu_target_is_refused():
    with pytest.raises(NotSupported, match="is not a target of it"):
        compile_ptx("", cpu_target())


def shuffled(dtype: DType, bits: int, threads: tuple[int, ...] = (32,), axis: int = 0) -> str:
    counters = [
        make(Op.SPECIAL, I32, (number(size),), ("thread", n)) for n, size in enumerate(threads)
    ]
    me = counters[0]
    value = get(at(argument(1, dtype, 32), me))
    other = make(Op.SHUFFLE, dtype, (value, counters[axis]), (bits,))
    return ptx(program(*counters, put(at(argument(0, dtype, 32), me), other), threads=threads))


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        *((dtypes.float32, 1), (dtypes.int32, 1), (dtypes.int64, 2), (dtypes.float64, 2)),
        *((dtypes.int8, 1), (dtypes.bool, 1), (dtypes.uint16, 1)),
    ],
    ids=str,
)
def test_threads_exchange_words(dtype: DType, words: int):
    text = shuffled(dtype, 16)
    assert text.count("shfl.sync.bfly.b32") == words
    assert ", 16, 31, -1;" in text


def test_threads_exchange_along_an_axis():
    assert ", 16, 31, -1;" in shuffled(F32, 2, (8, 4), axis=1)


@pytest.mark.parametrize(("dtype", "found"), [(I32, "max.u32"), (dtypes.uint32, "max.s32")])
def test_extremes_of_integers_take_no_negations(dtype: DType, found: str):
    """ptxas loses the sign of a negated operand where it joins two of them."""
    x = Tensor(param(1, dtype, (7,)))
    root = sink(store(param(0, dtype, ()), (-x).max(0).uop))
    (call,) = make_schedule(root, TARGET).kernels.src
    text = compile_ptx(render(generate(call.arg, TARGET), TARGET), TARGET)
    other = "max.s32" if found == "max.u32" else "max.u32"
    assert found in text and other not in text
    assert text.count("xor.b32") >= text.count(found)


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_pairs_are_rounded_at_once(name: str, lanes: int):
    x = Tensor(param(1, F32, (256 * lanes,))) if lanes > 1 else Tensor(param(1, F32, (255,)))
    dtype = getattr(dtypes, name)
    root = sink(store(param(0, dtype, x.shape), x.cast(dtype).uop))
    (call,) = make_schedule(root, TARGET).kernels.src
    opts = (Split(0, lanes), Vectorize(1)) if lanes > 1 else ()
    text = compile_ptx(render(generate(call.arg, TARGET, opts), TARGET), TARGET)
    short = {"float16": "f16", "bfloat16": "bf16"}[name]
    assert text.count(f"cvt.rn.{short}x2.f32") == max(lanes // 2, 1)


def times_a_vector(rows: int, columns: int, arch: str) -> list[str]:
    """The lines of the kernel that multiplies a matrix and a vector."""
    target = cuda_target(arch)
    out = param(0, F32, (rows,))
    x, w = Tensor(param(1, F32, (columns,))), Tensor(param(2, F32, (rows, columns)))
    (call,) = make_schedule(sink(store(out, (w @ x).uop)), target).kernels.src
    program = generate(call.arg, target)
    assert program.waits == (arch != "sm_80")
    return compile_ptx(render(program, target), target).splitlines()


def lines_with(lines: list[str], text: str) -> list[int]:
    return [number for number, line in enumerate(lines) if text in line]


def test_weights_are_read_before_the_wait():
    lines = times_a_vector(1024, 2048, "sm_90a")
    (let_start,) = lines_with(lines, "griddepcontrol.launch_dependents")
    first, wait = lines_with(lines, "griddepcontrol.wait")
    loads = lines_with(lines, "ld.global")
    early = [number for number in loads if number < wait]
    assert let_start < first < early[0]  # if it is told to
    assert len(loads) == 2 * len(early)  # the vector comes behind the wait


@pytest.mark.parametrize("rows", [1024, 65536])
def test_what_is_read_once_is_asked_for_before_the_wait(rows: int):
    x = Tensor(param(1, F32, (rows, 1024)))
    (call,) = make_schedule(sink(store(param(0, F32, (rows,)), x.sum(1).uop)), TARGET).kernels.src
    lines = compile_ptx(render(generate(call.arg, TARGET), TARGET), TARGET).splitlines()
    (let_start,) = lines_with(lines, "griddepcontrol.launch_dependents")
    (wait,) = lines_with(lines, "griddepcontrol.wait")
    asked, loads = lines_with(lines, "prefetch.global.L2"), lines_with(lines, "ld.global")
    assert let_start < asked[0] <= asked[-1] < wait < loads[0]
    assert len(loads) == len(asked)
    # Of many groups only those of the beginning wait.
    assert len(lines_with(lines[let_start:wait], "bra")) == (rows == 65536)


def test_older_gpus_start_kernels_one_by_one():
    lines = times_a_vector(1024, 2048, "sm_80")
    assert not lines_with(lines, "griddepcontrol") and not lines_with(lines, "prefetch")


def test_groups_that_read_early_are_there_at_once():
    assert lines_with(times_a_vector(1024, 2048, "sm_90a"), ".minnctapersm")
    assert not lines_with(times_a_vector(65536, 2048, "sm_90a"), ".minnctapersm")


def test_tiles_of_matrix_units_have_the_registers_that_they_need():
    """What is added to each sum is read early, where a bias is read too."""
    target = cuda_target("sm_90a")
    x, w = (Tensor(param(n, dtypes.bfloat16, (size, 768))) for n, size in ((1, 8192), (2, 768)))
    bias, rest = Tensor(param(3, F32, (768,))), Tensor(param(4, F32, (8192, 768)))
    out = (x @ w).float() + bias + rest
    calls = make_schedule(sink(store(param(0, F32, (8192, 768)), out.uop)), target).kernels.src
    (product,) = (generate(call.arg, target) for call in calls)
    lines = compile_ptx(render(product, target), target).splitlines()
    assert product.early and not lines_with(lines, ".minnctapersm")

"""Loops, conditions, masks, memory, variables and grids: machine code against the interpreter."""

import ctypes

import pytest

from tests.unit.render.llvm_programs import (
    F32,
    FILL,
    I32,
    GuardedPage,
    after,
    agree,
    argument,
    at,
    barrier,
    counter,
    device,
    end,
    get,
    lanes_of,
    memory,
    number,
    numbers,
    program,
    put,
    special,
    targets,
    vector,
    when,
)
from weft.ir.build import variable
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.reference.memory import ElementMemory
from weft.runtime.cpu.memory import CpuMemory


def sum_into(out: UOp, source: UOp, iterations: list[UOp], index: UOp) -> list[UOp]:
    """The steps of a sum over loops, through an accumulator in a register."""
    accumulator = memory("acc", "register", 1)
    clear = put(at(accumulator, 0), const(F32, 0.0))
    so_far = get(at(after(accumulator, clear, *iterations[:1]), 0))
    keep = put(at(after(accumulator, clear), 0), so_far + get(at(source, index)))
    ends = [end(iteration) for iteration in reversed(iterations)]
    total = get(at(after(accumulator, keep, ends[-1]), 0))
    return [clear, *iterations, so_far, keep, *ends, total, put(at(out, 0), total)]


def test_one_loop():
    iteration = counter(0, 16)
    steps = [
        iteration,
        put(at(argument(0), iteration), get(at(argument(1), iteration)) * 2.0),
        end(iteration),
    ]
    agree(program(*steps), [ElementMemory(F32, 64), numbers(64)])


def test_nested_loops_and_an_accumulator():
    outer, inner = counter(0, 4), counter(1, 3)
    steps = sum_into(argument(0), argument(1), [outer, inner], outer * 3 + inner)
    agree(program(*steps), [ElementMemory(F32, 1 << 6), numbers(64)])


@pytest.mark.parametrize("extent", [0, 1, 2, 5])
def test_a_loop_whose_extent_is_loaded_may_not_run(extent: int):
    bound = get(at(argument(2, I32), 0))
    iteration = counter(0, bound)
    out = argument(0)
    code = program(
        bound, iteration, put(at(out, iteration), get(at(argument(1), iteration))), end(iteration)
    )
    agree(code, [ElementMemory(F32, 64), numbers(64), ElementMemory(I32, 64, [extent] * 64)])


@pytest.mark.parametrize("extent", [0, 1])
def test_a_loop_of_known_extent_runs_as_often(extent: int):
    iteration = counter(0, extent)
    code = program(iteration, put(at(argument(0), iteration), const(F32, 7.0)), end(iteration))
    agree(code, [ElementMemory(F32, 64)])


def test_a_loop_inside_depends_on_the_one_around():
    outer = counter(0, 6)
    inner = counter(1, outer + 1)
    code = program(
        outer,
        inner,
        put(at(argument(0), outer * 6 + inner), inner.cast(F32)),
        end(inner),
        end(outer),
    )
    agree(code, [ElementMemory(F32, 64)])


def test_loops_over_64_bits():
    iteration = counter(0, 8, dtypes.int64)
    big = iteration * (1 << 40) + (1 << 41)
    code = program(
        iteration,
        put(at(argument(0, dtypes.int64), iteration), big),
        put(at(argument(1), iteration * 3), const(F32, 1.0)),
        end(iteration),
    )
    agree(code, [ElementMemory(dtypes.int64, 64), ElementMemory(F32, 64)])


def test_loops_that_may_be_empty_nest():
    iteration = counter(0, 12)
    value = get(at(argument(1), iteration))
    outside, inside = when(7, iteration < 8), when(8, const(F32, 3.5) < value)
    code = program(
        iteration,
        value,
        outside,
        put(at(argument(0), iteration), value),
        inside,
        put(at(argument(0), iteration + 16), value),
        end(inside),
        end(outside),
        end(iteration),
    )
    agree(code, [ElementMemory(F32, 64), numbers(64)])


@pytest.mark.parametrize("dtype", [F32, dtypes.bool, dtypes.int8, dtypes.float64])
@pytest.mark.parametrize("lanes", [1, 4])
def test_masked_access(dtype: DType, lanes: int):
    iteration = counter(0, 8)
    mask = iteration < 5
    value = get(at(argument(1, dtype, 32), iteration * 4, mask, lanes))
    code = program(
        iteration,
        value,
        put(at(argument(0, dtype), iteration * 4, lanes=lanes), value),
        put(at(argument(2, dtype), iteration * 4, ~mask, lanes), value),
        put(at(argument(2, dtype), 60, mask=False), lanes_of(value, 0)),
        end(iteration),
    )
    source = ElementMemory(dtype, 32, [i % 3 for i in range(32)])
    agree(code, [ElementMemory(dtype, 64), source, ElementMemory(dtype, 64)])


def test_a_mask_that_is_always_false_loads_zero():
    code = program(put(at(argument(0), 0), get(at(argument(1), 1 << 30, mask=False)) + 1.0))
    agree(code, [ElementMemory(F32, 64), numbers(64)])


def first_lanes(value: int, lanes: int) -> UOp:
    """Which lanes lie below a loaded bound."""
    lane_numbers = vector(*(number(lane) for lane in range(lanes)))
    return lane_numbers < const(lane_numbers.dtype, value)


@pytest.mark.parametrize("dtype", [F32, dtypes.bool, dtypes.int8, dtypes.int64])
def test_masked_lanes(dtype: DType):
    lanes = 8
    value = get(at(argument(1, dtype), 3, first_lanes(5, lanes), lanes))
    code = program(
        value,
        put(at(argument(0, dtype), 0, lanes=lanes), value),
        put(at(argument(0, dtype), 16, first_lanes(3, lanes), lanes), value),
    )
    agree(
        code, [ElementMemory(dtype, 64), ElementMemory(dtype, 64, [i % 2 + 1 for i in range(64)])]
    )


@pytest.mark.parametrize("opened", ["1000", "0100", "1110", "1011", "0110", "1111"])
@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int8, dtypes.bool])
def test_lanes_that_are_known_to_be_open(dtype: DType, opened: str):
    wide = get(at(argument(1, dtypes.int64), 0, lanes=4)) + const(dtypes.int64.vector(4), -7)
    value = make(Op.CAST, dtype.vector(4), (wide,))
    mask = vector(*(const(dtypes.bool, lane == "1") for lane in opened))
    code = program(wide, value, put(at(argument(0, dtype), 2, mask, 4), value))
    agree(code, [ElementMemory(dtype, 64, [1] * 64), ElementMemory(dtypes.int64, 64, range(64))])


def test_masked_memory_inside_the_kernel():
    inside = memory("r", "register", 4)
    first = put(at(inside, 0, lanes=4), get(at(argument(1), 8, lanes=4)))
    iteration = counter(0, 6)
    seen = get(at(after(inside, first), iteration, iteration < 4))
    code = program(first, iteration, put(at(argument(0), iteration), seen), end(iteration))
    agree(code, [ElementMemory(F32, 64), numbers(64)])


def run_on_pages(steps: list[UOp], memories: list[CpuMemory]) -> None:
    code = program(*steps)
    for target in targets():
        device(target).load(code)(memories, (), ())


def test_what_is_masked_off_is_not_touched():
    """The last floats of a page lie before one that may not be touched at all."""
    source, out = GuardedPage(16), GuardedPage(16)
    source.memory.view.cast("f")[:] = memoryview(b"".join([b"\0\0\x80?"] * 4)).cast("f")
    iteration = counter(0, 64)
    inside = iteration < 4
    value = get(at(argument(1), iteration, inside))
    run_on_pages(
        [iteration, value, put(at(argument(0), iteration, inside), value + 1.0), end(iteration)],
        [out.memory, source.memory],
    )
    assert out.memory.view.cast("f").tolist() == [2.0] * 4


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_lanes_that_are_masked_off_are_not_touched(lanes: int):
    source, out = GuardedPage(12), GuardedPage(12)
    value = get(at(argument(1), 0, first_lanes(3, lanes), lanes))
    run_on_pages(
        [
            value,
            put(at(argument(0), 0, first_lanes(3, lanes), lanes), value + const(value.dtype, 1.0)),
        ],
        [out.memory, source.memory],
    )
    assert out.memory.view.cast("f").tolist() == [1.0] * 3


def test_lanes_before_the_memory_are_not_touched():
    source, out = GuardedPage(24, is_first=True), GuardedPage(24, is_first=True)
    inside = ~first_lanes(2, 8)
    value = get(at(argument(1), -2, inside, 8))
    run_on_pages(
        [value, put(at(argument(0), -2, inside, 8), value + const(value.dtype, 1.0))],
        [out.memory, source.memory],
    )
    assert out.memory.view.cast("f").tolist() == [1.0] * 6


def test_a_vector_that_is_masked_off_is_not_touched():
    source, out = GuardedPage(16), GuardedPage(16)
    iteration = counter(0, 1000)
    value = get(at(argument(1), iteration * 4, iteration < 1, 4))
    address = at(argument(0), iteration * 4, iteration < 1, 4)
    run_on_pages(
        [iteration, value, put(address, value), end(iteration)], [out.memory, source.memory]
    )


def test_an_address_far_outside_is_not_touched():
    far = const(dtypes.int64, 1 << 45)
    value = get(at(argument(1), far, get(at(argument(2, dtypes.bool), 0))))
    data = [ctypes.create_string_buffer(64) for _ in range(3)]
    memories = [CpuMemory(ctypes.addressof(part), 64, part) for part in data]
    run_on_pages([put(at(argument(0), 0), value + 5.0)], memories)
    assert memories[0].view.cast("f")[0] == 5.0


def test_local_memory_is_shared_by_a_barrier_on_one_thread():
    iteration, back = counter(0, 64), counter(1, 64)
    local = memory("tile", "local", 64)
    fill = put(at(local, iteration), get(at(argument(1), iteration)))
    wait = barrier(fill)
    seen = get(at(after(local, fill, wait), number(63) + back * -1))
    code = program(
        iteration, fill, end(iteration), wait, back, put(at(argument(0), back), seen), end(back)
    )
    agree(code, [ElementMemory(F32, 64), numbers(64)])


def test_variables_are_sizes_and_values():
    size = variable("n", 1, 20)
    iteration = counter(0, make(Op.CAST, I32, (size,)))
    value = (make(Op.CAST, I32, (size * 3 + 1,)) + iteration).cast(F32)
    code = program(size, iteration, put(at(argument(0), iteration), value), end(iteration))
    for n in (1, 7, 20):
        agree(code, [ElementMemory(F32, 64)], {"n": n})


def test_several_variables_come_in_the_order_of_the_program():
    sizes = [variable(name, 0, 100) for name in ("b", "a")]
    stores = [
        put(at(argument(0, dtypes.int64), i), make(Op.CAST, dtypes.int64, (size,)))
        for i, size in enumerate(sizes)
    ]
    agree(program(*stores), [ElementMemory(dtypes.int64, 64)], {"a": 3, "b": 50})


def test_a_grid_of_three_axes():
    x, y, z = special("group", 4, 2), special("group", 3, 1), special("group", 2, 0)
    index = z * 12 + y * 4 + x
    value = (z * 100 + y * 10 + x).cast(F32)
    agree(program(put(at(argument(0), index), value)), [ElementMemory(F32, 64)])


def test_a_grid_of_symbolic_size():
    rows = variable("rows", 1, 8)
    y, x = special("group", make(Op.CAST, I32, (rows,)), 0), special("group", 5, 1)
    code = program(rows, put(at(argument(0), y * 5 + x), (y * 10 + x).cast(F32)))
    for count in (1, 3, 8):
        agree(code, [ElementMemory(F32, 64)], {"rows": count})


def test_one_thread_of_a_group_is_number_zero():
    code = program(put(at(argument(0), special("thread", 1)), const(F32, 3.0)), threads=(1,))
    agree(code, [ElementMemory(F32, 64)])


def test_indices_that_wrap_are_computed_in_their_own_width():
    """An int32 that wraps on purpose must not be widened before it does."""
    x = get(at(argument(1, I32), 0))
    wrapped = (x + x) & number(63)
    code = program(put(at(argument(0), wrapped), const(F32, 1.0)))
    agree(code, [ElementMemory(F32, 64), ElementMemory(I32, 64, [(1 << 30) + 5] * 64)])
    moved = x + number(1 << 30) + number(1 << 30) + number(-(1 << 31) + 3)
    code = program(put(at(argument(0), moved), const(F32, 1.0)))
    agree(
        code, [ElementMemory(F32, 64), ElementMemory(I32, 64, [7 - (1 << 32) & 0x7FFFFFFF] * 64)]
    )


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.uint16, dtypes.uint32])
def test_narrow_and_unsigned_indices(dtype: DType):
    size = 256
    iteration = counter(0, 32, dtype)
    offset = get(at(argument(1, dtype, size), iteration))
    code = program(
        iteration,
        offset,
        put(at(argument(0, F32, size), offset), iteration.cast(F32)),
        end(iteration),
    )
    values = [min(int(dtype.max), 255) - i for i in range(size)]
    agree(code, [ElementMemory(F32, size), ElementMemory(dtype, size, values)])


def test_index_arithmetic_with_division_and_choice():
    iteration = counter(0, 30)
    index = make(Op.FLOORDIV, I32, (iteration, number(7)))
    rest = make(Op.FLOORMOD, I32, (iteration * 5 + -3, number(11)))
    clamped = (index * 11 + rest).minimum(number(40)).maximum(number(2))
    chosen = make(Op.WHERE, I32, (iteration < 15, clamped, iteration + 30))
    code = program(
        iteration, put(at(argument(0), iteration), get(at(argument(1), chosen))), end(iteration)
    )
    agree(code, [ElementMemory(F32, 64), numbers(64)])


def test_untouched_memory_keeps_its_contents():
    code = program(put(at(argument(0, dtypes.uint8), 5), const(dtypes.uint8, 1)))
    data = bytearray([FILL]) * 64
    cpu = device(targets()[0])
    cpu.load(code)([cpu.wrap(data)], (), ())
    assert [i for i, byte in enumerate(data) if byte != FILL] == [5]

"""Loops, conditions, gates, memory, variables and grids: machine code against the interpreter."""

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
from weft.reference.memory import Memory
from weft.runtime.cpu.memory import CpuMemory


def sum_into(out: UOp, source: UOp, turns: list[UOp], index: UOp) -> list[UOp]:
    """The steps of a sum over loops, through an accumulator in a register."""
    accumulator = memory("acc", "register", 1)
    clear = put(at(accumulator, 0), const(F32, 0.0))
    so_far = get(at(after(accumulator, clear, *turns[:1]), 0))
    keep = put(at(after(accumulator, clear), 0), so_far + get(at(source, index)))
    ends = [end(turn) for turn in reversed(turns)]
    total = get(at(after(accumulator, keep, ends[-1]), 0))
    return [clear, *turns, so_far, keep, *ends, total, put(at(out, 0), total)]


def test_one_loop():
    turn = counter(0, 16)
    steps = [turn, put(at(argument(0), turn), get(at(argument(1), turn)) * 2.0), end(turn)]
    agree(program(*steps), [Memory(F32, 64), numbers(64)])


def test_nested_loops_and_an_accumulator():
    outer, inner = counter(0, 4), counter(1, 3)
    steps = sum_into(argument(0), argument(1), [outer, inner], outer * 3 + inner)
    agree(program(*steps), [Memory(F32, 1 << 6), numbers(64)])


@pytest.mark.parametrize("extent", [0, 1, 2, 5])
def test_a_loop_whose_extent_is_loaded_may_not_run(extent: int):
    bound = get(at(argument(2, I32), 0))
    turn = counter(0, bound)
    out = argument(0)
    code = program(bound, turn, put(at(out, turn), get(at(argument(1), turn))), end(turn))
    agree(code, [Memory(F32, 64), numbers(64), Memory(I32, 64, [extent] * 64)])


@pytest.mark.parametrize("extent", [0, 1])
def test_a_loop_of_known_extent_runs_as_often(extent: int):
    turn = counter(0, extent)
    code = program(turn, put(at(argument(0), turn), const(F32, 7.0)), end(turn))
    agree(code, [Memory(F32, 64)])


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
    agree(code, [Memory(F32, 64)])


def test_loops_over_64_bits():
    turn = counter(0, 8, dtypes.int64)
    big = turn * (1 << 40) + (1 << 41)
    code = program(
        turn,
        put(at(argument(0, dtypes.int64), turn), big),
        put(at(argument(1), turn * 3), const(F32, 1.0)),
        end(turn),
    )
    agree(code, [Memory(dtypes.int64, 64), Memory(F32, 64)])


def test_loops_that_may_be_empty_nest():
    turn = counter(0, 12)
    value = get(at(argument(1), turn))
    outside, inside = when(7, turn < 8), when(8, const(F32, 3.5) < value)
    code = program(
        turn,
        value,
        outside,
        put(at(argument(0), turn), value),
        inside,
        put(at(argument(0), turn + 16), value),
        end(inside),
        end(outside),
        end(turn),
    )
    agree(code, [Memory(F32, 64), numbers(64)])


@pytest.mark.parametrize("dtype", [F32, dtypes.bool, dtypes.int8, dtypes.float64])
@pytest.mark.parametrize("lanes", [1, 4])
def test_gated_access(dtype: DType, lanes: int):
    turn = counter(0, 8)
    gate = turn < 5
    value = get(at(argument(1, dtype, 32), turn * 4, gate, lanes))
    code = program(
        turn,
        value,
        put(at(argument(0, dtype), turn * 4, lanes=lanes), value),
        put(at(argument(2, dtype), turn * 4, ~gate, lanes), value),
        put(at(argument(2, dtype), 60, gate=False), lanes_of(value, 0)),
        end(turn),
    )
    source = Memory(dtype, 32, [i % 3 for i in range(32)])
    agree(code, [Memory(dtype, 64), source, Memory(dtype, 64)])


def test_a_gate_that_is_always_false_loads_zero():
    code = program(put(at(argument(0), 0), get(at(argument(1), 1 << 30, gate=False)) + 1.0))
    agree(code, [Memory(F32, 64), numbers(64)])


def mask(value: int, lanes: int) -> UOp:
    """Which lanes lie below a loaded bound."""
    lane_numbers = vector(*(number(lane) for lane in range(lanes)))
    return lane_numbers < const(lane_numbers.dtype, value)


@pytest.mark.parametrize("dtype", [F32, dtypes.bool, dtypes.int8, dtypes.int64])
def test_masked_lanes(dtype: DType):
    lanes = 8
    value = get(at(argument(1, dtype), 3, mask(5, lanes), lanes))
    code = program(
        value,
        put(at(argument(0, dtype), 0, lanes=lanes), value),
        put(at(argument(0, dtype), 16, mask(3, lanes), lanes), value),
    )
    agree(code, [Memory(dtype, 64), Memory(dtype, 64, [i % 2 + 1 for i in range(64)])])


@pytest.mark.parametrize("opened", ["1000", "0100", "1110", "1011", "0110", "1111"])
@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int8, dtypes.bool])
def test_lanes_that_are_known_to_be_open(dtype: DType, opened: str):
    wide = get(at(argument(1, dtypes.int64), 0, lanes=4)) + const(dtypes.int64.vector(4), -7)
    value = make(Op.CAST, dtype.vector(4), (wide,))
    gate = vector(*(const(dtypes.bool, lane == "1") for lane in opened))
    code = program(wide, value, put(at(argument(0, dtype), 2, gate, 4), value))
    agree(code, [Memory(dtype, 64, [1] * 64), Memory(dtypes.int64, 64, range(64))])


def test_gated_memory_inside_the_kernel():
    inside = memory("r", "register", 4)
    first = put(at(inside, 0, lanes=4), get(at(argument(1), 8, lanes=4)))
    turn = counter(0, 6)
    seen = get(at(after(inside, first), turn, turn < 4))
    code = program(first, turn, put(at(argument(0), turn), seen), end(turn))
    agree(code, [Memory(F32, 64), numbers(64)])


def run_on_pages(steps: list[UOp], memories: list[CpuMemory]) -> None:
    code = program(*steps)
    for target in targets():
        device(target).load(code)(memories, (), ())


def test_what_is_gated_off_is_not_touched():
    """The last floats of a page lie before one that may not be touched at all."""
    source, out = GuardedPage(16), GuardedPage(16)
    source.memory.view.cast("f")[:] = memoryview(b"".join([b"\0\0\x80?"] * 4)).cast("f")
    turn = counter(0, 64)
    inside = turn < 4
    value = get(at(argument(1), turn, inside))
    run_on_pages(
        [turn, value, put(at(argument(0), turn, inside), value + 1.0), end(turn)],
        [out.memory, source.memory],
    )
    assert out.memory.view.cast("f").tolist() == [2.0] * 4


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_lanes_that_are_masked_off_are_not_touched(lanes: int):
    source, out = GuardedPage(12), GuardedPage(12)
    value = get(at(argument(1), 0, mask(3, lanes), lanes))
    run_on_pages(
        [value, put(at(argument(0), 0, mask(3, lanes), lanes), value + const(value.dtype, 1.0))],
        [out.memory, source.memory],
    )
    assert out.memory.view.cast("f").tolist() == [1.0] * 3


def test_lanes_before_the_memory_are_not_touched():
    source, out = GuardedPage(24, is_first=True), GuardedPage(24, is_first=True)
    inside = ~mask(2, 8)
    value = get(at(argument(1), -2, inside, 8))
    run_on_pages(
        [value, put(at(argument(0), -2, inside, 8), value + const(value.dtype, 1.0))],
        [out.memory, source.memory],
    )
    assert out.memory.view.cast("f").tolist() == [1.0] * 6


def test_a_vector_that_is_gated_off_is_not_touched():
    source, out = GuardedPage(16), GuardedPage(16)
    turn = counter(0, 1000)
    value = get(at(argument(1), turn * 4, turn < 1, 4))
    place = at(argument(0), turn * 4, turn < 1, 4)
    run_on_pages([turn, value, put(place, value), end(turn)], [out.memory, source.memory])


def test_an_address_far_outside_is_not_touched():
    far = const(dtypes.int64, 1 << 45)
    value = get(at(argument(1), far, get(at(argument(2, dtypes.bool), 0))))
    data = [ctypes.create_string_buffer(64) for _ in range(3)]
    memories = [CpuMemory(ctypes.addressof(part), 64, part) for part in data]
    run_on_pages([put(at(argument(0), 0), value + 5.0)], memories)
    assert memories[0].view.cast("f")[0] == 5.0


def test_local_memory_is_shared_by_a_barrier_on_one_thread():
    turn, back = counter(0, 64), counter(1, 64)
    local = memory("tile", "local", 64)
    fill = put(at(local, turn), get(at(argument(1), turn)))
    wait = barrier(fill)
    seen = get(at(after(local, fill, wait), number(63) + back * -1))
    code = program(turn, fill, end(turn), wait, back, put(at(argument(0), back), seen), end(back))
    agree(code, [Memory(F32, 64), numbers(64)])


def test_variables_are_sizes_and_values():
    size = variable("n", 1, 20)
    turn = counter(0, make(Op.CAST, I32, (size,)))
    value = (make(Op.CAST, I32, (size * 3 + 1,)) + turn).cast(F32)
    code = program(size, turn, put(at(argument(0), turn), value), end(turn))
    for n in (1, 7, 20):
        agree(code, [Memory(F32, 64)], {"n": n})


def test_several_variables_come_in_the_order_of_the_program():
    sizes = [variable(name, 0, 100) for name in ("b", "a")]
    stores = [
        put(at(argument(0, dtypes.int64), i), make(Op.CAST, dtypes.int64, (size,)))
        for i, size in enumerate(sizes)
    ]
    agree(program(*stores), [Memory(dtypes.int64, 64)], {"a": 3, "b": 50})


def test_a_grid_of_three_axes():
    x, y, z = special("group", 4, 2), special("group", 3, 1), special("group", 2, 0)
    index = z * 12 + y * 4 + x
    value = (z * 100 + y * 10 + x).cast(F32)
    agree(program(put(at(argument(0), index), value)), [Memory(F32, 64)])


def test_a_grid_of_symbolic_size():
    rows = variable("rows", 1, 8)
    y, x = special("group", make(Op.CAST, I32, (rows,)), 0), special("group", 5, 1)
    code = program(rows, put(at(argument(0), y * 5 + x), (y * 10 + x).cast(F32)))
    for count in (1, 3, 8):
        agree(code, [Memory(F32, 64)], {"rows": count})


def test_one_thread_of_a_group_is_number_zero():
    code = program(put(at(argument(0), special("thread", 1)), const(F32, 3.0)), threads=(1,))
    agree(code, [Memory(F32, 64)])


def test_indices_that_wrap_are_computed_in_their_own_width():
    """An int32 that wraps on purpose must not be widened before it does."""
    x = get(at(argument(1, I32), 0))
    wrapped = (x + x) & number(63)
    code = program(put(at(argument(0), wrapped), const(F32, 1.0)))
    agree(code, [Memory(F32, 64), Memory(I32, 64, [(1 << 30) + 5] * 64)])
    moved = x + number(1 << 30) + number(1 << 30) + number(-(1 << 31) + 3)
    code = program(put(at(argument(0), moved), const(F32, 1.0)))
    agree(code, [Memory(F32, 64), Memory(I32, 64, [7 - (1 << 32) & 0x7FFFFFFF] * 64)])


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.uint16, dtypes.uint32])
def test_narrow_and_unsigned_indices(dtype: DType):
    size = 256
    turn = counter(0, 32, dtype)
    offset = get(at(argument(1, dtype, size), turn))
    code = program(
        turn, offset, put(at(argument(0, F32, size), offset), turn.cast(F32)), end(turn)
    )
    values = [min(int(dtype.max), 255) - i for i in range(size)]
    agree(code, [Memory(F32, size), Memory(dtype, size, values)])


def test_index_arithmetic_with_division_and_choice():
    turn = counter(0, 30)
    index = make(Op.FLOORDIV, I32, (turn, number(7)))
    rest = make(Op.FLOORMOD, I32, (turn * 5 + -3, number(11)))
    clamped = (index * 11 + rest).minimum(number(40)).maximum(number(2))
    chosen = make(Op.WHERE, I32, (turn < 15, clamped, turn + 30))
    code = program(turn, put(at(argument(0), turn), get(at(argument(1), chosen))), end(turn))
    agree(code, [Memory(F32, 64), numbers(64)])


def test_untouched_memory_keeps_its_contents():
    code = program(put(at(argument(0, dtypes.uint8), 5), const(dtypes.uint8, 1)))
    data = bytearray([FILL]) * 64
    cpu = device(targets()[0])
    cpu.load(code)([cpu.wrap(data)], (), ())
    assert [i for i, byte in enumerate(data) if byte != FILL] == [5]

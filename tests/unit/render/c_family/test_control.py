"""Loops, conditions, masks, vectors, grids and local memory, on C and on OpenCL."""

import pytest

from tests.opencl import needs_opencl
from tests.unit.render.c_family_cases import (
    DEVICES,
    after,
    argument,
    at,
    barrier,
    check,
    end,
    f32,
    i32,
    loop,
    memory,
    number,
    program,
    special,
    when,
)
from weft.ir.build import load, store, variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.reference.memory import ElementMemory


def floats(count: int) -> ElementMemory:
    return ElementMemory(f32, count, [0.1 * i - 1.5 for i in range(count)])


def integers(count: int) -> ElementMemory:
    return ElementMemory(i32, count, range(count))


@pytest.mark.parametrize("device", DEVICES)
def test_a_row_is_summed_into_a_register(device: str):
    out, x = argument(0, 4), argument(1, 20)
    acc = memory("acc", "register", 1)
    i, j = loop(0, 4), loop(1, 5)
    clear = store(at(acc, 0), const(f32, 0))
    cleared = after(acc, clear)
    add = store(at(cleared, 0), load(at(cleared, 0)) + load(at(x, i * 5 + j)) * 0.1)
    write = store(at(out, i), load(at(after(acc, end(j)), 0)))
    code = program(i, clear, i * 5, j, add, end(j), write, end(i))
    check(device, code, [ElementMemory(f32, 4), floats(20)])


@pytest.mark.parametrize("device", DEVICES)
def test_a_load_stays_before_the_store_that_follows_it(device: str):
    # Written at its only use, the load of x would see the new value.
    x, out = argument(0, 1), argument(1, 1)
    before = load(at(x, 0))
    change = store(at(x, 0), const(f32, 7))
    code = program(before, change, store(at(out, 0), before * 2.0))
    check(device, code, [floats(1), ElementMemory(f32, 1)])


@pytest.mark.parametrize("device", DEVICES)
def test_a_load_stays_before_the_loop_that_stores(device: str):
    x, out = argument(0, 4), argument(1, 1)
    before = load(at(x, 3)) + 1.0
    i = loop(0, 4)
    fill = store(at(x, i), const(f32, 7))
    code = program(before, i, fill, end(i), store(at(out, 0), before))
    check(device, code, [floats(4), ElementMemory(f32, 1)])


@pytest.mark.parametrize("device", DEVICES)
def test_loops_nest_and_may_be_empty(device: str):
    n = variable("n", 0, 9)
    out = argument(0, 9, i32)
    size = n.cast(i32)
    i, j = loop(0, size), loop(1, size // 4)
    odd, large = when(7, (i % 2).equal(1)), when(8, number(2) < i)
    steps = (i, odd, store(at(out, i), i * 3), large, store(at(out, i), -i), end(large), end(odd))
    code = program(
        size, *steps, end(i), size // 4, j, store(at(out, j), number(99)), end(j), variables=(n,)
    )
    for value in (0, 1, 5, 9):
        check(device, code, [integers(9)], {"n": value})


@pytest.mark.parametrize("device", DEVICES)
def test_masked_loads_and_stores_touch_nothing(device: str):
    # Without the masks these reach far outside, which a device does not survive.
    x, out = argument(0, 4), argument(1, 8)
    i = loop(0, 8)
    far = i * 100_000_000 - 100_000_000
    inside = i.equal(1)
    value = load(at(x, far, inside))
    wide = load(at(x, far, inside, lanes=4))
    last = make(Op.LANES, f32, (wide,), (3,))
    write = store(at(out, i * 1 + 0), value + last)
    outside = store(at(out, far, inside), value)
    pair = make(Op.VECTOR, f32.vector(2), (value, last))
    wide_outside = store(at(out, far, inside, lanes=2), pair)
    code = program(i, far, inside, value, wide, write, outside, wide_outside, end(i))
    check(device, code, [floats(4), ElementMemory(f32, 8)])


@pytest.mark.parametrize("device", DEVICES)
def test_masks_that_are_known(device: str):
    x, out = argument(0, 4), argument(1, 4)
    never = const(dtypes.bool, False)
    value = load(at(x, 1_000_000_000, never))
    code = program(store(at(out, 0), value + 1.0), store(at(out, 1_000_000_000, never), value))
    check(device, code, [floats(4), ElementMemory(f32, 4)])


@pytest.mark.parametrize("lanes", [2, 3, 4, 8, 16])
@pytest.mark.parametrize("device", DEVICES)
def test_vectors_at_any_element(device: str, lanes: int):
    x, flags = argument(0, 40), argument(1, 40, dtypes.bool)
    out, kept = argument(2, 40), argument(3, 40, dtypes.bool)
    i = loop(0, 5)
    value = load(at(x, i + 1, lanes=lanes))
    flag = load(at(flags, i + 2, lanes=lanes))
    reverse = make(Op.LANES, value.dtype, (value,), tuple(reversed(range(lanes))))
    scaled = reverse * value + const(value.dtype, 0.3)
    chosen = make(Op.WHERE, value.dtype, (flag, scaled, value))
    write = store(at(out, i * 2 + 1, lanes=lanes), chosen)
    keep = store(at(kept, i, lanes=lanes), make(Op.NOT, flag.dtype, (flag,)))
    code = program(i, write, keep, end(i))
    bits = ElementMemory(dtypes.bool, 40, [i % 3 == 0 for i in range(40)])
    check(device, code, [floats(40), bits, ElementMemory(f32, 40), ElementMemory(dtypes.bool, 40)])


@pytest.mark.parametrize("lanes", [2, 3, 4])
@pytest.mark.parametrize("device", DEVICES)
def test_lanes_with_masks_of_their_own(device: str, lanes: int):
    x, flags, out = argument(0, 8), argument(1, 8, dtypes.bool), argument(2, 8)
    i = loop(0, 8)
    small, shown = const(i32.vector(lanes), 0), const(i32.vector(lanes), 5)
    steps = make(Op.VECTOR, i32.vector(lanes), (i,) * lanes)
    ramp = make(Op.VECTOR, i32.vector(lanes), tuple(number(lane) for lane in range(lanes)))
    position = steps + ramp - shown
    inside = make(Op.LESS, dtypes.bool.vector(lanes), (position, const(position.dtype, 8)))
    inside = inside & make(Op.LESS_EQUAL, inside.dtype, (small, position))
    value = load(at(x, i - 5, inside, lanes=lanes))
    flag = load(at(flags, i - 5, inside, lanes=lanes))
    result = make(Op.WHERE, value.dtype, (flag, value, const(value.dtype, 9)))
    code = program(i, store(at(out, i - 5, inside, lanes=lanes), result), end(i))
    bits = ElementMemory(dtypes.bool, 8, [i % 3 == 0 for i in range(8)])
    check(device, code, [floats(8), bits, ElementMemory(f32, 8)])


@pytest.mark.parametrize("device", DEVICES)
def test_vectors_in_a_register_array(device: str):
    x, out = argument(0, 32), argument(1, 8)
    acc = memory("acc", "register", 8)
    starts = [store(at(acc, i, lanes=4), const(f32.vector(4), 0)) for i in (0, 4)]
    cleared = after(acc, *starts)
    k = loop(0, 4)
    adds = [
        store(
            at(cleared, i, lanes=4),
            load(at(cleared, i, lanes=4)) + load(at(x, k * 8 + i, lanes=4)),
        )
        for i in (0, 4)
    ]
    done = after(acc, end(k))
    writes = [store(at(out, i, lanes=4), load(at(done, i, lanes=4))) for i in (0, 4)]
    code = program(*starts, k, *adds, end(k), *writes)
    check(device, code, [floats(32), ElementMemory(f32, 8)])


def grid_program(extents: tuple[int, ...]) -> tuple[UOp, list[UOp]]:
    counters = [special("group", extent, axis) for axis, extent in enumerate(extents)]
    position = counters[-1]
    for counter, extent in zip(counters[-2::-1], extents[-2::-1], strict=True):
        position = position * extent + counter
    return position, counters


@pytest.mark.parametrize("extents", [(5,), (2, 3), (3, 2, 4)])
@pytest.mark.parametrize("device", DEVICES)
def test_grids(device: str, extents: tuple[int, ...]):
    position, counters = grid_program(extents)
    out = argument(0, 24, i32)
    value = position * 100 + counters[0] * 7 + counters[-1]
    code = program(*counters, store(at(out, position), value), groups=extents)
    check(device, code, [ElementMemory(i32, 24)])


@pytest.mark.parametrize("device", DEVICES)
def test_symbolic_grids(device: str):
    n = variable("n", 1, 8)
    column, row = special("group", n * 2), special("group", n, 1)
    out = argument(0, 128, dtypes.int64)
    position = row.cast(dtypes.int64) * (n * 2).cast(dtypes.int64) + column.cast(dtypes.int64)
    code = program(
        n * 2, column, row, store(at(out, position), position * position),
        groups=(n * 2, n), variables=(n,),
    )  # fmt: skip
    for size in (1, 3, 8):
        check(device, code, [ElementMemory(dtypes.int64, 128)], {"n": size}, (size * 2, size))


@pytest.mark.parametrize("device", DEVICES)
def test_threads_without_a_barrier(device: str):
    g, t, u = special("group", 3), special("thread", 4), special("thread", 2, 1)
    own, out = memory("own", "register", 1, i32), argument(0, 24, i32)
    mine = store(at(own, 0), g * 100 + t * 10 + u)
    position = (g * 2 + u) * 4 + t
    code = program(
        g, t, u, mine, store(at(out, position), load(at(after(own, mine), 0))),
        groups=(3,), threads=(4, 2),
    )  # fmt: skip
    check(device, code, [ElementMemory(i32, 24)])


@needs_opencl
def test_tiled_matmul_with_local_memory_and_barriers():
    size, tile_size = 8, 4
    c, a, b = (argument(slot, size * size) for slot in range(3))
    left, right = (memory(name, "local", tile_size**2) for name in ("left", "right"))
    acc = memory("acc", "register", 1)
    (g0, g1), (t0, t1) = (
        [special(kind, extent, axis) for axis in (0, 1)]
        for kind, extent in (("group", size // tile_size), ("thread", tile_size))
    )
    row, column = g1 * tile_size + t1, g0 * tile_size + t0
    spot = t1 * tile_size + t0
    k0, k = loop(0, size // tile_size), loop(1, tile_size)
    clear = store(at(acc, 0), const(f32, 0))
    cleared = after(acc, clear)
    fill_left = store(at(left, spot), load(at(a, row * size + k0 * tile_size + t0)))
    fill_right = store(at(right, spot), load(at(b, (k0 * tile_size + t1) * size + column)))
    filled = barrier(fill_left, fill_right)
    x = load(at(after(left, filled), t1 * tile_size + k))
    y = load(at(after(right, filled), k * tile_size + t0))
    add = store(at(cleared, 0), load(at(cleared, 0)) + x * y)
    drained = barrier(end(k))
    write = store(at(c, row * size + column), load(at(after(acc, end(k0)), 0)))
    code = program(
        row, column, spot, t1 * tile_size, row * size, clear,
        k0, fill_left, fill_right, filled,
        k, add, end(k), drained,
        end(k0), write,
        groups=(2, 2), threads=(tile_size, tile_size),
    )  # fmt: skip
    check("OPENCL", code, [ElementMemory(f32, 64), floats(64), floats(64)])


@needs_opencl
def test_a_sum_over_the_threads_of_a_group():
    t, g = special("thread", 8), special("group", 3)
    x, out, tree = argument(0, 24), argument(1, 3), memory("tree", "local", 8)
    fill = store(at(tree, t), load(at(x, g * 8 + t)))
    steps, done = [fill], barrier(fill)
    steps.append(done)
    for half in (4, 2, 1):
        source = after(tree, done)
        guard = when(10 + half, t < half)
        add = store(at(source, t), load(at(source, t)) + load(at(source, t + half)))
        done = barrier(end(guard))
        steps += [t < half, guard, add, end(guard), done]
    first = when(9, t.equal(0))
    write = store(at(out, g), load(at(after(tree, done), 0)))
    code = program(t, g, *steps, first, write, end(first), groups=(3,), threads=(8,))
    check("OPENCL", code, [floats(24), ElementMemory(f32, 3)])


@pytest.mark.parametrize("device", DEVICES)
def test_local_memory_of_one_thread(device: str):
    tile, x, out = memory("tile", "local", 6), argument(0, 12), argument(1, 12)
    g, i, j = special("group", 2), loop(0, 6), loop(1, 6)
    fill = store(at(tile, i), load(at(x, g * 6 + i)) * 2.0)
    filled = barrier(end(i))
    mirrored = load(at(after(tile, filled), j * -1 + 5))
    code = program(
        g, g * 6, i, fill, end(i), filled, j, store(at(out, g * 6 + j), mirrored), end(j),
        groups=(2,),
    )  # fmt: skip
    check(device, code, [floats(12), ElementMemory(f32, 12)])

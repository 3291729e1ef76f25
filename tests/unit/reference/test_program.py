"""Hand-written programs, and the faults of programs that a wrong pass could emit."""

import numpy as np
import pytest

from weft.ir.build import index, index_of, load, param, range_, store, variable
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.reference.memory import ElementMemory
from weft.reference.program import run_program
from weft.support.errors import InternalError

VOID = dtypes.void
LEAVES = (Op.CONST, Op.VARIABLE, Op.PARAM, Op.MEMORY, Op.SPECIAL)


def program(*steps: UOp) -> UOp:
    """The steps in order, each behind those of its sources that stand nowhere yet."""
    listed: list[UOp] = []

    def emit(node: UOp) -> None:
        for source in node.src[:1] if node.op == Op.AFTER else node.src:
            if source not in listed and source.op not in LEAVES and node.op != Op.END:
                emit(source)
        listed.append(node)

    for step in steps:
        emit(step)
    return make(Op.LINEAR, VOID, tuple(listed))


def special(kind: str, extent: int | UOp, axis: int = 0) -> UOp:
    return make(Op.SPECIAL, dtypes.index, (index(extent),), (kind, axis))


def memory(name: str, space: str, size: int, dtype: DType = dtypes.float32) -> UOp:
    return make(Op.MEMORY, dtype, (), (name, space, size))


def end(node: UOp) -> UOp:
    return make(Op.END, VOID, (node,))


def after(node: UOp, *others: UOp) -> UOp:
    return make(Op.AFTER, node.dtype, (node, *others))


def barrier(*nodes: UOp) -> UOp:
    return make(Op.BARRIER, VOID, nodes)


def floats(count: int) -> ElementMemory:
    return ElementMemory(dtypes.float32, count, [float(i) for i in range(count)])


def test_vector_add_over_groups_threads_and_lanes():
    wide = dtypes.float32.vector(4)
    out, a, b = (param(slot, dtypes.float32, (16,)) for slot in range(3))
    base = (special("group", 2) * 2 + special("thread", 2)) * 4
    left, right = (make(Op.LOAD, wide, (index_of(x, [base]),)) for x in (a, b))
    result = ElementMemory(dtypes.float32, 16)
    run_program(
        program(store(index_of(out, [base]), left + right)), [result, floats(16), floats(16)]
    )
    assert result.values == [2.0 * i for i in range(16)]


def test_lanes_and_vector_constants():
    wide = dtypes.int32.vector(2)
    out = param(0, dtypes.int32, (4,))
    pair = make(Op.VECTOR, wide, (const(dtypes.int32, 3), const(dtypes.int32, 5)))
    scaled = pair * const(wide, 10)
    swapped = make(Op.LANES, wide, (scaled,), (1, 0))
    both = make(Op.VECTOR, dtypes.int32.vector(4), (swapped, pair))
    last = make(Op.LANES, dtypes.int32, (both,), (1,))
    result = ElementMemory(dtypes.int32, 4)
    run_program(program(store(index_of(out, [index(0)]), both)), [result])
    assert result.values == [50, 30, 3, 5]
    run_program(program(store(index_of(out, [index(0)]), last)), [result])
    assert result.values[0] == 30


def matmul_program(with_barriers: tuple[bool, bool] = (True, True)) -> UOp:
    """C (2, 2) = A (2, 4) @ B (4, 2): thread t makes row t and stages a row of each tile of B."""
    c, a, b = (param(slot, dtypes.float32, (size,)) for slot, size in enumerate((4, 8, 8)))
    tile, acc = memory("tile", "local", 4), memory("acc", "register", 2)
    t = special("thread", 2)
    j, tile_number, k, column, last = (range_(number, 2) for number in range(5))
    first = store(index_of(acc, [j]), const(dtypes.float32, 0))
    source = load(index_of(b, [(tile_number * 2 + t) * 2 + column]))
    fill = store(index_of(tile, [t * 2 + column]), source)
    filled = barrier(end(column)) if with_barriers[0] else end(column)
    cleared = after(acc, end(j))
    j2 = range_(5, 2)
    x = load(index_of(a, [t * 4 + tile_number * 2 + k]))
    y = load(index_of(after(tile, filled), [k * 2 + j2]))
    add = store(index_of(cleared, [j2]), load(index_of(cleared, [j2])) + x * y)
    drained = (barrier(end(k)),) if with_barriers[1] else ()
    total = load(index_of(after(acc, end(tile_number)), [last]))
    write = store(index_of(c, [t * 2 + last]), total)
    return program(
        t * 2, t * 4,
        j, first, end(j),
        tile_number, tile_number * 2,
        column, fill, end(column), *((filled,) if with_barriers[0] else ()),
        k, j2, add, end(j2), end(k), *drained,
        end(tile_number),
        last, write, end(last),
    )  # fmt: skip


def test_tiled_matmul_with_local_memory_and_barriers():
    result = ElementMemory(dtypes.float32, 4)
    run_program(matmul_program(), [result, floats(8), floats(8)])
    a, b = np.arange(8.0).reshape(2, 4), np.arange(8.0).reshape(4, 2)
    assert result.values == (a @ b).reshape(-1).tolist()


@pytest.mark.parametrize("with_barriers", [(False, True), (True, False)])
def test_a_missing_barrier_is_found(with_barriers: tuple[bool, bool]):
    # Without the first, thread 0 reads what thread 1 has yet to write, or wrote just now; without
    # the second, thread 1 still reads the tile that thread 0 fills again.
    with pytest.raises(InternalError, match=r"since the last barrier|before it is written"):
        run_program(
            matmul_program(with_barriers), [ElementMemory(dtypes.float32, 4), floats(8), floats(8)]
        )


def test_a_barrier_that_not_all_threads_reach_is_found():
    t = special("thread", 2)
    wait = barrier()
    some = range_(0, index(1) - t)
    with pytest.raises(InternalError, match="threads 0 and 1 wait at different barriers"):
        run_program(program(some, wait, end(some)), [])
    i = range_(0, t + 1)
    with pytest.raises(InternalError, match="wait at different barriers"):
        run_program(program(i, wait, end(i)), [])


def shuffled(bits: int, axis: int, threads: tuple[int, int] = (4, 2)) -> list[float]:
    x, y = (special("thread", size, number) for number, size in enumerate(threads))
    address = y * threads[0] + x
    value = load(index_of(param(1, dtypes.float32, (8,)), [address]))
    other = make(Op.SHUFFLE, dtypes.float32, (value, (x, y)[axis]), (bits,))
    result = ElementMemory(dtypes.float32, 8)
    wanted = store(index_of(param(0, dtypes.float32, (8,)), [address]), other)
    run_program(program(wanted), [result, floats(8)])
    return list(result.values)


def test_threads_exchange_values():
    assert shuffled(1, 0) == [1, 0, 3, 2, 5, 4, 7, 6]
    assert shuffled(2, 0) == [2, 3, 0, 1, 6, 7, 4, 5]
    assert shuffled(1, 1) == [4, 5, 6, 7, 0, 1, 2, 3]


def test_a_thread_without_a_partner_is_found():
    with pytest.raises(InternalError, match="does not exist"):
        shuffled(4, 0)


def test_out_of_bounds_accesses_name_the_instruction():
    x, out = param(0, dtypes.float32, (4,)), param(1, dtypes.float32, (4,))
    i = range_(0, 5)
    read = load(index_of(x, [i]))
    write = store(index_of(out, [i]), const(dtypes.float32, 0))
    for step, verb in ((read, "read"), (write, "written")):
        with pytest.raises(InternalError, match=f"{verb} out of bounds at 4") as error:
            run_program(program(i, step, end(i)), [floats(4), floats(4)])
        assert "node" in str(error.value)


def test_uninitialized_reads_are_found():
    acc = memory("acc", "register", 1)
    with pytest.raises(InternalError, match="acc is read at 0 before it is written"):
        run_program(program(load(index_of(acc, [index(0)]))), [])
    x = param(0, dtypes.float32, (1,))
    with pytest.raises(InternalError, match="before it is written"):
        run_program(program(load(index_of(x, [index(0)]))), [ElementMemory(dtypes.float32, 1)])


def test_register_memory_is_private_and_local_memory_new_per_group():
    t, g = special("thread", 2), special("group", 2)
    own, tile = memory("own", "register", 1), memory("tile", "local", 1)
    out = param(0, dtypes.float32, (4,))
    mine = store(index_of(own, [index(0)]), t.cast(dtypes.float32))
    back = load(index_of(after(own, mine), [index(0)]))
    result = ElementMemory(dtypes.float32, 4)
    run_program(program(mine, store(index_of(out, [g * 2 + t]), back)), [result])
    assert result.values == [0.0, 1.0, 0.0, 1.0]
    # group 1 reads what only group 0 wrote
    first = range_(0, index(1) - g)
    fill = store(index_of(tile, [index(0)]), const(dtypes.float32, 1))
    leak = load(index_of(after(tile, end(first)), [index(0)]))
    with pytest.raises(InternalError, match="tile is read at 0 before it is written"):
        run_program(program(first, fill, end(first), leak), [])


def test_masks():
    x, out = param(0, dtypes.float32, (4,)), param(1, dtypes.float32, (6,))
    i = range_(0, 6)
    value = load(index_of(x, [i - 1], (index(0) < i) & (i < 5)))
    result = ElementMemory(dtypes.float32, 6)
    run_program(program(i, store(index_of(out, [i]), value + 1.0), end(i)), [floats(4), result])
    assert result.values == [1.0, 1.0, 2.0, 3.0, 4.0, 1.0]
    only_even = store(index_of(out, [i], (i % 2).equal(0)), const(dtypes.float32, 9))
    run_program(program(i, only_even, end(i)), [floats(4), result])
    assert result.values == [9.0, 1.0, 9.0, 3.0, 9.0, 1.0]


def test_symbolic_extents():
    n = variable("n", 0, 8)
    out = param(0, dtypes.int32, (n,))
    i = range_(0, n)
    odd = range_(1, i % 2)
    write = store(index_of(out, [i]), i.cast(dtypes.int32))
    code = program(i, odd, write, end(odd), end(i))
    for size in (0, 1, 5):
        result = ElementMemory(dtypes.int32, size)
        run_program(code, [result], {"n": size})
        assert result.values == [x if x % 2 else None for x in range(size)]


def test_symbolic_grid():
    n = variable("n", 1, 8)
    g = special("group", n * 2)
    out = param(0, dtypes.int32, (n * 2,))
    result = ElementMemory(dtypes.int32, 6)
    run_program(program(store(index_of(out, [g]), g.cast(dtypes.int32))), [result], {"n": 3})
    assert result.values == list(range(6))


def test_arguments_are_checked():
    x = param(0, dtypes.float32, (4,))
    code = program(load(index_of(x, [index(0)])))
    for arguments, message in (
        ([], "argument 0 is missing"),
        ([floats(3)], "3 of float32, not 4 of float32"),
        ([ElementMemory(dtypes.int32, 4)], "4 of int32, not 4 of float32"),
    ):
        with pytest.raises(InternalError, match=message):
            run_program(code, arguments)


def test_scopes_are_checked():
    i, x = range_(0, 2), param(0, dtypes.float32, (2,))
    address = index_of(x, [i])
    value = load(address)

    def linear(*nodes: UOp) -> UOp:
        return make(Op.LINEAR, VOID, nodes)

    with pytest.raises(InternalError, match="RANGE is used where it is not known"):
        run_program(linear(address), [floats(2)])
    with pytest.raises(InternalError, match="INDEX is used where it is not known"):
        run_program(linear(i, value, end(i)), [floats(2)])
    with pytest.raises(InternalError, match="LOAD is used where it is not known"):
        run_program(linear(i, address, value, end(i), value + value), [floats(2)])
    with pytest.raises(InternalError, match="never closed"):
        run_program(linear(i, address), [floats(2)])
    j = range_(1, 2)
    with pytest.raises(InternalError, match="does not close what was opened last"):
        run_program(linear(i, j, end(i), end(j)), [])
    with pytest.raises(InternalError, match="has not happened"):
        run_program(linear(barrier(end(i)), i, end(i)), [])
    with pytest.raises(InternalError, match="a program is a LINEAR"):
        run_program(make(Op.SINK, VOID), [])


def test_what_is_no_instruction_is_refused():
    kept = make(Op.STAGE, dtypes.float32, (const(dtypes.float32, 1),), ("local", ()))
    with pytest.raises(InternalError, match="expected an instruction, got STAGE"):
        run_program(program(kept), [])
    with pytest.raises(InternalError, match="unknown kind 'warp'"):
        run_program(program(special("warp", 2) + 1), [])
    with pytest.raises(InternalError, match="unknown space 'heap'"):
        run_program(program(index_of(memory("m", "heap", 1), [index(0)])), [])

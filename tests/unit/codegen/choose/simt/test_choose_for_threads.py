"""Opts for threads: what they mean by the interpreter, and what they are by counts."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.unit.codegen.kernel_parts import Case
from tests.unit.codegen.kernels import softmax_inline
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft import Tensor
from weft.codegen.analysis.loops import GRID, LOOP, THREAD, UNROLL, VECTOR, extent_of, ranges_of
from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.choose.simt import choose_for_threads, tiles
from weft.codegen.generate import before_opts, generate
from weft.codegen.opts.table import Bind, Join, Split
from weft.ir.build import index_of, load, param, range_, reduce_ranges, sink, store
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.program import Program
from weft.ir.uop import UOp, const, make
from weft.ir.views import behind
from weft.ir.walk import topological
from weft.schedule.schedule import make_schedule
from weft.target.compute import Simt
from weft.target.cuda import cuda_target

F32 = dtypes.float32
# A small machine, so that small kernels fill it.
SMALL = replace(
    machine(group_threads=64, vector_bits=128),
    compute=Simt(units=2, warp=4, group_threads=16, line_bytes=32, has_shuffles=True),
)
H200 = cuda_target("sm_90a")


def kernel(name: str, *stores: UOp) -> UOp:
    numbers = sorted({n.arg for s in stores for n in _ranges(s)})
    loops = tuple((number, "loop") for number in numbers)
    return make(Op.KERNEL, dtypes.void, stores, (name, loops))


def _ranges(root: UOp) -> list[UOp]:
    found, stack, seen = [], [root], set()
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += node.src
            if node.op == Op.RANGE:
                found.append(node)
    return found


def at(memory: UOp, *indices: UOp) -> UOp:
    return load(index_of(memory, list(indices)))


def put(memory: UOp, indices: list[UOp], value: UOp) -> UOp:
    return store(index_of(memory, indices), value, indices)


def doubled(*shape: int, dtype: DType = F32) -> Case:
    out, x = (param(slot, dtype, shape) for slot in range(2))
    loops = [range_(number, size) for number, size in enumerate(shape)]
    return Case(kernel("doubled", put(out, loops, at(x, *loops) * const(dtype, 2))))


def transposed(rows: int, columns: int, dtype: DType = F32) -> Case:
    out, x = param(0, dtype, (rows, columns)), param(1, dtype, (columns, rows))
    y = param(2, dtype, (rows, columns))
    i, j = range_(0, rows), range_(1, columns)
    return Case(kernel("transposed", put(out, [i, j], at(x, j, i) + at(y, i, j))))


def row_sums(rows: int, columns: int, op: int = Op.ADD, dtype: DType = F32) -> Case:
    out, x = param(0, dtype, (rows,)), param(1, dtype, (rows, columns))
    i, k = range_(0, rows), range_(1, columns)
    return Case(kernel("rows", put(out, [i], reduce_ranges(at(x, i, k), op, [k]))))


def column_sums(rows: int, columns: int) -> Case:
    out, x = param(0, F32, (columns,)), param(1, F32, (rows, columns))
    j, k = range_(0, columns), range_(1, rows)
    return Case(kernel("columns", put(out, [j], reduce_ranges(at(x, k, j), Op.ADD, [k]))))


def channels(rows: int, columns: int, dtype: DType = dtypes.bfloat16) -> Case:
    """Both sums of the gradient of a normalization: they read one of two values together."""
    one, two = param(0, F32, (columns,)), param(1, F32, (columns,))
    x, y = param(2, dtype, (rows, columns)), param(3, dtype, (rows, columns))
    j, k = range_(0, columns), range_(1, rows)
    slope = at(y, k, j).cast(F32)
    first = reduce_ranges(slope, Op.ADD, [k])
    second = reduce_ranges(slope * at(x, k, j).cast(F32), Op.ADD, [k])
    return Case(kernel("channels", put(one, [j], first), put(two, [j], second)))


def scaled(rows: int, columns: int, dtype: DType = dtypes.bfloat16) -> Case:
    """Rows of channels, each of which has a scale."""
    out, x = (param(slot, dtype, (rows, columns)) for slot in range(2))
    i, j = range_(0, rows), range_(1, columns)
    scale = make(Op.SQRT, F32, (at(param(2, F32, (columns,)), j).maximum(0.0),))
    return Case(kernel("scaled", put(out, [i, j], (at(x, i, j).cast(F32) * scale).cast(dtype))))


def variation(rows: int, columns: int) -> Case:
    """What columns differ by from their sums: a reduction that needs another."""
    out, x = param(0, F32, (columns,)), param(1, dtypes.bfloat16, (rows, columns))
    j, k, r = range_(0, columns), range_(1, rows), range_(2, rows)
    total = reduce_ranges(at(x, k, j).cast(F32), Op.ADD, [k])
    left = at(x, r, j).cast(F32) - total
    return Case(kernel("variation", put(out, [j], reduce_ranges(left * left, Op.ADD, [r]))))


def turned_taps(outputs: int, inputs: int) -> Case:
    """The weights of a convolution with their channels last."""
    out, x = param(0, F32, (outputs, 3, 3, inputs)), param(1, F32, (outputs, inputs, 3, 3))
    o, h, w, i = (range_(n, size) for n, size in enumerate((outputs, 3, 3, inputs)))
    return Case(kernel("turned_taps", put(out, [o, h, w, i], at(x, o, i, h * -1 + 2, w))))


def by_the_total(parts: int, size: int) -> Case:
    """A short sum, stored, and a long loop that uses it."""
    out, total, x, y = (
        *(param(0, F32, (size,)), param(1, F32, ())),
        *(param(2, F32, (parts,)), param(3, F32, (size,))),
    )
    i, k = range_(0, size), range_(1, parts)
    value = reduce_ranges(at(x, k), Op.ADD, [k])
    stores = put(out, [i], at(y, i) / value), store(index_of(total, []), value, [])
    return Case(kernel("by_the_total", *stores))


def transposed_rows(rows: int, parts: int, columns: int) -> Case:
    """Sums of rows times a factor of each part of a row's name, and the factors."""
    out, factors, x, y = (
        *(param(0, F32, (rows, parts)), param(1, F32, (parts,))),
        *(param(2, F32, (rows, parts, columns)), param(3, F32, (parts,))),
    )
    i, j, k = range_(0, parts), range_(1, rows), range_(2, columns)
    factor = make(Op.SIN, F32, (at(y, i),))
    total = reduce_ranges(at(x, j, i, k), Op.ADD, [k])
    return Case(
        kernel("transposed_rows", put(out, [j, i], factor * total), put(factors, [i], factor))
    )


def gated_rows(rows: int, columns: int) -> Case:
    """The product of two sums of each row."""
    out, x, y = (param(0, F32, (rows,)), *(param(slot, F32, (rows, columns)) for slot in (1, 2)))
    i, j, k = range_(0, rows), range_(1, columns), range_(2, columns)
    one = reduce_ranges(at(x, i, j), Op.ADD, [j])
    other = reduce_ranges(at(y, i, k), Op.ADD, [k])
    return Case(kernel("gated", put(out, [i], one * other)))


def rotated_rows(heads: int, rows: int, columns: int) -> Case:
    """Sums of rows, and beside each the sum of the row half a head away."""
    out, x = param(0, F32, (heads * rows,)), param(1, F32, (heads * rows, columns))
    h, i, k = range_(0, heads), range_(1, rows), range_(2, columns)
    is_first, row, half = i < rows // 2, h * rows + i, rows // 2

    def total(where: UOp, mask: UOp, number: int) -> UOp:
        j = range_(number, columns)
        return reduce_ranges(load(index_of(x, [where, j], mask)), Op.ADD, [j])

    after, before = total(row + half, is_first, 3), total(row - half, ~is_first, 4)
    own = reduce_ranges(at(x, row, k), Op.ADD, [k])
    value = own * const(F32, 2) + is_first.where(-after, before)
    return Case(kernel("rotated", store(index_of(out, [row]), value, [h, i])))


def scores_of_groups(heads: int, group: int, keys: int, size: int) -> Case:
    """One query of each head by the keys that a group of heads shares."""
    out, q = param(0, F32, (heads, keys)), param(1, F32, (heads, size))
    cache = param(2, F32, (heads // group, keys, size))
    h, k, d = range_(0, heads), range_(1, keys), range_(2, size)
    total = reduce_ranges(at(q, h, d) * at(cache, h // group, k, d), Op.ADD, [d])
    return Case(kernel("scores", put(out, [h, k], total)))


def results_of_groups(heads: int, group: int, keys: int, size: int) -> Case:
    """Weights of each head by the values that a group of heads shares."""
    out, w = param(0, F32, (heads, size)), param(1, F32, (heads, keys))
    cache = param(2, F32, (heads // group, keys, size))
    h, d, k = range_(0, heads), range_(1, size), range_(2, keys)
    total = reduce_ranges(at(w, h, k) * at(cache, h // group, k, d), Op.ADD, [k])
    return Case(kernel("results", put(out, [h, d], total)))


CASES = {
    "map": doubled(64),
    "map of odd size": doubled(67),
    "map of many": doubled(5, 64),
    "map of bytes": doubled(128, dtype=dtypes.int8),
    "map of channels": scaled(64, 32),
    "map of odd channels": scaled(34, 33),
    "map of many rows of channels": scaled(512, 32),
    "taps": turned_taps(8, 24),
    "odd taps": turned_taps(3, 7),
    "square": transposed(16, 16),
    "odd square": transposed(9, 14),
    "thin": transposed(2, 40),
    "rows": row_sums(6, 64),
    "rows with a tail": row_sums(5, 72),
    "odd rows": row_sums(3, 67),
    "long rows": row_sums(2, 600),
    "one row": row_sums(1, 160),
    "greatest": row_sums(4, 96, Op.MAX),
    "integers": row_sums(4, 96, dtype=dtypes.int64),
    "columns": column_sums(32, 64),
    "odd columns": column_sums(33, 18),
    "few columns": column_sums(70, 4),
    "columns in equal shares": column_sums(56, 64),
    "channels": channels(64, 32),
    "odd channels": channels(35, 24),
    "one row of channels": channels(3, 16),
    "sums of channels that need others": variation(32, 32),
    "sums of many channels that need others": variation(150, 24),
    "softmax": softmax_inline(6, 64),
    "softmax with a tail": softmax_inline(3, 72),
    "odd softmax": softmax_inline(3, 67),
    "long softmax": softmax_inline(2, 640),
    "by the total": by_the_total(40, 700),
    "by a short total": by_the_total(5, 300),
    "transposed rows": transposed_rows(3, 4, 64),
    "gated rows": gated_rows(6, 64),
    "rotated rows": rotated_rows(3, 4, 64),
    "long rotated rows": rotated_rows(2, 8, 200),
    "long gated rows": gated_rows(2, 600),
    "scores of groups": scores_of_groups(6, 3, 10, 40),
    "results of groups": results_of_groups(6, 3, 40, 16),
    "odd results of groups": results_of_groups(4, 2, 37, 12),
}


@pytest.mark.parametrize("name", CASES)
def test_small_machine(name: str, seed: int):
    check(CASES[name], SMALL, None, seed)


@pytest.mark.parametrize("columns", [64, 67, 128, 300])
def test_rows_that_registers_cannot_keep(columns: int, seed: int, monkeypatch: pytest.MonkeyPatch):
    """Reductions that need each other are joined, by each thread and then by all."""
    monkeypatch.setattr(choose_for_threads, "KEPT_ELEMENTS", 2)
    monkeypatch.setattr(choose_for_threads, "WIDEST", 16)
    monkeypatch.setattr(choose_for_threads, "COPIES", 2)
    case = softmax_inline(9, columns)
    opts, _ = choose_opts(before_opts(case.kernel, SMALL), SMALL)
    assert any(isinstance(opt, Join) for opt in opts)
    check(case, SMALL, None, seed)


def test_long_rows_come_once_for_all_reductions():
    case = softmax_inline(64, 1 << 17)
    assert loads(case) == {4: 2 * choose_for_threads.COPIES}


def kinds(case: Case) -> Counter[tuple[str, int | None]]:
    """How many ranges of each kind and extent a kernel has on an H200."""
    after = choose_opts(before_opts(case.kernel, H200), H200)[1]
    ranges = ranges_of(after)
    return Counter((kind, extent_of(ranges[number])) for number, kind in after.arg[1])


def program(case: Case) -> Program:
    return generate(case.kernel, H200)


def count(case: Case, op: int) -> int:
    return sum(node.op == op for node in program(case).instructions.src)


def loads(case: Case) -> Counter[int]:
    """Loads of arguments, by their lanes."""
    found = [node for node in program(case).instructions.src if node.op == Op.LOAD]
    return Counter(n.dtype.lanes for n in found if n.src[0].src[0].op == Op.PARAM)


@pytest.mark.parametrize(("dtype", "lanes"), [(F32, 4), (dtypes.int8, 16), (dtypes.int64, 2)])
def test_a_thread_moves_16_bytes(dtype: DType, lanes: int):
    found = kinds(doubled(1 << 20, dtype=dtype))
    assert found[VECTOR, lanes] == 1 and found[THREAD, 256] == 1


def test_a_thread_has_several_rows_of_its_channels():
    case = scaled(1 << 16, 256)
    assert kinds(case)[UNROLL, 4] == kinds(case)[VECTOR, 8] == 1
    assert count(case, Op.SQRT) == 8  # once for all rows
    assert kinds(scaled(1 << 18, 256))[LOOP, 8] == 1
    assert not kinds(scaled(256, 256))[UNROLL, 4]  # too few threads


def test_a_thread_reads_all_taps_of_a_channel():
    assert kinds(turned_taps(512, 512))[UNROLL, 3] == 2


def test_an_odd_map_reads_neighbors():
    found = kinds(doubled((1 << 20) + 1))
    assert not [kind for kind, _ in found if kind == VECTOR]
    assert found[THREAD, 256] == 1 and found[UNROLL, 4] == 1


@pytest.mark.parametrize(
    ("columns", "threads", "vectors"),
    [(128, 32, 1), (1000, 64, 4), (4096, 256, 4), (16384, 512, 8)],
)
def test_a_row_is_read_once(columns: int, threads: int, vectors: int):
    case = softmax_inline(8192, columns)
    assert program(case).threads[0] == threads
    assert loads(case) == {4: vectors}
    assert count(case, Op.SHUFFLE) == 2 * 5
    assert count(case, Op.BARRIER) == (2 if threads > 32 else 0)


def test_a_group_has_the_rows_that_one_of_them_reads():
    opts, _ = choose_opts(before_opts(rotated_rows(32, 64, 2048).kernel, H200), H200)
    assert Split(1, 32) in opts and Bind(1, THREAD) in opts


def test_both_halves_of_what_is_rotated_are_one_sum():
    nodes = topological(before_opts(rotated_rows(2, 4, 64).kernel, H200))
    assert sum(node.op == Op.REDUCE for node in nodes) == 2


def test_halves_of_one_sum_stay_apart(seed: int):
    out, x, k = param(0, F32, ()), param(1, F32, (64,)), range_(0, 64)
    is_first = k < 32
    after = reduce_ranges(load(index_of(x, [k + 32], is_first)), Op.ADD, [k])
    before = reduce_ranges(load(index_of(x, [k - 32], ~is_first)), Op.ADD, [k])
    check(Case(kernel("halves", store(index_of(out, []), after * before, []))), SMALL, None, seed)


def test_few_rows_have_more_threads():
    assert program(softmax_inline(64, 1000)).threads == (256,)
    assert program(softmax_inline(64, 256)).threads[0] == 64


def test_columns_are_read_along_memory():
    found = program(column_sums(4096, 4096))
    assert found.threads == (8, 32)
    assert kinds(column_sums(4096, 65536))[THREAD, 32] == 1


def test_sums_of_channels_read_16_bytes_and_each_value_once():
    case = channels(4096, 1 << 14)
    assert program(case).threads == (8, 32)
    assert loads(case)[8] == 2 * 8  # rows that are written out, of two values
    assert kinds(case)[VECTOR, 8] == 1


def test_parts_of_a_sum_come_in_sectors():
    assert program(column_sums(512, 256)).threads == (2, 128)


def test_a_transpose_waits_once():
    case = transposed(4096, 4096)
    assert program(case).threads == (32, 8) and count(case, Op.BARRIER) == 1


def test_groups_share_a_loop_that_another_store_does_not_have():
    program = generate(transposed_rows(32, 64, 2048).kernel, H200)
    assert math.prod(program.groups) >= 1024


def test_sums_that_do_not_need_each_other_wait_once():
    lines = generate(gated_rows(2048, 2048).kernel, H200).instructions.src
    (barrier,) = [number for number, line in enumerate(lines) if line.op == Op.BARRIER]
    loads = [number for number, line in enumerate(lines) if line.op == Op.LOAD]
    read = [n for n in loads if behind(lines[n].src[0].src[0]).op == Op.PARAM]
    shuffles = [number for number, line in enumerate(lines) if line.op == Op.SHUFFLE]
    assert len(read) == 8 and max(read) < min(shuffles) < barrier


def test_groups_share_a_loop_that_no_reduction_needs():
    case = by_the_total(1024, 1 << 24)
    found = program(case)
    assert found.groups == (4096,) and found.threads == (256,)
    assert kinds(case)[GRID, 4096] == 1


def product(m: int, n: int, k: int, is_left: bool = False, is_right: bool = False) -> Case:
    """A product of matrices, of which one or both are transposed in memory."""
    out = param(0, F32, (m, n))
    x, y = (
        param(1, F32, (k, m) if is_left else (m, k)),
        param(2, F32, (n, k) if is_right else (k, n)),
    )
    i, j, r = range_(0, m), range_(1, n), range_(2, k)
    left = at(x, r, i) if is_left else at(x, i, r)
    right = at(y, j, r) if is_right else at(y, r, j)
    value = reduce_ranges(left * right, Op.ADD, [r])
    return Case(kernel("product", put(out, [i, j], value.maximum(0.0))))


@pytest.mark.parametrize("layout", range(4))
@pytest.mark.parametrize("sizes", [(8, 16, 8), (9, 11, 13)], ids=str)
def test_products_in_tiles(sizes: tuple[int, int, int], layout: int, seed: int, monkeypatch):
    monkeypatch.setattr(tiles, "TILES", (tiles.Tile(8, 8, 2, 4, 1.0),))
    found = check(product(*sizes, bool(layout & 1), bool(layout & 2)), SMALL, None, seed)
    assert found.threads == (2, 2)
    assert sum(node.op == Op.BARRIER for node in found.instructions.src) == 2


@pytest.mark.parametrize("sides", [2, 4])
def test_products_in_halves_of_tiles(sides: int, seed: int, monkeypatch):
    side, threads = 8 * sides // 2, sides // 2
    monkeypatch.setattr(tiles, "TILES", (tiles.Tile(side, 2 * side, threads, 4, 1.0),))
    check(product(17, 18, 9), SMALL, None, seed)


@pytest.mark.parametrize(
    ("size", "threads", "groups"), [(4096, 256, 1024), (1024, 256, 128), (512, 64, 256)]
)
def test_the_tile_that_fills_the_machine(size: int, threads: int, groups: int):
    found = program(product(size, size, 256))
    assert math.prod(found.threads) == threads and math.prod(found.groups) == groups


def test_the_next_tile_is_loaded_while_this_one_is_used():
    lines = program(product(4096, 4096, 4096)).instructions.src
    start = next(i for i, line in enumerate(lines) if line.op == Op.RANGE)
    barriers = [i for i, line in enumerate(lines) if line.op == Op.BARRIER]
    assert len(barriers) == 2 and start < barriers[0]
    memories = [line.src[0].src[0].op for line in lines[start : barriers[1]] if line.op == Op.LOAD]
    assert Op.PARAM not in memories
    after = lines[barriers[1] : barriers[1] + 60]
    assert sum(n.op == Op.LOAD and n.src[0].src[0].op == Op.PARAM for n in after) == 10


def test_a_masked_product_chooses_nothing():
    """Both factors are 0 past the end, and so is their product."""
    assert count(product(1000, 1000, 1001), Op.WHERE) == 0


@pytest.mark.parametrize("is_right", [False, True])
def test_few_rows_read_a_matrix_once(is_right: bool):
    found = loads(product(8, 4096, 4096, is_right=is_right))
    assert found[4] and program(product(8, 4096, 4096, is_right=is_right)).groups[0] >= 128


@pytest.mark.parametrize("made", [scores_of_groups, results_of_groups])
def test_heads_of_a_group_share_what_a_thread_has_read(made: Callable[..., Case]):
    shared, alone = made(32, 4, 4096, 128), made(32, 1, 4096, 128)
    assert kinds(shared)[UNROLL, 4] and not kinds(alone)[UNROLL, 4]
    reads = [_reads(program(case), 2) for case in (shared, alone)]
    assert 0 < reads[0] * 4 <= reads[1]


def _reads(program: Program, slot: int) -> int:
    """How many elements of an argument all threads read."""
    times, found = 1, 0
    for node in program.instructions.src:
        if node.op == Op.RANGE:
            times *= extent_of(node) or 1
        elif node.op == Op.END:
            times //= extent_of(node.src[0]) or 1
        elif node.op == Op.LOAD and behind(node.src[0].src[0]).op == Op.PARAM:
            found += times * node.dtype.lanes * (behind(node.src[0].src[0]).arg[0] == slot)
    return found * math.prod(program.groups) * math.prod(program.threads)


@pytest.mark.parametrize(
    ("shape", "threads"), [((512, 10), 256), ((300, 40), 256), ((40, 5), 32), ((2, 3), 2)]
)
def test_threads_share_what_is_left(shape: tuple[int, int], threads: int):
    """Log-sum-exp of short rows, summed: a reduction inside of another one."""
    x = Tensor(param(1, F32, shape)).logsumexp(1).sum().uop
    (call,) = make_schedule(sink(store(param(0, F32, ()), x)), H200).kernels.src
    assert math.prod(generate(call.arg, H200).threads) >= min(threads, shape[0])


def test_an_index_from_a_reduction_with_fewer_elements_than_threads():
    """The loop of one iteration would vanish from the index, but not from the rest."""
    median = Tensor(param(1, F32, (3, 17))).median().uop
    root = sink(store(param(0, F32, ()), median))
    for call in make_schedule(root, H200).kernels.src:
        generate(call.arg, H200)


def test_updates_that_are_skipped_have_no_copies_of_rows():
    """A thread of an owner does not look at the updates of others, 32 at a time."""
    ids, gradient = param(1, dtypes.int32, (8192,)), param(2, F32, (8192, 768))
    table = Tensor.zeros(50304, 768).index_add(0, Tensor(ids), Tensor(gradient)).uop
    made = make_schedule(sink(store(param(0, F32, (50304, 768)), table)), H200)
    (scatter,) = [call.arg for call in made.kernels.src if call.arg.arg[0].startswith("scatter")]
    _, shaped = choose_opts(before_opts(scatter, H200), H200)
    kinds = dict(shaped.arg[1])
    assert VECTOR in kinds.values() and UNROLL not in kinds.values()

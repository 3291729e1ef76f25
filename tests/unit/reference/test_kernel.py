"""Kernels over ranges: dependent reductions, stages, in-place stores, bounds."""

import numpy as np
import pytest

from tests.unit.reference.array_memory import from_memory, to_memory
from weft.ir.build import (
    index,
    index_of,
    load,
    param,
    range_,
    reduce_ranges,
    sink,
    store,
    true,
    variable,
)
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.reference.kernel import run_kernel
from weft.reference.memory import ElementMemory
from weft.support.errors import InternalError


def stage(value: UOp, sizes: tuple[int, ...], indices: list[UOp], ranges: list[UOp]) -> UOp:
    return make(Op.STAGE, value.dtype, (value, *indices, *ranges), ("local", sizes))


def read(source: UOp, *indices: UOp, mask: UOp | None = None) -> UOp:
    return make(Op.READ, source.dtype, (source, true() if mask is None else mask, *indices))


def after(node: UOp, *others: UOp) -> UOp:
    return make(Op.AFTER, node.dtype, (node, *others))


def exp(node: UOp) -> UOp:
    return make(Op.EXP, node.dtype, (node,))


def at(memory: UOp, *indices: UOp, mask: UOp | None = None) -> UOp:
    return load(index_of(memory, indices, mask))


def kernel(*stores: UOp) -> UOp:
    return make(Op.KERNEL, dtypes.void, stores, ("test", ()))


def softmax_kernel(rows: int, columns: int) -> UOp:
    """o[r, c] = e[c] / sum(e), e = exp(x[r] - max(x[r])) staged once per row."""
    out, x = (param(slot, dtypes.float32, (rows, columns)) for slot in range(2))
    r, c, s, k, f = (range_(i, rows if i == 0 else columns) for i in range(5))
    top = reduce_ranges(at(x, r, k), Op.MAX, [k])
    kept = stage(exp(at(x, r, f) - top), (columns,), [f], [f])
    total = reduce_ranges(read(kept, s), Op.ADD, [s])
    return kernel(store(index_of(out, [r, c]), read(kept, c) / total, [r, c]))


def test_softmax_with_dependent_reductions_and_a_stage(seed: int):
    values = np.random.default_rng(seed).standard_normal((3, 5)).astype(np.float32)
    result = ElementMemory(dtypes.float32, 15)
    run_kernel(softmax_kernel(3, 5), [result, to_memory(dtypes.float32, values)])
    shifted = np.exp(values - values.max(1, keepdims=True))
    expected = shifted / shifted.sum(1, keepdims=True)
    np.testing.assert_allclose(from_memory(result, (3, 5)), expected, rtol=1e-6)


def test_a_reduction_is_computed_once_per_value_of_its_ranges(monkeypatch: pytest.MonkeyPatch):
    reads: list[int] = []
    plain = ElementMemory.get

    def counted(self: ElementMemory, position: int, node: UOp | None = None) -> float:
        reads.append(position)
        return plain(self, position, node)

    out, x = param(0, dtypes.int32, (2, 6)), param(1, dtypes.int32, (2, 3))
    r, c, k = range_(0, 2), range_(1, 6), range_(2, 3)
    total = reduce_ranges(at(x, r, k), Op.ADD, [k])
    monkeypatch.setattr(ElementMemory, "get", counted)
    result = ElementMemory(dtypes.int32, 12)
    code = kernel(store(index_of(out, [r, c]), total, [r, c]))
    run_kernel(code, [result, ElementMemory(dtypes.int32, 6, range(6))])
    assert reads == [0, 1, 2, 3, 4, 5]
    assert result.values == [3] * 6 + [12] * 6


def test_stages_have_their_own_layout():
    """A transposed tile: written at (j, i), read the other way round."""
    out, x = param(0, dtypes.int32, (3, 2)), param(1, dtypes.int32, (2, 3))
    i, j, a, b = range_(0, 2), range_(1, 3), range_(2, 3), range_(3, 2)
    tile = stage(at(x, i, j), (3, 2), [j, i], [i, j])
    result = ElementMemory(dtypes.int32, 6)
    arguments = [result, ElementMemory(dtypes.int32, 6, range(6))]
    run_kernel(kernel(store(index_of(out, [a, b]), read(tile, a, b), [a, b])), arguments)
    assert result.values == [0, 3, 1, 4, 2, 5]


def test_masked_reads_and_bounds_of_stages():
    out = param(0, dtypes.int32, (4,))
    i, f = range_(0, 4), range_(1, 2)
    row = stage(f.cast(dtypes.int32) + 7, (2,), [f], [f])
    shifted = read(row, i - 1, mask=(index(0) < i) & (i < 3))
    result = ElementMemory(dtypes.int32, 4)
    run_kernel(kernel(store(index_of(out, [i]), shifted, [i])), [result])
    assert result.values == [0, 7, 8, 0]
    with pytest.raises(InternalError, match="READ is out of bounds at 2 on axis 0"):
        run_kernel(kernel(store(index_of(out, [i]), read(row, i), [i])), [result])
    beyond = stage(f.cast(dtypes.int32), (2,), [f + 1], [f])
    with pytest.raises(InternalError, match="STAGE is out of bounds at 2"):
        run_kernel(kernel(store(index_of(out, [i]), read(beyond, f), [i, f])), [result])
    holes = stage(f.cast(dtypes.int32), (3,), [f], [f])
    with pytest.raises(InternalError, match="read at 2 before it is written"):
        run_kernel(kernel(store(index_of(out, [i]), read(holes, i), [i])), [result])


def test_every_index_is_checked_against_its_own_axis():
    out, x = param(0, dtypes.int32, (2, 3)), param(1, dtypes.int32, (2, 3))
    i, j = range_(0, 2), range_(1, 3)
    memories = [ElementMemory(dtypes.int32, 6, range(6)) for _ in range(2)]
    with pytest.raises(InternalError, match="INDEX is out of bounds at 3 on axis 1") as error:
        run_kernel(kernel(store(index_of(out, [i, j]), at(x, i, j + 1), [i, j])), memories)
    assert "size" in str(error.value)
    with pytest.raises(InternalError, match="INDEX is out of bounds at -1 on axis 0"):
        run_kernel(kernel(store(index_of(out, [i - 1, j]), at(x, i, j), [i, j])), memories)
    with pytest.raises(InternalError, match="1 indices for 2 axes"):
        run_kernel(kernel(store(index_of(out, [i, j]), at(x, i), [i, j])), memories)
    # a closed mask forgives any index, and an INDEX is its own value without a LOAD
    edge = index_of(x, [i, j + 1], j + 1 < 3)
    run_kernel(kernel(store(index_of(out, [i, j]), edge, [i, j])), memories)
    assert memories[0].values == [1, 2, 0, 4, 5, 0]


def test_stores_of_one_group_read_before_they_write():
    """An optimizer step in place: m = m / 2 + g, w = w - (m / 2 + g)."""
    m, w, g = (param(slot, dtypes.float32, (3,)) for slot in range(3))
    i = range_(0, 3)
    moment = at(m, i) * 0.5 + at(g, i)
    stores = [
        store(index_of(m, [i]), moment, [i]),
        store(index_of(w, [i]), at(w, i) - moment, [i]),
    ]
    for order in (stores, stores[::-1]):
        memories = [ElementMemory(dtypes.float32, 3, [2.0 * k, 10.0, 1.0][:3]) for k in range(3)]
        run_kernel(kernel(*order), memories)
        start = np.array([[2.0 * k, 10.0, 1.0] for k in range(3)])
        expected = start[0] * 0.5 + start[2]
        assert memories[0].values == expected.tolist()
        assert memories[1].values == (start[1] - expected).tolist()


def test_stores_over_other_ranges_see_the_contents_from_before():
    x, total = param(0, dtypes.int32, (3,)), param(1, dtypes.int32, (1,))
    i, k = range_(0, 3), range_(1, 3)
    double = store(index_of(x, [i]), at(x, i) * 2, [i])
    add = store(index_of(total, [index(0)]), reduce_ranges(at(x, k), Op.ADD, [k]))
    for order in ((double, add), (add, double)):
        memories = [ElementMemory(dtypes.int32, 3, [1, 2, 3]), ElementMemory(dtypes.int32, 1)]
        run_kernel(sink(*order), memories)
        assert memories[0].values == [2, 4, 6]
        assert memories[1].values == [6]


def test_a_read_through_an_after_sees_the_store():
    x, total = param(0, dtypes.int32, (3,)), param(1, dtypes.int32, (1,))
    i, k = range_(0, 3), range_(1, 3)
    double = store(index_of(x, [i]), at(x, i) * 2, [i])
    new = reduce_ranges(at(after(x, double), k), Op.ADD, [k])
    old = reduce_ranges(at(x, k), Op.ADD, [k])
    add = store(index_of(total, [index(0)]), new * 100 + old)
    for order in ((double, add), (add,)):
        memories = [ElementMemory(dtypes.int32, 3, [1, 2, 3]), ElementMemory(dtypes.int32, 1)]
        run_kernel(sink(*order), memories)
        assert memories[0].values == [2, 4, 6]
        assert memories[1].values == [1206]


def test_versions_of_versions():
    x = param(0, dtypes.int32, (4,))
    i, j = range_(0, 4), range_(1, 4)
    first = store(index_of(x, [i]), at(x, i) + 1, [i])
    second = after(x, first)
    backwards = store(index_of(second, [j]), at(second, index(3) - j) * 10, [j])
    result = ElementMemory(dtypes.int32, 4, [0, 1, 2, 3])
    run_kernel(kernel(backwards), [result])
    assert result.values == [40, 30, 20, 10]


def test_accumulation_over_an_outer_loop():
    """A sum moved out to the loops of the store: each iteration reads what the last wrote."""
    out, x = param(0, dtypes.int32, (2,)), param(1, dtypes.int32, (2, 6))
    outer, i, k = range_(0, 3), range_(1, 2), range_(2, 2)
    part = reduce_ranges(at(x, i, outer * 2 + k), Op.ADD, [k])
    before = at(out, i, mask=index(0) < outer)
    result = ElementMemory(dtypes.int32, 2)
    code = kernel(store(index_of(out, [i]), before + part, [outer, i]))
    run_kernel(code, [result, ElementMemory(dtypes.int32, 12, range(12))])
    assert result.values == [15, 51]


def test_ranges_left_to_the_kernel_and_dependent_extents():
    """The lower triangle: the extent of one range is another range."""
    out = param(0, dtypes.int32, (3, 3))
    i = range_(0, 3)
    j = range_(1, i + 1)
    result = ElementMemory(dtypes.int32, 9)
    address = index_of(out, [i, j])
    run_kernel(kernel(store(address, (i * 10 + j).cast(dtypes.int32), [j])), [result])
    assert result.values == [0, None, None, 10, 11, None, 20, 21, 22]


def test_reductions_over_dependent_extents():
    out = param(0, dtypes.int32, (4,))
    i = range_(0, 4)
    k = range_(1, i + 1)
    total = reduce_ranges(k.cast(dtypes.int32), Op.ADD, [k])
    result = ElementMemory(dtypes.int32, 4)
    run_kernel(kernel(store(index_of(out, [i]), total, [i])), [result])
    assert result.values == [0, 1, 3, 6]


def test_symbolic_extents_and_shapes():
    n = variable("n", 0, 8)
    out, x = param(0, dtypes.float32, (1,)), param(1, dtypes.float32, (n,))
    k = range_(0, n)
    top = reduce_ranges(at(x, k), Op.MAX, [k])
    code = kernel(store(index_of(out, [index(0)]), top))
    result = ElementMemory(dtypes.float32, 1)
    run_kernel(code, [result, ElementMemory(dtypes.float32, 3, [1, 5, 2])], {"n": 3})
    assert result.values == [5.0]
    run_kernel(code, [result, ElementMemory(dtypes.float32, 0)], {"n": 0})
    assert result.values == [-np.inf]


def test_vectors_in_kernels():
    wide = dtypes.float32.vector(2)
    out, x = param(0, dtypes.float32, (4,)), param(1, dtypes.float32, (3, 4))
    c, k = range_(0, 2), range_(1, 3)
    pair = make(Op.LOAD, wide, (index_of(x, [k, c * 2]),))
    total = reduce_ranges(pair * const(wide, 2), Op.ADD, [k])
    result = ElementMemory(dtypes.float32, 4)
    arguments = [result, ElementMemory(dtypes.float32, 12, range(12))]
    run_kernel(kernel(store(index_of(out, [c * 2]), total, [c])), arguments)
    assert result.values == [24.0, 30.0, 36.0, 42.0]


def test_what_is_no_kernel_is_refused():
    x = param(0, dtypes.float32, (1,))
    with pytest.raises(InternalError, match="a kernel is a KERNEL or a SINK"):
        run_kernel(x, [])
    with pytest.raises(InternalError, match="PARAM 0 stands for no memory"):
        run_kernel(sink(store(index_of(x, [index(0)]), const(dtypes.float32, 1))), [])
    with pytest.raises(InternalError, match="PARAM 0 is int8"):
        run_kernel(
            sink(store(index_of(x, [index(0)]), const(dtypes.float32, 1))),
            [ElementMemory(dtypes.int8, 1)],
        )
    loose = store(index_of(x, [index(0)]), make(Op.IOTA, dtypes.float32, (), (1,)))
    with pytest.raises(InternalError, match="IOTA has no meaning in a kernel"):
        run_kernel(sink(loose), [ElementMemory(dtypes.float32, 1)])


def inside(name: str, size: int, space: str = "register") -> UOp:
    return make(Op.MEMORY, dtypes.float32, (), (name, space, size))


def spot(memory: UOp, position: UOp, lanes: int = 1) -> UOp:
    return make(Op.INDEX, memory.dtype.scalar.vector(lanes), (memory, true(), position))


def lowered(*stores: UOp, loops: tuple[tuple[int, str], ...] = ()) -> UOp:
    return make(Op.KERNEL, dtypes.void, stores, ("k", loops))


def test_an_accumulator_reads_what_it_fills():
    """out[i] = sum over k of x[i, k], with the accumulator explicit"""
    out, x = param(0, dtypes.float32, (2,)), param(1, dtypes.float32, (2, 3))
    i, k = range_(0, 2), range_(1, 3)
    acc = inside("acc", 1)
    begun = after(acc, store(spot(acc, index(0)), const(dtypes.float32, 0)))
    value = load(spot(begun, index(0))) + load(spot(x, i * 3 + k))
    update = store(spot(begun, index(0)), value, [k])
    total = load(spot(after(acc, update), index(0)))
    result = ElementMemory(dtypes.float32, 2)
    kernel_ = lowered(store(spot(out, i), total, [i]), loops=((0, "loop"), (1, "loop")))
    run_kernel(kernel_, [result, ElementMemory(dtypes.float32, 6, [1, 2, 3, 4, 5, 6])])
    assert result.values == [6.0, 15.0]


def test_a_loop_carries_an_accumulator_on():
    """out[k] = x[0] + … + x[k]"""
    out, x = param(0, dtypes.float32, (4,)), param(1, dtypes.float32, (4,))
    k = range_(0, 4)
    acc = inside("acc", 1)
    carried = after(acc, store(spot(acc, index(0)), const(dtypes.float32, 0)), k)
    update = store(spot(carried, index(0)), load(spot(carried, index(0))) + load(spot(x, k)))
    prefix = load(spot(after(acc, update), index(0)))
    result = ElementMemory(dtypes.float32, 4)
    kernel_ = lowered(store(spot(out, k), prefix, [k]), loops=((0, "ordered"),))
    run_kernel(kernel_, [result, ElementMemory(dtypes.float32, 4, [1, 2, 3, 4])])
    assert result.values == [1.0, 3.0, 6.0, 10.0]


@pytest.mark.parametrize("space", ["local", "register"])
def test_local_memory_is_what_all_threads_of_a_group_have_filled(space: str):
    out = param(0, dtypes.float32, (4,))
    thread = make(Op.SPECIAL, dtypes.index, (index(4),), ("thread", 0))
    tile = inside("tile", 4, space)
    fill = store(spot(tile, thread), thread.cast(dtypes.float32))
    flipped = load(spot(after(tile, fill), index(3) - thread))
    kernel_ = lowered(store(spot(out, thread), flipped))
    result = ElementMemory(dtypes.float32, 4)
    if space == "register":  # a thread reads what only another one wrote, to its own memory
        with pytest.raises(InternalError, match="before it is written"):
            run_kernel(kernel_, [result])
    else:
        run_kernel(kernel_, [result])
        assert result.values == [3.0, 2.0, 1.0, 0.0]


def test_vectors_move_whole_and_are_bounded_lane_by_lane():
    out, x = param(0, dtypes.float32, (4,)), param(1, dtypes.float32, (2, 3))
    wide = load(spot(x, index(1), 4))
    result = ElementMemory(dtypes.float32, 4)
    given = ElementMemory(dtypes.float32, 6, range(6))
    run_kernel(lowered(store(spot(out, index(0), 4), wide)), [result, given])
    assert result.values == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(InternalError, match="out of bounds at 6"):
        run_kernel(
            lowered(store(spot(out, index(0), 4), load(spot(x, index(3), 4)))), [result, given]
        )

"""Scatters in memory: which kernels they are, which of their loops are in order."""

import math

import numpy as np
import pytest

from tests.unit.schedule.fuse.test_fuse import TARGET, expand, p, reshape, schedule, texts
from weft.ir.build import (
    buffer,
    index_of,
    load,
    range_,
    reduce_axes,
    scan_axis,
    scatter,
    sink,
    store,
    true,
)
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.reduction.accumulation import hidden, may_meet
from weft.ir.shapes import shape_of
from weft.ir.uop import const, make
from weft.ir.walk import substitute, topological
from weft.reference.memory import ElementMemory
from weft.reference.schedule import run_schedule
from weft.reference.tensor import evaluate
from weft.schedule.schedule import make_schedule

i32 = dtypes.int32
TABLE, ROWS, FLAT = p(1, 5, 3, dtype=i32), p(2, 4, dtype=i32), p(3, 4, dtype=i32)
VALUES = p(3, 4, 3, dtype=i32)


def zeros(*shape):
    return expand(reshape(const(i32, 0), *[1] * len(shape)), *shape)


def into(value, updates, *indices, op=Op.ADD, mask=None):
    return scatter(value, updates, true() if mask is None else mask, indices, op)


def counts(*shape, axis):
    number = make(Op.IOTA, i32, (), (shape[axis],))
    ones = [shape[axis] if i == axis else 1 for i in range(len(shape))]
    return expand(reshape(number, *ones), *shape)


CASES = {
    "rows into zeros": (into(zeros(5, 3), VALUES, ROWS), 2),
    "rows into a value": (into(TABLE * 2, VALUES + 1, ROWS), 2),
    "the greatest": (into(TABLE, VALUES, ROWS, op=Op.MAX), 2),
    "behind a mask": (into(TABLE, VALUES, ROWS, mask=ROWS < 3), 2),
    "elements": (into(TABLE, FLAT, ROWS, ROWS - 2), 2),
    "one row": (into(TABLE, p(3, 3, dtype=i32), const(i32, 2)), 2),
    "a column": (into(zeros(4, 5), VALUES, counts(4, 3, axis=0), VALUES % 5), 2),
    "used": (into(zeros(5, 3), VALUES, ROWS) * 2 + TABLE, 3),
    "one after the other": (into(into(TABLE, VALUES, ROWS), VALUES, ROWS), 4),
    "a reduction is computed before": (
        into(zeros(5), reshape(reduce_axes(VALUES, Op.ADD, (1,)), 4), ROWS),
        3,
    ),
    "a scan is computed before": (into(zeros(5), scan_axis(FLAT, Op.ADD, 0), ROWS), 3),
    "a reduction is repeated after": (
        into(zeros(5, 3), expand(reduce_axes(VALUES, Op.ADD, (1,)), 4, 3), ROWS),
        3,
    ),
    "nothing": (into(TABLE, p(3, 0, 3, dtype=i32), p(2, 0, dtype=i32)), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_kernels(name):
    """The number of kernels, which give on the interpreter what the graph means."""
    value, count = CASES[name]
    memory = {0: p(0, *shape_of(value), dtype=i32)}
    memory |= {node.arg[0]: node for node in topological(value) if node.op == Op.PARAM}
    graph = sink(store(memory[0], value))
    made = make_schedule(graph, TARGET)
    generator = np.random.default_rng(0)
    arrays = {
        n: generator.integers(2, 5, shape_of(node)).astype(np.int32) for n, node in memory.items()
    }
    buffers = {node: buffer(n, i32, shape_of(node), "CPU") for n, node in memory.items()}
    want = evaluate(substitute(graph, buffers), arrays)
    filled = {n: ElementMemory(i32, a.size, a.ravel().tolist()) for n, a in arrays.items()}
    memories = [filled.get(n, ElementMemory(i32, 0)) for n in range(max(filled) + 1)]
    memories += [ElementMemory(m.dtype, math.prod(shape_of(m))) for m in made.temporaries]
    run_schedule(made.kernels, {}, {}, memories)
    assert memories[0].values == want[0].ravel().tolist()
    assert len(made.kernels.src) == count


def test_the_loop_over_updates_is_ordered_and_inside():
    made = schedule(store(p(0, 5, 3, dtype=i32), into(TABLE, VALUES, ROWS)))
    assert texts(made)[1].startswith('kernel "scatter_3_4" r0 loop, r1 ordered:')


def test_an_index_that_counts_keeps_addresses_apart():
    value, _ = CASES["a column"]
    made = schedule(store(p(0, 4, 5, dtype=i32), value))
    assert texts(made)[1].startswith('kernel "scatter_4_3" r0 loop, r1 ordered:')


def test_small_floats_are_reduced_in_float32():
    half = dtypes.float16
    value = into(p(1, 5, dtype=half), p(3, 4, dtype=half), ROWS)
    made = make_schedule(sink(store(p(0, 5, dtype=half), value)), TARGET)
    assert [memory.dtype for memory in made.temporaries] == [dtypes.float32]


def test_which_iterations_may_meet():
    a, b, c = (range_(number, size) for number, size in ((0, 4), (1, 3), (2, 8)))
    memory, numbers = p(0, 99), p(1, 99, dtype=i32)
    named = load(index_of(numbers, [a])).cast(dtypes.index)

    def at(*indices):
        address = index_of(p(0, *[99] * len(indices)), indices)
        return store(address, load(address) + 1.0, (a, b, c))

    assert may_meet(at(named, b, c)) == 0b001
    assert may_meet(at(a * 24 + b * 8 + c)) == 0
    assert may_meet(at(a * 8 + b * 8 + c)) == 0b111
    assert may_meet(at(a, b + c)) == 0b110
    assert may_meet(at(a // 2, b)) == 0b101
    assert hidden(at(named * 8 + c)) == 0b011
    assert hidden(at(a // 2, a % 2)) == 0b110
    assert hidden(store(index_of(memory, [a]), const(dtypes.float32, 1), (a, b))) == 0

"""Where scans run: in the kernel of their consumer, backwards, in blocks, or by themselves."""

import math

import numpy as np
import pytest

from tests.unit.schedule.fuse.test_fuse import TARGET, expand, p, reshape, schedule, texts
from weft.ir.build import buffer, reduce_axes, scan_axis, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import make
from weft.ir.walk import substitute, topological
from weft.reference.memory import ElementMemory
from weft.reference.schedule import run_schedule
from weft.reference.tensor import evaluate
from weft.schedule.schedule import make_schedule

i32 = dtypes.int32
X = p(1, 6, 10, dtype=i32)
FLAT = p(1, 60, dtype=i32)


def flip(x, *axes):
    return make(Op.FLIP, x.dtype, (x,), axes)


def sums(x, axis):
    return scan_axis(x, Op.ADD, axis)


def shrink(x, *pairs):
    return make(Op.SHRINK, x.dtype, (x,), pairs)


def pad(x, *pairs):
    return make(Op.PAD, x.dtype, (x,), pairs)


ONE_KERNEL = {
    "rows": sums(X, 1),
    "columns": sums(X, 0),
    "producer and consumer": sums(X * 2 + 1, 1) * X,
    "backwards": flip(sums(flip(X, 1), 1), 1),
    "moved": make(Op.PERMUTE, X.dtype, (sums(X, 0),), (1, 0)) * 2,
    "the first ones": shrink(sums(X, 1), (0, 6), (0, 4)),
    "the very first": shrink(sums(X, 1), (0, 6), (0, 1)),
    "padded behind": pad(sums(X, 1), (0, 0), (0, 3)),
    "two of them": sums(X, 1) + scan_axis(X, Op.MAX, 1),
    "one of another": scan_axis(sums(X, 1), Op.MAX, 1),
    "reduced": reduce_axes(sums(X, 1), Op.ADD, (1,)),
    "of reductions": sums(reduce_axes(X, Op.ADD, (1,)), 0),
    "in blocks": reshape(sums(reshape(FLAT, 6, 10), 1), 60),
    "in blocks, backwards": flip(reshape(sums(reshape(flip(FLAT, 0), 6, 10), 1), 60), 0),
    "in blocks, the last not whole": shrink(reshape(sums(X, 1), 60), (0, 57)),
    "for a row of results": expand(reshape(sums(p(1, 6, dtype=i32), 0), 6, 1), 6, 4) * 2,
}
SEVERAL = {
    "along two axes": sums(sums(X, 1), 0),
    "in both directions": sums(X, 1) + flip(sums(flip(X, 1), 1), 1),
    "from the middle on": shrink(sums(X, 1), (0, 6), (3, 10)),
    "padded before": pad(sums(X, 1), (0, 0), (2, 0)),
    "seen at two addresses": shrink(sums(X, 1), (0, 6), (0, 9))
    + shrink(sums(X, 1), (0, 6), (1, 10)),
}


def counted(value):
    """The number of kernels of a value, which give on the interpreter what the graph means."""
    memory = {0: p(0, *shape_of(value), dtype=i32)}
    memory |= {node.arg[0]: node for node in topological(value) if node.op == Op.PARAM}
    graph = sink(store(memory[0], value))
    made = make_schedule(graph, TARGET)
    generator = np.random.default_rng(0)
    arrays = {n: generator.integers(-9, 9, shape_of(node)) for n, node in memory.items()}
    buffers = {node: buffer(n, i32, shape_of(node), "CPU") for n, node in memory.items()}
    want = evaluate(substitute(graph, buffers), {n: a.astype(np.int32) for n, a in arrays.items()})
    memories = [
        ElementMemory(i32, arrays[n].size, arrays[n].ravel().tolist()) for n in sorted(arrays)
    ]
    memories += [ElementMemory(m.dtype, math.prod(shape_of(m))) for m in made.temporaries]
    run_schedule(made.kernels, {}, {}, memories)
    assert memories[0].values == want[0].ravel().tolist()
    return len(made.kernels.src)


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel(name):
    assert counted(ONE_KERNEL[name]) == 1


@pytest.mark.parametrize("name", SEVERAL)
def test_two_kernels(name):
    assert counted(SEVERAL[name]) == 2


def test_the_loop_of_a_scan_is_ordered_and_innermost():
    (text,) = texts(schedule(store(p(0, 6, 10, dtype=i32), sums(X, 0))))
    assert text.startswith('kernel "scan_10_6" r0 loop, r1 ordered:')


def test_a_stored_scan_is_stored_on_its_way():
    best = scan_axis(X, Op.MAX, 1)
    made = schedule(store(p(0, 6, 10, dtype=i32), best), store(p(2, 6, 10, dtype=i32), best * X))
    assert len(made.kernels.src) == 1


def test_a_stored_scan_that_is_also_read_backwards_is_a_kernel():
    best = scan_axis(X, Op.MAX, 1)
    first, second = p(0, 6, 10, dtype=i32), p(2, 6, 10, dtype=i32)
    made = schedule(store(first, best), store(second, best + flip(best, 1)))
    assert len(made.kernels.src) == 2


def test_a_scan_and_what_is_no_scan_are_apart():
    made = schedule(
        store(p(0, 6, 10, dtype=i32), sums(X, 1)), store(p(2, 6, 10, dtype=i32), X * 2)
    )
    assert len(made.kernels.src) == 2

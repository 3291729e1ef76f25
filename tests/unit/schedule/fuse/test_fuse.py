"""Which kernels a tensor graph becomes, and that they are legal and right."""

import pytest

from tests.unit.machines import machine
from weft.ir.build import param, reduce_axes, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.text import dump
from weft.ir.uop import const, make
from weft.schedule.phases import SCHEDULE
from weft.schedule.schedule import make_schedule

f32 = dtypes.float32
TARGET = machine(units=2)


def p(slot, *shape, dtype=f32):
    return param(slot, dtype, shape)


def reshape(x, *shape):
    return make(Op.RESHAPE, x.dtype, (x,), shape)


def expand(x, *shape):
    return make(Op.EXPAND, x.dtype, (x,), shape)


def shrink(x, start, stop):
    return make(Op.SHRINK, x.dtype, (x,), ((start, stop),))


def unary(op, x):
    return make(op, x.dtype, (x,))


def matmul(a, b):
    (m, k), (_, n) = shape_of(a), shape_of(b)
    left = expand(reshape(a, m, k, 1), m, k, n)
    right = expand(reshape(b, 1, k, n), m, k, n)
    return reshape(reduce_axes(left * right, Op.ADD, (1,)), m, n)


def schedule(*stores):
    return make_schedule(sink(*stores), TARGET)


def texts(made):
    return [dump(call.arg) for call in made.kernels.src]


def softmax(x):
    shape = shape_of(x)
    top = expand(reduce_axes(x, Op.MAX, (1,)), *shape)
    e = unary(Op.EXP, x + -top)
    return e / expand(reduce_axes(e, Op.ADD, (1,)), *shape)


def test_softmax_is_one_kernel_with_dependent_reductions():
    made = schedule(store(p(0, 64, 32), softmax(p(1, 64, 32))))
    (text,) = texts(made)
    assert text == "\n".join(
        [
            'kernel "reduce_64_32_32_32" r0 loop, r1 loop, r2 loop, r3 loop:',
            "  p0 = param 0: float32[64, 32]",
            "  p1 = param 1: float32[64, 32]",
            "  r0 < 64",
            "  r1 < 32",
            "  r2 < 32",
            "  r3 < 32",
            "  v0 = reduce MAX over r3: load p1[r0, r3]",
            "  v1 = -v0",
            "  v2 = reduce ADD over r2: exp(v1 + load p1[r0, r2])",
            "  store p0[r0, r1] = exp(v1 + load p1[r0, r1]) / v2 for r0, r1",
        ]
    )


def test_chained_products_are_two_kernels_with_the_activation_stored():
    h = matmul(p(1, 64, 48), p(2, 48, 40)).maximum(0.0)
    made = schedule(store(p(0, 64, 20), matmul(h, p(3, 40, 20))))
    first, second = texts(made)
    assert "max(v0, 0.0)" in first
    assert "max" not in second
    assert made.plan.size == 64 * 40 * 4


def test_each_product_gets_a_kernel_where_it_can_have_a_tile():
    x, mask, up = p(1, 32, 48), p(2, 48, 40), p(3, 48, 40)
    made = schedule(store(p(0, 32, 40), matmul(x, mask).maximum(0.0) * matmul(x, up)))
    assert [text.count("reduce ADD") for text in texts(made)] == [1, 1]
    vector = p(1, 1, 48)  # where nothing is used again, no tile is lost
    made = schedule(store(p(0, 1, 40), matmul(vector, mask).maximum(0.0) * matmul(vector, up)))
    assert [text.count("reduce ADD") for text in texts(made)] == [2]


def test_what_waits_for_nothing_is_made_when_it_is_needed():
    """Unpacked weights of several layers take the same memory, one after the other."""
    x = p(1, 32, 64)
    for layer in range(4):
        x = matmul(x, unary(Op.EXP, p(2 + layer, 64, 64))).maximum(0.0)
    made = schedule(store(p(0, 32, 64), x))
    assert len(texts(made)) == 8
    assert made.plan.size == (64 * 64 + 2 * 32 * 64) * 4


def test_ranges_are_reordered_so_that_reductions_are_computed_once():
    x = p(1, 8, 16, 14, 14)
    mean = reduce_axes(x, Op.ADD, (0, 2, 3)) * (1 / 1568)
    made = schedule(store(p(0, 8, 16, 14, 14), x + -expand(mean, 8, 16, 14, 14)))
    (text,) = texts(made)
    assert "r0 < 16" in text


def test_casts_to_wider_types_travel_to_the_reader():
    x = unary(Op.EXP, p(1, 64, 64)).cast(dtypes.float16).cast(f32)
    made = schedule(store(p(0, 64, 512), matmul(x, p(2, 64, 512))))
    assert [memory.dtype for memory in made.temporaries] == [dtypes.float16]


def test_equal_kernels_are_the_same_node():
    a, b = p(1, 32), p(2, 32)
    made = schedule(store(p(0, 32), a + 1.0), store(p(3, 4, 8), reshape(b, 4, 8) + 1.0))
    one = schedule(store(p(0, 32), p(1, 32) + 1.0)).kernels.src[0].arg
    assert any(call.arg is one for call in made.kernels.src)


def test_outputs_of_one_shape_join_a_kernel():
    x = p(1, 64, 32)
    made = schedule(store(p(0, 64, 32), x + 1.0), store(p(2, 64, 32), x * 2.0))
    assert len(made.kernels.src) == 1


def test_a_shifted_write_is_computed_first():
    x = p(0, 10)
    made = schedule(store(shrink(x, 1, 10), shrink(x, 0, 9)))
    assert len(made.kernels.src) == 2
    assert made.plan.size > 0


def test_an_old_version_is_copied_when_it_is_read_too_late():
    x = p(0, 10)
    new = make(Op.AFTER, f32, (x, store(shrink(x, 2, 6), p(1, 4))))
    made = schedule(store(p(2, 10), x + new))
    assert len(made.kernels.src) == 3


def test_whole_writes_are_forwarded():
    m, g = p(0, 10), p(1, 10)
    new = make(Op.AFTER, f32, (m, store(m, g * 2.0)))
    made = schedule(new, store(p(2, 10), new + 1.0))
    assert len(made.kernels.src) == 1


def test_temporaries_share_memory():
    x = p(1, 64, 64)
    y = x
    for slot in range(2, 7):
        y = matmul(y, p(slot, 64, 64))
    made = schedule(store(p(0, 64, 64), y))
    assert len(made.temporaries) == 4
    assert made.plan.size == 2 * 64 * 64 * 4


def test_the_log_gives_both_costs():
    made = schedule(store(p(0, 64, 32), softmax(p(1, 64, 32))))
    assert any("recompute" in line and "memory" in line for line in map(str, made.log))
    assert [report.name for report in made.reports] == [step.name for step in SCHEDULE.passes]


@pytest.mark.parametrize("size", [0, 1])  # nothing is done for no element
def test_small_sizes(size):
    made = schedule(store(p(0, size), p(1, size) + 1.0))
    assert len(made.kernels.src) == size


def test_deep_graphs_are_scheduled():
    x = p(1, 4)
    for step in range(3000):
        x = (x + float(step)).maximum(const(f32, 1.0))
    assert len(schedule(store(p(0, 4), x)).kernels.src) == 6  # a kernel has a budget of ops


def test_a_rounded_reduction_is_computed_by_one_kernel():
    """Another kernel would sum in another order, and `x == max(x)` would miss its maximum."""
    x = p(2, 60, 16)
    scaled = x * expand(reduce_axes(x, Op.ADD, (0,)), 60, 16)
    transposed = make(Op.PERMUTE, x.dtype, (scaled,), (1, 0))
    top = reduce_axes(scaled, Op.MAX, (1,))
    made = schedule(store(p(0, 60, 1), top), store(p(1, 16, 60), transposed))
    assert sum(text.count("reduce ADD") for text in texts(made)) == 1


def test_what_cannot_be_inlined_is_in_the_log_with_the_reason():
    y = matmul(matmul(p(1, 64, 64), p(2, 64, 64)), p(3, 64, 64))
    made = schedule(store(p(0, 64, 64), y))
    assert any("inlining refused" in line and "one tile" in line for line in map(str, made.log))

"""Schedules: kernels at every level, called in order."""

import numpy as np
import pytest

from tests.unit.reference.array_memory import from_memory, to_memory
from tests.unit.reference.test_kernel import after, at, kernel, softmax_kernel
from tests.unit.reference.test_program import end, program
from weft.ir.arrays.values import Array
from weft.ir.build import buffer, call, index_of, load, param, range_, reduce_axes, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.reference.memory import ElementMemory
from weft.reference.schedule import run_schedule
from weft.reference.tensor import evaluate
from weft.support.errors import InternalError


def linear(*nodes: UOp) -> UOp:
    return make(Op.LINEAR, dtypes.void, nodes)


def doubling_kernel() -> UOp:
    out, x = param(0, dtypes.float32, (2, 3)), param(1, dtypes.float32, (2, 3))
    i, j = range_(0, 2), range_(1, 3)
    return kernel(store(index_of(out, [i, j]), at(x, i, j) * 2, [i, j]))


def doubling_program() -> UOp:
    out, x = param(0, dtypes.float32, (2, 3)), param(1, dtypes.float32, (2, 3))
    i = range_(0, 6)
    value = load(index_of(x, [i])) * 2.0
    return program(i, store(index_of(out, [i]), value), end(i))


def softmax_graph(x: UOp) -> UOp:
    """The same in tensor ops."""

    def across(node: UOp) -> UOp:
        return make(Op.EXPAND, node.dtype, (node,), x.shape)

    top = across(reduce_axes(x, Op.MAX, (1,)))
    shifted = make(Op.EXP, x.dtype, (x - top,))
    return shifted / across(reduce_axes(shifted, Op.ADD, (1,)))


@pytest.mark.parametrize(
    "double", [doubling_kernel(), doubling_program()], ids=["kernel", "program"]
)
def test_levels_agree(double: UOp, seed: int):
    """softmax(2 * x) as a tensor graph and as a schedule of kernels."""
    values: Array = np.random.default_rng(seed).standard_normal((2, 3)).astype(np.float32)
    x, y, z = (buffer(number, dtypes.float32, (2, 3), "CPU") for number in range(3))
    first = call(double, y, x)
    schedule = linear(first, call(softmax_kernel(2, 3), z, after(y, first)))
    memories = {0: to_memory(dtypes.float32, values)}
    memories |= {number: ElementMemory(dtypes.float32, 6) for number in (1, 2)}
    run_schedule(schedule, memories)
    expected = evaluate(softmax_graph(x * 2.0), {0: values})
    np.testing.assert_array_equal(from_memory(memories[2], (2, 3)), expected)


def test_schedules_nest():
    x = buffer(0, dtypes.float32, (2, 3), "CPU")
    p = param(0, dtypes.float32, (2, 3))
    twice = linear(call(doubling_kernel(), p, p), call(doubling_kernel(), p, p))
    memory = ElementMemory(dtypes.float32, 6, range(6))
    run_schedule(linear(call(twice, x), call(twice, x)), {0: memory})
    assert memory.values == [16.0 * i for i in range(6)]


def test_what_is_no_schedule_is_refused():
    x = buffer(0, dtypes.float32, (2, 3), "CPU")
    with pytest.raises(InternalError, match="LINEAR of CALLs"):
        run_schedule(doubling_program(), {})
    with pytest.raises(InternalError, match="BUFFER is given to a kernel"):
        run_schedule(linear(call(doubling_kernel(), x, x)), {})
    with pytest.raises(InternalError, match="CONST is given to a kernel"):
        run_schedule(linear(call(doubling_kernel(), x.const_like(1), x)), {})

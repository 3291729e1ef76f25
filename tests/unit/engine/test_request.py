"""What a request says of its graphs: the key of the structure, the memory, the device."""

import numpy as np
import pytest

from weft.engine.buffer_nodes import new_buffer
from weft.engine.contents import buffer_from, read_bytes
from weft.engine.realize import realize
from weft.engine.request import Request
from weft.engine.work import _WORK
from weft.ir.build import reduce_axes, store
from weft.ir.dtypes import dtypes
from weft.ir.movement import full, iota
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.tensor.tensor import Tensor


def memory(*values: float) -> UOp:
    data = np.array(values, np.float32)
    return buffer_from(dtypes.float32, data.shape, "CPU", memoryview(data))


def version(of: UOp, value: UOp) -> UOp:
    return make(Op.AFTER, of.dtype, (of, store(of, value)))


A, B, C = memory(1, 2), memory(3, 4), memory(5, 6)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([A + B], [B + C]),
        ([A + A], [B + B]),
        ([A * 2.0, A + B], [C * 2.0, C + B]),
        ([reduce_axes(A, Op.ADD, (0,))], [reduce_axes(B, Op.ADD, (0,))]),
        ([version(A, B) + 1.0], [version(C, A) + 1.0]),
    ],
)
def test_equal_work_on_other_memory_has_an_equal_key(one, other):
    first, second = Request(one), Request(other)
    assert first.key == second.key
    assert first.names(one) == second.names(other)
    assert first.memory != second.memory


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([A + A], [A + B]),
        ([A + B], [A * B]),
        ([A + B], [B + A + A]),
        ([A + 0.0], [A + -0.0]),
        ([A + const(dtypes.float32, 1)], [A + const(dtypes.float32, 2)]),
        ([A.cast(dtypes.int32)], [A.cast(dtypes.float64)]),
        ([A + 1.0], [memory(1, 2, 3) + 1.0]),
        ([A + 1.0], [version(A, B) + 1.0]),
        ([reduce_axes(A, Op.ADD, (0,))], [reduce_axes(A, Op.MAX, (0,))]),
    ],
)
def test_other_work_has_another_key(one, other):
    assert Request(one).key != Request(other).key


def test_the_roots_tell_apart_what_the_nodes_do_not():
    total = A + B
    one, both = Request([total * 2.0]), Request([total * 2.0, total])
    assert one.key == both.key
    assert one.names(one.roots) != both.names(both.roots)


def test_a_request_is_run_where_its_memory_is():
    here, there = new_buffer(dtypes.float32, (2,), "CPU"), new_buffer(dtypes.float32, (2,), "NULL")
    free = iota(4)
    assert Request([here + 1.0]).try_device() == "CPU"
    assert Request([there + 1.0], "CPU").try_device() == "NULL"
    assert Request([free], "NULL").try_device() == "NULL"
    assert Request([free]).try_device() == "CPU"
    assert Request([free, there + 1.0], "CPU").try_device() is None
    assert Request([here + 1.0, there + 1.0]).try_device() is None
    assert Request([make(Op.COPY, dtypes.float32, (here,), "NULL")]).try_device() is None


@pytest.mark.parametrize("name", ["CPU", "PYTHON"])
def test_values_without_memory_are_computed_on_the_device_of_the_request(name):
    node = full(dtypes.int32, 7, (3,))
    made = realize(Request([node], name))[node]
    assert made.arg[2] == name
    assert np.frombuffer(read_bytes(made), np.int32).tolist() == [7, 7, 7]


def test_known_work_runs_on_the_memory_of_each_request():
    values = [memory(n, n + 1) for n in range(5)]
    for x in values:
        for y in values:
            node = x + y * 3.0
            before = len(_WORK)
            got = np.frombuffer(read_bytes(realize(Request([node]))[node]), np.float32)
            a, b = (np.frombuffer(read_bytes(each), np.float32) for each in (x, y))
            assert got.tolist() == (a + b * 3).tolist()
            is_new = x is values[0] and y in values[:2]  # x * x and x * y are other work
            assert is_new or len(_WORK) == before


def test_outputs_and_writes_are_part_of_known_work():
    """Which of the same nodes are results, and what the others still read, differs from line to
    line; each run has memory of its own.
    """
    for n in range(3):
        x = Tensor([1.0, 2.0]).realize()
        total = x + n
        old = x * 2
        x.assign(x + 10)
        if n == 1:
            total.realize(old)
        assert x.tolist() == [11.0, 12.0]
        assert total.tolist() == [1.0 + n, 2.0 + n]
        assert old.tolist() == [2.0, 4.0]

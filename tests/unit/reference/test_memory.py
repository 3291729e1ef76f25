"""Memory that checks every access."""

import math

import pytest

from tests.unit.reference.edge_values import DTYPES, edge_values, same
from weft.ir.build import index_of, load, param
from weft.ir.dtypes import INDEX, DType, dtypes
from weft.ir.uop import const, make
from weft.reference import memory
from weft.reference.memory import Cell, ElementMemory, SharedMemory
from weft.support.errors import InternalError


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != INDEX], ids=lambda d: d.name)
def test_bytes_there_and_back(dtype: DType):
    values = edge_values(dtype)
    found = ElementMemory(dtype, len(values), values)
    data = found.to_bytes()
    assert len(data) == len(values) * dtype.itemsize
    again = ElementMemory.from_bytes(dtype, data)
    assert all(same(again.get(i), value) for i, value in enumerate(values))


def test_values_take_the_dtype_of_the_memory():
    found = ElementMemory(dtypes.int8, 2, [200, -1])
    assert found.values == [-56, -1]
    found.set(0, 128)
    assert found.get(0) == -128
    rounded = ElementMemory(dtypes.bfloat16, 1, [1.001])
    assert rounded.get(0) == 1.0


def test_accesses_are_checked():
    found = ElementMemory(dtypes.int32, 2, [1, None], name="out")
    with pytest.raises(InternalError, match="out is read at 1 before it is written"):
        found.get(1)
    with pytest.raises(InternalError, match="before it is written"):
        found.to_bytes()
    for index in (-1, 2):
        with pytest.raises(InternalError, match=f"out is read out of bounds at {index}"):
            found.get(index)
        with pytest.raises(InternalError, match=f"out is written out of bounds at {index}"):
            found.set(index, 0)


def test_errors_name_the_node():
    node = load(index_of(param(0, dtypes.int32, (2,)), [const(dtypes.index, 5)]))
    with pytest.raises(InternalError) as error:
        ElementMemory(dtypes.int32, 2).get(5, node)
    assert repr(node).splitlines()[0].strip() in str(error.value)
    assert "size" in str(error.value)


def test_what_memory_cannot_hold():
    for dtype in (dtypes.index, dtypes.void, dtypes.float32.vector(4)):
        with pytest.raises(InternalError, match="no form in memory"):
            ElementMemory(dtype, 1)
    with pytest.raises(InternalError, match="has 3 elements, not 2"):
        ElementMemory(dtypes.int8, 3, [1, 2])


def test_copies_are_independent():
    first = ElementMemory(dtypes.int32, 2, [1, None])
    second = first.copy()
    second.set(0, 5)
    assert (first.values, second.values) == ([1, None], [5, None])


def test_vectors_are_consecutive_elements():
    found = ElementMemory(dtypes.float32, 4, [0.0, 1.0, 2.0, 3.0])
    address = param(0, dtypes.float32, (4,))
    node = make(load(address).op, dtypes.float32.vector(2), (address,))
    assert memory.load(Cell(found, True, 1), node) == (1.0, 2.0)
    assert memory.load(Cell(found, (True, False), 3), node) == (3.0, 0.0)
    assert memory.load(Cell(found, False, 99), node) == (0.0, 0.0)
    memory.store(Cell(found, (False, True), 0), (7.0, 8.0), node)
    assert found.values == [0.0, 8.0, 2.0, 3.0]
    with pytest.raises(InternalError, match="out of bounds at 4"):
        memory.load(Cell(found, True, 3), node)
    with pytest.raises(InternalError, match="a mask of 3 lanes guards 2"):
        memory.load(Cell(found, (True,) * 3, 0), node)


def test_races_are_found():
    shared = SharedMemory(dtypes.int32, 3, "tile")
    shared.set(0, 5)
    assert shared.get(0) == 5  # a thread may read what it wrote
    shared.thread = 1
    with pytest.raises(InternalError, match="thread 1 reads tile at 0, which thread 0 wrote"):
        shared.get(0)
    with pytest.raises(InternalError, match="thread 1 writes tile at 0, which thread 0 wrote"):
        shared.set(0, 6)
    shared.epoch += 1
    assert shared.get(0) == 5
    shared.thread = 0
    assert shared.get(0) == 5  # two readers are not a race
    with pytest.raises(InternalError, match="thread 0 writes tile at 0, which thread 1 read"):
        shared.set(0, 6)
    shared.epoch += 1
    shared.set(0, 6)
    assert shared.get(0) == 6


def test_nan_is_written_like_any_value():
    found = ElementMemory(dtypes.float32, 1)
    found.set(0, math.nan)
    assert math.isnan(found.get(0))

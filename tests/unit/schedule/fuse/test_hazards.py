"""Writes in order: what a kernel may read of the memory that it writes."""

import math

from tests.unit.schedule.fuse.test_fuse import TARGET, p
from weft.ir.build import index_of, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.shapes import shape_of
from weft.reference.memory import ElementMemory
from weft.reference.schedule import run_schedule
from weft.schedule.schedule import make_schedule

i32 = dtypes.int32


def test_an_element_that_is_named_twice_is_read_before_it_is_written():
    memory, numbers = p(0, 5, dtype=i32), p(1, 4, dtype=i32)
    address = index_of(memory, [numbers])
    made = make_schedule(sink(store(address, address + 1)), TARGET)
    memories = [ElementMemory(i32, 5, [10, 20, 30, 40, 50]), ElementMemory(i32, 4, [1, 1, 1, 3])]
    memories += [ElementMemory(m.dtype, math.prod(shape_of(m))) for m in made.temporaries]
    run_schedule(made.kernels, {}, {}, memories)
    assert memories[0].values == [10, 21, 30, 41, 50]

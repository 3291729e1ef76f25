"""The pass `shard`: the parts of a value, put together, are the value; copies are few."""

import numpy as np
import pytest

from weft.ir.build import buffer, index_of, reduce_axes, scan_axis, sink
from weft.ir.dtypes import dtypes
from weft.ir.layouts import Layout, even_layout, layout_of
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.reference.tensor import evaluate
from weft.rewrite.phase import run_phase
from weft.schedule.phases import SHARD
from weft.support.errors import DeviceError

THREE = ("CPU", "CPU:1", "CPU:2")
f32 = dtypes.float32
true = const(dtypes.bool, True)
VALUES = np.arange(35, dtype=np.float32).reshape(7, 5) - 11
LAYOUTS = {"rows": (0, 7), "columns": (1, 5), "whole": (None, 0)}


class Memory:
    """One BUFFER over three devices, its parts, and what they hold."""

    def __init__(self, kind: str, values: np.ndarray = VALUES) -> None:
        self.layout = even_layout(THREE, *LAYOUTS[kind])
        self.node = make(Op.BUFFER, f32, (), (0, values.shape, tuple(self.layout)))
        self.parts, self.arrays = [], {0: values}
        for number, device in enumerate(THREE):
            shape = self.layout.part(values.shape, number)
            self.parts.append(buffer(number + 1, f32, shape, device))
            box = slice(None) if self.layout.axis is None else slice(*self.layout.bounds[number])
            cut = (slice(None), box) if self.layout.axis == 1 else (box,)
            self.arrays[number + 1] = np.ascontiguousarray(values[cut])

    def sharded(self, node: UOp) -> tuple[UOp, ...]:
        return run_phase(SHARD, sink(node), lambda memory: self.parts).src[0].src


def move(op: int, value: UOp, arg: tuple) -> UOp:
    return make(op, value.dtype, (value,), arg)


def expanded(row: UOp) -> UOp:
    return move(Op.EXPAND, row, (7, 5))


PROGRAMS = {
    "memory": lambda x: x,
    "elementwise": lambda x: x * x + 1.0,
    "sum of all": lambda x: reduce_axes(x, Op.ADD, (0, 1)),
    "max of rows": lambda x: x + expanded(reduce_axes(x, Op.MAX, (0,))),
    "product of columns": lambda x: reduce_axes(x, Op.MUL, (1,)),
    "transpose": lambda x: move(Op.PERMUTE, x, (1, 0)),
    "flat": lambda x: move(Op.RESHAPE, x, (35,)) * 2.0,
    "flip": lambda x: move(Op.FLIP, x, (0, 1)),
    "box": lambda x: move(Op.SHRINK, x, ((1, 6), (2, 4))),
    "frame": lambda x: move(Op.PAD, x, ((1, 0), (0, 2))),
    "scan": lambda x: scan_axis(scan_axis(x, Op.ADD, 0), Op.MAX, 1),
    "gather": lambda x: index_of(x, (make(Op.IOTA, dtypes.int32, (), (4,)),), true),
    "another layout": lambda x: make(Op.SHARD, f32, (x,), (THREE, 1, (1, 1, 3))) * 3.0,
    "one device": lambda x: make(Op.COPY, f32, (x + 1.0,), "CPU:1"),
    "call": lambda x: make(Op.CALL, f32, (x,), make(Op.PARAM, f32, (), (0, (7, 5))) * 2.0),
}


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_make_up_the_value(name: str, kind: str):
    memory = Memory(kind)
    node = PROGRAMS[name](memory.node)
    expected = evaluate([node], memory.arrays)[0]
    parts = evaluate(list(memory.sharded(node)), memory.arrays)
    layout = layout_of(node)
    if layout is None:
        assert len(parts) == 1
        np.testing.assert_array_equal(parts[0], expected)
    elif layout.axis is None:
        for part in parts:
            np.testing.assert_array_equal(part, expected)
    else:
        np.testing.assert_array_equal(np.concatenate(parts, layout.axis), expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_part_is_a_graph_of_one_device(name: str):
    """What is on another device stands behind a COPY to this one."""
    memory = Memory("rows")
    node = PROGRAMS[name](memory.node)
    layout = layout_of(node) or Layout(("CPU:1",))
    for part, device in zip(memory.sharded(node), layout.devices, strict=True):
        for below in topological(part, enter=lambda below: below.op != Op.COPY):
            assert below.op != Op.SHARD
            if below.op == Op.BUFFER:
                assert below.arg[2] == device
            if below.op == Op.COPY:
                assert below.arg == device


def copies(parts: tuple[UOp, ...]) -> list[UOp]:
    return [node for node in topological(*parts) if node.op == Op.COPY]


def test_what_needs_no_other_device_copies_nothing():
    memory = Memory("rows")
    row = expanded(move(Op.RESHAPE, make(Op.IOTA, dtypes.int32, (), (5,)), (1, 5))).cast(f32)
    node = reduce_axes(move(Op.PERMUTE, memory.node * row, (1, 0)), Op.ADD, (0,))
    assert not copies(memory.sharded(node))


def test_a_large_reduction_moves_pieces():
    """Each device reduces a third and hands it on: it sends 4 thirds, not 2 wholes."""
    sizes = {}
    for width in (5, 60_000):
        layout = even_layout(THREE, 0, 3)
        memory = make(Op.BUFFER, f32, (), (0, (3, width), tuple(layout)))
        parts = [buffer(n + 1, f32, (1, width), device) for n, device in enumerate(THREE)]
        root = sink(reduce_axes(memory, Op.ADD, (0,)))
        found = run_phase(SHARD, root, lambda _, parts=parts: parts).src[0].src
        sizes[width] = sum(int(np.prod(shape_of(copy))) for copy in copies(found)) / width
    assert sizes == {5: 6.0, 60_000: 4.0}


def test_memory_of_one_device_is_refused_beside_several():
    memory = Memory("rows")
    with pytest.raises(DeviceError, match="an operand is on one device, another on several"):
        memory.sharded(memory.node + buffer(9, f32, (7, 5), "CPU"))

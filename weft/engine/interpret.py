"""Devices that evaluate whole tensor graphs, as `PYTHON` does: their values become memory."""

from __future__ import annotations

import numpy as np

from weft.engine.bindings import require_values, take_bindings, variables_of
from weft.engine.contents import buffer_from, read_bytes
from weft.engine.devices import device
from weft.ir.arrays.values import from_storage, storage_dtype, to_storage
from weft.ir.build import sink
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.sizes import shape_value
from weft.ir.uop import UOp


def interpret(name: str, wanted: list[UOp], nodes: list[UOp]) -> dict[UOp, UOp]:
    """New BUFFER nodes with the values of these nodes. Nothing is written in place."""
    graph, variables = take_bindings(sink(*wanted))
    require_values(variables_of([graph]), variables)
    arrays = {}
    for node in nodes:
        if node.op == Op.BUFFER:
            raw = np.frombuffer(read_bytes(node), storage_dtype(node.dtype))
            shape = shape_value(shape_of(node))
            arrays[node.arg[0]] = from_storage(node.dtype, raw.reshape(shape))
    graphs = device(name).graphs
    assert graphs is not None
    made = {}
    for node, value in zip(wanted, graphs.evaluate(wanted, arrays), strict=True):
        raw = np.ascontiguousarray(to_storage(node.dtype, value))
        made[node] = buffer_from(node.dtype, shape_of(node), name, memoryview(raw.tobytes()))
    return made

"""Turns lazy values into memory: the one way from a tensor graph to running kernels.

`realize(roots)` computes the roots and every write that they depend on, and says which nodes are
memory now. The tensor layer puts those BUFFER nodes into all graphs that are still lazy, so nothing
is computed twice and nobody reads memory that has been overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.engine.storage import buffer_from, buffer_of, read_bytes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.reference.numpy_values import from_storage, storage_dtype, to_storage
from weft.reference.tensor import evaluate
from weft.support.errors import DeviceError


def realize(roots: Sequence[UOp], pending: Sequence[UOp] = ()) -> dict[UOp, UOp]:
    """Compute the roots; the BUFFER node of each root and of each version written on the way.

    `pending` are graphs that stay lazy: what they read must survive the writes that happen now.
    """
    nodes = topological(*roots)
    wanted = list(dict.fromkeys([*(n for n in nodes if n.op == Op.AFTER), *roots]))
    wanted = [node for node in wanted if node.op != Op.BUFFER]
    return _interpret(wanted, nodes)


def device_of(node: UOp, default: str) -> str:
    """The device on which a graph is computed: that of its memory, which must be one."""
    names = {part.arg[2] for part in topological(node) if part.op == Op.BUFFER}
    if len(names) > 1:
        raise DeviceError(
            f"operands are on different devices ({', '.join(sorted(names))})",
            law="one operation runs on one device",
            fix="move one of them: x.to(y.device)",
        )
    return names.pop() if names else default


def _interpret(wanted: list[UOp], nodes: list[UOp]) -> dict[UOp, UOp]:
    arrays = {}
    name = "PYTHON"
    for node in nodes:
        if node.op == Op.BUFFER:
            raw = np.frombuffer(read_bytes(node), storage_dtype(node.dtype))
            arrays[node.arg[0]] = from_storage(node.dtype, raw.reshape(shape_of(node)))
            name = buffer_of(node).device.name
    values = evaluate(wanted, arrays) if wanted else ()
    made = {}
    for node, value in zip(wanted, values, strict=True):
        raw = np.ascontiguousarray(to_storage(node.dtype, value))
        made[node] = buffer_from(
            node.dtype, value.shape, name, memoryview(raw.reshape(-1)).cast("B")
        )
    return made

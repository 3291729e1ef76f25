"""What memory holds: bytes that go in and come out, and copies from memory to memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.engine.buffer_nodes import BufferKind, new_buffer
from weft.engine.buffers import Buffer, PartedBuffer, buffer_of
from weft.engine.devices import Placement, canonical_name, device
from weft.engine.watch.record import record_copy
from weft.ir.dtypes import DType
from weft.ir.layouts import Layout
from weft.ir.shapes import Shape, shape_of
from weft.ir.sizes import shape_value
from weft.ir.uop import UOp
from weft.rewrite.trace_file import current
from weft.runtime.copies import copy_bytes, fresh_bytes
from weft.runtime.device import Handle
from weft.support.errors import InternalError
from weft.support.source_line import user_line


def buffer_from(dtype: DType, shape: Shape, placement: Placement, data: memoryview) -> UOp:
    """A BUFFER node that holds a copy of these bytes, in the storage form of the dtype.

    On several devices all of them are on each.
    """
    if not isinstance(placement, str):
        kind = BufferKind(dtype, shape, placement)
        copies = [buffer_from(dtype, shape, name, data) for name in Layout(*kind.name).devices]
        return kind.holding(PartedBuffer(copies))
    node = new_buffer(dtype, shape, placement)
    node.line = user_line()
    memory = buffer_of(node)
    if data.nbytes:
        memory.device.copy_in(_part(memory, data.nbytes), data.cast("B"))
    return node


def zero_buffer(dtype: DType, shape: Shape, device_name: str) -> UOp | None:
    """A BUFFER node of zeros that cost nothing before they are used; None where there are none."""
    name = canonical_name(device_name)
    if device(name).host_memory is None:
        return None
    node = new_buffer(dtype, shape, name)
    return node if buffer_of(node).try_zeros() else None


def copy_contents(source: Buffer, target: Buffer, node: UOp | None = None) -> None:
    """Write what some memory holds to other memory; `node` says how much where sizes vary."""
    target.allocated()
    size = target.size if node is None else _bytes_of(node)
    if size and not target.device.stores_nothing:
        parts = _part(source, size), _part(target, size)
        trace = current()
        start = 0.0 if trace is None else trace.now()
        copy_bytes(source.device, parts[0], target.device, parts[1], size)
        if trace is not None:
            record_copy(trace, source.device, target.device, size, start)


def shared_buffer(
    dtype: DType, shape: Shape, device_name: str, data: Any, keep: object
) -> UOp | None:
    """A BUFFER node over memory that belongs to `keep`; None where the device cannot use it."""
    name = canonical_name(device_name)
    host = device(name).host_memory
    if host is None:
        return None
    node = new_buffer(dtype, shape, name)
    memory = buffer_of(node)
    memory.handle, memory.keep = host.wrap(data), keep
    return node


def adopted_buffer(
    dtype: DType, shape: Shape, device_name: str, address: int, keep: object
) -> UOp:
    """A BUFFER node over memory of another library on a device.

    Where kernels cannot use it as it is, for its alignment, it is a copy.
    """
    node = new_buffer(dtype, shape, device_name)
    memory = buffer_of(node)
    on = memory.device
    if on.foreign is None:
        raise InternalError(f"{on.name} uses no memory of other libraries")
    handle, is_usable = on.foreign.adopt(address, memory.size)
    if is_usable or not memory.size:
        memory.handle, memory.keep = handle, keep
    else:
        copy_bytes(on, handle, on, memory.allocated(), memory.size)
    return node


def read_bytes(node: UOp) -> memoryview:
    """The contents of a BUFFER node; waits for the device."""
    memory = buffer_of(node)
    if isinstance(memory, PartedBuffer):
        return _read_parts(node, memory.parts)
    data = fresh_bytes(_bytes_of(node))
    if data:
        memory.device.copy_out(data, _part(memory, len(data)))
    return data


def _bytes_of(node: UOp) -> int:
    """The bytes of a value, by the sizes that are bound."""
    return math.prod(shape_value(shape_of(node))) * node.dtype.itemsize


def _read_parts(node: UOp, parts: Sequence[UOp]) -> memoryview:
    """The contents of memory over several devices, as if it were on one."""
    axis = Layout(*node.arg[2]).axis
    if axis is None:
        return read_bytes(parts[0])
    shape = shape_value(shape_of(node))
    rows = math.prod(shape[:axis])
    whole, start = fresh_bytes(math.prod(shape) * node.dtype.itemsize), 0
    width = len(whole) // max(rows, 1)
    for part in parts:
        piece = read_bytes(part)
        size = len(piece) // max(rows, 1)
        for row in range(rows):
            first = row * width + start
            whole[first : first + size] = piece[row * size : (row + 1) * size]
        start += size
    return whole


def _part(memory: Buffer, size: int) -> Handle:
    """The first bytes of some memory: all of it, unless a symbolic size is below its greatest."""
    whole = memory.allocated()
    return whole if size == memory.size else memory.device.view(whole, 0, size)

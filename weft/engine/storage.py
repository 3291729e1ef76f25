"""The memory behind BUFFER nodes. A node names memory by number; this table owns it.

A buffer is freed when its BUFFER node dies, which happens as soon as no tensor's graph holds it.
Memory is allocated when something is first written to it.

Memory of the host can be lent: an array of another library reads it in place. While such an array
lives, its bytes stay as they are: a write goes to a copy, and freed memory is not used again.
Foreign memory is shared instead: `keep` owns it, and writes of both sides are seen by both.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Sequence
from typing import Any, Final

from weft.engine.devices import canonical_name, device
from weft.ir.build import Size
from weft.ir.build import buffer as make_buffer
from weft.ir.dtypes import DType
from weft.ir.shapes import Shape, largest_size, shape_of
from weft.ir.sizes import shape_value
from weft.ir.uop import UOp
from weft.runtime.device import Device, Handle
from weft.support.errors import InternalError, OutOfMemory


class Buffer:
    """Memory of one device. `keep` holds what foreign memory belongs to."""

    __slots__ = ("_loan", "device", "handle", "keep", "size")

    def __init__(self, on: Device, size: int) -> None:
        self.device = on
        self.size = size
        self.handle: Handle = None
        self.keep: Any = None
        self._loan: weakref.ref[Any] | None = None

    def allocated(self) -> Handle:
        """The device's handle; memory is taken now if it was not before."""
        if self.handle is None:
            self.handle = _SPARE.take(self.device, max(self.size, 1))
            GlobalCounters.allocated(self.device.name, self.size)
        return self.handle

    @property
    def is_lent(self) -> bool:
        """Whether an array reads this memory in place."""
        return self._loan is not None and self._loan() is not None

    def try_lend(self) -> Any:
        """An object with the buffer protocol over this memory; None where it is no host's.

        Whoever holds the object holds the memory.
        """
        share = getattr(self.device, "share", None)
        if share is None:
            return None
        lent = None if self._loan is None else self._loan()
        if lent is None:
            lent = share(self.allocated())
            self._loan = weakref.ref(lent)
        return lent

    def prepare_write(self) -> None:
        """Called before memory is written: what is lent stays with those who read it."""
        if not self.is_lent or self.keep is not None:
            return
        old, self.handle, self._loan = self.handle, None, None
        GlobalCounters.freed(self.device.name, self.size)
        data = bytearray(self.size)
        self.device.copy_out(memoryview(data), old)
        self.device.copy_in(self.allocated(), memoryview(data))

    def free(self) -> None:
        if self.handle is not None and self.keep is None:
            if not self.is_lent:
                _SPARE.give(self.device, max(self.size, 1), self.handle)
            GlobalCounters.freed(self.device.name, self.size)
        self.handle = self.keep = None


class _Spare:
    """Memory that was freed and is handed out again: steps of a loop ask for the same sizes.

    At most `LIMIT` bytes of a device lie idle, and none when the device has no more to give.
    """

    LIMIT: Final = 256 << 20

    def __init__(self) -> None:
        self._handles: dict[tuple[str, int], list[Handle]] = {}
        self._idle: dict[str, int] = {}

    def take(self, device: Device, size: int) -> Handle:
        waiting = self._handles.get((device.name, size))
        if waiting:
            self._idle[device.name] -= size
            return waiting.pop()
        try:
            return device.allocate(size)
        except OutOfMemory:
            self.release(device)
            return device.allocate(size)

    def give(self, device: Device, size: int, handle: Handle) -> None:
        idle = self._idle.get(device.name, 0)
        if idle + size > self.LIMIT:
            device.free(handle)
            return
        self._idle[device.name] = idle + size
        self._handles.setdefault((device.name, size), []).append(handle)

    def release(self, device: Device) -> None:
        """Give all idle memory of a device back to it."""
        for (name, size), handles in self._handles.items():
            while name == device.name and handles:
                device.free(handles.pop())
                self._idle[name] -= size


_SPARE: Final = _Spare()


class _Counters:
    """Counts of what ran; always on. `reset` starts anew, memory in use stays."""

    def __init__(self) -> None:
        self.mem_used_by: dict[str, int] = {}
        self.peak_memory: dict[str, int] = {}
        self.reset()

    def reset(self) -> None:
        self.kernel_count = 0
        self.global_ops = 0
        self.global_mem = 0
        self.time_sum_s = 0.0
        self.peak_memory = dict(self.mem_used_by)

    @property
    def mem_used(self) -> int:
        """Bytes in use on all devices."""
        return sum(self.mem_used_by.values())

    def allocated(self, name: str, size: int) -> None:
        used = self.mem_used_by.get(name, 0) + size
        self.mem_used_by[name] = used
        self.peak_memory[name] = max(self.peak_memory.get(name, 0), used)

    def freed(self, name: str, size: int) -> None:
        self.mem_used_by[name] -= size


GlobalCounters: Final = _Counters()
_BUFFERS: Final[dict[int, Buffer]] = {}
_numbers: Final = itertools.count()


def new_buffer(dtype: DType, shape: Sequence[Size], device_name: str) -> UOp:
    """A BUFFER node with memory of its own, not yet written.

    There is room for the greatest value of each symbolic size, so that the runs of a loop over
    values ask for the same memory. Elements lie close together, by the value that is bound.
    """
    on = device(canonical_name(device_name))
    memory = Buffer(on, largest_size(tuple(shape)) * dtype.itemsize)
    if on.target.device == "DISK":  # a file is there once its tensor is, and is never reused
        memory.handle = memory.keep = on.allocate(memory.size)
    return adopt_buffer(dtype, shape, memory)


def adopt_buffer(dtype: DType, shape: Sequence[Size], memory: Buffer) -> UOp:
    """A BUFFER node for memory that exists."""
    number = next(_numbers)
    node = make_buffer(number, dtype, shape, memory.device.name)
    _BUFFERS[number] = memory
    weakref.finalize(node, _forget, number).atexit = False
    return node


def _forget(number: int) -> None:
    memory = _BUFFERS.pop(number, None)
    if memory is not None:
        memory.free()


def hand_over(node: UOp) -> UOp:
    """A new BUFFER node for memory that has been written; the old node has none any more."""
    return adopt_buffer(node.dtype, shape_of(node), _BUFFERS.pop(node.arg[0]))


def buffer_from(dtype: DType, shape: Shape, device_name: str, data: memoryview) -> UOp:
    """A BUFFER node that holds a copy of these bytes, in the storage form of the dtype."""
    node = new_buffer(dtype, shape, device_name)
    memory = buffer_of(node)
    if data.nbytes:
        memory.device.copy_in(_part(memory, data.nbytes), data.cast("B"))
    return node


def shared_buffer(
    dtype: DType, shape: Shape, device_name: str, data: Any, keep: object
) -> UOp | None:
    """A BUFFER node over memory that belongs to `keep`; None where the device cannot use it."""
    name = canonical_name(device_name)
    wrap = getattr(device(name), "wrap", None)
    if wrap is None:
        return None
    node = new_buffer(dtype, shape, name)
    memory = buffer_of(node)
    memory.handle, memory.keep = wrap(data), keep
    return node


def buffer_of(node: UOp) -> Buffer:
    """The memory of a BUFFER node."""
    found = _BUFFERS.get(node.arg[0])
    if found is None:
        raise InternalError("a BUFFER node has no memory", ir_text=repr(node))
    return found


def has_memory(node: UOp) -> bool:
    """Whether a BUFFER node still is memory: a write hands it over to a new node."""
    return node.arg[0] in _BUFFERS


def read_bytes(node: UOp) -> bytearray:
    """The contents of a BUFFER node; waits for the device."""
    memory = buffer_of(node)
    data = bytearray(math.prod(shape_value(shape_of(node))) * node.dtype.itemsize)
    if data:
        memory.device.copy_out(memoryview(data), _part(memory, len(data)))
    return data


def _part(memory: Buffer, size: int) -> Handle:
    """The first bytes of some memory: all of it, unless a symbolic size is below its greatest."""
    whole = memory.allocated()
    return whole if size == memory.size else memory.device.view(whole, 0, size)

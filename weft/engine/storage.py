"""The memory behind BUFFER nodes. A node names memory by number; this table owns it.

A buffer is freed when its BUFFER node dies, which happens as soon as no tensor's graph holds it.
Memory is allocated when something is first written to it.

Memory of the host can be lent: an array of another library reads it in place. While such an array
lives, its bytes stay as they are: a write goes to a copy, and freed memory is not used again.
Foreign memory is shared instead: `keep` owns it, and writes of both sides are seen by both.

Memory over several devices is BUFFER nodes, one on each; a node of its own stands for all of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final
from weakref import ref

from weft.engine.devices import Place, canonical_name, canonical_place, device
from weft.ir.build import Size, split_symbolic
from weft.ir.dtypes import DType
from weft.ir.layouts import Layout
from weft.ir.ops import Op
from weft.ir.shapes import Shape, largest_size, shape_of
from weft.ir.sizes import shape_value
from weft.ir.uop import UOp, make_unique
from weft.ir.walk import substitute
from weft.runtime.device import Device, Handle
from weft.support.errors import InternalError, OutOfMemory


class Buffer:
    """Memory of one device. `keep` holds what foreign memory belongs to.

    `_end` watches the BUFFER node whose memory this is, and frees it with the node.
    `hides_graph` says that gradients cannot be taken through what filled it.
    """

    __slots__ = ("_end", "_loan", "device", "handle", "hides_graph", "keep", "size")
    _end: _End

    def __init__(self, on: Device, size: int) -> None:
        self.device = on
        self.size = size
        self.handle: Handle = None
        self.keep: Any = None
        self._loan: ref[Any] | None = None
        self.hides_graph = False

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

    @property
    def has_contents(self) -> bool:
        """Whether something was written here."""
        return self.handle is not None

    def try_lend(self) -> Any:
        """An object with the buffer protocol over this memory; None where it is no host's.

        Whoever holds the object holds the memory.
        """
        host = self.device.host_memory
        if host is None:
            return None
        lent = None if self._loan is None else self._loan()
        if lent is None:
            lent = host.share(self.allocated())
            self._loan = ref(lent)
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


class PartedBuffer(Buffer):
    """Memory over several devices: the nodes of its parts, which own it."""

    __slots__ = ("parts",)
    count: ClassVar[int] = 0  # of those that there are

    def __init__(self, parts: Sequence[UOp]) -> None:
        super().__init__(buffer_of(parts[0]).device, 0)
        self.parts = tuple(parts)
        PartedBuffer.count += 1

    @property
    def has_contents(self) -> bool:
        return any(buffer_of(part).has_contents for part in self.parts)

    def allocated(self) -> Handle:
        raise InternalError("memory over several devices has no handle of its own")

    def try_lend(self) -> Any:
        return None

    def prepare_write(self) -> None:
        for part in self.parts:
            buffer_of(part).prepare_write()

    def free(self) -> None:
        PartedBuffer.count -= 1
        self.parts = ()


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
    """Counts of what ran; always on. `reset` starts anew, memory in use stays.

    `kernel_count`, `global_ops` (operations), `global_mem` (bytes read and written), `time_sum_s`
    (seconds, where they are measured), `mem_used` (bytes), `mem_used_by` and `peak_memory` (bytes
    by device).
    """

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
# The memory of each BUFFER node, by its number. A replay looks here without a call.
BUFFERS: Final[dict[int, Buffer]] = {}
_numbers: Final = itertools.count()
_NOTHING: Final[Mapping[UOp, UOp]] = {}


class _End(ref[UOp]):
    """What happens at the end of a BUFFER node: its memory is free."""

    __slots__ = ("number",)
    number: int


def _forget(end: ref[UOp]) -> None:
    memory = BUFFERS.pop(end.number, None)  # type: ignore[attr-defined]
    if memory is not None:
        memory.free()


def _hold(
    memory: Buffer, dtype: DType, symbolic: tuple[UOp, ...], static: tuple[Any, ...], name: Any
) -> UOp:
    number = next(_numbers)
    node = make_unique(Op.BUFFER, dtype, symbolic, (number, static, name))
    if not symbolic:
        node.known_shape = static
    BUFFERS[number] = memory
    memory._end = end = _End(node, _forget)
    end.number = number
    return node


class BufferKind:
    """Makes memory of one dtype, shape and device, with all that can be known before."""

    __slots__ = ("_parts", "_symbolic", "device", "dtype", "name", "shape", "size")

    def __init__(self, dtype: DType, shape: Sequence[Size], place: Place) -> None:
        self.name = canonical_place(place)
        self.dtype = dtype
        self.size = largest_size(tuple(shape)) * dtype.itemsize
        self.shape, self._symbolic = split_symbolic(shape)
        self._parts: list[BufferKind] = []
        if isinstance(self.name, str):
            self.device = device(self.name)
            return
        layout = Layout(*self.name)
        for number, name in enumerate(layout.devices):
            self._parts.append(BufferKind(dtype, layout.part(tuple(shape), number), name))
        self.device = self._parts[0].device

    def new(self) -> UOp:
        """A BUFFER node with memory of its own, not yet written."""
        if self._parts:
            return self.holding(PartedBuffer([part.new() for part in self._parts]))
        memory = Buffer(self.device, self.size)
        if self.device.stores_files:
            memory.handle = memory.keep = self.device.allocate(memory.size)
        return self.holding(memory)

    def holding(self, memory: Buffer, bound: Mapping[UOp, UOp] = _NOTHING) -> UOp:
        """A BUFFER node for some memory, which is freed when the node dies.

        `bound` has what stands for the variables of the shape.
        """
        symbolic = self._symbolic
        if bound and symbolic:
            symbolic = tuple([substitute(size, bound) for size in symbolic])
        return _hold(memory, self.dtype, symbolic, self.shape, self.name)

    def without_memory(self) -> UOp:
        """A BUFFER node that stands for memory which is not there yet."""
        arg = (next(_numbers), self.shape, self.name)
        return make_unique(Op.BUFFER, self.dtype, self._symbolic, arg)


def new_buffer(dtype: DType, shape: Sequence[Size], place: Place) -> UOp:
    """A BUFFER node with memory of its own, not yet written.

    There is room for the greatest value of each symbolic size, so that the runs of a loop over
    values ask for the same memory. Elements lie close together, by the value that is bound.
    """
    return BufferKind(dtype, shape, place).new()


def adopt_buffer(dtype: DType, shape: Sequence[Size], memory: Buffer) -> UOp:
    """A BUFFER node for memory that exists."""
    return BufferKind(dtype, shape, memory.device.name).holding(memory)


def hand_over(node: UOp, parts: Sequence[UOp] = ()) -> UOp:
    """A new BUFFER node for memory that has been written; the old node has none any more.

    Memory over several devices has `parts` from now on, where they were handed over themselves.
    """
    number, static, name = node.arg
    memory = BUFFERS.pop(number)
    if parts and isinstance(memory, PartedBuffer):
        memory.parts = tuple(parts)
    return _hold(memory, node.dtype, node.src, static, name)


def parts_of(node: UOp) -> tuple[UOp, ...]:
    """The BUFFER nodes of memory over several devices."""
    memory = buffer_of(node)
    assert isinstance(memory, PartedBuffer)
    return memory.parts


def buffer_from(dtype: DType, shape: Shape, place: Place, data: memoryview) -> UOp:
    """A BUFFER node that holds a copy of these bytes, in the storage form of the dtype.

    On several devices all of them are on each.
    """
    if not isinstance(place, str):
        kind = BufferKind(dtype, shape, place)
        copies = [buffer_from(dtype, shape, name, data) for name in Layout(*kind.name).devices]
        return kind.holding(PartedBuffer(copies))
    node = new_buffer(dtype, shape, place)
    memory = buffer_of(node)
    if data.nbytes:
        memory.device.copy_in(_part(memory, data.nbytes), data.cast("B"))
    return node


def copy_contents(source: Buffer, target: Buffer, node: UOp | None = None) -> None:
    """Write what some memory holds to other memory; `node` says how much where sizes vary."""
    target.allocated()
    size = target.size if node is None else _bytes_of(node)
    if size and not target.device.stores_nothing:
        data = bytearray(size)
        source.device.copy_out(memoryview(data), _part(source, size))
        target.device.copy_in(_part(target, size), memoryview(data))


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


def buffer_of(node: UOp) -> Buffer:
    """The memory of a BUFFER node."""
    found = BUFFERS.get(node.arg[0])
    if found is None:
        raise InternalError("a BUFFER node has no memory", ir_text=repr(node))
    return found


def has_memory(node: UOp) -> bool:
    """Whether a BUFFER node still is memory: a write hands it over to a new node."""
    return node.arg[0] in BUFFERS


def read_bytes(node: UOp) -> bytearray:
    """The contents of a BUFFER node; waits for the device."""
    memory = buffer_of(node)
    if isinstance(memory, PartedBuffer):
        return _read_parts(node, memory.parts)
    data = bytearray(_bytes_of(node))
    if data:
        memory.device.copy_out(memoryview(data), _part(memory, len(data)))
    return data


def _bytes_of(node: UOp) -> int:
    """The bytes of a value, by the sizes that are bound."""
    return math.prod(shape_value(shape_of(node))) * node.dtype.itemsize


def _read_parts(node: UOp, parts: Sequence[UOp]) -> bytearray:
    """The contents of memory over several devices, as if it were on one."""
    axis = Layout(*node.arg[2]).axis
    if axis is None:
        return read_bytes(parts[0])
    shape = shape_value(shape_of(node))
    rows = math.prod(shape[:axis])
    data = bytearray(math.prod(shape) * node.dtype.itemsize)
    whole, start = memoryview(data), 0
    width = len(data) // max(rows, 1)
    for part in parts:
        piece = memoryview(read_bytes(part))
        size = len(piece) // max(rows, 1)
        for row in range(rows):
            first = row * width + start
            whole[first : first + size] = piece[row * size : (row + 1) * size]
        start += size
    return data


def _part(memory: Buffer, size: int) -> Handle:
    """The first bytes of some memory: all of it, unless a symbolic size is below its greatest."""
    whole = memory.allocated()
    return whole if size == memory.size else memory.device.view(whole, 0, size)

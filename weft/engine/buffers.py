"""The memory of devices: buffers, and the table that has the one of each BUFFER node.

Memory is allocated when something is first written to it.

Memory of the host can be lent: an array of another library reads it in place. While such an
array lives, its bytes stay as they are: a write goes to a copy, and freed memory is not used
again. Foreign memory is shared instead: `keep` owns it, and writes of both sides are seen by both.

Memory over several devices is BUFFER nodes, one on each; a node of its own stands for all of them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, Protocol
from weakref import ref

from weft.engine.counters import GlobalCounters
from weft.engine.spare import SPARE
from weft.engine.watch.memory_record import describe_buffer, record_memory
from weft.ir.uop import UOp
from weft.rewrite.trace_file import STATE
from weft.runtime.copies import copy_bytes
from weft.runtime.device import Device, Handle
from weft.support.errors import InternalError, OutOfMemory
from weft.support.message import bytes_text
from weft.support.source_line import SourceLine


class End(ref[UOp]):
    """What happens at the end of a BUFFER node: its memory is free."""

    __slots__ = ("number",)
    number: int


class ArenaOwner(Protocol):
    """Whose temporaries some memory holds."""

    @property
    def title(self) -> str:
        """What the memory is called where it is listed."""
        ...

    def parts_of_arena(self) -> list[tuple[int, str, SourceLine | None]]:
        """Bytes, dtype and shape, and line of each temporary."""
        ...


class Buffer:
    """Memory of one device. `keep` holds what foreign memory belongs to.

    `end` watches the BUFFER node whose memory this is, and frees it with the node.
    `hides_graph` says that gradients cannot be taken through what filled it, and `computed_as` is
    the number of the BUFFER node whose value was computed from floats, if it was. `owner` is what
    temporaries belong to: it says which parts there are.
    """

    __slots__ = (
        *("_loan", "computed_as", "device", "end", "handle", "hides_graph", "keep"),
        *("owner", "size"),
    )
    end: End

    def __init__(self, on: Device, size: int, owner: ArenaOwner | None = None) -> None:
        self.device = on
        self.size = size
        self.owner = owner
        self.handle: Handle = None
        self.keep: Any = None
        self._loan: ref[Any] | None = None
        self.hides_graph = False
        self.computed_as = -1

    def allocated(self) -> Handle:
        """The device's handle; memory is taken now if it was not before."""
        handle = self.handle
        if handle is None:
            try:
                handle = SPARE.take(self.device, self.size or 1)
            except OutOfMemory:
                handle = _take_at_last(self.device, self.size or 1)
            self.handle = handle
            self._count(self.size)
        return handle

    def try_zeros(self) -> bool:
        """Take memory of zeros now, if the device has such that costs nothing before its use."""
        host = self.device.host_memory
        if host is None or self.device.stores_nothing:
            return False
        self.handle = host.zeros(self.size or 1)
        self._count(self.size)
        return True

    @property
    def is_lent(self) -> bool:
        """Whether an array reads this memory in place."""
        return self._loan is not None and self._loan() is not None

    @property
    def has_contents(self) -> bool:
        """Whether something was written here."""
        return self.handle is not None

    def try_lend(self) -> Any:
        """An object with the buffer protocol over this memory; None where it is not a host's.

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

    def lend_handle(self) -> Loan:
        """The memory itself, for a library that uses the same device.

        Whoever holds the loan holds the memory.
        """
        lent = None if self._loan is None else self._loan()
        if lent is None:
            lent = Loan(self.allocated())
            self._loan = ref(lent)
        return lent

    def prepare_write(self) -> None:
        """Called before memory is written: what is lent stays with those who read it."""
        if not self.is_lent or self.keep is not None:
            return
        old, self.handle, self._loan = self.handle, None, None
        self._count(-self.size)
        copy_bytes(self.device, old, self.device, self.allocated(), self.size)

    def free(self) -> None:
        handle = self.handle
        if handle is not None and self.keep is None:
            if self._loan is None or self._loan() is None:
                SPARE.give(self.device, self.size or 1, handle)
            self._count(-self.size)
        self.handle = self.keep = None

    def _count(self, change: int) -> None:
        """Count memory that was taken, or given back."""
        name = self.device.name
        used = GlobalCounters.count_memory(name, change)
        if STATE.trace is not None and change:
            record_memory(self, used, change > 0)


class Loan:
    """Memory that another library uses. It is freed when neither side holds it."""

    __slots__ = ("__weakref__", "handle")

    def __init__(self, handle: Handle) -> None:
        self.handle = handle


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


# The memory of each BUFFER node, by its number. A replay looks here without a call.
BUFFERS: Final[dict[int, Buffer]] = {}
_TENSORS_SHOWN: Final = 6


def _take_at_last(device: Device, size: int) -> Handle:
    """Memory of a device that has no more: what is idle is dropped, and what nobody can reach."""
    SPARE.release(device)
    gc.collect()
    try:
        return device.allocate(size)
    except OutOfMemory as error:
        error.facts += tuple(_alive(device))
        raise


def _alive(device: Device) -> Iterator[tuple[str, str, str, str]]:
    """The largest tensors that have memory on a device, by the lines that made them."""
    sizes: dict[tuple[str, str], list[int]] = {}
    for memory in BUFFERS.values():
        if memory.device is device and memory.has_contents:
            what, line = describe_buffer(memory)
            location = "" if line is None or not line.file else f"{line.file}:{line.line}"
            sizes.setdefault((what, location), []).append(memory.size)
    used = GlobalCounters.mem_used_by.get(device.name, 0)
    yield "in use", "all tensors", bytes_text(used), ""
    rows = sorted(sizes.items(), key=lambda row: -sum(row[1]))
    for (what, location), several in rows[:_TENSORS_SHOWN]:
        count = f"{len(several)} tensors alive" if len(several) > 1 else "a tensor alive"
        yield count, what, bytes_text(sum(several)), location
    if len(rows) > _TENSORS_SHOWN:
        rest = [size for _, several in rows[_TENSORS_SHOWN:] for size in several]
        yield "and others", f"{len(rest)} tensors", bytes_text(sum(rest)), ""
    named = sum(sum(several) for several in sizes.values())
    if used > named:
        yield "the rest", "temporaries of jitted functions", bytes_text(used - named), ""


def buffer_of(node: UOp) -> Buffer:
    """The memory of a BUFFER node."""
    found = BUFFERS.get(node.arg[0])
    if found is None:
        raise InternalError("a BUFFER node has no memory", ir_text=repr(node))
    return found


def has_memory(node: UOp) -> bool:
    """Whether a BUFFER node still is memory: a write hands it over to a new node."""
    return node.arg[0] in BUFFERS


def parts_of(node: UOp) -> tuple[UOp, ...]:
    """The BUFFER nodes of memory over several devices."""
    memory = buffer_of(node)
    assert isinstance(memory, PartedBuffer)
    return memory.parts

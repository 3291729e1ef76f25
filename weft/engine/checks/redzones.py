"""`CHECK=memory`: a kernel runs between redzones that it must neither change nor read.

`run.py` and `replay.py` launch through here while the setting is on. Each memory of the kernel is
copied to a block with a redzone on both sides, the kernel runs on the blocks, and what it wrote is
copied back. So it does not matter whose memory it is: parts of an arena, arrays of NumPy and
memory that is lent have redzones like all others, and a stray store ruins nothing.

A kernel runs twice, over redzones that differ in every byte. A store to a redzone changes one of
the two, whatever it stores; a value that is read there makes the two results differ. The first
redzones are NaN in the floats of 16 bits and more and negative in integers, the second are large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from weft.engine.buffers import Buffer
from weft.ir.program import Program
from weft.ir.shapes import shape_of
from weft.ir.sizes import shape_value
from weft.ir.uop import UOp
from weft.runtime.device import Device, Handle, LaunchList
from weft.schedule.plan import ALIGNMENT
from weft.support.errors import InternalError

PATTERNS: Final = (b"\xfa\xff", b"\x7a\x7a")
# A redzone is as large as its memory, because a stray store is seldom farther away than that.
LEAST_REDZONE: Final = 4 << 10
MOST_REDZONE: Final = 1 << 20


class _Member(NamedTuple):
    """An argument of a kernel and its offset in a block."""

    number: int
    handle: Handle
    offset: int
    size: int


class _RedzonedBlock:
    """Memory of a kernel between its redzones; arguments that overlap are members of one block."""

    def __init__(self, members: list[_Member], program: Program, device: Device) -> None:
        self.members = members
        self.size = max(each.offset + each.size for each in members)
        self.written = [each for each in members if program.parameters[each.number].is_written]
        # What the kernel may see of an address, such as its alignment, stays as it is.
        skew = members[0].handle.address % ALIGNMENT if device.has_addresses else 0
        whole = min(max(self.size, LEAST_REDZONE), MOST_REDZONE)
        self.start = -(-whole // ALIGNMENT) * ALIGNMENT + skew
        self.end = self.start + self.size

    def contents(self, device: Device) -> bytearray:
        """What the members hold before the kernel runs."""
        data = bytearray(self.size)
        for each in self.members:
            if each.size:
                part = memoryview(data)[each.offset : each.offset + each.size]
                device.copy_out(part, each.handle)
        return data

    def between(self, redzone: bytes, contents: bytes) -> bytearray:
        """The contents with a redzone on both sides."""
        whole = bytearray(redzone * (-(-(self.end + self.start) // len(redzone))))
        whole[self.start : self.end] = contents
        return whole

    def write_back(self, device: Device, data: bytes) -> None:
        for each in self.written:
            if each.size:
                part = memoryview(data)[each.offset : each.offset + each.size]
                device.copy_in(each.handle, part)


def run_between_redzones(
    device: Device,
    program: Program,
    memory: Sequence[Handle],
    sizes: Sequence[int],
    launch: Callable[[list[Handle]], None],
) -> None:
    """Launch a kernel, and raise where it touches what is not its own. `sizes` are in bytes."""
    if device.stores_nothing:
        launch(list(memory))
        return
    groups = _overlapping(device, memory, sizes)
    blocks = [_RedzonedBlock(members, program, device) for members in groups]
    before = [bytes(block.contents(device)) for block in blocks]
    results = [_run_over(redzone, device, program, blocks, before, launch) for redzone in PATTERNS]
    for block, first, second in zip(blocks, *results, strict=True):
        if first != second:
            what = "depends on memory outside of what it reads"
            raise _error(program, what, block.written, _first_change(first, second))
        block.write_back(device, first)


def _overlapping(
    device: Device, memory: Sequence[Handle], sizes: Sequence[int]
) -> list[list[_Member]]:
    """The arguments, those together that share bytes; the ends of memory are its own."""
    starts = [handle.address if device.has_addresses else None for handle in memory]
    order = sorted(range(len(memory)), key=lambda n: (starts[n] or id(memory[n]), n))
    groups: list[list[_Member]] = []
    begin = end = -1
    for number in order:
        start: int = starts[number] or id(memory[number])
        if start >= end or (start != begin and starts[number] is None):
            groups.append([])
            begin, end = start, start
        member = _Member(number, memory[number], start - begin, sizes[number])
        groups[-1].append(member)
        end = max(end, start + sizes[number])
    return groups


def _run_over(
    redzone: bytes,
    device: Device,
    program: Program,
    blocks: list[_RedzonedBlock],
    before: list[bytes],
    launch: Callable[[list[Handle]], None],
) -> list[bytes]:
    """What the blocks hold after a run between redzones of one pattern."""
    wholes = [block.between(redzone, data) for block, data in zip(blocks, before, strict=True)]
    taken = [device.allocate(len(whole)) for whole in wholes]
    try:
        arguments: dict[int, Handle] = {}
        for block, whole, handle in zip(blocks, wholes, taken, strict=True):
            device.copy_in(handle, memoryview(whole))
            for each in block.members:
                address = block.start + each.offset
                arguments[each.number] = device.view(handle, address, max(each.size, 1))
        launch([arguments[number] for number in range(len(arguments))])
        after = [bytearray(len(whole)) for whole in wholes]
        for data, handle in zip(after, taken, strict=True):
            device.copy_out(memoryview(data), handle)
    finally:
        device.synchronize()
        for handle in taken:
            device.free(handle)
    for block, whole, data in zip(blocks, wholes, after, strict=True):
        _verify(program, block, whole, data)
    pairs = zip(blocks, after, strict=True)
    return [bytes(data[block.start : block.end]) for block, data in pairs]


def _verify(program: Program, block: _RedzonedBlock, before: bytearray, after: bytearray) -> None:
    """Only what the kernel says that it writes may differ."""
    source = after if block.written else before
    wanted = before[: block.start] + source[block.start : block.end] + before[block.end :]
    if after == wanted:
        return
    offset = _first_change(wanted, after) - block.start
    is_inside = 0 <= offset < block.size
    what = "stores to memory that it only reads" if is_inside else "stores outside of its memory"
    raise _error(program, what, block.members, offset)


def _first_change(one: bytes | bytearray, other: bytes | bytearray) -> int:
    return next(at for at, (x, y) in enumerate(zip(one, other, strict=True)) if x != y)


def _error(program: Program, what: str, members: list[_Member], offset: int) -> InternalError:
    """The arguments in question, and the first byte, counted from the start of the first one."""
    facts: list[tuple[object, ...]] = []
    for each in members:
        parameter = program.parameters[each.number]
        count = each.size // parameter.dtype.itemsize
        held = f"{count} of {parameter.dtype.name}"
        facts.append((f"slot {parameter.slot}", held, f"{each.size} bytes"))
    itemsize = program.parameters[members[0].number].dtype.itemsize
    facts.append(("first at", f"element {offset // itemsize}", f"byte {offset}"))
    return InternalError(
        f"kernel {program.name!r}, slot {program.parameters[members[0].number].slot}: {what},"
        f" at byte {offset} of {max(each.offset + each.size for each in members)}",
        facts=facts,
        ir_text=program.source,
    )


def sizes_of(memory: Sequence[UOp], variables: Mapping[str, int]) -> list[int]:
    """The bytes of a kernel's arguments, by the values of their sizes."""
    return [_size_of(node, variables) for node in memory]


def _size_of(node: UOp, variables: Mapping[str, int]) -> int:
    return math.prod(shape_value(shape_of(node), variables)) * node.dtype.itemsize


def fill_fresh(memory: Sequence[Buffer | None]) -> None:
    """Fill memory that nobody has written yet, so that reading it shows."""
    for part in memory:
        if part is not None and not part.has_contents and part.size:
            fill(part)


def fill(part: Buffer) -> None:
    """Fill all of some memory with the first pattern."""
    handle, pattern = part.allocated(), PATTERNS[0]
    if not part.device.stores_nothing:
        data = pattern * (-(-part.size // len(pattern)))
        part.device.copy_in(handle, memoryview(data)[: part.size])


class CheckedList:
    """A `LaunchList` whose kernels run one by one between redzones, on the words of the list.

    `kernels` are its programs with the PARAMs of their arguments.
    """

    def __init__(
        self,
        run_list: LaunchList,
        device: Device,
        kernels: Sequence[tuple[Program, tuple[UOp, ...]]],
    ) -> None:
        self._list = run_list
        self._device = device
        self._kernels = kernels
        self.values: Mapping[str, int] = {}  # of the variables in this run

    def __len__(self) -> int:
        return len(self._kernels)

    def __call__(self) -> None:
        for number, (program, parameters) in enumerate(self._kernels):
            sizes = sizes_of(parameters, self.values)
            memory = [self._list.memory_at(number, slot, size) for slot, size in enumerate(sizes)]
            launch = partial(self._list.run_one, number)
            run_between_redzones(self._device, program, memory, sizes, launch)

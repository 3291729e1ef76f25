"""Copies of boxes, barriers that count bytes, and products of tiles, as one group runs them.

`program.py` hands over here what threads do together. Nothing that runs beside the arithmetic is
seen before somebody has waited for it: what a copy writes is not there until its barrier has been
waited for, and sums cannot be read while they are computed. Overwriting a tile that is still being
multiplied, or of which nobody knows whether other warps are done with it, waiting for bytes that
nobody copies, and sums that are touched without a fence are faults; on a GPU they are wrong
results now and then, or no end.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from weft.ir.dtypes import FLOAT, Scalar, by_name
from weft.ir.reduction.contract import WARPGROUP_THREADS, sum_position, swizzled, tile_byte
from weft.ir.scalar import from_bits, to_bits
from weft.ir.uop import UOp
from weft.reference.fault import fault
from weft.reference.memory import Cell, ElementMemory
from weft.reference.tiles import as_scalar

WARP_THREADS: Final = 32


class Landing(NamedTuple):
    """Elements that a copy brings, which land when somebody waits for them."""

    memory: ElementMemory
    values: list[tuple[int, Scalar]]
    size: int


class Reads(NamedTuple):
    """Elements that a warp has multiplied; `of` is those of a group of multiplications."""

    warp: int
    of: frozenset[tuple[ElementMemory, int]]


@dataclass
class Barrier:
    """One barrier: its phases are counted; a phase ends with all its arrivals and bytes."""

    wanted: int = 1
    phase: int = 0
    arrivals: int = 0
    bytes_left: int = 0
    copies: list[Landing] = field(default_factory=list)
    told: list[Reads] = field(default_factory=list)  # what is over for those that have arrived
    known: list[Reads] = field(default_factory=list)  # the same of phases that are complete

    def advance(self) -> None:
        self.phase, self.arrivals, self.copies = self.phase + 1, 0, []
        self.known, self.told = self.known + self.told, []


@dataclass
class Multiplications:
    """A group of them: the sums that they compute, and the elements that they read."""

    sums: set[ElementMemory] = field(default_factory=set)
    reads: set[tuple[ElementMemory, int]] = field(default_factory=set)


@dataclass
class Warpgroup:
    """Four warps: sums that are being computed, and the tiles that are being read, by groups."""

    sums: dict[ElementMemory, list[Scalar | None]] = field(default_factory=dict)
    fenced: set[ElementMemory] = field(default_factory=set)
    groups: list[Multiplications] = field(default_factory=list)
    current: Multiplications = field(default_factory=Multiplications)

    def reads(self, memory: ElementMemory, position: int) -> bool:
        address = (memory, position)
        return any(address in group.reads for group in (self.current, *self.groups))

    def complete(self, left: int) -> list[Multiplications]:
        """Let all groups but the last few be complete: their sums are there. Those groups."""
        count = max(len(self.groups) - left, 0)
        done, self.groups = self.groups[:count], self.groups[count:]
        running = set[ElementMemory]().union(*(g.sums for g in (self.current, *self.groups)))
        for memory in self.sums.keys() - running:
            memory.values = self.sums.pop(memory)
            self.fenced.discard(memory)
        return done


class GroupState:
    """What runs beside the threads of one group."""

    def __init__(self, threads: int) -> None:
        self.barriers: dict[tuple[ElementMemory, int], Barrier] = {}
        self.warpgroups = [Warpgroup() for _ in range(-(-threads // WARPGROUP_THREADS))]
        self.unknown: list[Reads] = []  # reads that are over, but not everybody knows that

    # What one thread does.

    def make_barriers(self, address: Cell, count: int, arrivals: int, node: UOp) -> None:
        for number in range(count):
            address.memory.set(address.position + number, 0, node)
            self.barriers[address.memory, address.position + number] = Barrier(arrivals)

    def barrier(self, address: Cell, node: UOp) -> Barrier:
        address.memory.get(address.position, node)  # it was made, and that is known to this thread
        return self.barriers[address.memory, address.position]

    def expect(self, address: Cell, size: int, node: UOp) -> None:
        barrier = self.barrier(address, node)
        if barrier.arrivals == barrier.wanted:
            raise fault("a barrier takes one arrival in each phase, and this is another", node)
        barrier.arrivals += 1
        barrier.bytes_left += size

    def arrive(self, address: Cell, thread: int, node: UOp) -> None:
        """Say that a warp is done with what it has waited for."""
        barrier = self.barrier(address, node)
        barrier.told += [each for each in self.unknown if each.warp == thread // WARP_THREADS]
        barrier.arrivals += 1
        if barrier.arrivals == barrier.wanted and not barrier.bytes_left:
            barrier.advance()

    def copy_box(
        self, target: Cell, source: ElementMemory, layout: UOp, at: Sequence[int], address: Cell
    ) -> None:
        """Start a copy; until somebody has waited, nothing is at its target."""
        offset, sizes, strides, box, traversal = layout.arg
        size, memory = target.memory.dtype.itemsize, target.memory
        values: list[tuple[int, Scalar]] = []
        # The contiguous axis is the fastest.
        for number, back in enumerate(itertools.product(*(range(n) for n in reversed(box)))):
            point = [
                a + b * step for a, b, step in zip(at, reversed(back), traversal, strict=True)
            ]
            is_inside = all(0 <= x < n for x, n in zip(point, sizes, strict=True))
            where = offset + sum(x * s for x, s in zip(point, strides, strict=True))
            bits = to_bits(source.dtype, source.get(where, layout)) if is_inside else 0
            position = swizzled((target.position + number) * size) // size
            if any(each.reads(memory, position) for each in self.warpgroups):
                raise fault(f"{memory.name} is overwritten while it is multiplied", layout)
            if any((memory, position) in each.of for each in self.unknown):
                raise fault(f"{memory.name} is overwritten while a warp may multiply it", layout)
            if not 0 <= position < memory.size:
                raise fault(f"{memory.name} is written out of bounds at {position}", layout)
            memory.values[position] = None
            values.append((position, bits))
        self.barrier(address, layout).copies.append(Landing(memory, values, len(values) * size))

    # What all threads do together.

    def meet(self) -> None:
        """All threads know what the others have done."""
        self.unknown = []

    def wait(self, addresses: Sequence[Cell], parities: Sequence[int], node: UOp) -> None:
        """Let copies land, and go on if the phase is complete."""
        places = zip(addresses, parities, strict=True)
        if len({(cell.position, parity) for cell, parity in places}) > 1:
            raise fault("threads wait for different barriers", node)
        barrier = self.barrier(addresses[0], node)
        if barrier.phase % 2 == parities[0]:
            for memory, values, size in barrier.copies:
                for position, value in values:
                    memory.values[position] = value
                barrier.bytes_left -= size
            if barrier.arrivals < barrier.wanted or barrier.bytes_left:
                left = barrier.bytes_left
                missing = (
                    f"{left} bytes that nobody copies" if left else "threads that do not come"
                )
                raise fault(f"threads wait for {missing}", node)
            barrier.advance()
        over = set(map(id, barrier.known))
        barrier.known = []
        self.unknown = [each for each in self.unknown if id(each) not in over]

    def group(self, node: UOp, sums: Sequence[Cell]) -> None:
        """A fence, the end of a group of multiplications, or a wait for groups."""
        kind, *count = node.arg
        for number, warpgroup in enumerate(self.warpgroups):
            own = sums[number * WARPGROUP_THREADS : (number + 1) * WARPGROUP_THREADS]
            if kind == "fence":
                warpgroup.fenced.update(cell.memory for cell in own)
            elif kind == "commit":
                warpgroup.groups.append(warpgroup.current)
                warpgroup.current = Multiplications()
            elif kind in ("wait", "ready"):
                for each in warpgroup.complete(count[0]):
                    first = number * WARPGROUP_THREADS // WARP_THREADS
                    warps = range(first, first + WARPGROUP_THREADS // WARP_THREADS)
                    reads = frozenset(each.reads)
                    self.unknown += [Reads(warp, reads) for warp in warps if reads]
                running = [cell.memory for cell in own if cell.memory in warpgroup.sums]
                if kind == "ready" and running:
                    raise fault(f"{running[0].name} is not what is complete", node)

    def multiply(self, node: UOp, cells: Sequence[tuple[Cell, Cell, Cell]]) -> None:
        """Add a product of tiles to the sums of each warpgroup."""
        if len(cells) % WARPGROUP_THREADS:
            raise fault(f"{len(cells)} threads are not groups of {WARPGROUP_THREADS}", node)
        for number, warpgroup in enumerate(self.warpgroups):
            own = cells[number * WARPGROUP_THREADS : (number + 1) * WARPGROUP_THREADS]
            if len({(left.position, right.position) for _, left, right in own}) > 1:
                raise fault("the threads of a warpgroup multiply different tiles", node)
            (left_name, right_name), (rows, columns, depth), panels, *begins = node.arg
            _, left, right = own[0]
            if left.memory is own[-1][1].memory:
                x = _tile(warpgroup, left, left_name, (rows, depth), panels[0], node)
            else:  # each thread has its own
                x = _in_words([each for _, each, _ in own], left_name, (rows, depth), node)
            y = _tile(warpgroup, right, right_name, (columns, depth), panels[1], node)
            product = x @ y.T
            for thread, (sums, _, _) in enumerate(own):
                if begins and sums.memory not in warpgroup.sums:
                    _begin(warpgroup, sums.memory, node)
                _add(warpgroup, sums.memory, thread, product, node)


def _tile(
    warpgroup: Warpgroup, address: Cell, name: str, shape: tuple[int, int], panel: int, node: UOp
) -> np.ndarray:
    """A swizzled tile of local memory, which is being read from now on."""
    dtype, memory = by_name(name), address.memory
    size = dtype.itemsize
    tile = np.zeros(shape, np.float64 if dtype.kind == FLOAT else np.int64)
    for row, along in np.ndindex(shape):
        byte = tile_byte(address.position * size, row, along, size, panel)
        position = swizzled(byte) // size
        value = memory.values[position] if 0 <= position < memory.size else None
        if value is None:
            raise fault(f"{memory.name} is multiplied at {position} before it is there", node)
        warpgroup.current.reads.add((memory, position))
        tile[row, along] = from_bits(dtype, to_bits(memory.dtype, value))
    return tile


def _in_words(cells: Sequence[Cell], name: str, shape: tuple[int, int], node: UOp) -> np.ndarray:
    """A tile of which each thread has its own elements, two of 16 bits in a word."""
    tile = np.zeros(shape, np.float64)
    for thread, cell in enumerate(cells):
        for element in range(shape[0] * shape[1] // WARPGROUP_THREADS):
            word, high = divmod(element, 2)
            bits = int(cell.memory.get(cell.position + word, node)) >> 16 * high & 0xFFFF
            tile[sum_position(thread, element)] = from_bits(by_name(name), bits)
    return tile


def _begin(warpgroup: Warpgroup, memory: ElementMemory, node: UOp) -> None:
    """Let sums begin at 0, whatever they were."""
    if memory not in warpgroup.fenced:
        raise fault("sums are computed on without a fence", node)
    warpgroup.sums[memory] = [0] * memory.size
    memory.values = [None] * memory.size


def _add(
    warpgroup: Warpgroup, memory: ElementMemory, thread: int, product: np.ndarray, node: UOp
) -> None:
    """Add what a thread has of a product to its sums, which cannot be read until it is waited."""
    if memory not in warpgroup.sums:
        if memory not in warpgroup.fenced:
            raise fault("sums are computed on without a fence", node)
        warpgroup.sums[memory] = memory.values
        memory.values = [None] * memory.size
    warpgroup.current.sums.add(memory)
    values = warpgroup.sums[memory]
    for element, before in enumerate(values):
        if before is None:
            raise fault(f"{memory.name} has no first value at {element}", node)
        total = before + product[sum_position(thread, element)].item()
        values[element] = as_scalar(total, memory.dtype)

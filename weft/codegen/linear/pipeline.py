"""A product of tiles becomes copies, barriers and matrix instructions, which overlap.

In: a LINEAR with CONTRACTs, each stored in register memory. Out: none. Local memory has room for
several steps of the sum. One thread starts the copies of a step as soon as the room of an earlier
step is free; all threads wait for the bytes of the present one, start its multiplications, and let
them run while they wait for those of the step before:

    make barriers; start the copies of steps 0 to stages - 2
    for step:
      wait for the bytes of the step
      multiply its tiles; wait until at most one step is being multiplied
      barrier: all threads are done with the step before, whose room is free
      start the copies of step + stages - 1 there

At the end neighbors exchange their sums (`exchange.py`), and register memory has the elements of
the tile.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from weft.codegen.context import CodegenContext
from weft.codegen.linear.exchange import exchange_sums
from weft.codegen.linear.lines import Lines, number
from weft.codegen.linear.stream import stream
from weft.codegen.linear.tile_memory import (
    MMA_BYTES,
    mma_start,
    panel_bytes,
    part_start,
    tile_memory,
)
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.reduction.contract import (
    ROW_BYTES,
    WARPGROUP_ROWS,
    ContractParts,
    contract_parts,
    sum_dtype,
)
from weft.ir.spec.program import DYNAMIC
from weft.ir.uop import UOp, const, make


def pipeline(program: UOp, context: CodegenContext) -> UOp:
    """The program with its tiles multiplied step by step."""
    if any(node.op == Op.CONTRACT and contract_parts(node).is_in_pairs for node in program.src):
        return stream(program)
    lines: list[UOp] = []
    known: dict[UOp, UOp] = {}  # what instructions have become
    counter = 1 + max((node.arg for node in program.src if node.op == Op.RANGE), default=-1)
    count = 0
    for node in program.src:
        if node.op == Op.CONTRACT:
            continue  # its store writes it
        value = node.src[1] if node.op == Op.STORE else None
        if value is None or value.op != Op.CONTRACT:
            known[node] = _rebuilt(node, known)
            lines.append(known[node])
            continue
        tile = _Tile(_rebuilt(value, known), count, counter + count)
        lines += tile.written(node.src[0].src[0])
        known[node] = lines[-1]
        count += 1
    return make(Op.LINEAR, dtypes.void, tuple(lines))


def _rebuilt(node: UOp, known: dict[UOp, UOp]) -> UOp:
    src = tuple([_source(source, known) for source in node.src])
    return node if src == node.src else make(node.op, node.dtype, src, node.arg)


def _source(node: UOp, known: dict[UOp, UOp]) -> UOp:
    if node not in known and node.op == Op.AFTER:  # a version is not listed
        known[node] = _rebuilt(node, known)
    return known.get(node, node)


class _Tile(Lines):
    """The instructions of one CONTRACT, in order."""

    def __init__(self, node: UOp, count: int, counter: int) -> None:
        self.parts: ContractParts = contract_parts(node)
        self.warp, self.lane, self.quad = self.parts.positions
        super().__init__(self.warp)
        self.dtype = sum_dtype(self.parts.factors[0])
        self.counter = counter
        self.bytes = [self.parts.parts * each.height * ROW_BYTES for each in self.parts.factors]
        stages = self.parts.stages
        self.tiles = [
            tile_memory(name, count, factor, stages * size)
            for name, factor, size in zip(
                ("left", "right"), self.parts.factors, self.bytes, strict=True
            )
        ]
        self.barriers = make(Op.MEMORY, dtypes.uint64, (), (f"barriers{count}", DYNAMIC, stages))
        elements = (f"sums{count}", "register", self.parts.elements)
        self.sums = make(Op.MEMORY, self.dtype, (), elements)

    def written(self, target: UOp) -> list[UOp]:
        """All instructions; the elements of the tile are stored in the target at the end."""
        parts = self.parts
        self.all_sums = self.at(self.sums, number(0), self.dtype.vector(parts.elements))
        group = self.value(Op.SHR, self.warp, number(2))
        across = number(WARPGROUP_ROWS * parts.factors[0].row_elements)
        self.own_rows = self.value(Op.MUL, group, across)
        first = self.is_zero(self.warp)
        for counter in (self.lane, self.quad):
            first = self.both(first, self.is_zero(counter))
        self.maps = [self.tensor_map(which) for which in range(2)]
        self.before = first
        address = self.at(self.barriers, number(0))
        self.effect(Op.MBARRIER, (address, first), ("init", parts.stages, 1))
        for step in range(min(parts.stages - 1, parts.step_count)):
            self.fill(number(step), number(step), first)
        self.effect(Op.BARRIER, ())
        for element in range(parts.elements):
            self.store(self.at(self.sums, number(element)), const(self.dtype, 0))
        self.loop(first)
        sums = make(Op.AFTER, self.dtype, (self.sums, self.before))
        exchange_sums(self, sums, target, self.quad, parts)
        return self.listed

    def tensor_map(self, which: int) -> UOp:
        factor, memory = self.parts.factors[which], self.parts.memories[which]
        arg = (factor.offset, factor.sizes, factor.strides, factor.box, factor.traversal)
        return self.add(Op.TENSOR_MAP, memory.dtype, (memory,), arg)

    def loop(self, first: UOp) -> None:
        """All steps of the sum."""
        count, stages = number(self.parts.step_count), self.parts.stages
        step = self.before = self.add(Op.RANGE, dtypes.int32, (count,), self.counter)
        lap, slot = self.quotient(step, stages)
        parity = self.value(Op.AND, lap, number(1))
        always = const(dtypes.bool, True)
        self.effect(Op.MBARRIER, (self.at(self.barriers, slot), always, parity), ("wait",))
        self.multiply(slot)
        self.effect(Op.BARRIER, ())
        ahead = self.value(Op.ADD, step, number(stages - 1))
        fills = self.both(self.add(Op.LESS, dtypes.bool, (ahead, count)), first)
        _, free = self.quotient(ahead, stages)
        self.fill(ahead, free, fills)
        self.before = self.add(Op.END, dtypes.void, (step,))
        self.effect(Op.MMA_GROUP, (self.all_sums,), ("wait", 0))

    def multiply(self, slot: UOp) -> None:
        """Start the multiplications of a step, and wait for those of the step before."""
        left, right = self.parts.factors
        starts = [self.slot_start(which, slot) for which in range(2)]
        starts[0] = self.value(Op.ADD, starts[0], self.own_rows)
        arg = (
            (left.dtype, right.dtype),
            (WARPGROUP_ROWS, self.parts.tile[1], MMA_BYTES // left.of.itemsize),
            (panel_bytes(left), panel_bytes(right)),
        )
        self.effect(Op.MMA_GROUP, (self.all_sums,), ("fence",))
        for part in range(self.parts.parts * ROW_BYTES // MMA_BYTES):
            addresses = [
                self.at(tile, self.value(Op.ADD, start, number(mma_start(factor, part))))
                for tile, start, factor in zip(self.tiles, starts, self.parts.factors, strict=True)
            ]
            self.effect(Op.MMA, (self.all_sums, *addresses), arg)
        self.effect(Op.MMA_GROUP, (self.all_sums,), ("commit",))
        self.effect(Op.MMA_GROUP, (self.all_sums,), ("wait", 1))

    def slot_start(self, which: int, slot: UOp) -> UOp:
        """Where the tile of a slot begins, in elements."""
        elements = self.bytes[which] // self.parts.factors[which].of.itemsize
        return self.value(Op.MUL, slot, number(elements))

    def fill(self, step: UOp, slot: UOp, mask: UOp) -> None:
        """Start the copies of a step into a slot."""
        barrier = self.at(self.barriers, slot)
        self.effect(Op.MBARRIER, (barrier, mask), ("expect", sum(self.bytes)))
        counters = self.counters(step)
        for which, factor in enumerate(self.parts.factors):
            start = self.slot_start(which, slot)
            at = self.coordinates(which, counters)
            for part, panel in itertools.product(range(self.parts.parts), range(factor.panels)):
                position = number(part_start(factor, part) + panel * factor.row_elements**2)
                address = self.at(self.tiles[which], self.value(Op.ADD, start, position))
                corner = map(number, factor.corner(part, panel))
                moved = [self.value(Op.ADD, *each) for each in zip(at, corner, strict=True)]
                self.effect(Op.COPY_BOX, (address, self.maps[which], barrier, mask, *moved))

    def counters(self, step: UOp) -> list[UOp]:
        """The counters of a step, from its number."""
        found: list[UOp] = []
        for extent in reversed(self.parts.steps[1:]):
            step, rest = self.quotient(step, extent)
            found.append(rest)
        return [step, *reversed(found)]

    def coordinates(self, which: int, counters: Sequence[UOp]) -> list[UOp]:
        """Where the box of a step begins."""
        found: list[UOp] = []
        starts, factor = self.parts.starts[which], self.parts.factors[which]
        for at, moves in zip(starts, factor.moves, strict=True):
            for counter, move in zip(counters, moves, strict=True):
                if move:
                    at = self.value(Op.ADD, at, self.value(Op.MUL, counter, number(move)))
            found.append(at)
        return found

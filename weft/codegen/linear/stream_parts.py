"""What products of tiles inside a loop are made of: copies, barriers, and multiplications.

`stream.py` and `stream_ahead.py` put these in order. Each factor that is copied has slots in local
memory, as many as there are steps at once, and each slot has a barrier that counts the bytes that
come. Where warps do not wait for each other, it has another one, on which each warp says that it
is done with the slot.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.codegen.linear.exchange import loaded, packed
from weft.codegen.linear.lines import Lines, number
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
    Factor,
    contract_parts,
)
from weft.ir.spec.program import DYNAMIC, LEAVES
from weft.ir.uop import UOp, const, make
from weft.ir.views import behind
from weft.ir.walk import substitute_all, topological
from weft.support.errors import InternalError

# Words of a computed left factor that a thread has for one multiplication, of two elements each.
OWN_WORDS: Final = 4


class Operand(NamedTuple):
    """A factor that is copied: its tile in a step, and where the barriers of its slots are."""

    memory: UOp
    factor: Factor
    starts: tuple[UOp, ...]
    tile: UOp
    slots: int
    barrier: int
    size: int  # bytes of a slot
    parts: int  # rows of 128 bytes along the sum
    tensor: UOp


class Copies(NamedTuple):
    """The copies of a step: the barrier that counts their bytes, addresses, and corners there."""

    barrier: UOp
    boxes: list[tuple[UOp, list[UOp]]]


class StreamParts(Lines):
    """The instructions of the whole program, in order, and what its products are made of."""

    def __init__(self, program: UOp) -> None:
        self.products = [node for node in program.src if is_product(node)]
        self.parts = {node.src[1]: contract_parts(node.src[1]) for node in self.products}
        self.warp, self.lane, self.quad = self.parts[self.products[0].src[1]].positions
        super().__init__(self.warp)
        # Without a loop, as where a mask leaves one block, each factor is copied once.
        self.counter = loop_of(program)
        self.known: dict[UOp, UOp] = {}  # what instructions have become

    # ---- instructions that were there

    def rebuilt(self, node: UOp) -> UOp:
        src = tuple([self.source(source) for source in node.src])
        return node if src == node.src else make(node.op, node.dtype, src, node.arg)

    def source(self, node: UOp) -> UOp:
        if node not in self.known and node.op == Op.AFTER:  # a version is not listed
            self.known[node] = self.rebuilt(node)
        return self.known.get(node, node)

    def insert(self, node: UOp) -> None:
        """List an instruction; one that was needed sooner is listed already."""
        if node not in self._seen:
            self._seen.add(node)
            self.listed.append(node)

    def at_step(self, nodes: Sequence[UOp], step: UOp) -> list[UOp]:
        """Values in another iteration of the loop, computed in front of what comes next."""
        moved = {} if self.counter is None else {self.counter: step}
        found = substitute_all([self.source(node) for node in nodes], moved)
        for node in topological(*found, enter=lambda each: each not in self._seen):
            if node not in self._seen and node.op not in LEAVES:
                self.insert(node)
        return found

    # ---- copies

    def find_operands(self) -> None:
        """The factors that are copied, and where the rows of a warpgroup begin in them."""
        self.first = self.is_zero(self.warp)
        for counter in (self.lane, self.quad):
            self.first = self.both(self.first, self.is_zero(counter))
        self.operands: dict[object, Operand] = {}
        self.count = 0  # of barriers that count bytes
        for parts in self.parts.values():
            for which in range(2):
                self._note_operand(parts, which)
        group = self.value(Op.SHR, self.warp, number(2))
        rows = self.value(Op.MUL, group, number(WARPGROUP_ROWS * ROW_BYTES // 2))
        self.own_rows = {
            parts.factors[0]: [
                self.value(Op.ADD, rows, number(mma_start(parts.factors[0], each)))
                for each in range(_multiplications(parts))
            ]
            for parts in self.parts.values()
        }
        self.before = self.first

    def make_barriers(self, count: int, arrivals: int = 0) -> None:
        """Make those that count bytes, and so many more that count arrivals."""
        self.barriers = make(Op.MEMORY, dtypes.uint64, (), ("barriers", DYNAMIC, count))
        kinds = [(0, self.count, 1)]
        kinds += [(self.count, count - self.count, arrivals)] if arrivals else []
        for start, some, wanted in kinds:
            self.barrier("init", number(start), self.first, some, wanted)

    def barrier(self, kind: str, position: UOp, mask: UOp, *more: int) -> None:
        self.effect(Op.MBARRIER, (self.at(self.barriers, position), mask), (kind, *more))

    def wait(self, position: UOp, parity: UOp, mask: UOp | None = None) -> None:
        """Wait for a phase of a barrier, all threads or some."""
        mask = const(dtypes.bool, True) if mask is None else mask
        self.effect(Op.MBARRIER, (self.at(self.barriers, position), mask, parity), ("wait",))

    def _note_operand(self, parts: ContractParts, which: int) -> None:
        """Note a factor that is copied, with room for its slots."""
        key = _key(parts, which)
        if (parts.is_computed and which == 0) or key in self.operands:
            return
        factor = parts.factors[which]
        is_streamed = self.counter is not None and self.counter in topological(
            *parts.starts[which]
        )
        slots = parts.stages if is_streamed else 1
        size = parts.parts * factor.height * ROW_BYTES
        arg = (factor.offset, factor.sizes, factor.strides, factor.box, factor.traversal)
        name = f"factor{len(self.operands)}"
        self.operands[key] = Operand(
            memory=parts.memories[which],
            factor=factor,
            starts=parts.starts[which],
            tile=tile_memory(name, 0, factor, slots * size),
            slots=slots,
            barrier=self.count,
            size=size,
            parts=parts.parts,
            tensor=self.add(
                Op.TENSOR_MAP, parts.memories[which].dtype, (parts.memories[which],), arg
            ),
        )
        self.count += slots

    def operands_of(self, parts: ContractParts) -> list[Operand | None]:
        """Both factors of a product; None for one that threads compute."""
        return [self.operands.get(_key(parts, which)) for which in range(2)]

    def exists(self, step: UOp) -> UOp:
        """Whether the loop gets to a step."""
        assert self.counter is not None
        return self.less(step, self.counter.src[0])

    def fill(self, operand: Operand, step: UOp, slot: UOp, mask: UOp) -> None:
        """Start the copies of a step into a slot."""
        self.start_copies(operand, self.copies_of(operand, step, slot), mask)

    def start_copies(self, operand: Operand, copies: Copies, mask: UOp) -> None:
        self.effect(Op.MBARRIER, (copies.barrier, mask), ("expect", operand.size))
        for address, corner in copies.boxes:
            self.effect(Op.COPY_BOX, (address, operand.tensor, copies.barrier, mask, *corner))

    def copies_of(self, operand: Operand, step: UOp, slot: UOp) -> Copies:
        """Where the copies of a step begin, and where they go."""
        factor = operand.factor
        barrier = self.at(self.barriers, self.value(Op.ADD, slot, number(operand.barrier)))
        boxes: list[tuple[UOp, list[UOp]]] = []
        start = self.value(Op.MUL, slot, number(operand.size // factor.of.itemsize))
        at = self.at_step(operand.starts, step)
        for part, panel in itertools.product(range(operand.parts), range(factor.panels)):
            position = number(part_start(factor, part) + panel * factor.row_elements**2)
            address = self.at(operand.tile, self.value(Op.ADD, start, position))
            corner = factor.corner(part, panel)
            moved = [
                self.value(Op.ADD, each, const(each.dtype, more))
                for each, more in zip(at, corner, strict=True)
            ]
            boxes.append((address, moved))
        return Copies(barrier, boxes)

    def less(self, x: UOp, y: UOp) -> UOp:
        if x.op == Op.CONST and y.op == Op.CONST:
            return const(dtypes.bool, x.arg < y.arg)
        return self.add(Op.LESS, dtypes.bool, (x, y))

    def both(self, x: UOp, y: UOp) -> UOp:
        if x.op == Op.CONST:
            return y if x.arg else x
        return super().both(x, y)

    # ---- multiplications

    def words(self, tile: UOp, factor: Factor) -> UOp:
        """A factor that threads have computed, rounded, two elements in each register."""
        memory = self.words_memory(tile)
        for each in range(memory.arg[2]):
            low, high = (loaded(self, tile, 2 * each + side) for side in range(2))
            self.store(self.at(memory, number(each)), packed(self, factor.of, low, high))
        return memory

    def words_memory(self, tile: UOp) -> UOp:
        """The registers of a factor that threads compute."""
        name, space, count = behind(tile).arg
        return make(Op.MEMORY, dtypes.uint32, (), (name + "words", space, count // 2))

    def all_of(self, words: UOp) -> UOp:
        return self.at(words, number(0), dtypes.uint32.vector(words.arg[2]))

    def multiply(
        self,
        value: UOp,
        sums: UOp,
        slots: Sequence[UOp],
        words: UOp | None = None,
        begins: bool = True,
    ) -> None:
        """Start all multiplications of a product of tiles that lie in these slots, as a group."""
        parts = self.parts[value]
        left, right = parts.factors
        arg = (
            (left.dtype, right.dtype),
            (WARPGROUP_ROWS, parts.tile[1], MMA_BYTES // right.of.itemsize),
            (0 if parts.is_computed else panel_bytes(left), panel_bytes(right)),
        )
        operands = self.operands_of(parts)
        self.effect(Op.MMA_GROUP, (sums,), ("fence",))
        for each in range(_multiplications(parts)):
            x = self._left(parts, operands[0], slots[0], words, each)
            assert operands[1] is not None
            start = number(mma_start(right, each))
            y = self.at(
                operands[1].tile,
                self.value(Op.ADD, slot_start(self, operands[1], slots[1]), start),
            )
            self.effect(Op.MMA, (sums, x, y), (*arg, "start") if begins and not each else arg)
        self.effect(Op.MMA_GROUP, (sums,), ("commit",))

    def _left(
        self,
        parts: ContractParts,
        operand: Operand | None,
        slot: UOp,
        words: UOp | None,
        each: int,
    ) -> UOp:
        """The rows of a warpgroup: in registers, or in local memory."""
        if words is not None:
            return self.at(words, number(OWN_WORDS * each))
        assert operand is not None
        start = slot_start(self, operand, slot)
        own = self.own_rows[parts.factors[0]][each]
        return self.at(operand.tile, self.value(Op.ADD, start, own))


def slot_start(lines: Lines, operand: Operand, slot: UOp) -> UOp:
    """Where the tile of a slot begins, in elements."""
    return lines.value(Op.MUL, slot, number(operand.size // operand.factor.of.itemsize))


def _key(parts: ContractParts, which: int) -> object:
    return parts.memories[which], parts.starts[which], parts.factors[which]


def _multiplications(parts: ContractParts) -> int:
    """How often the sum of a tile is cut."""
    return parts.tile[2] * parts.factors[1].of.itemsize // MMA_BYTES


def is_product(node: UOp) -> bool:
    return node.op == Op.STORE and node.src[1].op == Op.CONTRACT


def loop_of(program: UOp) -> UOp | None:
    """The loop that all products stand in, if there is one."""
    opened: list[UOp] = []
    found: set[UOp | None] = set()
    for node in program.src:
        if node.op == Op.RANGE:
            opened.append(node)
        elif node.op == Op.END:
            opened.pop()
        elif is_product(node):
            found.add(opened[-1] if opened else None)
    if len(found) != 1:
        raise InternalError("products of one kernel are not in one loop", pass_name="pipeline")
    (loop,) = found
    return loop

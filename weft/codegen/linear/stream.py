"""Products of tiles inside a loop: what the loop needs next is copied while it multiplies.

In: a LINEAR with a loop that has CONTRACTs, each stored in register memory, and other work between
them. Out: no CONTRACT. What does not depend on the loop is copied once. Of the others local memory
has several steps, each with a barrier that counts its bytes:

    make barriers; start the copies of what stays, and of the first steps
    for step:
      wait for the bytes of a factor, multiply, wait for the sums
      …                                            the work on them, in registers
      wait for the bytes of the next factor, multiply, wait for the sums
      barrier: all threads are done with the step, whose room is free
      start the copies of step + stages there

The sums are where the CONTRACT was to be stored. `pipeline.py` has the loop that a product is.
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


def stream(program: UOp) -> UOp:
    """The program with the products of its loop multiplied step by step."""
    return make(Op.LINEAR, dtypes.void, tuple(_Stream(program).listed))


class _Operand(NamedTuple):
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


class _Stream(Lines):
    """The instructions of the whole program, in order."""

    def __init__(self, program: UOp) -> None:
        products = [node.src[1] for node in program.src if _is_product(node)]
        self.parts = {node: contract_parts(node) for node in products}
        self.warp, self.lane, self.quad = self.parts[products[0]].positions
        super().__init__(self.warp)
        # Without a loop, as where a mask leaves one block, each factor is copied once.
        self.counter = _loop_of(program, products)
        first = self.counter
        if first is None:
            first = next(node for node in program.src if _is_product(node))
        self.known: dict[UOp, UOp] = {}  # what instructions have become
        for node in program.src:
            if node.op == Op.CONTRACT:
                continue  # its store writes it
            if node is first:
                self.prepare()
            if node.op == Op.END and node.src[0] is self.counter:
                self.refill()
            if _is_product(node):
                self.known[node] = self.product(node)
                continue
            self.known[node] = made = self.rebuilt(node)
            self.insert(made)
            if node is self.counter:
                self.begin()

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

    def prepare(self) -> None:
        """In front of the loop: barriers, and the copies of what stays and of the first steps."""
        self.first = self.is_zero(self.warp)
        for counter in (self.lane, self.quad):
            self.first = self.both(self.first, self.is_zero(counter))
        self.operands: dict[object, _Operand] = {}
        self.count = 0
        for parts in self.parts.values():
            for which in range(2):
                self.operand(parts, which)
        self.barriers = make(Op.MEMORY, dtypes.uint64, (), ("barriers", DYNAMIC, self.count))
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
        self.effect(
            Op.MBARRIER, (self.at(self.barriers, number(0)), self.first), ("init", self.count)
        )
        for operand in self.operands.values():
            for step in range(operand.slots):
                self.fill(operand, number(step), number(step))
        self.effect(Op.BARRIER, ())
        self.slots: dict[int, tuple[UOp, UOp]] = {1: (number(0), number(0))}
        self.waited: set[_Operand] = set()

    def operand(self, parts: ContractParts, which: int) -> None:
        """Note a factor that is copied, with room for its slots."""
        if parts.is_computed and which == 0:
            return
        key = (parts.memories[which], parts.starts[which], parts.factors[which])
        if key in self.operands:
            return
        factor = parts.factors[which]
        is_streamed = self.counter is not None and self.counter in topological(
            *parts.starts[which]
        )
        slots = parts.stages if is_streamed else 1
        size = parts.parts * factor.height * ROW_BYTES
        arg = (factor.offset, factor.sizes, factor.strides, factor.box, factor.traversal)
        name = f"factor{len(self.operands)}"
        self.operands[key] = _Operand(
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

    def fill(self, operand: _Operand, step: UOp, slot: UOp) -> None:
        """Start the copies of a step into a slot, if the loop gets there."""
        mask, factor = self.first, operand.factor
        if self.counter is not None and operand.slots > 1:
            mask = self.both(self.less(step, self.counter.src[0]), mask)
        barrier = self.at(self.barriers, self.value(Op.ADD, slot, number(operand.barrier)))
        self.effect(Op.MBARRIER, (barrier, mask), ("expect", operand.size))
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
            self.effect(Op.COPY_BOX, (address, operand.tensor, barrier, mask, *moved))

    def less(self, x: UOp, y: UOp) -> UOp:
        if x.op == Op.CONST and y.op == Op.CONST:
            return const(dtypes.bool, x.arg < y.arg)
        return self.add(Op.LESS, dtypes.bool, (x, y))

    def both(self, x: UOp, y: UOp) -> UOp:
        if x.op == Op.CONST:
            return y if x.arg else x
        return super().both(x, y)

    # ---- the loop

    def begin(self) -> None:
        """The slot of a step, and the parity of its phase."""
        assert self.counter is not None
        self.before = self.counter
        for slots in {operand.slots for operand in self.operands.values()} - {1}:
            lap, slot = self.quotient(self.counter, slots)
            self.slots[slots] = (slot, self.value(Op.AND, lap, number(1)))

    def product(self, node: UOp) -> UOp:
        """Multiply the tiles of a product, and wait for its sums."""
        address, value = node.src
        parts = self.parts[value]
        sums = self.rebuilt(address)
        operands = [self.ready(parts, which) for which in range(2)]
        words = self.words(parts) if parts.is_computed else None
        left, right = parts.factors
        arg = (
            (left.dtype, right.dtype),
            (WARPGROUP_ROWS, parts.tile[1], MMA_BYTES // right.of.itemsize),
            (0 if parts.is_computed else panel_bytes(left), panel_bytes(right)),
        )
        self.effect(Op.MMA_GROUP, (sums,), ("fence",))
        for each in range(_multiplications(parts)):
            x = self.left(parts, operands[0], words, each)
            assert operands[1] is not None
            y = self.at(operands[1].tile, self.position(operands[1], each))
            self.effect(Op.MMA, (sums, x, y), (*arg, "start") if each == 0 else arg)
        self.effect(Op.MMA_GROUP, (sums,), ("commit",))
        return self.effect(Op.MMA_GROUP, (sums,), ("wait", 0))

    def ready(self, parts: ContractParts, which: int) -> _Operand | None:
        """A factor whose bytes are there."""
        key = (parts.memories[which], parts.starts[which], parts.factors[which])
        operand = self.operands.get(key)
        if operand is not None and operand not in self.waited:
            self.waited.add(operand)
            slot, parity = self.slots[operand.slots]
            barrier = self.at(self.barriers, self.value(Op.ADD, slot, number(operand.barrier)))
            always = const(dtypes.bool, True)
            self.effect(Op.MBARRIER, (barrier, always, parity), ("wait",))
        return operand

    def words(self, parts: ContractParts) -> UOp:
        """A factor that threads have computed, rounded, two elements in each register."""
        tile, factor = self.source(parts.memories[0]), parts.factors[0]
        count = behind(tile).arg[2] // 2
        name = behind(tile).arg[0] + "words"
        memory = make(Op.MEMORY, dtypes.uint32, (), (name, "register", count))
        for each in range(count):
            low, high = (loaded(self, tile, 2 * each + side) for side in range(2))
            self.store(self.at(memory, number(each)), packed(self, factor.of, low, high))
        whole = self.at(memory, number(0), dtypes.uint32.vector(count))
        self.effect(Op.MMA_GROUP, (whole,), ("fence",))
        return memory

    def left(
        self, parts: ContractParts, operand: _Operand | None, words: UOp | None, each: int
    ) -> UOp:
        """The rows of a warpgroup: in registers, or in local memory."""
        if words is not None:
            return self.at(words, number(OWN_WORDS * each))
        assert operand is not None
        start = self.slot_start(operand)
        return self.at(
            operand.tile, self.value(Op.ADD, start, self.own_rows[parts.factors[0]][each])
        )

    def position(self, operand: _Operand, each: int) -> UOp:
        start = number(mma_start(operand.factor, each))
        return self.value(Op.ADD, self.slot_start(operand), start)

    def slot_start(self, operand: _Operand) -> UOp:
        slot, _ = self.slots[operand.slots]
        return self.value(Op.MUL, slot, number(operand.size // operand.factor.of.itemsize))

    def refill(self) -> None:
        """At the end of the loop: what was read in this step is free."""
        assert self.counter is not None
        self.effect(Op.BARRIER, ())
        for operand in self.operands.values():
            if operand.slots > 1:
                slot, _ = self.slots[operand.slots]
                step = self.value(Op.ADD, self.counter, number(operand.slots))
                self.fill(operand, step, slot)


def _multiplications(parts: ContractParts) -> int:
    """How often the sum of a tile is cut."""
    return parts.tile[2] * parts.factors[1].of.itemsize // MMA_BYTES


def _is_product(node: UOp) -> bool:
    return node.op == Op.STORE and node.src[1].op == Op.CONTRACT


def _loop_of(program: UOp, products: Sequence[UOp]) -> UOp | None:
    """The loop that all products stand in, if there is one."""
    opened: list[UOp] = []
    found: set[UOp | None] = set()
    for node in program.src:
        if node.op == Op.RANGE:
            opened.append(node)
        elif node.op == Op.END:
            opened.pop()
        elif _is_product(node):
            found.add(opened[-1] if opened else None)
    if len(found) != 1:
        raise InternalError("products of one kernel are not in one loop", pass_name="pipeline")
    (loop,) = found
    return loop

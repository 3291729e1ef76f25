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

The sums are where the CONTRACT was to be stored. Where products let it, `stream_ahead.py` has a
loop in which they run beside the work. `pipeline.py` has the loop that a product is.
"""

from __future__ import annotations

from weft.codegen.linear.lines import number
from weft.codegen.linear.stream_ahead import try_stream_ahead
from weft.codegen.linear.stream_parts import Operand, StreamParts, is_product
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make


def stream(program: UOp) -> UOp:
    """The program with the products of its loop multiplied step by step."""
    ahead = try_stream_ahead(program)
    if ahead is not None:
        return ahead
    return make(Op.LINEAR, dtypes.void, tuple(_Stream(program).listed))


class _Stream(StreamParts):
    """The instructions of the whole program, in order."""

    def __init__(self, program: UOp) -> None:
        super().__init__(program)
        first = self.counter
        if first is None:
            first = next(node for node in program.src if is_product(node))
        for node in program.src:
            if node.op == Op.CONTRACT:
                continue  # its store writes it
            if node is first:
                self.prepare()
            if node.op == Op.END and node.src[0] is self.counter:
                self.refill()
            if is_product(node):
                self.known[node] = self.product(node)
                continue
            self.known[node] = made = self.rebuilt(node)
            self.insert(made)
            if node is self.counter:
                self.begin()

    def prepare(self) -> None:
        """In front of the loop: barriers, and the copies of what stays and of the first steps."""
        self.find_operands()
        self.make_barriers(self.count)
        for operand in self.operands.values():
            for step in range(operand.slots):
                mask = self.first
                if operand.slots > 1:
                    mask = self.both(self.exists(number(step)), mask)
                self.fill(operand, number(step), number(step), mask)
        self.effect(Op.BARRIER, ())
        self.slots: dict[int, tuple[UOp, UOp]] = {1: (number(0), number(0))}
        self.waited: set[Operand] = set()

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
        slots: list[UOp] = []
        for operand in self.operands_of(parts):
            slot, parity = self.slots[operand.slots if operand else 1]
            slots.append(slot)
            if operand and operand not in self.waited:
                self.waited.add(operand)
                self.wait(self.value(Op.ADD, slot, number(operand.barrier)), parity)
        words: UOp | None = None
        if parts.is_computed:
            words = self.words(self.source(parts.memories[0]), parts.factors[0])
            self.effect(Op.MMA_GROUP, (self.all_of(words),), ("fence",))
        self.multiply(value, sums, slots, words)
        return self.effect(Op.MMA_GROUP, (sums,), ("ready", 0))

    def refill(self) -> None:
        """At the end of the loop: what was read in this step is free."""
        assert self.counter is not None
        self.effect(Op.BARRIER, ())
        for operand in self.operands.values():
            if operand.slots > 1:
                slot, _ = self.slots[operand.slots]
                step = self.value(Op.ADD, self.counter, number(operand.slots))
                self.fill(operand, step, slot, self.both(self.exists(step), self.first))

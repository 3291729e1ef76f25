"""Products of tiles that run beside the work of a loop: each step starts those of the next one.

Scores, products of two factors that are copied, are needed at the beginning of a step. What is
computed of them is multiplied once more and added to sums that go on. Neither is waited for where
it is started:

    start the scores of the first step, and wait for them
    for step:
      say that their factor has been read
      …                                          the work on them, beside the product of the last
                                                 step
      wait for the bytes of the other factor, and for the sums; say that the last one was read
      …                                          what is done to the sums: they are scaled; the
                                                 results of the work are packed
      start the scores of the next step, and the product of this one, which is added to the sums
      wait until all warps have read an earlier step; start the copies of a later one there
      wait for the scores

Warps do not wait for each other: while one group of four computes, another one multiplies. The
wait for bytes between the work and the wait for the sums matters: the assembler moves a wait up
to the beginning of its block of instructions, but not out of it, and a wait for bytes is a loop.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from weft.codegen.linear.lines import number
from weft.codegen.linear.masked_scores import Users, masked_scores
from weft.codegen.linear.running_sums import RunningSums, running_sums
from weft.codegen.linear.stream_parts import Operand, StreamParts, is_product, loop_of
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.reduction.contract import ContractParts, contract_parts
from weft.ir.uop import UOp, const, make
from weft.ir.views import behind, memory_of
from weft.ir.walk import topological, users

# Registers of a thread that scores, sums and weights may take; the weights of two steps are there.
MOST_REGISTERS: Final = 200
# Values of a step that registers are held for until its end, such as a scale for each row.
MOST_VALUES: Final = 8
# Steps in local memory from which on a slot is filled a step later than it could be: by then the
# other warps are done with it as well.
LATE_SLOTS: Final = 3


def try_stream_ahead(program: UOp) -> UOp | None:
    """The program with its products started ahead; None if they do not let it."""
    loop = loop_of(program)
    products = {n: contract_parts(n.src[1]) for n in program.src if is_product(n)}
    weighed = [node for node, parts in products.items() if parts.is_computed]
    if loop is None or not weighed or len(weighed) == len(products):
        return None
    if _registers(products.values()) > MOST_REGISTERS:
        return None
    first = program.src.index(loop)
    last = program.src.index(make(Op.END, dtypes.void, (loop,)))
    if any(node.op == Op.RANGE for node in program.src[first + 1 : last]):
        return None
    readers = users(*program.src)
    running: dict[UOp, RunningSums] = {}
    for node in weighed:
        found = running_sums(node, readers)
        if found is None:
            return None
        running[node] = found
    body = program.src[first + 1 : last]
    stream = _Ahead(program, running, readers)
    if any(stream.is_still(parts) for parts in products.values() if not parts.is_computed):
        return None
    stream.run(program.src[:first], body, program.src[last + 1 :])
    return make(Op.LINEAR, dtypes.void, tuple(stream.listed))


def _registers(products: Collection[ContractParts]) -> int:
    """The registers of all sums, and of weights in pairs, of two steps."""
    weights = [each.tile[2] * each.tile[0] // 2 // (each.warps * 32) for each in products]
    own = [2 * words for each, words in zip(products, weights, strict=True) if each.is_computed]
    return sum(each.elements for each in products) + sum(own)


class _Ahead(StreamParts):
    """The instructions of the whole program, in order."""

    def __init__(self, program: UOp, running: Mapping[UOp, RunningSums], users: Users) -> None:
        super().__init__(program)
        self.users = users
        self.range_count = 1 + max(node.arg for node in program.src if node.op == Op.RANGE)
        self.masked: set[UOp] = set()  # what has been done for masks of scores
        self.weighed = list(running)
        self.scores = [node for node in self.products if node not in running]
        # Accumulators that are the sums of a product, and where in these they begin.
        self.starts: dict[UOp, int] = {}
        self.others: dict[UOp, UOp] = {}
        self.tiles = {memory_of(node.src[0]) for node in running}
        for node, found in running.items():
            self.starts.update(found.first)
            self.others.update(found.others)
            self.known.update(dict.fromkeys(found.first, memory_of(node.src[0])))

    def is_still(self, parts: ContractParts) -> bool:
        """Whether no factor of a product depends on the loop."""
        starts = [each for start in parts.starts for each in start]
        assert self.counter is not None
        return not any(each.ranges >> self.counter.arg & 1 for each in starts)

    def run(self, before: Sequence[UOp], body: Sequence[UOp], after: Sequence[UOp]) -> None:
        assert self.counter is not None
        for node in before:
            self.copy(node)
        self.prepare()
        self.copy(self.counter)
        self.before = self.counter
        late = self.late_of(body)
        self.held: dict[UOp, UOp] = {}  # the weights of a step
        for node in body:
            if node in self.scores:
                if node is self.scores[0]:
                    self.release_scores()
                self.known[node] = self.before
                self.mask(node, body)
            elif node in self.weighed:
                self.hold(node)
            elif node not in late and node not in self.masked:
                self.copy(node)
        self.hold_values(body, late)
        self.wait_for_sums()
        for node in body:
            if node in late:
                self.copy(node)
        self.start_next()
        self.refill()
        self.wait_for_scores(len(self.weighed))
        end = self.rebuilt(make(Op.END, dtypes.void, (self.counter,)))
        self.insert(end)
        self.before = end
        for node in self.weighed:
            self.effect(Op.MMA_GROUP, (self.sums_of(node),), ("ready", 0))
        self.known[end] = self.before
        for node in after:
            self.copy(node)

    # ---- instructions that were there

    def copy(self, node: UOp) -> None:
        """List an instruction, unless it read the product of this step alone."""
        if node in self.others:
            self.known[node] = self.source(self.others[node])
        elif node.op != Op.CONTRACT and not self.reads_product(node):
            self.known[node] = made = self.rebuilt(node)
            self.insert(made)

    def rebuilt(self, node: UOp) -> UOp:
        made = super().rebuilt(node)
        if node.op != Op.INDEX or memory_of(node) not in self.starts:
            return made
        position = const(node.src[2].dtype, node.src[2].arg + self.starts[memory_of(node)])
        return make(Op.INDEX, node.dtype, (*made.src[:2], position))

    def reads_product(self, node: UOp) -> bool:
        """Whether a node is an element of a product that is added to running sums."""
        if node.op == Op.LANES:
            node = node.src[0]
        if node.op == Op.LOAD:
            node = node.src[0]
        return node.op == Op.INDEX and memory_of(node) in self.tiles

    def late_of(self, body: Sequence[UOp]) -> set[UOp]:
        """What needs sums, which are there at the end of a step."""
        late: set[UOp] = set()
        for node in body:
            sources = [behind(source) for source in node.src]
            is_access = node.op in (Op.LOAD, Op.STORE) and memory_of(node.src[0]) in self.starts
            if is_access or self.reads_product(node) or not late.isdisjoint(sources):
                late.add(node)
        return late - set(self.products)

    # ---- in front of the loop

    def prepare(self) -> None:
        """Barriers, the copies of what stays and of the first steps, and the first scores."""
        self.find_operands()
        parts = next(iter(self.parts.values()))
        self.make_barriers(2 * self.count, parts.warps)
        # One thread of each warp speaks for it.
        self.speaks = self.both(self.is_zero(self.lane), self.is_zero(self.quad))
        operands = self.operands.values()
        for step in range(max(operand.slots for operand in operands)):
            for operand in operands:
                if step < operand.slots:
                    # The first one is waited for even where the loop does not begin.
                    exists = self.exists(number(step)) if step else const(dtypes.bool, True)
                    self.fill(operand, number(step), number(step), self.both(exists, self.first))
        self.effect(Op.BARRIER, ())
        for operand in operands:
            if operand.slots == 1:
                self.wait(number(operand.barrier), number(0))
        self.start_scores(number(0))
        self.wait_for_scores(0)

    def sums_of(self, node: UOp) -> UOp:
        address = node.src[0]
        return self.at(memory_of(address), number(0), address.dtype)

    def slot_of(self, operand: Operand, step: UOp) -> tuple[UOp, UOp]:
        """The slot of a step, and the parity of the phase that its bytes complete."""
        if operand.slots == 1:
            return number(0), number(0)
        lap, slot = self.quotient(step, operand.slots)
        return slot, self.value(Op.AND, lap, number(1))

    def start_scores(self, step: UOp) -> None:
        for node in self.weighed:  # nothing is written to sums behind the first multiplication
            self.effect(Op.MMA_GROUP, (self.sums_of(node),), ("computed",))
        waited: set[Operand] = set()
        for node in self.scores:
            slots: list[UOp] = []
            for operand in self.operands_of(self.parts[node.src[1]]):
                assert operand is not None
                slot, parity = self.slot_of(operand, step)
                slots.append(slot)
                if operand.slots > 1 and operand not in waited:
                    waited.add(operand)
                    self.wait(self.value(Op.ADD, slot, number(operand.barrier)), parity)
            self.multiply(node.src[1], self.sums_of(node), slots)

    # ---- a step

    def wait_for_scores(self, running: int) -> None:
        """Wait for the scores of a step; some products behind them go on."""
        for back, node in enumerate(self.scores, 1):
            left = len(self.scores) - back + running
            self.effect(Op.MMA_GROUP, (self.sums_of(node),), ("ready", left))

    def release_scores(self) -> None:
        """The factors of scores have been read."""
        assert self.counter is not None
        for operand in self.streamed(of_weighed=False):
            slot, _ = self.slot_of(operand, self.counter)
            self.release(operand, slot, self.speaks)

    def mask(self, node: UOp, body: Sequence[UOp]) -> None:
        """Mask scores in their registers, in the blocks that need it."""
        tile = memory_of(node.src[0])
        found = masked_scores(tile, body, self.users)
        if found is None or self.counter is None:
            return
        below = set(topological(found.needed, *(each.src[0] for each in found.chosen)))
        for each in body:
            if each in below and each not in found.own:
                self.copy(each)
        (needed,) = self.at_step([found.needed], self.counter)
        once = self.once(needed)
        for each in body:
            if each in found.own:
                self.copy(each)
        version = make(Op.AFTER, tile.dtype, (tile, self.known[node]))
        for each in found.chosen:
            self.masked.update([each, *each.src])
            load = next(source for source in each.src if source.op == Op.LOAD)
            address = self.at(version, load.src[0].src[2])
            loaded = self.add(Op.LOAD, tile.dtype, (address,))
            src = [loaded if source is load else self.source(source) for source in each.src]
            self.store(address, self.add(Op.WHERE, tile.dtype, src))
        self.known[node] = self.before = self.add(Op.END, dtypes.void, (once,))
        version = make(Op.AFTER, tile.dtype, (tile, self.before))
        for each in found.chosen:
            load = next(source for source in each.src if source.op == Op.LOAD)
            address = self.at(version, load.src[0].src[2])
            self.known[each] = self.add(Op.LOAD, tile.dtype, (address,))
        self.masked |= found.own

    def once(self, condition: UOp) -> UOp:
        """Begin what is done where a condition holds: a loop of one iteration or none."""
        count = self.add(Op.CAST, dtypes.int32, (condition,))
        self.before = self.add(Op.RANGE, dtypes.int32, (count,), self.range_count)
        self.range_count += 1
        return self.before

    def streamed(self, of_weighed: bool) -> list[Operand]:
        """The factors of each step that a product of weights reads, or that none does."""
        weighed = {o for node in self.weighed for o in self.operands_of(self.parts[node.src[1]])}
        operands = self.operands.values()
        return [each for each in operands if each.slots > 1 and (each in weighed) == of_weighed]

    def release(self, operand: Operand, slot: UOp, mask: UOp) -> None:
        self.barrier("arrive", self.free(operand, slot), mask)

    def free(self, operand: Operand, slot: UOp) -> UOp:
        """The barrier on which warps say that they have read a slot."""
        return self.value(Op.ADD, slot, number(self.count + operand.barrier))

    def hold(self, node: UOp) -> None:
        """The weights of a step, which have their values here and not later."""
        tile = self.source(self.parts[node.src[1]].memories[0])
        memory = behind(tile)
        whole = self.at(tile, number(0), memory.dtype.vector(memory.arg[2]))
        self.effect(Op.MMA_GROUP, (whole,), ("computed",))
        self.held[node] = make(Op.AFTER, memory.dtype, (memory, self.before))

    def hold_values(self, body: Sequence[UOp], late: set[UOp]) -> None:
        """What is computed of scores and used at the end of the step has its value by then."""
        own = {n for n in body if n not in late and n.dtype is dtypes.float32 and n in self.known}
        own = {n for n in own if n.op != Op.INDEX and n not in self.masked}
        used = [s for n in body if n in late for s in n.src if s in own]
        values = list(dict.fromkeys(used))
        if not 0 < len(values) <= MOST_VALUES:
            return
        memory = make(Op.MEMORY, dtypes.float32, (), ("held", "register", len(values)))
        for number_, value in enumerate(values):
            self.store(self.at(memory, number(number_)), self.known[value])
        whole = self.at(memory, number(0), dtypes.float32.vector(len(values)))
        self.effect(Op.MMA_GROUP, (whole,), ("computed",))
        version = make(Op.AFTER, memory.dtype, (memory, self.before))
        for number_, value in enumerate(values):
            address = self.at(version, number(number_))
            self.known[value] = self.add(Op.LOAD, memory.dtype, (address,))

    def wait_for_sums(self) -> None:
        """The bytes of this step, then the sums of the last one, whose factors are free then."""
        step = self.counter
        assert step is not None
        for operand in self.streamed(of_weighed=True):
            slot, parity = self.slot_of(operand, step)
            self.wait(self.value(Op.ADD, slot, number(operand.barrier)), parity)
        for node in self.weighed:
            self.effect(Op.MMA_GROUP, (self.sums_of(node),), ("ready", 0))
            self.known[node] = self.before
            # Nothing else is in the registers of a factor while they are read.
            words = self.words_memory(self.held[node])
            self.effect(Op.MMA_GROUP, (self.all_of(words),), ("computed",))
        mask = self.both(self.less(number(0), step), self.speaks)
        for operand in self.streamed(of_weighed=True):
            before = self.value(Op.ADD, step, number(operand.slots - 1))
            slot, _ = self.slot_of(operand, before)
            self.release(operand, slot, mask)

    def start_next(self) -> None:
        """Scores of the next step, once more the last ones at the end, and the product of this."""
        step = self.counter
        assert step is not None
        words_of = {
            node: self.words(self.held[node], self.parts[node.src[1]].factors[0])
            for node in self.weighed
        }
        following = self.value(Op.ADD, step, number(1))
        self.start_scores(self.where(self.exists(following), following, step))
        for node in self.weighed:
            operands = self.operands_of(self.parts[node.src[1]])
            slots = [self.slot_of(o, step)[0] if o else number(0) for o in operands]
            words = words_of[node]
            self.multiply(node.src[1], self.sums_of(node), slots, words, begins=False)

    def refill(self) -> None:
        """Start the copies of a later step where all warps have read an earlier one."""
        step = self.counter
        assert step is not None
        for of_weighed in (False, True):
            for operand in self.streamed(of_weighed):
                back = int(of_weighed) + int(operand.slots >= LATE_SLOTS)
                later = self.value(Op.ADD, step, number(operand.slots - back))
                mask = self.both(self.exists(later), self.first)
                if back:
                    mask = self.both(self.less(number(back - 1), step), mask)
                slot, parity = self.slot_of(operand, later)
                # That of the step whose slot it takes, a lap earlier.
                parity = self.value(Op.XOR, parity, number(1))
                self.wait(self.free(operand, slot), parity, mask)
                # What they share is computed in front of all of them.
                copies = self.copies_of(operand, later, slot)
                once = self.once(mask)
                self.start_copies(operand, copies, const(dtypes.bool, True))
                self.before = self.add(Op.END, dtypes.void, (once,))

"""An interpreter for lowered programs: a LINEAR of instructions, in plain Python.

It is the oracle for what code generation emits. It checks what hardware does not: that every value
is in scope where it is used, that every access is in bounds and reads what was written, that all
threads of a group meet at the same barriers and shuffles, and that local memory never changes
hands without a barrier. The threads of a group are generators that run one after the other, each
up to its next barrier or shuffle.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

from weft.ir.dtypes import Scalar
from weft.ir.ops import Op, name
from weft.ir.reduction.contract import contract_parts
from weft.ir.shapes import fill_sizes
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.reference import lanes
from weft.reference.async_ops import GroupState
from weft.reference.fault import fault
from weft.reference.memory import Cell, ElementMemory, SharedMemory, Value, load, store
from weft.reference.scopes import match_ends, verify_scopes
from weft.reference.tiles import Tiles, contract_value, whole_tile

# What an instruction can have as its result.
Result = Value | ElementMemory | Cell | None
Environment = dict[UOp, Result]


class Meeting(NamedTuple):
    """Where a thread waits for the others, the value that it brings, and addresses of memory."""

    node: UOp | None
    value: Value | None = None
    cells: tuple[Cell, ...] = ()


Thread = Generator[Meeting, Value | None, None]

KINDS: Final = ("group", "thread")
# Memory that the threads of a group share.
SHARED: Final = ("local", "dynamic")


def run_program(
    program: UOp, arguments: Sequence[ElementMemory], variables: Mapping[str, int] | None = None
) -> None:
    """Run a LINEAR of instructions for every group and thread; the arguments are written in place.

    `arguments[slot]` is the memory of `PARAM(slot)`. The grid is what the SPECIALs say it is.
    """
    verify_scopes(program)
    run = _ProgramRun(program, arguments, variables or {})
    sizes = {kind: run.extents(kind) for kind in KINDS}
    for group in _counters("group", sizes["group"]):
        run.run_group(group, list(_counters("thread", sizes["thread"])))


def _counters(kind: str, extents: dict[int, int]) -> Iterator[dict[tuple[str, int], int]]:
    """Every combination of the counters of a kind, axis 0 fastest; one empty one for no axes."""
    axes = sorted(extents, reverse=True)
    for counts in itertools.product(*(range(extents[axis]) for axis in axes)):
        yield {(kind, axis): count for axis, count in zip(axes, counts, strict=True)}


class _ProgramRun:
    """A program with its arguments."""

    def __init__(
        self, program: UOp, arguments: Sequence[ElementMemory], variables: Mapping[str, int]
    ) -> None:
        self.instructions = program.src
        self.ends = match_ends(program)
        self.leaves = [node for node in topological(program) if not _needs_running(node)]
        self.variables = variables
        self.tiles: Tiles = {}  # products of tiles, which no instruction changes
        self.memories = {
            node: self._argument(node, arguments) for node in self.leaves if node.op == Op.PARAM
        }

    def extents(self, kind: str) -> dict[int, int]:
        """The extent of each axis of the SPECIALs of a kind."""
        found: dict[int, int] = {}
        for node in self.leaves:
            if node.op == Op.SPECIAL and node.arg[0] == kind:
                extent = lanes.size_value(node.src[0], self.variables)
                if found.setdefault(node.arg[1], extent) != extent:
                    raise fault(f"the {kind} axis {node.arg[1]} has two extents", node)
            elif node.op == Op.SPECIAL and node.arg[0] not in KINDS:
                raise fault(f"SPECIAL: unknown kind {node.arg[0]!r}", node)
        return found

    def run_group(
        self, group: dict[tuple[str, int], int], threads: list[dict[tuple[str, int], int]]
    ) -> None:
        """Run all threads of one group in lock step, from barrier or shuffle to the next."""
        shared = {
            node: SharedMemory(node.dtype, node.arg[2], node.arg[0])
            for node in self.leaves
            if node.op == Op.MEMORY and node.arg[1] in SHARED
        }
        beside = GroupState(len(threads))
        running = [
            self._thread(self._leaf_values(group | thread, shared), beside, number)
            for number, thread in enumerate(threads)
        ]
        received: list[Value | None] = [None] * len(running)
        while True:
            waiting: list[Meeting] = []
            for number, thread in enumerate(running):
                for memory in shared.values():
                    memory.thread = number
                waiting.append(_resumed(thread, received[number]))
            first = waiting[0].node if waiting else None
            for number, meeting in enumerate(waiting):
                if meeting.node is not first:
                    reached = meeting.node if first is None else first
                    raise fault(f"threads 0 and {number} wait at different barriers", reached)
            if first is None:
                return
            if first.op == Op.SHUFFLE:
                received = _exchanged(first, threads, [meeting.value for meeting in waiting])
                continue
            if first.op == Op.CONTRACT:
                received = self._products(first, waiting)
                continue
            if first.op != Op.BARRIER:
                _meet(beside, first, waiting)
                continue
            beside.meet()
            for memory in shared.values():
                memory.epoch += 1

    def _products(self, node: UOp, waiting: Sequence[Meeting]) -> list[Value | None]:
        """What each thread has of a product, whose left factor the threads have computed."""
        parts = contract_parts(node)
        numbers = [cast("tuple[int, ...]", meeting.value) for meeting in waiting]
        positions = [each[-3:] for each in numbers]
        owns = [meeting.cells[0].memory for meeting in waiting]
        left = whole_tile(parts, zip(positions, owns, strict=True))
        factors = {node.src[0]: left, node.src[1]: self.memories[node.src[1]]}
        return [
            contract_value(
                *(node, factors),
                *(dict(zip(node.src[2:], own, strict=True)).__getitem__, self.tiles),
            )
            for own in numbers
        ]

    def _leaf_values(
        self, counters: dict[tuple[str, int], int], shared: Mapping[UOp, ElementMemory]
    ) -> Environment:
        """What a thread knows before its first instruction; its register memory is its own."""
        known: Environment = {}
        for node in self.leaves:
            if node.op == Op.CONST:
                known[node] = lanes.constant(node.dtype, node.arg)
            elif node.op == Op.VARIABLE:
                known[node] = lanes.variable_value(node, self.variables)
            elif node.op == Op.SPECIAL:
                known[node] = counters[node.arg]
            elif node.op == Op.PARAM:
                known[node] = self.memories[node]
            elif node in shared:
                known[node] = shared[node]
            elif node.arg[1] == "register":
                known[node] = ElementMemory(node.dtype, node.arg[2], name=node.arg[0])
            else:
                raise fault(f"MEMORY in the unknown space {node.arg[1]!r}", node)
        return known

    def _argument(self, node: UOp, arguments: Sequence[ElementMemory]) -> ElementMemory:
        slot, shape = node.arg
        if slot >= len(arguments):
            raise fault(f"argument {slot} is missing", node, arguments=len(arguments))
        memory: ElementMemory = arguments[slot]
        sizes = fill_sizes(node, shape, 0)
        size = math.prod(
            lanes.size_value(extent, self.variables) if isinstance(extent, UOp) else extent
            for extent in sizes
        )
        if memory.dtype is not node.dtype or memory.size < size:
            given = f"{memory.size} of {memory.dtype.name}"
            raise fault(f"argument {slot} is {given}, not {size} of {node.dtype.name}", node)
        return memory

    def _thread(self, known: Environment, beside: GroupState, number: int) -> Thread:
        """Run the instructions of one thread; yield where it waits for others."""
        position = 0
        while position < len(self.instructions):
            node = self.instructions[position]
            position += 1
            if node.op == Op.BARRIER:
                yield Meeting(node)
            elif node.op == Op.SHUFFLE:
                known[node] = yield Meeting(node, _value(known, node.src[0]))
            elif node.op in (Op.MMA, Op.MMA_GROUP) or _is_wait(node):
                yield _meeting(node, known)
            elif node.op in (Op.COPY_BOX, Op.MBARRIER):
                _start(beside, node, known, number)
            elif node.op == Op.CONTRACT and contract_parts(node).is_computed:
                numbers = tuple([_number(known, each) for each in node.src[2:]])
                own = _lookup(known, node.src[0])
                assert isinstance(own, ElementMemory)
                known[node] = yield Meeting(node, numbers, (Cell(own, True, 0),))
            elif node.op == Op.CONTRACT:
                known[node] = contract_value(
                    node, self.memories, lambda x: _number(known, x), self.tiles
                )
            elif node.op == Op.RANGE:
                known[node] = 0
                if _number(known, node.src[0]) <= 0:
                    position = self.ends[position - 1] + 1
            elif node.op != Op.END:
                if _needs_running(node):
                    known[node] = _step(node, known)
            else:
                counter = node.src[0]
                known[counter] = _number(known, counter) + 1
                if _number(known, counter) < _number(known, counter.src[0]):
                    position = self.ends[position - 1] + 1


def _resumed(thread: Thread, received: Value | None) -> Meeting:
    """Run a thread up to where it waits; nowhere, once it has ended."""
    try:
        return thread.send(received)
    except StopIteration:
        return Meeting(None)


def _exchanged(
    node: UOp, threads: list[dict[tuple[str, int], int]], values: list[Value | None]
) -> list[Value | None]:
    """What each thread gets of the values that all have brought to a shuffle."""
    number_of = {tuple(thread.values()): number for number, thread in enumerate(threads)}
    axis, (bits,) = node.src[1].arg, node.arg
    received: list[Value | None] = []
    for thread in threads:
        partner = tuple((thread | {axis: thread[axis] ^ bits}).values())
        if partner not in number_of:
            raise fault(f"SHUFFLE: the thread {partner} does not exist", node)
        received.append(values[number_of[partner]])
    return received


def _is_wait(node: UOp) -> bool:
    return node.op == Op.MBARRIER and node.arg[0] == "wait"


def _meeting(node: UOp, known: Environment) -> Meeting:
    """What a thread brings to something that all threads do together."""
    if _is_wait(node) and not _value(known, node.src[1]):
        return Meeting(node)
    cells = tuple([_address(known, source) for source in node.src if source.op == Op.INDEX])
    return Meeting(node, _value(known, node.src[2]) if _is_wait(node) else None, cells)


def _meet(beside: GroupState, node: UOp, threads: Sequence[Meeting]) -> None:
    """Do what all threads do together."""
    if node.op == Op.MMA_GROUP:
        beside.group(node, [meeting.cells[0] for meeting in threads])
    elif node.op == Op.MMA:
        beside.multiply(node, [(x, y, z) for _, _, (x, y, z) in threads])
    elif waiting := [meeting for meeting in threads if meeting.cells]:
        parities = [int(cast("Scalar", meeting.value)) for meeting in waiting]
        beside.wait([meeting.cells[0] for meeting in waiting], parities, node)


def _start(beside: GroupState, node: UOp, known: Environment, thread: int) -> None:
    """Do what one thread starts, where its mask holds."""
    is_copy = node.op == Op.COPY_BOX
    if not _value(known, node.src[3 if is_copy else 1]):
        return
    if is_copy:
        target, barrier = _address(known, node.src[0]), _address(known, node.src[2])
        source = _lookup(known, node.src[1])
        assert isinstance(source, ElementMemory)
        at = [_number(known, each) for each in node.src[4:-1]]
        beside.copy_box(target, source, node.src[1], at, barrier)
        return
    kind, *numbers = node.arg
    barrier = _address(known, node.src[0])
    if kind == "init":
        beside.make_barriers(barrier, numbers[0], numbers[1], node)
    elif kind == "expect":
        beside.expect(barrier, numbers[0], node)
    else:
        beside.arrive(barrier, thread, node)


def _needs_running(node: UOp) -> bool:
    return node.op not in (Op.CONST, Op.VARIABLE, Op.PARAM, Op.MEMORY, Op.SPECIAL)


def _lookup(known: Environment, node: UOp) -> Result:
    while node.op == Op.AFTER and node not in known:
        node = node.src[0]
    return known[node]


def _value(known: Environment, node: UOp) -> Value:
    found = _lookup(known, node)
    if found is None or isinstance(found, ElementMemory | Cell):
        raise fault(f"expected a value, got {name(node.op)}", node)
    return found


def _number(known: Environment, node: UOp) -> int:
    return int(cast("Scalar", _value(known, node)))


def _address(known: Environment, node: UOp) -> Cell:
    found = _lookup(known, node)
    if not isinstance(found, Cell):
        raise fault(f"expected an address, got {name(node.op)}", node)
    return found


def _step(node: UOp, known: Environment) -> Result:
    """The result of one instruction that is neither control nor a leaf."""
    if lanes.is_arithmetic(node.op):
        return lanes.apply(node, tuple([_value(known, source) for source in node.src]))
    if node.op == Op.INDEX:
        memory = _lookup(known, node.src[0])
        if not isinstance(memory, ElementMemory) or len(node.src) != 3:
            raise fault("INDEX takes memory, a mask and one flat index", node)
        return Cell(memory, _value(known, node.src[1]), _number(known, node.src[2]))
    if node.op == Op.LOAD:
        return load(_address(known, node.src[0]), node)
    if node.op == Op.STORE:
        store(_address(known, node.src[0]), _value(known, node.src[1]), node)
        return None
    if node.op == Op.TENSOR_MAP:
        return _lookup(known, node.src[0])
    if node.op in (Op.AFTER, Op.BIND):
        return _lookup(known, node.src[0 if node.op == Op.AFTER else 1])
    raise fault(f"expected an instruction, got {name(node.op)}", node)

"""How a ranged graph reads: the members of its SINK, what each reaches, and what it waits for.

A member is a kernel or a call. Its outputs are STOREs and global STAGEs; a call has itself or the
STOREs that it fills. The nodes of a kernel end at memory: a PARAM or a version of it, a global
STAGE, a result of a CALL. The spec, the interpreter and `split` take a ranged graph apart here.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from weft.ir.ops import Op
from weft.ir.results import result_nodes
from weft.ir.stage import stage_parts
from weft.ir.uop import UOp
from weft.ir.walk import topological

# Memory to a kernel, which ends there. All stages of a ranged graph are global.
MEMORY: Final = frozenset((Op.PARAM, Op.BUFFER, Op.AFTER, Op.STAGE, Op.CALL, Op.ITEM))
_NUMBER: Final = attrgetter("arg")


class Member:
    """A source of the SINK. `nodes` are those of its kernel, `waits` the members before it."""

    def __init__(self, number: int, node: UOp) -> None:
        self.number = number
        self.node = node
        self.outputs = node.src if node.op == Op.TUPLE else (node,)
        self.call = call_of(self.outputs[0])
        self.nodes: list[UOp] = []
        self.waits: set[Member] = set()

    @property
    def parts(self) -> set[UOp]:
        """The nodes by which others read this member or wait for it."""
        found = {self.node, *self.outputs}
        return found if self.call is None else found | {self.call, *result_nodes(self.call)}

    @property
    def memories(self) -> list[UOp]:
        """The memory that it touches, as its nodes name it."""
        if self.call is None:
            return [node for node in self.nodes if node.op in MEMORY]
        filled = [output.src[0] for output in self.outputs if output.op == Op.STORE]
        return [*self.call.src, *filled]

    @property
    def loops(self) -> list[UOp]:
        """The ranges of a kernel, outermost first."""
        ranges = [node for node in self.nodes if node.op == Op.RANGE]
        return sorted(ranges, key=_NUMBER)


def members_of(root: UOp) -> list[Member]:
    """The members of a ranged graph, as the SINK lists them."""
    members = [Member(number, node) for number, node in enumerate(root.src)]
    owners = {part: member for member in members for part in member.parts}
    for member in members:
        if member.call is None:
            roots = [part for output in member.outputs for part in _inside(output)]
            member.nodes = topological(*roots, stop=MEMORY)
        for memory in member.memories:
            member.waits.update([owners[part] for part in _named(memory) if part in owners])
        member.waits.discard(member)
    return members


def call_of(output: UOp) -> UOp | None:
    """The CALL that an output is, or whose result it stores as a whole."""
    value = output.src[1] if output.op == Op.STORE else output
    value = value.src[0] if value.op == Op.ITEM else value
    return value if value.op == Op.CALL else None


def _inside(output: UOp) -> tuple[UOp, ...]:
    """The sources of an output, those of its index first."""
    if output.op == Op.STORE:
        return output.src
    parts = stage_parts(output)
    mask = () if parts.mask is None else (parts.mask,)
    return (*mask, *parts.indices, parts.value, *parts.ranges)


def _named(memory: UOp) -> list[UOp]:
    """The nodes that have to have happened before memory is touched."""
    found: list[UOp] = []
    stack = [memory]
    while stack:
        node = stack.pop()
        if node.op == Op.AFTER:
            stack += node.src
        else:
            found.append(node)
    return found

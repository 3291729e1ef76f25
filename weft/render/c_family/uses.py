"""Who uses what in a program: what may be written at its use, and which memory is a variable.

An INDEX is written by the loads and stores that use it, so it hands its uses on to its mask and
index.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.ir.walk import topological


class Uses:
    """`block` is where an instruction stands: all between the same RANGE and its END."""

    def __init__(self, program: UOp) -> None:
        self.block: dict[UOp, int] = {}
        self.users: dict[UOp, list[UOp]] = {}
        self._lanes: dict[UOp, set[int]] = {}
        for node in topological(program):
            if node.op == Op.INDEX:
                is_whole = node.src[1].dtype.lanes == 1  # no lane has a mask of its own
                lanes = self._lanes.setdefault(behind(node.src[0]), set())
                lanes.add(node.dtype.lanes if is_whole else 0)
        self._walk(program)

    def _walk(self, program: UOp) -> None:
        opened, blocks = [0], 0
        for node in program.src:
            if node.op == Op.END:
                opened.pop()
            self.block[node] = opened[-1]
            if node.op == Op.RANGE:
                blocks += 1
                opened.append(blocks)
            if node.op != Op.INDEX:
                for source in _operands(node):
                    self.users.setdefault(source, []).append(node)

    def is_used_once_nearby(self, node: UOp) -> bool:
        """Whether a value has one use, in its own block; then it can be written there."""
        users = self.users.get(node, [])
        return len(users) == 1 and self.block[users[0]] == self.block[node]

    def is_variable(self, memory: UOp) -> bool:
        """Whether memory of a thread is always read and written whole."""
        if memory.op != Op.MEMORY:
            return False
        _, space, size = memory.arg
        return space == "register" and self._lanes.get(memory, {1}) == {size}


def _operands(node: UOp) -> Iterator[UOp]:
    if node.op == Op.END:  # it names what it closes
        return
    for source in node.src:
        source = behind(source)
        yield from (source.src[1:] if source.op == Op.INDEX else (source,))

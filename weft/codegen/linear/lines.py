"""Instructions of a program while they are listed: each once, and effects one behind the other.

Passes that write instructions by themselves, after the order of a program is known, share this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import Arg, UOp, const, make

_COMPUTE: Final[dict[int, Callable[[int, int], int]]] = {
    Op.ADD: lambda x, y: x + y,
    Op.MUL: lambda x, y: x * y,
    Op.TRUNCDIV: lambda x, y: x // y,
    Op.AND: lambda x, y: x & y,
    Op.SHR: lambda x, y: x >> y,
}
# A number that changes nothing as the second source.
_NEUTRAL: Final = {Op.ADD: 0, Op.MUL: 1, Op.TRUNCDIV: 1, Op.SHR: 0}


def number(value: int) -> UOp:
    return const(dtypes.int32, value)


class Lines:
    """Instructions in order; `before` is what happened last, which the next effect follows."""

    def __init__(self, before: UOp) -> None:
        self.listed: list[UOp] = []
        self.before = before
        self._seen: set[UOp] = set()

    def add(self, op: int, dtype: DType, src: Sequence[UOp], arg: Arg = None) -> UOp:
        """An instruction, listed if it is new."""
        node = make(op, dtype, tuple(src), arg)
        if node not in self._seen:
            self._seen.add(node)
            self.listed.append(node)
        return node

    def effect(self, op: int, src: Sequence[UOp], arg: Arg = None) -> UOp:
        """Something that happens behind what happened before."""
        self.before = self.add(op, dtypes.void, (*src, self.before), arg)
        return self.before

    def store(self, address: UOp, value: UOp) -> None:
        self.before = self.add(Op.STORE, dtypes.void, (address, value))

    def value(self, op: int, x: UOp, y: UOp) -> UOp:
        """An integer of two sources, or the constant or source that it is."""
        if x.op == Op.CONST and y.op == Op.CONST:
            return const(x.dtype, _COMPUTE[op](int(x.arg), int(y.arg)))
        if y.op == Op.CONST and y.arg == _NEUTRAL.get(op):
            return x
        if op == Op.ADD and x.op == Op.CONST and not x.arg:
            return y
        return self.add(op, x.dtype, (x, y))

    def quotient(self, x: UOp, by: int) -> tuple[UOp, UOp]:
        """How often a number is in another that is not negative, and the rest."""
        whole = self.value(Op.TRUNCDIV, x, number(by))
        return whole, self.value(Op.ADD, x, self.value(Op.MUL, whole, number(-by)))

    def at(self, memory: UOp, position: UOp, dtype: DType | None = None) -> UOp:
        """An address in memory."""
        src = (memory, const(dtypes.bool, True), position)
        return self.add(Op.INDEX, dtype or memory.dtype, src)

    def is_zero(self, counter: UOp) -> UOp:
        return self.add(Op.EQUAL, dtypes.bool, (counter, const(counter.dtype, 0)))

    def both(self, x: UOp, y: UOp) -> UOp:
        return self.add(Op.AND, dtypes.bool, (x, y))

    def where(self, condition: UOp, x: UOp, y: UOp) -> UOp:
        return self.add(Op.WHERE, x.dtype, (condition, x, y))

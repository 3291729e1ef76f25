"""A kernel while its opts are chosen: what was taken so far, and questions about its loops.

The parts of the heuristic share one `Chooser`. An opt that is refused leaves no trace, so a part
can try what it wants and ask whether it got it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from weft.codegen.analysis.accesses import Access, accesses_of
from weft.codegen.analysis.loops import (
    CLOSING,
    LOOP,
    ORDERED,
    Loops,
    kinds_of,
    loops_of,
    nodes_of,
    own_ranges,
    ranges_of,
)
from weft.codegen.opts.table import Opt, Order, Split
from weft.ir.bounds import bounds
from weft.ir.dtypes import FLOAT
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.rewrite.trace_file import note_refusal
from weft.support.errors import OptRefused
from weft.target.target import Target


class Chooser:
    """A kernel with the opts taken so far."""

    def __init__(self, kernel: UOp, target: Target) -> None:
        self.original = kernel
        self.kernel = kernel
        self.target = target
        self.opts: list[Opt] = []

    def take(self, *opts: Opt) -> bool:
        """Apply opts if all of them are legal."""
        kernel = self.kernel
        try:
            for opt in opts:
                kernel = opt.apply(kernel)
        except OptRefused as refusal:
            note_refusal(refusal)
            return False
        self.kernel = kernel
        self.opts += opts
        return True

    def undo_to(self, mark: tuple[int, UOp]) -> None:
        """Forget what was taken since a mark."""
        count, self.kernel = mark
        del self.opts[count:]

    def mark(self) -> tuple[int, UOp]:
        return len(self.opts), self.kernel

    def next_number(self) -> int:
        return 1 + max(kinds_of(self.kernel))

    def split(self, number: int, factor: int, tail: str = "clamp") -> int:
        """Split a range; the number of the inner one, which is the range itself if it is short.

        -1 where that is refused.
        """
        extent = self.extent(number)
        if extent is not None and extent <= factor:
            return number
        inner = self.next_number()
        return inner if self.take(Split(number, factor, tail)) else -1

    def split_and(self, number: int, factor: int, tail: str, then: Callable[[int], Opt]) -> int:
        """Split a range and do something with the inner one; the number of that, or -1.

        The range itself is the inner one where it has as many iterations as wanted.
        """
        if self.extent(number) == factor:
            return number if self.take(then(number)) else -1
        inner = self.next_number()
        return inner if self.take(Split(number, factor, tail), then(inner)) else -1

    def take_apart(self, least: int = 2, most: int = 1 << 62) -> None:
        """Split ranges that indices take apart by a quotient, as heads that share keys in groups.

        The inner part has at least and at most so many iterations.
        """
        for node in nodes_of(self.kernel):
            if node.op not in (Op.FLOORDIV, Op.FLOORMOD) or node.src[0].op != Op.RANGE:
                continue
            number, size = node.src[0].arg, node.src[1]
            extent = self.extent(number)
            if size.op != Op.CONST or not least <= size.arg <= most or extent is None:
                continue
            is_part = size.arg < extent and extent % size.arg == 0
            if is_part and self.take(Split(number, int(size.arg))):
                self.take_apart(least, most)
                return

    def order(self, numbers: list[int]) -> bool:
        return self.take(Order(tuple(numbers)))

    def extent(self, number: int) -> int | None:
        """The number of iterations of a range, the greatest one where it is symbolic."""
        node = ranges_of(self.kernel).get(number)
        return None if node is None else bounds(node.src[0])[1]

    def closers(self) -> list[tuple[UOp, list[int]]]:
        """The nodes that close loops, with the numbers of those, outermost first."""
        kinds = kinds_of(self.kernel)
        order = {number: i for i, number in enumerate(kinds)}
        found: list[tuple[UOp, list[int]]] = []
        for node in nodes_of(self.kernel):
            if node.op not in CLOSING:
                continue
            own: list[int] = []
            for r in own_ranges(node):
                if kinds[r.arg] == LOOP:
                    own.append(r.arg)
            if own:
                found.append((node, sorted(own, key=order.__getitem__)))
        return found

    def accesses(self, *nodes: UOp) -> list[Access]:
        """The accesses of the kernel; given addresses, only those."""
        return [a for a in accesses_of(self.kernel) if not nodes or a.node in nodes]

    def stores(self) -> list[UOp]:
        return [node for node in self.kernel.src if node.op == Op.STORE]

    def common_loops(self) -> list[int]:
        """The loops of all stores on which every reduction and stage depends, outermost first.

        None inside an ordered loop: what goes on there from iteration to iteration stays with one
        thread.
        """
        kinds = dict(itertools.takewhile(lambda each: each[1] != ORDERED, self.loops()))
        stores = [node for node in self.kernel.src if node.op == Op.STORE]
        common = {n for n, kind in kinds.items() if kind == LOOP}
        for node in stores:
            common &= {r.arg for r in own_ranges(node)}
        for node in nodes_of(self.kernel):
            if node.op in (Op.REDUCE, Op.SCAN, Op.STAGE):
                common = {n for n in common if node.ranges >> n & 1}
        return [n for n in kinds if n in common]

    def loops(self) -> Loops:
        return loops_of(self.kernel)

    def is_in_place(self) -> bool:
        """Whether the kernel reads memory that it writes."""
        nodes = nodes_of(self.kernel)
        written = {behind(node.src[0].src[0]) for node in nodes if node.op == Op.STORE}
        read = {behind(node.src[0].src[0]) for node in nodes if node.op == Op.LOAD}
        return not written.isdisjoint(read)

    def safe_tail(self) -> str:
        """What loads do past the end of a loop whose iterations run at the same time.

        A clamped load is one of another element, which a neighbor may be writing.
        """
        return "mask" if self.is_in_place() else "clamp"


def width(access: Access) -> int:
    """The bits of a lane; small floats are computed in 32."""
    dtype = access.dtype
    return max(dtype.bits, 32) if dtype.kind == FLOAT else max(dtype.bits, 8)

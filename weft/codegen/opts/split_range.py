"""The rewrite behind the opt Split: one range becomes two.

`r` becomes `outer*factor + inner` everywhere. Where the factor does not divide the extent, the
last iterations of the inner loop lie past the end, and each node that closes the range copes in
its own way: a store is masked, a reduction gets its identity, a stage gets room that nobody reads.
What they compute there does not matter, so loads only have to stay inside their memory: their
index is clamped to the last iteration (`tail="clamp"`, cheap for loops and unrolled rows) or they
are masked (`tail="mask"`, which keeps the lanes of a vector contiguous). A symbolic extent has
such iterations unless all its values are multiples of the factor.
"""

from __future__ import annotations

from weft.codegen.analysis.loops import (
    CLOSERS,
    first_range,
    kinds_of,
    nodes_of,
    own_ranges,
    ranges_of,
    rebuilt,
    replace_ranges,
    with_loops,
)
from weft.ir.bounds import bounds, divisor
from weft.ir.build import range_
from weft.ir.dtypes import BOOL
from weft.ir.linear import from_linear, linear
from weft.ir.ops import Op
from weft.ir.reduction.joined import start_of
from weft.ir.uop import UOp, make
from weft.rules.simplify import simplify


def split_range(kernel: UOp, number: int, factor: int, tail: str) -> UOp:
    """The kernel with a range split; the outer one keeps the number, the inner is the next."""
    kinds = kinds_of(kernel)
    old = ranges_of(kernel)[number]
    extent = old.src[0]
    outer = range_(number, simplify((extent + (factor - 1)) // factor))
    inner = range_(1 + max(kinds), factor)
    loops: list[tuple[int, str]] = []
    for each, kind in kinds.items():
        loops += [(each, kind), (inner.arg, kind)] if each == number else [(each, kind)]
    whole = simplify(outer * factor + inner)
    if divisor(extent) % factor == 0:
        return replace_ranges(kernel, {old: whole}, {old: (outer, inner)}, loops)
    return with_loops(_UnevenSplit(kernel, old, (outer, inner), whole, tail).result, loops)


class _UnevenSplit:
    """Rebuilds a kernel around a range whose last iterations are too many.

    Each node has two forms: `plain` for values, which may be anything past the end, and `safe` for
    what decides where memory is touched.
    """

    def __init__(self, kernel: UOp, old: UOp, new: tuple[UOp, UOp], whole: UOp, tail: str) -> None:
        extent = old.src[0]
        self.old = old
        self.closed = {old: new}
        self.inside = simplify(whole < extent)
        self.is_masked = tail == "mask"
        last = whole if self.is_masked else simplify(whole.minimum(extent - 1))
        self.plain: dict[UOp, UOp] = {old: whole}
        self.safe: dict[UOp, UOp] = {old: last}
        for node in nodes_of(kernel):
            if not node.ranges >> old.arg & 1 and not node.ops & CLOSERS:
                self.plain[node] = self.safe[node] = node
            elif node is not old:
                self.plain[node] = self.form(node, self.plain)
                self.safe[node] = self.form(node, self.safe)
        self.result = self.plain[kernel]

    def depends(self, node: UOp) -> bool:
        return bool(node.ranges >> self.old.arg & 1)

    def form(self, node: UOp, made: dict[UOp, UOp]) -> UOp:
        closes = self.old in own_ranges(node)
        if node.op == Op.LOAD:
            return make(Op.LOAD, node.dtype, (self.address(node.src[0], self.safe),))
        if node.op == Op.READ:
            return self.address(node, self.safe)
        new = rebuilt(node, made, self.closed)
        if closes and node.op == Op.REDUCE:
            value = new.src[0]
            if node.arg[0] == Op.ADD and self.vanishes(node.src[0]):
                return new
            neutral = value.const_like(start_of(node))
            chosen = make(Op.WHERE, value.dtype, (self.inside, value, neutral))
            return make(Op.REDUCE, new.dtype, (chosen, *new.src[1:]), new.arg)
        if closes and node.op == Op.STORE:
            address = new.src[0]
            mask = simplify(address.src[1] & self.inside)
            address = make(Op.INDEX, address.dtype, (address.src[0], mask, *address.src[2:]))
            return make(Op.STORE, new.dtype, (address, *new.src[1:]))
        if closes and node.op == Op.STAGE:
            space, sizes = node.arg
            indices = new.src[1 : first_range(node)]
            grown = [max(n, bounds(i)[1] + 1) for n, i in zip(sizes, indices, strict=True)]
            return make(Op.STAGE, new.dtype, new.src, (space, tuple(grown)))
        return new

    def vanishes(self, value: UOp) -> bool:
        """Whether a value is 0 past the end by itself: loads that are masked there, and products.

        Of a product both factors have to vanish: 0 times infinity is NaN.
        """
        if value.op in (Op.LOAD, Op.READ):
            address = value.src[0] if value.op == Op.LOAD else value
            return self.is_masked and self.depends(address)
        if value.op == Op.MUL or (value.op == Op.CAST and value.dtype.kind != BOOL):
            return all(map(self.vanishes, value.src))
        return False

    def address(self, node: UOp, made: dict[UOp, UOp]) -> UOp:
        """An INDEX that is loaded, or a READ."""
        memory, mask, *indices = node.src
        new_mask = made[mask]
        if self.is_masked and self.depends(node):
            new_mask = simplify(new_mask & self.inside)
        src = (self.plain[memory], new_mask, *[made[each] for each in indices])
        return make(node.op, node.dtype, src)


def has_room(stage: UOp, number: int) -> bool:
    """Whether the iterations past the end of one of a stage's own ranges hit no element of it.

    They do not where the range is the most significant part of one index, and of no other.
    """
    found = 0
    for each in stage.src[1 : first_range(stage)]:
        if not each.ranges >> number & 1:
            continue
        found += 1
        constant, terms = linear(each)
        factors = [f for t, f in terms if t.op == Op.RANGE and t.arg == number]
        rest = [(t, f) for t, f in terms if not (t.op == Op.RANGE and t.arg == number)]
        others = from_linear(each.dtype, constant, rest)
        low, high = bounds(others)
        if len(factors) != 1 or others.ranges >> number & 1 or low < 0 or high >= factors[0]:
            return False
    return found == 1

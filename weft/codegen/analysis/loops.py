"""The loops of a kernel: its table of ranges and kinds, and rewrites that replace ranges.

A kernel is `KERNEL(effects..., ranges...; (name, loops))`. The table `loops` orders all ranges
from outside to inside and gives each its kind; nodes mention ranges only by number. Every pass
that adds, removes or replaces a range does it here, so the table and the nodes cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from weft.ir.dtypes import BOOL, FLOAT, INDEX
from weft.ir.ops import COMPARE, ELEMENTWISE, Op
from weft.ir.uop import UOp, first_closed, make, on_sweep
from weft.ir.walk import map_graph, topological
from weft.rules.simplify import simplify

LOOP: Final = "loop"
ORDERED: Final = "ordered"
GRID: Final = "grid"
THREAD: Final = "thread"
VECTOR: Final = "vector"
UNROLL: Final = "unroll"
SEQUENTIAL: Final = "sequential"
UPCAST: Final = frozenset((VECTOR, UNROLL))

# Range numbers with their kinds, outermost first.
Loops = tuple[tuple[int, str], ...]
Closed = Mapping[UOp, tuple[UOp, ...]]


def loops_of(kernel: UOp) -> Loops:
    loops: Loops = kernel.arg[1]
    return loops


def kinds_of(kernel: UOp) -> dict[int, str]:
    """The kind of each range, in the order of the table."""
    return dict(kernel.arg[1])


def with_loops(kernel: UOp, loops: Iterable[tuple[int, str]]) -> UOp:
    return make(Op.KERNEL, kernel.dtype, kernel.src, (kernel.arg[0], tuple(loops)))


@lru_cache(maxsize=32)
def nodes_of(kernel: UOp) -> tuple[UOp, ...]:
    """Every node of a kernel, sources first; remembered, since every opt asks several times."""
    return tuple(topological(kernel))


@lru_cache(maxsize=32)
def ranges_of(kernel: UOp) -> Mapping[int, UOp]:
    """Every range of a kernel by its number."""
    return MappingProxyType({node.arg: node for node in nodes_of(kernel) if node.op == Op.RANGE})


def without_unused(kernel: UOp) -> UOp:
    """The kernel whose table lists the ranges that there are."""
    present = ranges_of(kernel)
    return with_loops(kernel, [loop for loop in loops_of(kernel) if loop[0] in present])


def _forget() -> None:
    nodes_of.cache_clear()
    ranges_of.cache_clear()


on_sweep(_forget)


# The ops whose sources may end in ranges.
CLOSING: Final = frozenset((Op.REDUCE, Op.STORE, Op.STAGE, Op.KERNEL))


CLOSERS: Final = sum(1 << op for op in CLOSING)  # as bits


def extent_of(node: UOp) -> int | None:
    """The number of iterations of a range; None where it is symbolic."""
    extent = node.src[0]
    return int(extent.arg) if extent.op == Op.CONST else None


def first_range(node: UOp) -> int:
    """The position of the first range among the sources of a node that closes ranges."""
    if node.op in (Op.REDUCE, Op.STORE):
        return first_closed(node)
    if node.op == Op.STAGE:
        return 1 + len(node.arg[1])
    return sum([source.op != Op.RANGE for source in node.src])


def own_ranges(node: UOp) -> tuple[UOp, ...]:
    """The ranges that a node closes."""
    if not CLOSERS >> node.op & 1:
        return ()
    return node.src[first_range(node) :]


def is_index_arithmetic(node: UOp) -> bool:
    """Whether a node computes with indices only, so that it can be simplified by itself."""
    if node.op not in ELEMENTWISE:
        return False
    if node.dtype.kind == INDEX:
        return True
    if node.dtype.kind != BOOL:
        return False
    if node.op in COMPARE:
        return node.src[0].dtype.kind == INDEX
    if node.op not in (Op.AND, Op.OR, Op.NOT):
        return False
    return all(source.op == Op.CONST or is_index_arithmetic(source) for source in node.src)


def replace_ranges(
    kernel: UOp, values: Mapping[UOp, UOp], closed: Closed, loops: Iterable[tuple[int, str]]
) -> UOp:
    """The kernel with ranges replaced: by values where they are used, by ranges where closed.

    A range that `closed` does not mention is closed as before; one that it maps to nothing is
    closed no more. A reduction over no range is the value itself.
    """

    changed = 0
    for each in (*values, *closed):
        changed |= each.ranges

    def replaced(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        # What holds no range that changes stays; one that is closed below is in no bit set.
        if not node.ranges & changed and not node.ops & CLOSERS:
            return node
        return rebuilt(node, made, closed)

    return with_loops(map_graph(kernel, replaced, known=values, order=nodes_of(kernel)), loops)


def rebuilt(node: UOp, made: Mapping[UOp, UOp], closed: Closed) -> UOp:
    """A node with new sources; index arithmetic stays in normal form.

    An index that waits for a store is left alone: its normal form would hold the store in another
    form than the rest of the kernel, and both would run.
    """
    if not CLOSERS >> node.op & 1:
        src = tuple(map(made.__getitem__, node.src))
        if node.op == Op.SCAN and src[1].op == Op.CONST:  # a loop of one iteration
            return src[0]
    else:
        first = first_range(node)
        src = tuple(map(made.__getitem__, node.src[:first]))
        for source in node.src[first:]:
            src += closed[source] if source in closed else (made[source],)
        if node.op == Op.REDUCE and len(src) == first:
            return src[0]
    if src == node.src:
        return node
    new = make(node.op, node.dtype, src, node.arg)
    if new.dtype.kind & FLOAT or new.ops >> Op.STORE & 1 or not is_index_arithmetic(new):
        return new
    return simplify(new)

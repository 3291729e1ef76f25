"""What follows a product on matrix units: in its kernel, or in one of its own behind it.

A group that computes a tile has few threads, and its registers are full of sums. What it reads and
writes besides comes while nothing is multiplied, so a byte there costs several times what it does
in a kernel that only moves bytes. An activation or a residual is worth that, as the product itself
would be written and read again otherwise. The rule of an optimizer, which reads and writes many
values for each result, is not. `Decisions` and `Candidates` ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

from weft.ir.dtypes import DType
from weft.ir.ops import ELEMENTWISE, MOVEMENT, Op
from weft.ir.uop import UOp
from weft.schedule.fuse.cost import ValueReads, size_of, sums_reused_products
from weft.schedule.fuse.kernel import Kernel
from weft.schedule.layout.align_factors import matrix_inputs
from weft.schedule.layout.convolutions import views_of
from weft.schedule.layout.view_axes import base_of_factor
from weft.target.memory import GLOBAL
from weft.target.target import Target

# How many times longer a byte takes beside a tile; measured on an H200, where rules of optimizers
# took two to five times as long as alone.
SLOWER: Final = 2.0
# How much faster two kernels have to be than one.
GAIN: Final = 1.2
# What is read besides between a product and a value that counts as it: a bias, but no residual.
LITTLE: Final = 8
# Ops that are looked at of what follows.
MOST_OPS: Final = 512
_FREE: Final = frozenset((Op.CONST, Op.IOTA, Op.VARIABLE, Op.BIND))


class Epilogues:
    """Asked for values that are computed from one product each, element by element."""

    def __init__(self, target: Target, reads: ValueReads) -> None:
        self._target = target
        self._reads = reads
        self._known: dict[UOp, bool] = {}

    def is_better_apart(self, node: UOp, kernel: Kernel, is_stored: bool) -> bool:
        """Whether a value had better be written before this kernel, which computes others of it.

        `is_stored` is whether that kernel would write it in any case.
        """
        if kernel.has_contraction or not self._is_of_a_tile(node):
            return False
        moved = self._moved_by(kernel, node)
        if moved is None:
            return False
        own = node.dtype.itemsize * size_of(node)
        fused = SLOWER * (moved + own * is_stored)
        apart = SLOWER * own + own + moved
        nanoseconds = self._target.memory(GLOBAL).cost / self._target.units
        return GAIN * (apart * nanoseconds + self._target.costs.launch) < fused * nanoseconds

    @cached_property
    def _inputs(self) -> frozenset[DType]:
        return matrix_inputs(self._target)[0]

    def _is_of_a_tile(self, node: UOp) -> bool:
        """Whether a value follows from one product on matrix units, of which it is as large."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._is_product(node)
        return known

    def _is_product(self, node: UOp) -> bool:
        below = (node,) if node.op == Op.REDUCE else self._reads.reductions_below(node)
        if len(below) != 1 or size_of(below[0]) != size_of(node):
            return False
        views = views_of(below[0]) if sums_reused_products(below[0]) else None
        if views is None or any(base_of_factor(v).dtype not in self._inputs for v in views):
            return False
        beside = _read_beside([node], below[0])
        return beside is not None and LITTLE * beside <= node.dtype.itemsize * size_of(node)

    def _moved_by(self, kernel: Kernel, node: UOp) -> float | None:
        """Bytes that a kernel reads and writes beside a value; None if it is not an epilogue."""
        values = [store.value for store in kernel.stores]
        if any(size_of(value) != size_of(node) for value in values):
            return None
        read = _read_beside(values, node)
        written = sum(value.dtype.itemsize * size_of(value) for value in values)
        return None if read is None else read + written


def _read_beside(values: Iterable[UOp], node: UOp) -> float | None:
    """Bytes of what values read besides a node that all of them are computed of.

    None where one is not, or where that is very much to look at.
    """
    values = set(values)
    order = _until(node, values)
    if order is None:
        return None
    depends = {node}
    for part in order:  # sources first
        if not depends.isdisjoint(_sources(part)):
            depends.add(part)
    if not values <= depends:
        return None
    sides = {source for part in depends - {node} for source in _sources(part)} - depends
    leaves, stack = set[UOp](), list(sides)
    seen = set(sides)
    while stack:
        part = stack.pop()
        below = _sources(part)
        leaves.update(() if below else (part,))
        stack += [source for source in below if source not in seen]
        seen.update(below)
    return min(map(_bytes_of_all, (sides, leaves)))


def _until(node: UOp, values: Iterable[UOp]) -> list[UOp] | None:
    """What values are computed of, down to a node and memory; None where that is very much."""
    found, stack = dict[UOp, None](), [(value, False) for value in values]
    while stack:
        part, is_done = stack.pop()
        if is_done:
            found[part] = None
        elif part not in found and part is not node:
            stack.append((part, True))
            stack += [(source, False) for source in _sources(part)]
            if len(found) + len(stack) > MOST_OPS:
                return None
    return list(found)


def _sources(node: UOp) -> tuple[UOp, ...]:
    """What a value is computed of in the same kernel."""
    if node.op in MOVEMENT:
        return node.src[:1]
    return node.src if node.op in ELEMENTWISE else ()


def _bytes_of_all(nodes: Iterable[UOp]) -> float:
    """What it takes to read values, each once."""
    return sum(float(n.dtype.itemsize * size_of(n)) for n in nodes if n.op not in _FREE)

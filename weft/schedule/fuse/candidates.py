"""The kernels of a fusion, and which of them can take one more output.

A value that is materialized is stored by a kernel that computes it anyway, by one of the same
extents that reads the same memory, or by a new one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, range_ids
from weft.schedule.fuse.code_size import CodeSize, is_full
from weft.schedule.fuse.cost import ElementCost, ValueReads, size_of, sums_reused_products
from weft.schedule.fuse.epilogues import Epilogues
from weft.schedule.fuse.inline import Inliner
from weft.schedule.fuse.kernel import Kernel, scatter_kernel
from weft.schedule.fuse.order import waiting_for
from weft.schedule.fuse.uses import Use, covers
from weft.schedule.indexing import Address
from weft.schedule.reductions.scans import loop_forms
from weft.target.compute import Simt

MOST_STORES: Final = 16
# How many of a short value together are still shorter than a launch.
SHORT: Final = 4 * MOST_STORES
_REDUCTIONS: Final = frozenset((Op.REDUCE, Op.SCAN))
_NO_MEMORY: Final = -1


class Candidates:
    """All kernels, and those of equal extents that are still open, as a bit set."""

    def __init__(
        self,
        work: ElementCost,
        reads: ValueReads,
        inliner: Inliner,
        code: CodeSize,
        epilogues: Epilogues | None,
    ) -> None:
        self.kernels: list[Kernel] = []
        self._work = work
        self._reads = reads
        self._inliner = inliner
        self._code = code
        self._epilogues = epilogues
        self._open: defaultdict[Shape, int] = defaultdict(int)
        self._readers: defaultdict[int, int] = defaultdict(int)  # of each memory, and of none

    def add_input(self, kernel: Kernel, node: UOp) -> None:
        """Note the memory below a value that a kernel stores."""
        bits = self._reads.memory_below[node]
        for number in range_ids(bits & ~kernel.inputs) if bits else (_NO_MEMORY,):
            self._readers[number] |= 1 << kernel.number
        kernel.inputs |= bits

    def _sharing(self, node: UOp) -> int:
        """The kernels that read memory which a value reads, or, as it, none; as a bit set."""
        bits, kernels = self._reads.memory_below[node], 0
        for number in range_ids(bits) if bits else (_NO_MEMORY,):
            kernels |= self._readers[number]
        return kernels

    # ---- new kernels

    def new(self, node: UOp, shape: Shape) -> Kernel:
        """A kernel of its own for a value."""
        kernel = Kernel(len(self.kernels), shape, loop_forms(node, shape))
        kernel.work = self._work.whole(node)
        self.kernels.append(kernel)
        self._open[self._key(shape)] |= 1 << kernel.number
        return kernel

    def _key(self, shape: Shape) -> Shape:
        """What kernels of equal extents have in common: threads do not care for axes of size 1."""
        is_threaded = isinstance(self._work.target.compute, Simt)
        return tuple([size for size in shape if size != 1]) if is_threaded else shape

    def new_scatter(self, scatter: UOp) -> Kernel:
        """A kernel over the updates of a SCATTER."""
        kernel = scatter_kernel(len(self.kernels), scatter)
        kernel.work = size_of(scatter.src[1]) * self._work.of(scatter.src[1])
        self.kernels.append(kernel)
        return kernel

    def new_call(self, call: UOp) -> Kernel:
        """A CALL, which runs by itself."""
        kernel = Kernel(len(self.kernels), ())
        kernel.call = call
        kernel.is_alone = True
        self.kernels.append(kernel)
        return kernel

    # ---- kernels that can take one more output

    def for_value(
        self, node: UOp, readers: Iterable[Kernel], shape: Shape, is_alone: bool = False
    ) -> tuple[Kernel, Address]:
        """A kernel that stores a value before its readers run, and the element it computes."""
        kernel = None if is_alone else self._joinable(node, readers, shape)
        if kernel is None:
            kernel = self.new(node, shape)
            kernel.is_alone = is_alone
        return kernel, kernel.element(shape)

    def _joinable(self, node: UOp, readers: Iterable[Kernel], shape: Shape) -> Kernel | None:
        """A kernel of the same extents that shares input and does not wait for the readers.

        On threads one of a few elements need not share any: a launch takes longer than its work.
        """
        if any(map(sums_reused_products, [node, *self._reads.reductions_below(node)])):
            return None
        sizes = self._reads.reduction_sizes(node)
        key = self._key(shape)
        found = self._open[key] & ~waiting_for(readers)
        if not self._is_short(node):
            found &= self._sharing(node)
        for number in range_ids(found):
            kernel = self.kernels[number]
            if not self._is_open(kernel):
                self._open[key] &= ~(1 << number)
            elif self._can_start(node, kernel, shape) and all(
                self._reads.reduction_sizes(store.value) == sizes for store in kernel.stores
            ):
                return kernel
        return None

    def _is_short(self, node: UOp) -> bool:
        """Whether a launch takes longer than a value that no reduction gives."""
        target = self._work.target
        is_map = node.op not in _REDUCTIONS and not self._reads.reductions_below(node)
        is_threaded = isinstance(target.compute, Simt)
        return is_threaded and is_map and SHORT * self._work.whole(node) < target.costs.launch

    def _is_open(self, kernel: Kernel) -> bool:
        has_room = len(kernel.stores) < MOST_STORES and not is_full(kernel)
        return has_room and not (kernel.is_alone or kernel.has_contraction)

    def _can_start(self, node: UOp, kernel: Kernel, shape: Shape) -> bool:
        """Whether the loops of a kernel suit a value, which may be a scan."""
        if kernel.extents != shape and (node.op == Op.SCAN or not kernel.is_plain()):
            return False
        use = Use(kernel, kernel.address, tuple(kernel.order))
        return node.op != Op.SCAN or self._inliner.is_along(node, use)

    def among_uses(
        self, node: UOp, uses: list[Use], after: set[Kernel], is_stored: bool
    ) -> tuple[Kernel, Address] | None:
        """A kernel that computes the value at its own ranges anyway and can store it there.

        `after` are the kernels that read what the stores of the value make.
        """
        for use in uses:
            kernel = use.kernel
            scope = frozenset(i for i in use.address.indices if i.op == Op.RANGE)
            if not covers(use.address, scope, shape_of(node)) or not scope <= set(kernel.order):
                continue
            if kernel.is_alone or 0 in kernel.extents:  # an empty kernel does not run
                continue
            if self._code.must_cut(node, (kernel,)):
                continue
            if kernel.has_contraction and sums_reused_products(node):
                continue
            if self._epilogues and self._epilogues.is_better_apart(node, kernel, is_stored):
                continue
            if not self._is_seen_once(node, use, uses, is_stored):
                continue
            if node.op == Op.SCAN and not self._inliner.is_along(node, use):
                continue
            if self._has_to_wait(node, kernel, scope):
                continue
            others = after | {other.kernel for other in uses if other.kernel is not kernel}
            has_room = len(kernel.stores) < MOST_STORES and kernel.can_pin(scope)
            if has_room and not waiting_for(others) >> kernel.number & 1:
                if scope != frozenset(kernel.order):
                    kernel.pin(scope)
                return kernel, use.address
        return None

    def _has_to_wait(self, node: UOp, kernel: Kernel, scope: frozenset[UOp]) -> bool:
        """Whether a kernel of threads had better wait for another one that stores a value.

        A reduction with a path of its own leaves few lanes to the rest, and a product has tiles of
        one element for each thread, as matrix units have them.
        """
        if not isinstance(self._work.target.compute, Simt) or scope == frozenset(kernel.order):
            return False
        below = (node,) if node.op == Op.REDUCE else self._reads.reductions_below(node)
        if any(map(sums_reused_products, below)):
            return True
        path = tuple(loop for loop in kernel.order if loop in scope)
        return bool(below) and self._work.waiting(kernel, path) > self._work.target.costs.launch

    def _is_seen_once(self, node: UOp, use: Use, uses: list[Use], is_stored: bool) -> bool:
        """Whether a kernel looks at a value at one address only, or the value is cheap anyway."""
        is_cheap = node.op not in _REDUCTIONS and not self._reads.reductions_below(node)
        if is_stored and is_cheap:
            return True
        return all(u.address == use.address for u in uses if u.kernel is use.kernel)

"""Which values are worth memory: the cost model asked, case by case, and the log of answers."""

from __future__ import annotations

from weft.ir.dtypes import dtypes
from weft.ir.ops import Op, name
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.schedule.fuse.code_size import CodeSize
from weft.schedule.fuse.cost import (
    Reads,
    Work,
    depends_on_order,
    evaluations_of,
    size_of,
    sums_reused_products,
    widens,
)
from weft.schedule.fuse.inline import Inliner
from weft.schedule.fuse.uses import Use


class Decisions:
    """Decides for each value between computing it at its uses and memory."""

    def __init__(self, work: Work, reads: Reads, inliner: Inliner, code: CodeSize) -> None:
        self.log: list[str] = []
        self._work = work
        self._reads = reads
        self._inliner = inliner
        self._code = code

    def wants_memory(self, node: UOp, uses: list[Use]) -> bool:
        """Is the value worth memory? Both costs go to the log."""
        if node.dtype is dtypes.index:  # an index has no width that memory could hold
            return False
        if node.op == Op.CAST and widens(node):
            return False
        kernels = {use.kernel for use in uses}
        if self._code.must_cut(node, kernels):
            return True
        if not self._reads.memory_below[node]:
            return False
        if sums_reused_products(node) and any(kernel.has_contraction for kernel in kernels):
            return True  # each wants a tile of registers, and a kernel has one
        if len(kernels) > 1 and depends_on_order(node):
            return True  # another kernel would sum in another order, to another number
        return self._is_cheaper(node, uses, len(kernels))

    def _is_cheaper(self, node: UOp, uses: list[Use], kernels: int) -> bool:
        paths = [self._inliner.scope(node, use) for use in uses]
        counts = [
            evaluations_of(node, (*use.place.indices, use.place.gate), path)
            for use, path in zip(uses, paths, strict=True)
        ]
        evaluations, size = sum(counts), size_of(node)
        below = self._reads.reductions_below(node) if node.op != Op.REDUCE else ()
        if evaluations <= size and not below and node.op != Op.REDUCE:
            return False
        repeats = max([kernels, *(count // (size or 1) for count in counts)])
        placed = [
            (use.kernel, path, count) for use, path, count in zip(uses, paths, counts, strict=True)
        ]
        estimate = self._work.compare(node, placed, below, repeats)
        is_cheaper = estimate.memory < estimate.recompute
        if sums_reused_products(node) and evaluations > size:
            is_cheaper = True
        self.log.append(
            f"{name(node.op)} {shape_of(node)}: {len(uses)} uses, {evaluations} evaluations of"
            f" {size}: {estimate} -> {'memory' if is_cheaper else 'inline'}"
        )
        return is_cheaper

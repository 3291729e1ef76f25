"""Which values are worth memory: the cost model asked, case by case, and the log of decisions."""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.views import unmoved
from weft.schedule.decision import Decision
from weft.schedule.fuse.chains.chains import Chains
from weft.schedule.fuse.code_size import CodeSize
from weft.schedule.fuse.cost import (
    ElementCost,
    ValueReads,
    depends_on_order,
    evaluations_of,
    narrows,
    size_of,
    sums_reused_products,
    widens,
)
from weft.schedule.fuse.epilogues import Epilogues
from weft.schedule.fuse.inline import Inliner
from weft.schedule.fuse.recompute import Revised
from weft.schedule.fuse.uses import Use
from weft.target.compute import Simt

# Ops of a mask or bias that is computed for each score, for every head anew, and of the condition
# of an edge.
MOST_OF_A_SCORE: Final = 16
# Ops of one that each head has its own of, as random numbers: about as many as a product has.
MOST_OF_OWN_SCORE: Final = 160
# Conditions of one mask: each is simplified under all others, so they cost their square, for every
# load. A gather brings two for each axis, and a chain of gathers as many as it has links.
MOST_CONDITIONS: Final = 24


class Decisions:
    """Decides for each value between computing it at its uses and memory."""

    def __init__(
        self,
        work: ElementCost,
        reads: ValueReads,
        inliner: Inliner,
        code: CodeSize,
        chains: Chains,
        epilogues: Epilogues | None = None,
        revised: Revised = Revised(),  # noqa: B008 -- it never changes
    ) -> None:
        self.log: list[Decision] = []
        self._work = work
        self._reads = reads
        self._inliner = inliner
        self._code = code
        self._chains = chains
        self._epilogues = epilogues
        self._revised = revised

    def wants_memory(self, node: UOp, uses: list[Use]) -> bool:
        """Is the value worth memory? Both costs go to the log."""
        if node.dtype is dtypes.index:  # an index has no width that memory could hold
            return False
        kernels = {use.kernel for use in uses}
        chain = self._chains.of.get(node)
        is_slow = node.op == Op.REDUCE or (node.op == Op.DIV and self._chains.is_on_units)
        if chain is not None and is_slow and node in chain.rows and len(kernels) > 1:
            self._refuse(node, "other kernels need the sum of a row between two products")
            return True
        if chain is not None:
            self.log.append(Decision(node, False, "between two products"))
            return False
        if node in self._chains.factors:
            self._refuse(node, "matrix units take it from memory")
            return True
        if node.op == Op.CAST and widens(node):
            return False
        if self._code.must_cut(node, kernels):
            self._refuse(node, "a kernel that reads it has no room for more code")
            return True
        if not self._reads.memory_below[node]:
            return False
        if self._is_an_edge(node):
            self.log.append(Decision(node, False, "memory holds what it puts an edge around"))
            return False
        if any(is_crowded(use.address.mask) for use in uses):
            self._refuse(node, f"it is read under more than {MOST_CONDITIONS} conditions")
            return True
        if self._narrows_a_sum(node, uses):
            self._refuse(node, "the sum that it narrows would need memory, and is wider")
            return True
        if node in self._revised.kept:
            self._refuse(node, "what it takes would need memory, and is far larger")
            return True
        if node in self._revised.recomputed:
            self.log.append(Decision(node, False, "it follows from what is in memory anyway"))
            return False
        if node in self._chains.beside and len(kernels) == 1 and _is_result(uses):
            self.log.append(
                Decision(node, False, "it shares a product of two with another result")
            )
            return False
        if sums_reused_products(node) and any(kernel.has_contraction for kernel in kernels):
            # Each wants a tile of registers, and a kernel has one.
            self._refuse(node, "its reader sums products too, and a kernel has one tile")
            return True
        if sums_reused_products(node) and self._is_repeated(node, uses):
            self._refuse(node, "a kernel uses each element several times, and has tiles of one")
            return True
        if self._is_cut_up(node, uses):
            self._refuse(node, "a kernel reads several parts of its product, and has one tile")
            return True
        if self._chains.result_of(node) is not None and not _is_result(uses):
            self._refuse(node, "it ends two products in one kernel, which has loops of its own")
            return True
        if len(kernels) > 1 and depends_on_order(node):
            # Another kernel would sum in another order, to another number.
            self._refuse(node, "several kernels read it, and each would sum in its own order")
            return True
        apart = self._epilogues if len(kernels) == 1 else None
        if apart is not None and apart.is_better_apart(node, uses[0].kernel, False):
            self._refuse(node, "what follows the product moves more bytes than tiles can hide")
            return True
        return self._is_cheaper(node, uses, len(kernels))

    def _refuse(self, node: UOp, why: str) -> None:
        """Note a value that cannot be inlined, whatever it costs."""
        self.log.append(Decision(node, True, f"inlining refused: {why}"))

    def _is_an_edge(self, node: UOp) -> bool:
        """Whether a value is another one with a constant around it, which threads need no copy of.

        Each looks where it is anyway. A core reads lanes side by side, past ends too.
        """
        if node.op != Op.WHERE or not isinstance(self._work.target.compute, Simt):
            return False
        inside, value, edge = node.src
        below = unmoved(value)
        is_constant = unmoved(edge).op == Op.CONST and not self._reads.memory_below[inside]
        if not is_constant or below is value or size_of(below) > size_of(node):
            return False
        return self._work.in_full(inside) <= MOST_OF_A_SCORE * self._work.target.costs.op

    def _is_repeated(self, node: UOp, uses: list[Use]) -> bool:
        """Whether a kernel has loops of threads beyond those that a value depends on."""
        if not isinstance(self._work.target.compute, Simt):
            return False
        return any(set(self._inliner.scope(node, u)) < set(u.kernel.order) for u in uses)

    def _narrows_a_sum(self, node: UOp, uses: list[Use]) -> bool:
        """Whether a value is all that is read of a wider sum, which kernels need in memory."""
        if not narrows(node) or self._reads.readers[node.src[0]] > 1:
            return False
        (value,) = node.src
        if not depends_on_order(value):
            return False
        kernels = {use.kernel for use in uses}
        if len(kernels) > 1 or not sums_reused_products(value):
            return len(kernels) > 1
        return any(k.has_contraction for k in kernels) or self._is_repeated(node, uses)

    def _is_cut_up(self, node: UOp, uses: list[Use]) -> bool:
        """Whether a kernel reads a product at several addresses, as gates that are cut from one.

        Each address would be a loop of its own. A value that reads the product and no other
        reduction goes to memory instead of it, where it is as large.
        """
        kernels = [use.kernel for use in uses]
        if len(kernels) == len(set(kernels)):
            return False
        if node.op == Op.REDUCE:
            return sums_reused_products(node)
        (product, *others) = self._reads.reductions_below(node) or (node,)
        is_as_large = not others and size_of(product) == size_of(node)
        return is_as_large and sums_reused_products(product)

    def _belongs_to_tiles(self, node: UOp, uses: list[Use]) -> bool:
        """Whether a value is a part of scores, and little against the product that they are."""
        if not all(map(self._inliner.is_in_tile, uses)):
            return False
        is_own = any(size_of(chain.scores) == size_of(node) for chain in self._chains.long)
        most = MOST_OF_OWN_SCORE if is_own else MOST_OF_A_SCORE
        return self._work.in_tile(node) <= most * self._work.target.costs.op

    def _is_cheaper(self, node: UOp, uses: list[Use], kernels: int) -> bool:
        paths = [self._inliner.scope(node, use) for use in uses]
        counts = [
            evaluations_of(node, (*use.address.indices, use.address.mask), path)
            for use, path in zip(uses, paths, strict=True)
        ]
        evaluations, size = sum(counts), size_of(node)
        below = self._reads.reductions_below(node) if node.op != Op.REDUCE else ()
        if evaluations <= size and not below and node.op != Op.REDUCE:
            return False
        if not below and node.op != Op.REDUCE and self._belongs_to_tiles(node, uses):
            return False
        repeats = max([kernels, *(count // (size or 1) for count in counts)])
        placed = [
            (use.kernel, path, count) for use, path, count in zip(uses, paths, counts, strict=True)
        ]
        estimate = self._work.compare(node, placed, below, repeats)
        is_cheaper = estimate.memory < estimate.recompute
        if sums_reused_products(node) and evaluations > size:
            is_cheaper = True
        numbers = (len(uses), evaluations, size, *estimate)
        self.log.append(Decision(node, is_cheaper, "", *numbers))
        return is_cheaper


def is_crowded(mask: UOp) -> bool:
    """Whether a mask has more conditions than one kernel should carry."""
    count = 1
    while mask.op == Op.AND:
        mask = mask.src[0]
        count += 1
    return count > MOST_CONDITIONS


def _is_result(uses: list[Use]) -> bool:
    """Whether one kernel reads a value, outside of reductions, and stores nothing else."""
    first = uses[0]
    stores = [set(store.ranges) for store in first.kernel.stores]
    return all(
        use.kernel is first.kernel and set(use.path) <= set(use.kernel.order) for use in uses
    ) and all(ranges == stores[0] for ranges in stores)

"""Values in memory: the kernel that stores one, and how its sources are used there."""

from __future__ import annotations

from weft.ir.build import param
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, range_ids
from weft.ir.views import memory_of
from weft.schedule.fuse.candidates import Candidates
from weft.schedule.fuse.chains.pairs import ChainPairs
from weft.schedule.fuse.cost import evaluations_of, size_of
from weft.schedule.fuse.inline import Inliner
from weft.schedule.fuse.kernel import Kernel, Store
from weft.schedule.fuse.order import need
from weft.schedule.fuse.recompute import Reads
from weft.schedule.fuse.uses import Materialized, Use
from weft.schedule.fuse.writes import Writes
from weft.schedule.indexing import Address, through
from weft.schedule.memory import (
    MEMORY,
    VIEWS,
    gather_address,
    resolve_view,
    target_of,
)


class Materializer:
    """Gives a value memory, and a kernel that writes it there.

    `alone` is memory whose writes get kernels of their own. A placeholder, a PARAM that no program
    has, stands for memory that fusion makes.
    """

    def __init__(
        self,
        inliner: Inliner,
        candidates: Candidates,
        writes: Writes,
        first_placeholder: int,
        alone: frozenset[UOp],
        pairs: ChainPairs,
    ) -> None:
        self.values: dict[UOp, Materialized] = {}
        self.reads: dict[UOp, Reads] = {}
        self._inliner = inliner
        self._candidates = candidates
        self._writes = writes
        self._next = first_placeholder
        self._alone = alone
        self._pairs = pairs

    def placeholder(self, node: UOp) -> UOp:
        """What stands for new memory of a value."""
        made = param(self._next, node.dtype, shape_of(node))
        self._next += 1
        return made

    def materialize(self, node: UOp, uses: list[Use], stores: list[UOp]) -> None:
        """Give a value memory and a kernel that writes it there."""
        after = {use.kernel for store in stores for use in self._writes.readers_of(store)}
        is_free = node.op != Op.STAGE  # what is staged was asked to be computed by itself
        found = self._candidates.among_uses(node, uses, after, bool(stores)) if is_free else None
        if found is not None and not stores and all(use.kernel is found[0] for use in uses):
            self._inliner.enter(node, uses)  # the one kernel that wants it computes it once anyway
            return
        readers = {use.kernel for use in uses} | after
        found = found or self._pairs.beside(node, readers)
        if found is None:
            kernel, address = self._candidates.for_value(node, readers, shape_of(node))
        else:
            kernel, address = found
        self._pairs.note(node, kernel, address)
        self._write(node, uses, stores, kernel, address)
        self.reads[node] = self._reads_of(node, uses, kernel)
        for use in uses:
            need(use.kernel, kernel)
        self._candidates.add_input(kernel, node)
        inside = [use for use in uses if use.kernel is kernel]
        own = Use(kernel, address, tuple(kernel.order))
        self._inliner.enter(node, list(dict.fromkeys([own, *inside])))

    def _reads_of(self, node: UOp, uses: list[Use], own: Kernel) -> Reads:
        """Which other kernels read a value."""
        others = [use for use in uses if use.kernel is not own]
        counts = [
            evaluations_of(
                node,
                (*use.address.indices, use.address.mask),
                self._inliner.scope(node, use),
            )
            for use in others
        ]
        is_pointwise = all(count <= size_of(node) for count in counts)
        return Reads(frozenset(use.kernel for use in others), is_pointwise)

    def _write(
        self, node: UOp, uses: list[Use], stores: list[UOp], kernel: Kernel, address: Address
    ) -> None:
        """Add the stores of a value: those of the program, and one that other kernels read."""
        lasting = [store for store in stores if self._writes.lasts(store)]
        is_read = any(use.kernel is not kernel for use in uses)
        if lasting or (stores and not is_read):
            effect = (lasting or stores)[0]
            memory = effect.src[0]
        else:
            effect, memory = node, self.placeholder(node)
            self._add_store(node, node, memory, kernel, address)
        for store in stores:
            self._add_store(store, node, store.src[0], kernel, address)
        self.values[node] = Materialized(memory, kernel, effect)

    def store(self, node: UOp, store: UOp) -> None:
        """Store what is in memory already, or a scalar that fills the target."""
        readers = {use.kernel for use in self._writes.readers_of(store)}
        shape = shape_of(store.src[0])
        kernel, address = self._candidates.for_value(node, readers, shape, self.is_alone(store))
        self._add_store(store, node, store.src[0], kernel, address)
        self._candidates.add_input(kernel, node)
        at = address if shape_of(node) else Address((), address.mask)
        use = Use(kernel, at, tuple(kernel.order))
        if node.op in MEMORY:
            self._writes.read(node, use)
        else:
            self._inliner.add(node, use)

    def scatter(self, store: UOp) -> None:
        """Reduce updates into memory, in a kernel that runs over them."""
        updates = store.src[1].src[1]
        kernel = self._candidates.new_scatter(store.src[1])
        self._add_store(store, updates, store.src[0], kernel, kernel.address)
        use = Use(kernel, kernel.address, tuple(kernel.order))
        self._writes.read(store.src[0], use)
        self._inliner.add(updates, use)

    def is_alone(self, store: UOp) -> bool:
        return memory_of(store.src[0]) in self._alone

    def _add_store(
        self, store: UOp, node: UOp, memory: UOp, kernel: Kernel, address: Address
    ) -> None:
        view = target_of(store) if store.op == Op.STORE else memory
        base, target = resolve_view(view, address)
        numbers = [n for i in address.indices for n in range_ids(i.ranges)]
        ranges = tuple(kernel.ranges[number] for number in numbers)
        kernel.stores.append(Store(store, base, target, node, address, ranges))
        if store.op == Op.STORE:
            self._writes.add(store, view, kernel)
            self._use_target_indices(view, Use(kernel, address, tuple(kernel.order)))

    def _use_target_indices(self, view: UOp, use: Use) -> None:
        """A store through index tensors reads those."""
        kernel, address, path = use
        while view.op in VIEWS:
            if view.op == Op.INDEX:
                address, at = gather_address(view, address)
                for part in view.src[1:]:
                    self._inliner.add_at(part, kernel, at, path)
            else:
                address = through(view, address)
            view = view.src[0]

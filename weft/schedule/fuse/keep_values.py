"""Values in memory: the kernel that stores one, and the order of the writes.

The second layer of `Fusion`, above `inline_values`. A value that is kept is stored by a kernel
that computes it anyway, by one of the same extents that reads the same memory, or by a new one. A
write runs after the kernels that read what it replaces, where that is possible.
"""

from __future__ import annotations

from typing import Final

from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, range_ids
from weft.ir.views import memory_of, unmoved, version_of
from weft.schedule.fuse.cost import fold_sizes, folds_below, size_of, sums_reused_products
from weft.schedule.fuse.inline_values import InlinedValues
from weft.schedule.fuse.kernel import Kernel, Store, scatter_kernel
from weft.schedule.fuse.uses import Kept, Use, covers
from weft.schedule.indexing import Place, through
from weft.schedule.memory import (
    MEMORY,
    gather_place,
    resolve_view,
    target_of,
)
from weft.schedule.scans import loop_forms

MOST_STORES: Final = 16
FOLDS: Final = frozenset((Op.REDUCE, Op.SCAN))


class KeptValues(InlinedValues):
    """Gives a value memory, and a kernel that writes it there."""

    def _keep(self, node: UOp, uses: list[Use], stores: list[UOp]) -> None:
        """Give a value memory and a kernel that writes it there."""
        after = {use.kernel for store in stores for use in self._readers_of(store)}
        is_free = node.op != Op.STAGE  # what is staged was asked to be computed by itself
        kernel, place = self._attach(node, uses, after) if is_free else (None, None)
        if kernel is not None and not stores and all(use.kernel is kernel for use in uses):
            self._enter(node, uses)  # the one kernel that wants it computes it once anyway
            return
        if kernel is None or place is None:
            readers = {use.kernel for use in uses} | after
            kernel = self._kernel_for(node, readers, shape_of(node), is_alone=False)
            place = kernel.place
        lasting = [store for store in stores if self._lasts(store)]
        is_read = any(use.kernel is not kernel for use in uses)
        if is_read and not lasting:
            memory = self.temporary(node)
            self._add_store(node, node, memory, kernel, place)
        else:
            memory = (lasting or stores)[0].src[0] if stores else self.temporary(node)
        for store in stores or ([node] if not is_read else []):
            self._add_store(store, node, memory, kernel, place)
        self.kept[node] = Kept(memory, kernel)
        for use in uses:
            if use.kernel is not kernel:
                use.kernel.needs.add(kernel)
        kernel.leaves.add(node)
        inside = [use for use in uses if use.kernel is kernel]
        path = tuple(kernel.order)
        own = Use(kernel, place, path)
        self._enter(node, list(dict.fromkeys([own, *inside])))

    def _store(self, node: UOp, store: UOp) -> None:
        """Store what is in memory already, or a scalar that fills the target."""
        readers = {use.kernel for use in self._readers_of(store)}
        shape = shape_of(store.src[0])
        kernel = self._kernel_for(node, readers, shape, self._is_alone([store]))
        place = kernel.place
        self._add_store(store, node, store.src[0], kernel, place)
        kernel.leaves.add(node)
        at = place if shape_of(node) else Place((), place.gate)
        use = Use(kernel, at, tuple(kernel.order))
        if node.op in MEMORY:
            self.readers[node] = list(dict.fromkeys([*self.readers[node], use]))
        else:
            self._uses[node].append(use)

    def _scatter(self, store: UOp) -> None:
        """Fold updates into memory, in a kernel that runs over them."""
        updates = store.src[1].src[1]
        kernel = scatter_kernel(len(self.kernels), store.src[1])
        kernel.work = size_of(updates) * self.work.of(updates)
        self.kernels.append(kernel)
        self._add_store(store, updates, store.src[0], kernel, kernel.place)
        use = Use(kernel, kernel.place, tuple(kernel.order))
        self.readers[store.src[0]].append(use)
        self._uses[updates].append(use)

    def _add_store(self, store: UOp, node: UOp, memory: UOp, kernel: Kernel, place: Place) -> None:
        view = target_of(store) if store.op == Op.STORE else memory
        base, target = resolve_view(view, place)
        numbers = [n for i in place.indices for n in range_ids(i.ranges)]
        ranges = tuple(kernel.ranges[number] for number in numbers)
        kernel.stores.append(Store(store, base, target, node, place, ranges))
        if store.op == Op.STORE:
            self.makers[store] = kernel
            for use in self._readers_of(store):
                if use.kernel is not kernel:
                    use.kernel.needs.add(kernel)
            self._wait_for_readers(version_of(view), store)
            self._keep_write_order(store)
            self._use_target_indices(view, Use(kernel, place, tuple(kernel.order)))

    def _use_target_indices(self, view: UOp, use: Use) -> None:
        """A store through index tensors reads those."""
        while view.op in MOVEMENT or view.op == Op.INDEX:
            if view.op == Op.INDEX:
                at = gather_place(view, use.place)[1]
                for part in view.src[1:]:
                    place = at if shape_of(part) else Place((), at.gate)
                    self._uses[part].append(Use(use.kernel, place, use.path))
                use = Use(use.kernel, gather_place(view, use.place)[0], use.path)
            else:
                use = Use(use.kernel, through(view, use.place), use.path)
            view = view.src[0]

    # ---- the order of writes

    def _lasts(self, store: UOp) -> bool:
        """Whether what a store writes is never overwritten, so that others can read it there.

        Index tensors may send two elements to one place, and some to none.
        """
        view = unmoved(store.src[0])
        version = self._version_after.get(store)
        return view.op != Op.INDEX and (version is None or not self._replacing[version])

    def _wait_for_readers(self, version: UOp, store: UOp) -> None:
        """A kernel that overwrites a version runs after those that read it, where it can."""
        kernel = self.makers.get(store)
        for use in self.readers[version] if kernel is not None else ():
            if kernel is not None and not use.kernel.depends_on(kernel):
                kernel.after.add(use.kernel)

    def _keep_write_order(self, store: UOp) -> None:
        """The write that replaces what this one makes runs after it."""
        version = self._version_after.get(store)
        for later in self._replacing[version] if version is not None else ():
            if later in self.makers and self.makers[later] is not self.makers[store]:
                self.makers[later].after.add(self.makers[store])

    # ---- the kernel of a value

    def _attach(
        self, node: UOp, uses: list[Use], after: set[Kernel]
    ) -> tuple[Kernel | None, Place | None]:
        """A kernel that computes the value at its own ranges anyway and can store it there.

        `after` are the kernels that read what the store makes.
        """
        for use in uses:
            kernel = use.kernel
            ranges = [i for i in use.place.indices if i.op == Op.RANGE]
            scope = frozenset(ranges)
            if not covers(use.place, scope, shape_of(node)) or not scope <= set(kernel.order):
                continue
            if kernel.is_alone or 0 in kernel.extents:  # an empty kernel does not run
                continue
            if kernel.has_contraction and sums_reused_products(node):
                continue
            if not self._is_seen_once(node, use, uses):
                continue
            if node.op == Op.SCAN and not self._is_along(node, use):
                continue
            others = after | {other.kernel for other in uses if other.kernel is not kernel}
            is_open = len(kernel.stores) < MOST_STORES and kernel.can_pin(scope)
            if is_open and not any(kernel.depends_on(other) for other in others):
                if scope != frozenset(kernel.order):
                    kernel.pin(scope)
                return kernel, use.place
        return None, None

    def _is_seen_once(self, node: UOp, use: Use, uses: list[Use]) -> bool:
        """Whether a kernel looks at a value at one place only, or the value is cheap anyway."""
        if self._stores.get(node) and node.op not in FOLDS and not folds_below(node):
            return True
        return all(u.place == use.place for u in uses if u.kernel is use.kernel)

    def _is_alone(self, stores: list[UOp]) -> bool:
        return any(memory_of(store.src[0]) in self.alone for store in stores)

    def _kernel_for(self, node: UOp, readers: set[Kernel], shape: Shape, is_alone: bool) -> Kernel:
        kernel = None if is_alone else self._joinable(node, readers, shape)
        if kernel is None:
            kernel = self._new_kernel(node, shape)
            kernel.is_alone = is_alone
        return kernel

    def _joinable(self, node: UOp, readers: set[Kernel], shape: Shape) -> Kernel | None:
        """A kernel of the same extents that shares input and does not wait for our readers."""
        folds = fold_sizes(node)
        for kernel in self.kernels:
            if (
                kernel.extents == shape
                and not kernel.is_alone
                and len(kernel.stores) < MOST_STORES
                and not kernel.has_contraction
                and self._shares_input(kernel, node)
                and not any(map(sums_reused_products, [node, *folds_below(node)]))
                and all(fold_sizes(store.value) == folds for store in kernel.stores)
                and not any(kernel.depends_on(reader) for reader in readers)
                and self._can_start(node, kernel)
            ):
                return kernel
        return None

    def _can_start(self, node: UOp, kernel: Kernel) -> bool:
        """Whether the loops of a kernel suit a scan."""
        use = Use(kernel, kernel.place, tuple(kernel.order))
        return node.op != Op.SCAN or self._is_along(node, use)

    def _shares_input(self, kernel: Kernel, node: UOp) -> bool:
        bits = self._leaf_bits[node]
        others = [self._leaf_bits[other] for other in kernel.leaves]
        return any(bits & other or not bits | other for other in others)

    def _new_kernel(self, node: UOp, shape: Shape) -> Kernel:
        kernel = Kernel(len(self.kernels), shape, loop_forms(node, shape))
        kernel.work = size_of(node) * self.work.of(node)
        self.kernels.append(kernel)
        return kernel

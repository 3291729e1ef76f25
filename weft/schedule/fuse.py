"""Rangeify and fuse in one walk: which values live in memory, and in which kernel.

In: a SINK of STOREs and AFTERs over PARAMs (TENSOR_SPEC, calls inlined). Out: a `Fusion`: kernels
with their stores, and for each value that is kept in memory where it is kept.

Each edge of the graph is a use: a kernel, a place, the loops around it. When the turn of a node
comes, all its uses are known. Movement ops only move the place. A store, or a value that is
cheaper to keep than to compute again, gets a kernel; everything else is computed where it is used.
Nodes that are stored and also used at the ranges of a kernel are stored by that kernel on its way.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from weft.ir.build import param
from weft.ir.dtypes import dtypes
from weft.ir.ops import ELEMENTWISE, MOVEMENT, Op, name
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp, range_ids
from weft.ir.walk import topological
from weft.schedule import scans
from weft.schedule.cost import (
    Work,
    depends_on_order,
    evaluations_of,
    fold_sizes,
    folds_below,
    size_of,
    sums_reused_products,
    widens,
)
from weft.schedule.indexing import Place, everywhere, through
from weft.schedule.kernel import Kernel, Path, Store, scatter_kernel
from weft.schedule.memory import (
    MEMORY,
    gather_place,
    memory_of,
    resolve_view,
    target_of,
    version_of,
)
from weft.schedule.scans import is_first, loop_forms, scan_loop
from weft.schedule.uses import CALLS, Kept, Use, covers, free_ranges, leaf_bits, placed_results
from weft.target.target import Target

MOST_STORES: Final = 16
# Folds of one kernel, from which on further ones get memory: code grows, compilers are slow.
MOST_FOLDS: Final = 16
FOLDS: Final = frozenset((Op.REDUCE, Op.SCAN))
# Values computed one for one with their uses, which pass their place on to their sources.
_POINTWISE: Final = ELEMENTWISE | {Op.DETACH, Op.COPY, Op.STAGE, Op.BIND}
_LEAVES: Final = frozenset((Op.CONST, Op.IOTA, Op.VARIABLE))


class Fusion:
    """The state of the walk and, after `run`, its result."""

    def __init__(
        self, sink: UOp, target: Target, first_temporary: int, alone: frozenset[UOp] = frozenset()
    ) -> None:
        self.sink = sink
        self.alone = alone  # memory whose writes get kernels of their own
        self.target = target
        self.work = Work(target)
        self.kernels: list[Kernel] = []
        self.kept: dict[UOp, Kept] = {}
        self.makers: dict[UOp, Kernel] = {}  # STORE -> the kernel that writes it
        self.readers: defaultdict[UOp, list[Use]] = defaultdict(list)  # of PARAM and AFTER
        self.fold_ranges: dict[tuple[UOp, Place, Kernel], tuple[UOp, ...]] = {}
        self.temporaries: list[UOp] = []
        self.log: list[str] = []
        self._uses: defaultdict[UOp, list[Use]] = defaultdict(list)
        self._stores: defaultdict[UOp, list[UOp]] = defaultdict(list)
        self._replacing: defaultdict[UOp, list[UOp]] = defaultdict(list)  # version -> STOREs
        self._version_after: dict[UOp, UOp] = {}  # STORE -> the AFTER that reads it
        self._whole: defaultdict[UOp, list[Kernel]] = defaultdict(list)  # arguments of calls
        self._call_kernels: dict[UOp, Kernel] = {}
        self._first_temporary = first_temporary
        self._leaf_bits: dict[UOp, int] = {}
        self._placed: dict[UOp, UOp] = {}  # result of a call -> the STORE that it does itself

    def run(self) -> Fusion:
        order = topological(self.sink)
        self._leaf_bits = leaf_bits(order)
        self._placed = placed_results(order)
        for node in reversed(order):
            self._turn(node)
        return self

    def _turn(self, node: UOp) -> None:
        if node.op == Op.STORE:
            self._replacing[version_of(node.src[0])].append(node)
            if self._placed.get(node.src[1]) is node:
                return
            if node.src[1].op == Op.SCATTER:
                self._scatter(node)
            elif self._is_alone([node]):
                self._store(node.src[1], node)
            else:
                self._stores[node.src[1]].append(node)
            return
        if node.op in MEMORY | CALLS or node.op == Op.STAGE or not shape_of(node):
            for store in self._stores.pop(node, []):
                self._store(node, store)
        stores = self._stores.get(node, [])
        uses = list(dict.fromkeys(self._uses.pop(node, [])))
        if node in self._whole:
            uses = self._read_whole(node, uses)
        if node.op in CALLS:
            self._turn_call(node, uses)
            return
        if node.op in MEMORY:
            self.readers[node] = list(dict.fromkeys(self.readers[node] + uses))
            for store in self._replacing[node]:
                self._wait_for_readers(node, store)
            for effect in node.src[1:] if node.op == Op.AFTER else ():
                self._version_after[effect] = node
        if stores or (uses and (node.op == Op.STAGE or self._is_needed_whole(node))):
            self._keep(node, uses, stores)
        elif node.op == Op.SCAN and not self._can_run_scan(node, uses):
            self._keep(node, uses, [])
        elif not uses or node.op in MEMORY or node.op in _LEAVES:
            return
        elif node.op in MOVEMENT:
            for use in uses:
                moved = through(node, use.place)
                self._uses[node.src[0]].append(Use(use.kernel, moved, use.path))
        elif self._is_cheaper_to_keep(node, uses):
            self._keep(node, uses, [])
        else:
            self._inline(node, uses)

    # ---- decisions

    def _is_cheaper_to_keep(self, node: UOp, uses: list[Use]) -> bool:
        """Case by case: is the value worth memory? Both costs go to the log."""
        if not self._leaf_bits[node] or (node.op == Op.CAST and widens(node)):
            return False
        if node.dtype is dtypes.index:  # an index has no width that memory could hold
            return False
        kernels = {use.kernel for use in uses}
        if node.op == Op.REDUCE and any(kernel.folds >= MOST_FOLDS for kernel in kernels):
            return True  # products of products: each that is inlined is there once per place
        if len(kernels) > 1 and depends_on_order(node):
            return True  # another kernel would sum in another order, to another number
        paths = [self._scope(node, use) for use in uses]
        counts = [
            evaluations_of(node, (*use.place.indices, use.place.gate), path)
            for use, path in zip(uses, paths, strict=True)
        ]
        evaluations = sum(counts)
        folds = folds_below(node) if node.op != Op.REDUCE else []
        if evaluations <= size_of(node) and not folds and node.op != Op.REDUCE:
            return False
        repeats = max([len(kernels), *(count // (size_of(node) or 1) for count in counts)])
        placed = [
            (use.kernel, path, count) for use, path, count in zip(uses, paths, counts, strict=True)
        ]
        estimate = self.work.compare(node, placed, folds, repeats)
        keep = estimate.memory < estimate.recompute
        if sums_reused_products(node) and evaluations > size_of(node):
            keep = True
        choice = "memory" if keep else "inline"
        self.log.append(
            f"{name(node.op)} {shape_of(node)}: {len(uses)} uses, {evaluations} evaluations of"
            f" {size_of(node)}: {estimate} -> {choice}"
        )
        return keep

    def _can_run_scan(self, node: UOp, uses: list[Use]) -> bool:
        """Whether one kernel uses a scan, at one place, in a loop along it."""
        (use, *others) = uses
        return not others and self._is_along(node, use)

    def _is_along(self, node: UOp, use: Use) -> bool:
        if is_first(node, use.place):
            return True
        found = scan_loop(node, use.kernel, use.place, use.path)
        return found is not None and scans.fits(found, use.kernel)

    def _scope(self, node: UOp, use: Use) -> Path:
        """The loops around one evaluation of a node, as it would be placed."""
        place = use.kernel.reachable(use.place, shape_of(node))
        prefix = use.kernel.prefix(use.path, place)
        own = set(use.kernel.order)
        free = free_ranges(place)
        scope = frozenset(loop for loop in prefix if loop.ranges & free)
        if scope <= own and use.kernel.can_pin(scope):
            return tuple(loop for loop in use.kernel.order if loop in scope)
        return prefix

    # ---- carrying a decision out

    def _inline(self, node: UOp, uses: list[Use]) -> None:
        for use in uses:
            if node.op == Op.REDUCE:
                self._enter_fold(node, use)
            elif node.op == Op.SCAN:
                self._enter_scan(node, use)
            else:
                self._pass_on(node, use)

    def _pass_on(self, node: UOp, use: Use) -> None:
        if node.op == Op.INDEX:
            self._enter_gather(node, use)
            return
        assert node.op in _POINTWISE, name(node.op)
        for source in node.src:
            place = use.place if shape_of(source) else Place((), use.place.gate)
            self._uses[source].append(Use(use.kernel, place, use.path))

    def _enter_fold(self, node: UOp, use: Use) -> None:
        path = self._scope(node, use)
        kernel = use.kernel
        if set(path) <= set(kernel.order):
            kernel.pin(frozenset(path))
        ranges, place = self.fold_place(node, use.place, kernel)
        inside = (*path, *(loop for loop in ranges if loop.op == Op.RANGE))
        kernel.has_contraction |= sums_reused_products(node)
        kernel.folds += 1
        self._uses[node.src[0]].append(Use(kernel, place, inside))

    def _enter_scan(self, node: UOp, use: Use) -> None:
        if not is_first(node, use.place):
            found = scan_loop(node, use.kernel, use.place, use.path)
            assert found is not None, "a scan is entered where it can run"
            scans.enter(found, use.kernel)
        self._uses[node.src[0]].append(use)

    def fold_place(self, node: UOp, place: Place, kernel: Kernel) -> tuple[tuple[UOp, ...], Place]:
        """The ranges of a fold at a place of its result, and the place in its body."""
        place = kernel.reachable(place, shape_of(node))
        key = (node, place, kernel)
        axes = node.arg[1]
        body = shape_of(node.src[0])
        if key not in self.fold_ranges:
            self.fold_ranges[key] = tuple(kernel.fresh(body[axis]) for axis in axes)
        ranges = self.fold_ranges[key]
        inner = list(place.indices)
        for axis, loop in zip(axes, ranges, strict=True):
            inner[axis] = loop
        return ranges, Place(tuple(inner), place.gate)

    def _enter_gather(self, node: UOp, use: Use) -> None:
        source, gate, *indices = node.src
        place, index_place = gather_place(node, use.place)
        for part in (gate, *indices):
            at = index_place if shape_of(part) else Place((), index_place.gate)
            self._uses[part].append(Use(use.kernel, at, use.path))
        self._uses[source].append(Use(use.kernel, place, use.path))

    # ---- calls

    def _turn_call(self, node: UOp, uses: list[Use]) -> None:
        """A call runs by itself: its arguments and results are whole values in memory."""
        call = node.src[0] if node.op == Op.ITEM else node
        placed = self._placed.get(node)
        if node.dtype is not dtypes.void and (uses or placed is not None):
            kernel = self._kernel_of_call(call)
            memory = self.temporary(node) if placed is None else placed.src[0]
            self.kept[node] = Kept(memory, kernel)
            for use in uses:
                use.kernel.needs.add(kernel)
        if node is call and (call in self._call_kernels or call.dtype is dtypes.void):
            kernel = self._kernel_of_call(call)
            self.makers[call] = kernel
            for use in self._readers_of(call):
                use.kernel.needs.add(kernel)
            for argument in call.src:
                self._whole[argument].append(kernel)

    def _kernel_of_call(self, call: UOp) -> Kernel:
        if call not in self._call_kernels:
            kernel = Kernel(len(self.kernels), ())
            kernel.call = call
            kernel.is_alone = True
            self.kernels.append(kernel)
            self._call_kernels[call] = kernel
        return self._call_kernels[call]

    def _is_needed_whole(self, node: UOp) -> bool:
        return node in self._whole and node.op not in MEMORY

    def _read_whole(self, node: UOp, uses: list[Use]) -> list[Use]:
        """Calls read their arguments at every place."""
        for kernel in self._whole[node]:
            place = everywhere(tuple(kernel.fresh(size) for size in shape_of(node)))
            uses.append(Use(kernel, place, ()))
        return uses

    # ---- memory

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

    def _enter(self, node: UOp, uses: list[Use]) -> None:
        if node.op in MOVEMENT:
            for use in uses:
                moved = through(node, use.place)
                self._uses[node.src[0]].append(Use(use.kernel, moved, use.path))
        elif node.op not in _LEAVES:
            self._inline(node, uses)

    def _readers_of(self, store: UOp) -> list[Use]:
        """The uses of the version that a store makes."""
        version = self._version_after.get(store)
        return [] if version is None else self.readers[version]

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

    def _lasts(self, store: UOp) -> bool:
        """Whether what a store writes is never overwritten, so that others can read it there.

        Index tensors may send two elements to one place, and some to none.
        """
        view = store.src[0]
        while view.op in MOVEMENT:
            view = view.src[0]
        version = self._version_after.get(store)
        return view.op != Op.INDEX and (version is None or not self._replacing[version])

    def temporary(self, node: UOp) -> UOp:
        """New memory for a value."""
        made = param(self._first_temporary + len(self.temporaries), node.dtype, shape_of(node))
        self.temporaries.append(made)
        return made

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

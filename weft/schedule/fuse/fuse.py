"""Rangeify and fuse in one walk: which values live in memory, and in which kernel.

In: a SINK of STOREs and AFTERs over PARAMs (TENSOR_SPEC, calls inlined). Out: a `Fusion`: kernels
with their stores, and for each value that is kept in memory where it is kept.

Each edge of the graph is a use: a kernel, a place, the loops around it. When the turn of a node
comes, all its uses are known. Movement ops only move the place. A store, or a value that is
cheaper to keep than to compute again, gets a kernel; everything else is computed where it is used.
Nodes that are stored and also used at the ranges of a kernel are stored by that kernel on its way.

This module walks and decides; `inline_values` and `keep_values` carry the decisions out.
"""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import dtypes
from weft.ir.ops import MOVEMENT, Op, name
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.views import version_of
from weft.ir.walk import topological
from weft.schedule.fuse.cost import (
    depends_on_order,
    evaluations_of,
    folds_below,
    size_of,
    sums_reused_products,
    widens,
)
from weft.schedule.fuse.inline_values import LEAVES
from weft.schedule.fuse.keep_values import KeptValues
from weft.schedule.fuse.kernel import Kernel
from weft.schedule.fuse.uses import CALLS, Kept, Use, leaf_bits, placed_results
from weft.schedule.indexing import everywhere, through
from weft.schedule.memory import MEMORY

# Folds of one kernel, from which on further ones get memory: code grows, compilers are slow.
MOST_FOLDS: Final = 16


class Fusion(KeptValues):
    """The walk, and after `run` its result."""

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
        elif not uses or node.op in MEMORY or node.op in LEAVES:
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
        if sums_reused_products(node) and any(kernel.has_contraction for kernel in kernels):
            return True  # each wants a tile of registers, and a kernel has one
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

"""Calls run by themselves: their arguments and results are whole values in memory."""

from __future__ import annotations

from collections import Counter, defaultdict

from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import same_shape, shape_of
from weft.ir.uop import UOp
from weft.schedule.fuse.candidates import Candidates
from weft.schedule.fuse.kernel import Kernel
from weft.schedule.fuse.materialize import Materializer
from weft.schedule.fuse.order import need
from weft.schedule.fuse.uses import Materialized, Use
from weft.schedule.fuse.writes import Writes
from weft.schedule.indexing import everywhere
from weft.schedule.memory import CALLS, MEMORY


class Calls:
    """The calls of a graph, as kernels that fusion leaves alone."""

    def __init__(
        self,
        order: list[UOp],
        candidates: Candidates,
        materializer: Materializer,
        writes: Writes,
    ) -> None:
        self._filled = filled_memory(order)
        self._candidates = candidates
        self._materializer = materializer
        self._writes = writes
        self._kernels: dict[UOp, Kernel] = {}
        self._arguments: defaultdict[UOp, list[Kernel]] = defaultdict(list)

    def fills(self, store: UOp) -> bool:
        """Whether a call does this STORE of its result itself."""
        return self._filled.get(store.src[1]) is store

    def visit(self, node: UOp, uses: list[Use]) -> None:
        """The walk comes to a CALL, or to an ITEM of one."""
        call = node.src[0] if node.op == Op.ITEM else node
        store = self._filled.get(node)
        if node.dtype is not dtypes.void and (uses or store is not None):
            kernel = self._kernel(call)
            memory = self._materializer.placeholder(node) if store is None else store.src[0]
            found = Materialized(memory, kernel, node if store is None else store)
            self._materializer.values[node] = found
            for use in uses:
                need(use.kernel, kernel)
        if node is call and (call in self._kernels or call.dtype is dtypes.void):
            kernel = self._kernel(call)
            self._writes.makers[call] = kernel
            for use in self._writes.readers_of(call):
                need(use.kernel, kernel)
            for argument in call.src:
                self._arguments[argument].append(kernel)

    def _kernel(self, call: UOp) -> Kernel:
        if call not in self._kernels:
            self._kernels[call] = self._candidates.new_call(call)
        return self._kernels[call]

    def needs_whole(self, node: UOp) -> bool:
        """Whether a value is an argument, so that it has to be in memory."""
        return node in self._arguments and node.op not in MEMORY

    def uses_of(self, node: UOp) -> list[Use]:
        """Calls read their arguments at every address."""
        return [
            Use(kernel, everywhere(tuple([kernel.fresh(size) for size in shape_of(node)])), ())
            for kernel in self._arguments.get(node, ())
        ]


def filled_memory(order: list[UOp]) -> dict[UOp, UOp]:
    """The results of calls that are stored, as they are, to memory that nothing else touches.

    The call fills that memory itself, where a kernel would have to copy otherwise.
    """
    stores = [n for n in order if n.op == Op.STORE and n.src[1].op in CALLS]
    found: dict[UOp, UOp] = {}
    readers = Counter(source for node in order for source in node.src) if stores else {}
    for store in stores:
        address, value = store.src
        is_fresh = address.op == Op.PARAM and readers[address] == 1
        if is_fresh and same_shape(shape_of(address), shape_of(value)):
            found.setdefault(value, store)
    return found

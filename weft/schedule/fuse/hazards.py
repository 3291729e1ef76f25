"""The order of reads and writes of the same memory.

In: what the walk decided. Out: `after` edges, so that a kernel that overwrites memory runs after
all that read the version before, or a list of repairs. A version that somebody must read after it
has been overwritten is copied first; a value that reads what its own store overwrites at other
addresses is computed into memory of its own first. Both are changes of the tensor graph, after
which it is fused again.
"""

from __future__ import annotations

from weft.ir.bounds import bounds
from weft.ir.build import global_stage
from weft.ir.dtypes import INDEX, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.views import memory_of, version_of
from weft.ir.walk import rebuild, topological
from weft.schedule.fuse.kernel import Kernel, Store
from weft.schedule.fuse.order import depends_on, follow, forget_after, need
from weft.schedule.fuse.walk import Fused
from weft.schedule.indexing import Address
from weft.schedule.normalize import as_target, call_arguments

# For a write (STORE or CALL) of some memory, the kernels that come before it.
Waits = dict[tuple[UOp, UOp], dict[Kernel, None]]


class Repair:
    """What must change: memory to write alone, versions to copy, values to compute first.

    Writes in kernels of their own are tried first, because a fused output may be all that is
    wrong. Where nothing must change, `waits` is the order.
    """

    def __init__(self, alone: frozenset[UOp]) -> None:
        self.already_alone = alone
        self.alone: set[UOp] = set()
        self.copies: set[UOp] = set()
        self.values: set[UOp] = set()
        self.waits: Waits = {}

    def wait(self, kernel: Kernel, first: Kernel, effect: UOp, view: UOp) -> None:
        """Let a write of some memory happen after a kernel that reads or writes it before."""
        follow(kernel, first)
        self.waits.setdefault((effect, memory_of(view)), {})[first] = None

    def copy(self, version: UOp) -> None:
        if not self._needs_to_be_alone(version):
            self.copies.add(version)

    def compute_first(self, store: UOp) -> None:
        if not self._needs_to_be_alone(store.src[0]):
            self.values.add(store)

    def _needs_to_be_alone(self, view: UOp) -> bool:
        memory = memory_of(view)
        if memory in self.already_alone:
            return False
        self.alone.add(memory)
        return True

    def __bool__(self) -> bool:
        return bool(self.alone or self.copies or self.values)


def order_writes(fused: Fused, alone: frozenset[UOp]) -> Repair:
    """Add the edges between readers and writers; what stands in the way."""
    repair = Repair(alone)
    for version, uses in fused.writes.readers.items():
        if version.op == Op.AFTER:
            for effect in version.src[1:]:
                for use in uses:
                    need(use.kernel, fused.writes.makers[effect])
    forget_after(fused.kernels)
    stores = [
        (kernel, item)
        for kernel in fused.kernels
        for item in kernel.stores
        if item.node.op == Op.STORE
    ]
    for kernel, item in stores:
        old = version_of(item.node.src[0])
        for effect in old.src[1:] if old.op == Op.AFTER else ():
            _order_writers(fused, kernel, item, fused.writes.makers[effect], effect, repair)
    for kernel, item in stores:
        _order_readers(fused, kernel, item, repair)
    for version in fused.writes.readers:
        _order_calls(fused, version, repair)
    return repair


def _order_calls(fused: Fused, version: UOp, repair: Repair) -> None:
    """A call that writes memory runs after those that read the version before."""
    calls = [n for n in version.src[1:] if n.op == Op.CALL] if version.op == Op.AFTER else []
    for call in calls:
        kernel = fused.writes.makers[call]
        for use in fused.writes.readers.get(version.src[0], ()):
            if use.kernel is kernel:
                continue
            if depends_on(use.kernel, kernel):
                repair.copies.add(version.src[0])
            else:
                repair.wait(kernel, use.kernel, call, version)


def _order_readers(fused: Fused, kernel: Kernel, item: Store, repair: Repair) -> None:
    """What read the version before has read it when this store replaces it."""
    old = version_of(item.node.src[0])
    for use in fused.writes.readers.get(old, ()):
        if use.kernel is kernel:
            if not item.is_scatter and not _is_in_step(use.address, item):
                repair.compute_first(item.node)
        elif depends_on(use.kernel, kernel):
            repair.copy(old)
        else:
            repair.wait(kernel, use.kernel, item.node, old)


def _order_writers(
    fused: Fused, kernel: Kernel, item: Store, first: Kernel, effect: UOp, repair: Repair
) -> None:
    """Two writes of one memory keep their order; in one kernel they must not meet."""
    if first is not kernel:
        if depends_on(first, kernel):
            repair.compute_first(item.node)
        else:
            repair.wait(kernel, first, item.node, item.node.src[0])
        return
    other = next(store for store in kernel.stores if store.node is effect)
    if not (is_apart(other.target, item.target) or other.target == item.target):
        repair.compute_first(item.node)


def _is_in_step(address: Address, item: Store) -> bool:
    """Whether a read sees just the element that is written in the same iteration, or never one.

    Loaded indices may name an element twice, and the second iteration must not see the first.
    """
    is_loaded = any(i.ops >> Op.LOAD & 1 for i in item.target.indices)
    is_same = address.indices == item.target.indices and not is_loaded
    return is_same or is_apart(address, item.target)


def is_apart(a: Address, b: Address) -> bool:
    """Whether two addresses never meet, by the bounds of an index."""
    for x, y in zip(a.indices, b.indices, strict=True):
        assert x.dtype.kind == y.dtype.kind == INDEX
        if bounds(x)[1] < bounds(y)[0] or bounds(y)[1] < bounds(x)[0]:
            return True
    return False


def apply_repair(sink: UOp, repair: Repair) -> UOp:
    """The tensor graph with copies where memory would be overwritten too soon."""
    read: dict[UOp, UOp] = {}  # what readers of a node see: the copy, where there is one
    plain: dict[UOp, UOp] = {}  # the node itself, which stores write to
    for node in topological(sink):
        src = [read[source] for source in node.src]
        if node.op == Op.STORE:
            src[0] = as_target(node.src[0], read, plain)
            if node in repair.values:
                src[1] = global_stage(src[1])
        elif node.op == Op.AFTER:
            src[0] = plain[node.src[0]]
        elif node.op == Op.CALL and node.dtype is dtypes.void:
            src = call_arguments(node, read, plain)
        plain[node] = rebuild(node, tuple(src))
        read[node] = global_stage(plain[node]) if node in repair.copies else plain[node]
    return plain[sink]

"""The cost model of fusion: one place, a few numbers of the target, every term printed.

Recomputing a value costs its work at each evaluation; keeping it in memory costs the bytes written
and read and the launch of a kernel, but computes it once and with all threads. Estimates are in
nanoseconds; only their order decides.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from weft.ir.dtypes import FIXED
from weft.ir.ops import ELEMENTWISE, MOVEMENT, TRANSCENDENTAL, Op
from weft.ir.reduction.contraction import reuse_of
from weft.ir.shapes import Shape, largest_size, shape_of
from weft.ir.uop import UOp, on_sweep
from weft.ir.walk import topological
from weft.schedule.fuse.kernel import Kernel, Path, iterations
from weft.schedule.memory import CALLS, MEMORY
from weft.target.compute import Simt
from weft.target.memory import GLOBAL
from weft.target.target import Target

_SLOW = TRANSCENDENTAL | {Op.DIV, Op.SQRT, Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCDIV, Op.TRUNCMOD}
_FREE = frozenset((Op.CONST, Op.IOTA, Op.VARIABLE, Op.BIND))
# What is below these is computed together with them.
_THROUGH = ELEMENTWISE | MOVEMENT
# A kernel has room for about as many reductions; values that read more know the nearest ones.
_MOST_REDUCTIONS = 16
# A product is a contraction when both of its operands are read at least this often.
_REUSE = 8
# Parts of a value that cost more than its memory, however cheap each of them is.
_MANY_PARTS = 256
# Bytes of an element of a strip of memory that a group of threads takes.
STRIP_BYTES: Final = 4


class CostEstimate(NamedTuple):
    """The two sides of a decision, in nanoseconds."""

    recompute: float
    memory: float


class ValueReads:
    """What values read, found in one walk: memory as bits, and reductions."""

    def __init__(self, order: Sequence[UOp]) -> None:
        self.memory_below: dict[UOp, int] = {}  # fused outputs share some of it
        self._reductions: dict[UOp, tuple[UOp, ...]] = {}
        self.readers = Counter(source for node in order for source in node.src)
        count = 0
        for node in order:
            bits = 0
            if node.op in MEMORY or node.op in CALLS:
                bits = 1 << count
                count += 1
            else:
                for source in node.src:
                    bits |= self.memory_below[source]
            self.memory_below[node] = bits
            self._reductions[node] = self._below(node) if node.op in _THROUGH else ()

    def _below(self, node: UOp) -> tuple[UOp, ...]:
        """The reductions below sources; where these have the same, or one has any, no copy."""
        found: tuple[UOp, ...] = ()
        for source in node.src:
            own = (source,) if source.op == Op.REDUCE else self._reductions[source]
            if own and found and own is not found:
                own = tuple(dict.fromkeys((*found, *own)))[-_MOST_REDUCTIONS:]
            found = own or found
        return found

    def reductions_below(self, node: UOp) -> tuple[UOp, ...]:
        """The reductions that a value reads directly, through elementwise and movement ops."""
        return self._reductions[node] if node.op in _THROUGH else self._below(node)

    def reduction_sizes(self, node: UOp) -> tuple[int, ...]:
        """How many elements the reductions of a value take; a scan is told apart by its axis."""
        if node.op == Op.SCAN:
            return (-1 - int(node.arg[1][0]),)
        found = (node,) if node.op == Op.REDUCE else self.reductions_below(node)
        return tuple(sorted({math.prod(_sizes(reduction)) for reduction in found}))


class ElementCost:
    """What one element of a node costs to compute where it is used.

    Reductions and memory count as one load: consumers are decided before what they read, and a
    reduction is computed once wherever it ends up.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._known: dict[UOp, float] = {}
        self._reductions: dict[UOp, tuple[float, float]] = {}  # whole, and what memory costs

    def of(self, node: UOp) -> float:
        if node.op == Op.REDUCE:
            return self.of_reduction(node)
        if node.op == Op.SCAN:
            return self._inline(node.src[0]) + self.target.costs.op
        return self._inline(node)

    def of_reduction(self, node: UOp) -> float:
        """One element of a reduction: its iterations times the work of its body."""
        if sums_reused_products(node):
            return iterations_of(node) * self.target.costs.multiply_add
        return self.without_tile(node)

    def without_tile(self, node: UOp) -> float:
        """One element of a reduction, iteration by iteration, as in the loop of another."""
        return iterations_of(node) * (self._inline(node.src[0]) + self.target.costs.op)

    def whole(self, node: UOp) -> float:
        """All of a value that a kernel stores, on threads with what it reduces."""
        if not isinstance(self.target.compute, Simt):
            return size_of(node) * self.of(node)
        while node.op == Op.STAGE or node.op in MOVEMENT:
            node = node.src[0]
        if node.op != Op.REDUCE:
            return size_of(node) * self.in_full(node)
        if sums_reused_products(node):
            return size_of(node) * self.of_reduction(node)
        return size_of(node.src[0]) * (self.in_full(node.src[0]) + self.target.costs.op)

    def in_full(self, node: UOp) -> float:
        """One element of a value that shares nothing with others, each part of it once."""
        return sum(map(self.of_one, _parts(node)))

    def in_tile(self, node: UOp) -> float:
        """One element of a value in a tile, where positions along one axis are shared."""
        size = size_of(node)
        return sum(
            self.of_one(part)
            for part in _parts(node)
            if size_of(part) == size or not part.dtype.kind & FIXED
        )

    def compare(
        self,
        node: UOp,
        uses: Sequence[tuple[Kernel, Path, int]],
        reductions: Sequence[UOp],
        repeats: int,
    ) -> CostEstimate:
        """Computing a value at each use, against keeping it in memory.

        A use is a kernel, the loops there, and how often the value is computed in them.
        `reductions` are those that the value reads; inlining it computes them with as few threads
        as the use has, and again at each of `repeats` repetitions unless they get memory instead.
        """
        threads = self.target.units
        is_shared = node.op == Op.REDUCE or repeats < _REUSE  # near each other
        work = self.of(node) if is_shared else self.in_full(node)
        recompute = 0.0
        narrowest = threads
        for kernel, path, count in uses:
            lanes = self.lanes(kernel, path)
            narrowest = min(narrowest, lanes)
            is_tiled = node.op != Op.REDUCE or set(path) <= set(kernel.order)
            recompute += count * (work if is_tiled else self.without_tile(node)) / lanes
            if node.op == Op.REDUCE:
                recompute += self.waiting(kernel, path)
        memory = size_of(node) * work / threads
        memory += memory_cost(self.target, node, len({kernel for kernel, _, _ in uses}))
        for reduction in reductions:
            cost, again = self._reduction(reduction)
            extra = min(cost * (repeats - 1) / narrowest, again) if repeats > 1 else 0.0
            recompute += cost / narrowest + extra
            memory += cost / threads
        return CostEstimate(recompute, memory)

    def lanes(self, kernel: Kernel, path: Path) -> int:
        """How many units work on a kernel of which a reduction needs a path outside of the rest.

        A group of threads walks the rest of the kernel by itself. Where the path goes along
        memory, it takes a strip of it, because its threads read neighbors.
        """
        compute = self.target.compute
        parallel = kernel.parallel(path)
        near = kernel.innermost()
        if isinstance(compute, Simt) and near in path and not set(kernel.order) <= set(path):
            strip = min(compute.line_bytes // STRIP_BYTES, iterations((near,)))
            parallel //= max(strip, 1)
        return min(self.target.units, max(parallel, 1))

    def waiting(self, kernel: Kernel, path: Path) -> float:
        """What the rest of a kernel waits for where a path outside of it leaves few lanes."""
        return kernel.work * (1 / self.lanes(kernel, path) - 1 / self.target.units)

    def _reduction(self, node: UOp) -> tuple[float, float]:
        """What all of a reduction costs, and what its memory would.

        A chain of values reads the same ones again and again. What is below a body counts the
        first time that it is asked for; from then on a body costs its last op.
        """
        known = self._reductions.get(node)
        if known is None:
            again = memory_cost(self.target, node, 1)
            first = size_of(node) * self.of_reduction(node)
            self._reductions[node] = (size_of(node) * self.of_reduction(node), again)
            return first, again
        return known

    def _inline(self, node: UOp) -> float:
        stack = [node]
        while stack:
            part = stack[-1]
            below = () if part in self._known else _below(part)
            missing = [source for source in below if source not in self._known]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            self._known[part] = self.of_one(part) + sum(
                [self._known[s] for s in dict.fromkeys(below)]
            )
        return self._known[node]

    def of_one(self, node: UOp) -> float:
        """One op of a value, without what it reads."""
        costs = self.target.costs
        if node.op in MOVEMENT or node.op in _FREE or node.op == Op.CAST:
            return 0.0
        if node.op in ELEMENTWISE:
            return costs.transcendental if node.op in _SLOW else costs.op
        return node.dtype.itemsize * self.target.caches[0].cost


def _parts(node: UOp) -> Iterable[UOp]:
    """What an element is computed of, in the order of the graph: sums of floats keep theirs.

    One of very many parts costs more than memory already, and no more of it is looked at.
    """
    stack, seen = [node], {node: None}
    while stack and len(seen) < _MANY_PARTS:
        fresh = [part for part in _below(stack.pop()) if part not in seen]
        stack += fresh
        seen.update(dict.fromkeys(fresh))
    return seen


def _below(node: UOp) -> tuple[UOp, ...]:
    """What is computed together with a value."""
    if node.op in MOVEMENT:
        return node.src[:1]
    return node.src if node.op in ELEMENTWISE or node.op == Op.INDEX else ()


def evaluations_of(node: UOp, indices: tuple[UOp, ...], path: Path) -> int:
    """How often a value is computed in the loops around a use of it."""
    return (
        iterations(path)
        if node.op == Op.REDUCE
        else iterations(path) // iterations_per_element(indices)
    )


@lru_cache(maxsize=4096)
def iterations_per_element(indices: tuple[UOp, ...]) -> int:
    """How many iterations in a row need one and the same element at these indices.

    A loop that the indices only see divided by 32 stays at an element for 32 iterations: codegen
    splits it there, and computes the element outside of the inner part.
    """
    used_as: dict[UOp, int] = {}
    nodes = topological(*indices)
    for node in nodes:
        for source in node.src:
            if source.op == Op.RANGE:
                is_quotient = node.op == Op.FLOORDIV and node.src[1].op == Op.CONST
                factor = int(node.src[1].arg) if is_quotient else 1
                used_as[source] = math.gcd(used_as.get(source, 0), factor)
    for index in indices:
        if index.op == Op.RANGE:
            used_as[index] = 1
    return math.prod(used_as.values())


on_sweep(iterations_per_element.cache_clear)


def iterations_of(reduction: UOp) -> int:
    """How many elements a reduction takes for each of its results."""
    return largest_size(shape_of(reduction.src[0])) // (size_of(reduction) or 1)


def size_of(node: UOp) -> int:
    return largest_size(shape_of(node))


def memory_cost(target: Target, node: UOp, readers: int) -> float:
    """What it costs to write a value once and read it in `readers` kernels, with all threads."""
    return bytes_cost(target, node) * (1 + readers) + target.costs.launch


def bytes_cost(target: Target, node: UOp) -> float:
    """What it costs to write a value, or to read it, with all threads."""
    size = size_of(node) * node.dtype.itemsize
    far = (*target.caches[1:], target.memory(GLOBAL))  # the first is too near for a value
    level = next((memory.cost for memory in far if size <= memory.size), far[-1].cost)
    return size * level / target.units


def sums_reused_products(node: UOp) -> bool:
    """Whether a reduction sums products of two values that are each used many times over."""
    return reuse_of(node) >= _REUSE


def widens(node: UOp) -> bool:
    """A cast to a wider type: memory holds the narrow one."""
    return node.dtype.bits > node.src[0].dtype.bits


def narrows(node: UOp) -> bool:
    """A cast of a float to a narrower one."""
    is_float = node.op == Op.CAST and node.dtype.is_float and node.src[0].dtype.is_float
    return is_float and node.dtype.bits < node.src[0].dtype.bits


def _sizes(reduction: UOp) -> list[int]:
    body: Shape = shape_of(reduction.src[0])
    return [size for axis in reduction.arg[1] if isinstance(size := body[axis], int)]


def depends_on_order(node: UOp) -> bool:
    """Whether the result of a reduction depends on the order in which it is done."""
    is_rounded = node.op == Op.REDUCE and node.dtype.is_float
    return is_rounded and node.arg[0] in (Op.ADD, Op.MUL)

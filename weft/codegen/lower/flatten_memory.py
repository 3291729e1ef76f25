"""Stages become memory, and every address becomes one flat index.

In: a kernel of KERNEL_SPEC. Out: no STAGE and no READ. A stage is a STORE into MEMORY, closed over
the stage's own ranges, and its readers load from `AFTER(memory, store)`:

    s = stage local[c of 8] = exp(x[r, c]) for c       m = memory "stage0" local: float32[8]
    read s[i]                                    ->    f = store m[c] = exp(x[r*8 + c]) for c
                                                       load m.after(f)[i]

PARAMs keep their shape, which says how large they are, and are indexed by one number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from weft.codegen.analysis.loops import own_ranges, rebuilt
from weft.codegen.context import CodegenContext
from weft.codegen.lower.hardware import idle_groups, idle_threads, thread_axes
from weft.ir.build import Size, all_of, index, index_of, load, store
from weft.ir.ops import Op
from weft.ir.shapes import fill_sizes
from weft.ir.uop import UOp, make, range_ids
from weft.ir.views import behind
from weft.ir.walk import map_graph, topological
from weft.rules.simplify import simplify
from weft.support.errors import InternalError


def flatten_memory(kernel: UOp, context: CodegenContext) -> UOp:
    """Lower STAGE and READ, and make every INDEX flat."""
    axes = context.thread_axes = thread_axes(kernel)
    stages: dict[UOp, _Stage] = {}

    def flattened(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        if node.op == Op.INDEX:
            memory, mask, *indices = [made[source] for source in node.src]
            flat = flat_index(indices, fill_sizes(behind(memory), behind(memory).arg[1], 0))
            return index_of(memory, [flat], mask)
        if node.op == Op.STAGE:
            stages[node] = _Stage(kernel, node, len(stages), axes, made)
            return stages[node].filled
        if node.op == Op.READ:
            return stages[behind(node.src[0])].read(node, made)
        new = rebuilt(node, made, {})
        if node.op != Op.STORE:
            return new
        return _done_once(new, [*idle_groups(kernel, node), *idle_threads(kernel, node, axes)])

    return map_graph(kernel, flattened)


def _done_once(node: UOp, idle: Sequence[UOp]) -> UOp:
    """A STORE that the first group and thread does, where several would do the same."""
    if not idle:
        return node
    memory, mask, *indices = node.src[0].src
    first = simplify(all_of(mask, *(r.equal(0) for r in idle)))
    return make(Op.STORE, node.dtype, (index_of(memory, indices, first), *node.src[1:]))


def flat_index(indices: Sequence[UOp], sizes: Sequence[Size]) -> UOp:
    """The row-major position of indices in an array of these sizes.

    >>> from weft.ir.build import range_
    >>> flat_index([range_(0, 4), range_(1, 3)], (4, 8))
    ((r0 * 8) + r1)
    """
    position = indices[0] if indices else index(0)
    for each, size in zip(indices[1:], sizes[1:], strict=True):
        position = position * index(size) + each
    return simplify(position)


class _Stage:
    """The memory of one stage, with a copy for each thread that computes it for itself.

    Local memory is shared by the threads of a group. Where threads fill it together, their ranges
    are among the stage's own. Threads on which the stage depends get a copy each, and those that
    would all do the same leave it to the first of them.
    """

    def __init__(
        self, kernel: UOp, node: UOp, number: int, axes: dict[int, int], made: Mapping[UOp, UOp]
    ) -> None:
        space, self.sizes = node.arg
        if space not in ("local", "register"):
            what = f"a stage in {space} memory is a kernel of its own"
            raise InternalError(what, pass_name="flatten-memory", where=node.line)
        own = own_ranges(node)
        shared = space == "local" and any(r.arg in axes for r in own)
        if not shared and axes:
            space = "register"  # nobody helps to fill it, so each thread keeps its own
        ranges = {r.arg: r for r in topological(node) if r.op == Op.RANGE}
        copied = [n for n in range_ids(node.ranges) if n in axes] if shared else []
        self.copies = [made[ranges[n]] for n in copied]
        size = math.prod(self.sizes) * math.prod(int(r.src[0].arg) for r in self.copies)
        memory = make(Op.MEMORY, node.dtype, (), (f"stage{number}", space, size))
        indices = [made[s] for s in node.src[1 : 1 + len(self.sizes)]]
        address = index_of(memory, [self._position(indices)])
        filled = store(address, made[node.src[0]], [made[r] for r in own])
        if shared:
            filled = _done_once(filled, idle_threads(kernel, node, axes))
        self.filled = make(Op.AFTER, node.dtype, (memory, filled))

    def _position(self, indices: Sequence[UOp]) -> UOp:
        sizes = [*(int(r.src[0].arg) for r in self.copies), *self.sizes]
        return flat_index([*self.copies, *indices], sizes)

    def read(self, node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        """The LOAD that a READ becomes."""
        memory, mask, *indices = [made[source] for source in node.src]
        return load(index_of(memory, [self._position(indices)], mask))

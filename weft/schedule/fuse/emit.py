"""Carries a fusion out: the ranged graph of what was decided.

In: what the walk decided, with its writes in order. Out: a SINK (RANGED_SPEC) with one member per
kernel or call, those that were decided last first:

- `STORE(INDEX(memory, …), value, ranges…)` writes memory of the program;
- `STAGE(value, indices…, ranges…; ("global", sizes))` is a value in memory of its own, which
  other kernels READ: the boundary between kernels;
- a TUPLE of both are the fused outputs of one kernel, over ranges that they share;
- a CALL, or a STORE of its result to the memory that it fills.

A LOAD of `AFTER(memory, effects…)` sees those writes, and a STORE to such memory happens after
them. Ranges are numbered per kernel, in the order of its loops.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from weft.ir.build import index_of, range_, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op, mask_of
from weft.ir.reduction.accumulation import may_meet
from weft.ir.results import result_nodes
from weft.ir.shapes import shape_of
from weft.ir.stage import stage
from weft.ir.uop import UOp, const, make
from weft.ir.views import memory_of, version_of
from weft.ir.walk import rebuild, topological
from weft.rules.simplify import simplify
from weft.schedule.fuse.build import Builder
from weft.schedule.fuse.hazards import Waits
from weft.schedule.fuse.kernel import Kernel, Store
from weft.schedule.fuse.order import producers_first, waits_of
from weft.schedule.fuse.walk import Fused
from weft.support.source_line import SourceLine

_MEMORY = mask_of(Op.PARAM, Op.BUFFER)
_NEAREST = 100  # nodes below a value that are asked for its line


def emit(fused: Fused, waits: Waits) -> UOp:
    """The ranged graph of what was decided."""
    emitter = _Emitter(fused, waits)
    for kernel in producers_first(fused.kernels):
        if kernel.call is None:
            emitter.add_kernel(kernel)
        else:
            emitter.add_call(kernel, kernel.call)
    members = [emitter.members.get(kernel) for kernel in reversed(fused.kernels)]
    return sink(*[member for member in dict.fromkeys(members) if member is not None])


class _Emitter:
    """The nodes that have been made: of a kernel, of a write, and of the memory of a value."""

    def __init__(self, fused: Fused, waits: Waits) -> None:
        self.fused = fused
        self.waits = waits
        self.members: dict[Kernel, UOp] = {}
        self._effects: dict[UOp, UOp] = {}  # STORE or CALL of the tensor graph -> the node here
        self._outputs: set[UOp] = set()
        self._ages: dict[UOp, int] = {}  # of versions
        self._staged: dict[UOp, UOp] = {}  # placeholder -> STAGE or result of a CALL

    # ---- order edges

    def _happened(self, kernels: Iterable[Kernel]) -> list[UOp]:
        """The nodes that stand for kernels; for one that writes nothing, those it waits for."""
        found: list[UOp] = []
        stack = list(reversed(list(kernels)))
        seen = set(stack)
        while stack:
            kernel = stack.pop()
            if kernel in self.members:
                found.append(self.members[kernel])
            if kernel.is_empty:
                waiting = waits_of(kernel)
                stack += [other for other in waiting if other not in seen]
                seen.update(waiting)
        return found

    def _version(self, memory: UOp, effects: Iterable[UOp], kernel: Kernel) -> UOp:
        """Memory as it is after some writes of the tensor graph, in a kernel that reads it."""
        seen: list[UOp] = []
        for effect in dict.fromkeys(effects):
            if effect in self._effects:
                seen.append(self._effects[effect])
            elif self.fused.writes.makers[effect] is not kernel:
                seen += self._happened([self.fused.writes.makers[effect]])
        return _after(memory, seen)

    def _written(self, memory: UOp, writes: Iterable[UOp], kernel: Kernel) -> UOp:
        """Memory once all that has to happen before some writes of it has happened."""
        first = [other for write in writes for other in self.waits.get((write, memory), ())]
        others = [other for other in dict.fromkeys(first) if other is not kernel]
        return _after(memory, self._happened(others))

    # ---- kernels

    def add_kernel(self, kernel: Kernel) -> None:
        items = sorted(kernel.stores, key=self._age)
        if kernel.is_empty:
            made = [self._empty_stage(item) for item in items if item.node.op != Op.STORE]
        else:
            made = self._stores(kernel, items)
        if made:
            self._add_member(kernel, made)

    def _add_member(self, kernel: Kernel, made: list[UOp]) -> None:
        """Note the outputs of a kernel, without stages that an earlier one has as well."""
        outputs = [output for output in dict.fromkeys(made) if output not in self._outputs]
        self._outputs.update(outputs)
        outputs = outputs or made[:1]
        is_one = len(outputs) == 1
        member = outputs[0] if is_one else make(Op.TUPLE, dtypes.void, tuple(outputs))
        self.members[kernel] = member

    def _age(self, item: Store) -> int:
        """How many writes of the same memory come before a store: they happen before it."""
        chain = [version_of(item.node.src[0]) if item.node.op == Op.STORE else item.memory]
        while chain[-1] not in self._ages and chain[-1].op == Op.AFTER:
            chain.append(chain[-1].src[0])
        age = self._ages.setdefault(chain.pop(), 0)
        for version in reversed(chain):
            age += 1
            self._ages[version] = age
        return age

    def _empty_stage(self, item: Store) -> UOp:
        """Memory without elements, which a call may take all the same."""
        sizes = shape_of(item.memory)
        loops = [range_(axis, size) for axis, size in enumerate(sizes)]
        made = stage("global", const(item.memory.dtype, 0), loops, sizes, loops)
        self._staged[item.memory] = made
        return made

    def _stores(self, kernel: Kernel, items: list[Store]) -> list[UOp]:
        builder = Builder(self.fused, kernel)
        last: dict[tuple[UOp, tuple[UOp, ...]], UOp] = {}  # of several writes at one index
        writes: defaultdict[tuple[UOp, tuple[UOp, ...]], list[UOp]] = defaultdict(list)
        for item in items:
            made = builder.store(item)
            key = (made.src[0], made.src[2:])
            last[key] = made
            writes[key].append(item.node)
        stores = list(last.values())
        nodes = topological(*stores)
        finished = _numbered(kernel, nodes, stores)
        for node in nodes:
            if node in finished:
                continue
            if node.op == Op.PARAM:
                finished[node] = self._memory(node, builder, kernel)
                continue
            src = tuple([finished[source] for source in node.src])
            if node.op == Op.LOAD and node.src[0].src[0] in self._staged:
                finished[node] = make(Op.READ, node.dtype, src[0].src)
            else:
                finished[node] = node if src == node.src else rebuild(node, src)
        return [self._output(last[key], writes[key], finished, kernel) for key in last]

    def _memory(self, node: UOp, builder: Builder, kernel: Kernel) -> UOp:
        """A materialized value where a placeholder stands for it, else a version of memory."""
        if node in self._staged:
            return self._staged[node]
        return self._version(node, builder.read.get(node, ()), kernel)

    def _output(
        self, made: UOp, writes: list[UOp], finished: dict[UOp, UOp], kernel: Kernel
    ) -> UOp:
        """The STORE of writes of the program, the STAGE of a value that is materialized."""
        address, value = made.src[:2]
        mask, *indices = [finished[part] for part in address.src[1:]]
        ranges = [finished[loop] for loop in made.src[2:]]
        if writes[0].op == Op.STORE:
            memory = self._written(address.src[0], writes, kernel)
            src = (index_of(memory, indices, mask), finished[value], *ranges)
            output = make(Op.STORE, dtypes.void, src, made.arg)
            output.line = writes[0].line or line_below(writes[0].src[1])
            self._effects.update(dict.fromkeys(writes, output))
            return output
        condition = None if mask.op == Op.CONST and mask.arg else mask
        sizes = shape_of(address.src[0])
        output = stage("global", finished[value], indices, sizes, ranges, condition)
        output.line = line_below(writes[0])
        self._staged[address.src[0]] = output
        return output

    # ---- calls

    def add_call(self, kernel: Kernel, call: UOp) -> None:
        arguments = [self._argument(argument, call, kernel) for argument in call.src]
        made = make(Op.CALL, call.dtype, tuple(arguments), call.arg)
        self._effects[call] = made
        stores: list[UOp] = []
        for old, new in zip(result_nodes(call), result_nodes(made), strict=True):
            found = self.fused.materialized.get(old)
            if found is not None and found.effect is old:
                self._staged[found.memory] = new
            elif found is not None:
                self._effects[found.effect] = store(found.memory, new)
                stores.append(self._effects[found.effect])
        self._add_member(kernel, stores or [made])

    def _argument(self, node: UOp, call: UOp, kernel: Kernel) -> UOp:
        """The memory of an argument, with what the call waits for."""
        found = self.fused.materialized.get(node)
        memory = memory_of(node if found is None else found.memory)
        if memory in self._staged:
            return self._staged[memory]
        effects = node.src[1:] if node.op == Op.AFTER else ()
        seen = self._version(memory, effects if found is None else [found.effect], kernel)
        before = self._written(memory, [call], kernel)
        return _after(seen, before.src[1:] if before.op == Op.AFTER else ())


def _after(memory: UOp, effects: Sequence[UOp]) -> UOp:
    if not effects:
        return memory
    base, *others = memory.src if memory.op == Op.AFTER else (memory,)
    return make(Op.AFTER, base.dtype, (base, *dict.fromkeys((*others, *effects))))


def _numbered(kernel: Kernel, nodes: list[UOp], stores: list[UOp]) -> dict[UOp, UOp]:
    """The ranges of a kernel with the numbers of their positions among its loops.

    Loops over updates that may meet at one index are innermost.
    """
    used = {node for node in nodes if node.op == Op.RANGE}
    met: set[UOp] = set()
    for made in stores:
        if made.arg == "ordered":
            bits = may_meet(made)
            met |= {loop for loop in made.src[2:] if bits >> loop.arg & 1}
    loops = kernel.ranges if met else kernel.order
    order = sorted((loop for loop in loops if loop in used), key=lambda loop: loop in met)
    own = set(order)
    order += [loop for loop in kernel.ranges if loop in used and loop not in own]
    return {loop: range_(number, simplify(loop.src[0])) for number, loop in enumerate(order)}


def line_below(value: UOp) -> SourceLine | None:
    """The line of a value, or of what it is made of: rewrites make nodes that have none.

    Constants are shared by all who use them, so that their lines say little.
    """
    if value.line is not None:
        return value.line
    seen, waiting = {value}, [value]
    last = None
    for node in waiting:
        if node.line is not None:
            last = last or node.line
            if node.src and node.ops & _MEMORY:
                return node.line
        for source in node.src:
            if source not in seen and len(waiting) < _NEAREST:
                seen.add(source)
                waiting.append(source)
    return last

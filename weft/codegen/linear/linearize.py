"""The instructions of a program, in an order in which they can run.

In: a kernel of stores into flat memory, all ops native. Out: a LINEAR of PROGRAM_SPEC. Every value
stands at the depth of the deepest loop it depends on, before the loops it does not depend on, so
nothing has to be hoisted later. A load of memory that is written later stays where it is used, and
all loads of a body come before its stores.

Outside of loops threads wait where one reads what others have written, not where it is written: so
reductions that do not need each other are exchanged behind one barrier.
"""

from __future__ import annotations

from weft.codegen.analysis.loops import ranges_of
from weft.codegen.context import CodegenContext
from weft.codegen.linear.place_stores import LoopBody, StoreGroup, place_stores
from weft.codegen.linear.store_order import stores_of
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.spec.program import LEAVES
from weft.ir.uop import UOp, make
from weft.ir.views import behind
from weft.ir.walk import topological
from weft.support.errors import InternalError


def linearize(kernel: UOp, context: CodegenContext) -> UOp:
    """Order the instructions of a kernel."""
    return _Lister(kernel).program


class _Level:
    """The body of an open loop: its instructions, and the nodes whose values belong to it."""

    def __init__(self, counter: UOp | None) -> None:
        self.counter = counter
        self.lines: list[UOp] = []
        self.sources: list[UOp] = []


class _Lister:
    """Walks the loop tree and lists instructions, each at the depth it belongs to."""

    def __init__(self, kernel: UOp) -> None:
        nodes = topological(kernel)
        # Only of memory that is also read does it matter when it is written.
        loaded = {behind(node.src[0].src[0]) for node in nodes if node.op == Op.LOAD}
        self.writers = {m: stores for m, stores in _writers(nodes).items() if m in loaded}
        self.has_threads = "thread" in [n.arg[0] for n in nodes if n.op == Op.SPECIAL]
        self.next_range = 1 + max(ranges_of(kernel), default=-1)
        self.used_ranges: set[int] = set()
        self.levels = [_Level(None)]
        self.made: dict[UOp, UOp] = {}  # what a node of the kernel is in the loops that are open
        self.depth: dict[UOp, int] = {}  # where each instruction stands
        self.effect: dict[UOp, UOp] = {}  # what has happened once a store is complete
        self.effect_depth: dict[UOp, int] = {}
        self.last_effect: UOp | None = None
        self.written_later: dict[UOp, bool] = {}
        self.gone: set[UOp] = set()  # instructions in loops that have ended
        self.unseen: list[UOp] = []  # stores that other threads may not see yet
        self.run(place_stores(kernel))
        self.program = make(Op.LINEAR, dtypes.void, tuple(self.levels[0].lines))

    def run(self, block: LoopBody) -> None:
        for item in block.items:
            self.wait_for_readers(item)
            effect = self.run_loop(item) if isinstance(item, LoopBody) else self.run_task(item)
            self.complete(item.completes, effect)

    def run_loop(self, block: LoopBody) -> UOp:
        loop = block.range
        assert loop is not None
        self.let_see()
        extent = self.value(loop.src[0])
        number = loop.arg
        if number in self.used_ranges:
            number, self.next_range = self.next_range, self.next_range + 1
        self.used_ranges.add(number)
        counter = make(Op.RANGE, loop.dtype, (extent,), number)
        self.levels.append(_Level(counter))
        self.enter(loop, counter, len(self.levels) - 1)
        self.run(block)
        level = self.levels.pop()
        for node in level.sources:
            del self.made[node]
        self.gone.update(level.lines)
        end = make(Op.END, dtypes.void, (counter,))
        self.levels[-1].lines += [counter, *level.lines, end]
        self.last_effect = end
        return end

    def run_task(self, task: StoreGroup) -> UOp:
        parts = [(self.value(store.src[0]), self.value(store.src[1])) for store in task.stores]
        for address, value in parts:
            self.last_effect = make(Op.STORE, dtypes.void, (address, value))
            self.levels[-1].lines.append(self.last_effect)
        assert self.last_effect is not None
        return self.last_effect

    def complete(self, stores: list[UOp], effect: UOp) -> None:
        """What a loop writes can be read once it has ended, by other threads after a barrier."""
        depth = len(self.levels) - 1
        if any(map(self.is_shared, stores)) and effect.op == Op.STORE and not depth:
            self.unseen += stores
        elif any(map(self.is_shared, stores)):
            effect = self.last_effect = make(Op.BARRIER, dtypes.void, (effect,))
            self.levels[-1].lines.append(effect)
        for store in stores:
            self.effect[store], self.effect_depth[store] = effect, depth

    def let_see(self) -> None:
        """A barrier, if there are stores outside of loops that other threads may not see yet."""
        if not self.unseen:
            return
        effects = tuple(dict.fromkeys(self.effect[store] for store in self.unseen))
        barrier = self.last_effect = make(Op.BARRIER, dtypes.void, effects)
        self.levels[0].lines.append(barrier)
        self.effect.update(dict.fromkeys(self.unseen, barrier))
        self.unseen = []

    def is_shared(self, store: UOp) -> bool:
        memory = behind(store.src[0].src[0])
        return self.has_threads and memory.op == Op.MEMORY and memory.arg[1] == "local"

    def wait_for_readers(self, item: LoopBody | StoreGroup) -> None:
        """In a loop, threads wait before they overwrite what others read in the last iteration."""
        if len(self.levels) == 1 or not any(map(self.is_shared, item.completes)):
            return
        counter = self.levels[-1].counter
        assert counter is not None
        waits = (counter,) if self.last_effect is None else (counter, self.last_effect)
        barrier = make(Op.BARRIER, dtypes.void, waits)
        self.levels[-1].lines.append(barrier)
        self.last_effect = barrier

    def value(self, root: UOp) -> UOp:
        """The instruction that computes a node, listed if it is new."""
        found = self.made.get(root)
        if found is not None:
            return found
        for node in topological(root, enter=self.is_new):
            if node not in self.made:
                self.list(node)
        return self.made[root]

    def is_new(self, node: UOp) -> bool:
        return node not in self.made and node.op not in (Op.PARAM, Op.AFTER)

    def list(self, node: UOp) -> None:
        if node.op in LEAVES:
            self.enter(node, node, 0)
        elif node.op == Op.AFTER:
            stores = stores_of(node)
            if not set(stores).isdisjoint(self.unseen):
                self.let_see()
            effects = tuple([self.effect[store] for store in stores])
            depths = [self.effect_depth[store] for store in stores]
            depths += [self.depth[self.made[part]] for part in node.src[1:] if part in self.made]
            depth = max(depths)
            self.enter(node, make(Op.AFTER, node.dtype, (node.src[0], *effects)), depth)
        elif node.op == Op.RANGE:
            what = f"range {node.arg} is used outside its loop"
            raise InternalError(what, pass_name="linearize", facts=[("range", repr(node))])
        else:
            src = [self.made[source] for source in node.src]
            depth = max([self.depth[source] for source in src], default=0)
            if node.op == Op.INDEX and self.is_written_later(node.src[0]):
                depth = len(self.levels) - 1
                if behind(src[0]).op != Op.MEMORY and self.last_effect is not None:
                    src[0] = make(Op.AFTER, src[0].dtype, (src[0], self.last_effect))
            made = make(node.op, node.dtype, tuple(src), node.arg)
            if made in self.gone:  # an address that two runs of a loop write, as the first time
                assert self.last_effect is not None
                src[0] = make(Op.AFTER, src[0].dtype, (src[0], self.last_effect))
                made = make(node.op, node.dtype, tuple(src), node.arg)
            if made not in self.depth:
                self.levels[depth].lines.append(made)
            self.enter(node, made, depth)

    def enter(self, node: UOp, made: UOp, depth: int) -> None:
        self.made[node] = made
        self.depth[made] = depth
        if depth:
            self.levels[depth].sources.append(node)

    def is_written_later(self, version: UOp) -> bool:
        """Whether a store into this memory is not among those that its version follows."""
        writers = self.writers.get(behind(version))
        if not writers:
            return False
        if version not in self.written_later:
            self.written_later[version] = not _stores_before(version).issuperset(writers)
        return self.written_later[version]


def _stores_before(version: UOp) -> set[UOp]:
    """The stores that a version of some memory follows, those before them included."""
    before: set[UOp] = set()
    waiting = [version]
    while waiting:
        node = waiting.pop()
        while node.op == Op.AFTER:
            before.update(stores_of(node))
            waiting += [store.src[0].src[0] for store in stores_of(node)]
            node = node.src[0]
    return before


def _writers(nodes: list[UOp]) -> dict[UOp, list[UOp]]:
    """The stores into each memory."""
    found: dict[UOp, list[UOp]] = {}
    for node in nodes:
        if node.op == Op.STORE:
            found.setdefault(behind(node.src[0].src[0]), []).append(node)
    return found

"""What realized values were computed from, for as long as gradients may ask.

A value that depends on a leaf which requires a gradient keeps its graph when it becomes memory:
`loss.item()` does not stop `loss.backward()`. The graph belongs to the BUFFER node of the value
and goes with it. It holds what it reads, as the saved tensors of other frameworks do, but does not
keep anyone from overwriting it: a graph whose memory has been overwritten is forgotten, and a
gradient that needs it raises.

A value that was written in place has the write as its graph. What the memory held before is gone;
where its graph is known, it is computed again if a gradient needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from weft.engine.buffer_nodes import new_buffer
from weft.engine.buffers import BUFFERS, has_memory
from weft.ir.dtypes import COMPLEX, FLOAT, VOID, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp, make
from weft.ir.views import memory_of
from weft.ir.walk import rebuild, substitute, substitute_all, topological
from weft.support.errors import NotSupported

# Versions up to this size are copied where a graph needs them: the state of random numbers.
SMALL_BYTES: Final = 1024
# Writes in place, one after the other, through which the graph of a value is kept.
MOST_WRITES: Final = 1024
# The kinds of what gradients go through; a store has none.
_FOLLOWED: Final = frozenset((FLOAT, COMPLEX, VOID))


class History(NamedTuple):
    """The graph of a realized value, and the numbers of the buffers that it reads."""

    graph: UOp
    reads: frozenset[int]
    writes: int = 0  # in place, that led to it from memory whose graph is known


_HISTORIES: Final[WeakKeyDictionary[UOp, History]] = WeakKeyDictionary()
_LOST: Final[WeakSet[UOp]] = WeakSet()


class _Kept:
    """Whether this process ever kept a graph: every realize asks, and most programs never do."""

    any = False


def followed(nodes: Iterable[UOp], leaves: Iterable[UOp]) -> set[UOp]:
    """Those of some nodes, sources first, from which a gradient leads to a leaf or a history."""
    reached = set(leaves)
    if not reached and not _HISTORIES:
        return set()
    for node in nodes:
        is_through = node.dtype.kind in _FOLLOWED and node.op != Op.DETACH
        if (is_through and not reached.isdisjoint(node.src)) or node in _HISTORIES:
            reached.add(node)
    return reached


def from_floats(roots: Sequence[UOp]) -> set[UOp]:
    """Those of some values that a gradient could lead from to float memory.

    One way there is enough, and values that are known to have one are on the way of others.
    """
    found: set[UOp] = set()
    without: set[UOp] = set()
    for root in roots:
        waiting, seen = [root], {root}
        while waiting:
            node = waiting.pop()
            if node in found or (node.op == Op.BUFFER and node.dtype.kind in _FOLLOWED):
                found.add(root)
                break
            if node.op == Op.DETACH or node.dtype.kind not in _FOLLOWED:
                continue
            for source in node.src:
                if source not in seen and source not in without:
                    seen.add(source)
                    waiting.append(source)
        else:
            without |= seen
    return found


def note_computed(memory: UOp) -> None:
    """Note that memory was computed from floats; what else there is to know may be kept."""
    number = memory.arg[0]
    BUFFERS[number].computed_as = number


def is_computed(memory: UOp) -> bool:
    """Whether memory was computed from floats, and what it was computed from is not known."""
    if memory.op != Op.BUFFER:
        return False
    found = BUFFERS.get(memory.arg[0])
    return found is not None and found.computed_as == memory.arg[0]


def small_versions(graphs: Sequence[UOp]) -> list[UOp]:
    """Versions of memory that graphs read and that cost next to nothing to copy."""
    return [
        node
        for node in topological(*graphs)
        if node.op in (Op.BUFFER, Op.AFTER)
        and largest_size(shape_of(node)) * node.dtype.itemsize <= SMALL_BYTES
    ]


def remember_copies(made: dict[UOp, UOp]) -> None:
    """Note where the values are now that memory had before it was overwritten."""
    for before, copy in made.items():
        if before.op == Op.BUFFER and copy.op == Op.BUFFER:
            if before in _LOST:
                _LOST.add(copy)
            elif before in _HISTORIES:
                _HISTORIES[copy] = _HISTORIES[before]
            _HISTORIES[before] = History(copy, frozenset((copy.arg[0],)))


def remember_graph(memory: UOp, graph: UOp, made: dict[UOp, UOp]) -> None:
    """Keep the graph of a value that is memory now; `made` is what else became memory with it."""
    written = {memory_of(graph)} if graph.op == Op.AFTER else set()  # of its own
    others = {
        node: buffer
        for node, buffer in made.items()
        if node is not graph and memory_of(node) not in written
    }
    sources = tuple(substitute(source, others) for source in graph.src)
    kept = rebuild(graph, sources)
    buffers = [node for node in topological(kept) if node.op == Op.BUFFER]
    known = [node for node in buffers if not has_memory(node) and node in _HISTORIES]
    writes = 1 + max((_HISTORIES[node].writes for node in known), default=-1)
    _Kept.any = True
    is_kept = all(has_memory(node) or node in _HISTORIES or node in written for node in buffers)
    if is_kept and writes <= MOST_WRITES:
        reads = frozenset(node.arg[0] for node in buffers if node not in written)
        _HISTORIES[memory] = History(kept, reads, writes)
    else:
        _LOST.add(memory)


def has_history(memory: UOp) -> bool:
    """Whether it is known, or was, what a realized value was computed from."""
    return _Kept.any and (memory in _HISTORIES or memory in _LOST)


def is_lost(node: UOp) -> bool:
    """Whether a graph reads memory whose own graph was forgotten."""
    return bool(_LOST) and any(each in _LOST for each in topological(node))


def has_histories() -> bool:
    """Whether the graph of any value is kept."""
    return _Kept.any and len(_HISTORIES) > 0


def forget_overwritten(written: Iterable[UOp]) -> None:
    """Forget the graphs that read memory which these nodes no longer have.

    What such a node was computed from may be known; then its readers go on.
    """
    gone = {node.arg[0] for node in written if not has_memory(node) and node not in _HISTORIES}
    while gone:
        lost = [each for each, found in _HISTORIES.items() if not gone.isdisjoint(found.reads)]
        for memory in lost:
            del _HISTORIES[memory]
            _LOST.add(memory)
        gone = {memory.arg[0] for memory in lost if not has_memory(memory)}


class Unfolded(NamedTuple):
    """Graphs with the graphs of realized values instead of their memory, and the way back."""

    roots: list[UOp]
    memory: dict[UOp, UOp]
    gone: frozenset[UOp] = frozenset()  # memory that was overwritten, and is not known

    def fold(self, node: UOp) -> UOp:
        """A graph with values that are in memory read from there, not computed again."""
        folded = substitute(node, self.memory)
        if self.gone and not self.gone.isdisjoint(topological(folded)):
            raise _overwritten()
        return folded


def unfold(*roots: UOp) -> Unfolded:
    """The graphs as they would be had nothing been realized."""
    found: dict[UOp, UOp] = {}
    memory: dict[UOp, UOp] = {}
    gone: set[UOp] = set()
    waiting = _remembered(*roots)
    while waiting:
        node = waiting[-1]
        graph = _HISTORIES[node].graph
        missing = [part for part in _remembered(graph) if part not in found]
        if node in found:
            waiting.pop()
        elif missing:
            waiting += missing
        else:
            whole = substitute(graph, found)
            buffers = [each for each in topological(graph) if each.op == Op.BUFFER]
            gone.update(each for each in buffers if not has_memory(each) and each not in found)
            if has_memory(node):
                found[node] = whole
                memory[whole] = node
            else:
                found[node] = _written_anew(node, whole)
            waiting.pop()
    return Unfolded(substitute_all(roots, found), memory, frozenset(gone))


def _written_anew(memory: UOp, value: UOp) -> UOp:
    """The version of new memory that has the value which was overwritten."""
    new = new_buffer(memory.dtype, shape_of(memory), memory.arg[2])
    return make(Op.AFTER, value.dtype, (new, make(Op.STORE, dtypes.void, (new, value))))


def _overwritten() -> NotSupported:
    return NotSupported(
        "gradient: it goes through a value whose inputs have been overwritten",
        rule="a realized value keeps its graph until something that it reads is written",
        fix="call backward() before the write, or detach() the value",
    )


def _remembered(*roots: UOp) -> list[UOp]:
    nodes = topological(*roots, enter=lambda node: node.op != Op.DETACH)
    buffers = [node for node in nodes if node.op == Op.BUFFER]
    if any(node in _LOST for node in buffers):
        raise _overwritten()
    return [node for node in buffers if node in _HISTORIES]

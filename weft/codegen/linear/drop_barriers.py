"""Barriers that no thread has to wait at are left out.

In and Out: a LINEAR of PROGRAM_SPEC. `linearize` puts a barrier behind every store into local
memory. One is needed only between what one thread writes and another reads, in either order:
several stores that fill a tile need the last one alone.

    store a[t] = x             store a[t] = x
    barrier                    store a[t + 32] = y
    store a[t + 32] = y   ->   barrier
    barrier                    load a[63 - t]
    load a[63 - t]

Between two barriers that this looks at lies no loop, so all that happens between
them is in the list.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.codegen.context import CodegenContext
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.views import behind
from weft.ir.walk import map_graph
from weft.target.memory import LOCAL

_CONTROL = (Op.RANGE, Op.END)


def drop_barriers(program: UOp, context: CodegenContext) -> UOp:
    """The program without the barriers that separate nothing."""
    dropped = _needless(program.src)
    if not dropped:
        return program

    def without(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        src: list[UOp] = []
        for source in node.src:
            if source not in dropped:
                src.append(made[source])
            elif node is not program:  # what waited for the barrier waits for what it waited for
                effects = [made[each] for each in _effects(source, dropped)]
                src += [each for each in effects if each not in src]
        return node if tuple(src) == node.src else make(node.op, node.dtype, tuple(src), node.arg)

    return map_graph(program, without)


def _effects(barrier: UOp, dropped: set[UOp]) -> list[UOp]:
    """What a barrier waits for, seen through others that are left out."""
    found: list[UOp] = []
    for source in barrier.src:
        found += _effects(source, dropped) if source in dropped else [source]
    return found


def _needless(lines: tuple[UOp, ...]) -> set[UOp]:
    """The barriers that can be left out, each looked at with those before it left out already."""
    dropped: set[UOp] = set()
    loaded: set[UOp] = set()
    stored: set[UOp] = set()
    is_known = True  # whether the sets hold all that happened since the last barrier
    for position, line in enumerate(lines):
        if line.op in _CONTROL:
            is_known = False
        elif line.op == Op.BARRIER:
            following = _until_barrier(lines, position + 1)
            if is_known and following is not None:
                loads, stores = following
                if stored.isdisjoint(loads) and loaded.isdisjoint(stores):
                    dropped.add(line)
                    continue
            loaded, stored, is_known = set(), set(), True
        else:
            _note(line, loaded, stored)
    return dropped


def _until_barrier(lines: tuple[UOp, ...], start: int) -> tuple[set[UOp], set[UOp]] | None:
    """Local memory that is loaded and stored up to the next barrier; None: a loop comes first."""
    loaded: set[UOp] = set()
    stored: set[UOp] = set()
    for line in lines[start:]:
        if line.op == Op.BARRIER:
            return loaded, stored
        if line.op in _CONTROL:
            return None
        _note(line, loaded, stored)
    return loaded, stored


def _note(line: UOp, loaded: set[UOp], stored: set[UOp]) -> None:
    if line.op in (Op.LOAD, Op.STORE):
        memory = behind(line.src[0].src[0])
        if memory.op == Op.MEMORY and memory.arg[1] == LOCAL:
            (loaded if line.op == Op.LOAD else stored).add(memory)

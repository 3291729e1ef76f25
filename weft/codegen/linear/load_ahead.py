"""What threads read before they exchange anything is loaded first, all at once.

In and Out: a LINEAR of PROGRAM_SPEC. `linearize` loads a value where it is used. Threads that
exchange values stand still there, so a load behind that starts late.

    v0 = load a[t]                   v0 = load a[t]
    v1 = v0 + v0.shuffle(t, 1)  ->   v2 = load b[t]
    v2 = load b[t]                   v1 = v0 + v0.shuffle(t, 1)

This is for loads in front of the first barrier and a few words behind it, and where the groups are
so few that they have registers enough, for all in front of the first loop.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Final

from weft.codegen.context import CodegenContext
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.uop import UOp, make
from weft.ir.views import behind
from weft.target.compute import Simt

# Registers of 32 bits that hold what is loaded first.
MOST_WORDS: Final = 96
# Those for what is used behind a barrier, in groups of which there are many.
WORDS_BEHIND: Final = 8
# Threads of a multiprocessor that have so many registers to spare.
FEW_THREADS: Final = 512
_LEAVES: Final = frozenset((Op.CONST, Op.PARAM, Op.VARIABLE, Op.MEMORY))
_MOVED: Final = ELEMENTWISE | {Op.INDEX, Op.LOAD, Op.SPECIAL, Op.LANES, Op.VECTOR}


def load_ahead(program: UOp, context: CodegenContext) -> UOp:
    """The program with loads in front of what they do not need."""
    lines = program.src
    first = list(itertools.takewhile(lambda line: line.op != Op.RANGE, lines))
    if not any(line.op == Op.SHUFFLE for line in first):
        return program
    written = {behind(line.src[0].src[0]) for line in lines if line.op == Op.STORE}
    movable = _movable(first, written)
    barriers = [number for number, line in enumerate(first) if line.op == Op.BARRIER]
    barrier = len(first) if _is_small(program, context) else min(barriers, default=len(first))
    moved: set[UOp] = set()
    words, words_behind = MOST_WORDS, WORDS_BEHIND
    for number, load in enumerate(first):
        if load not in movable or load.op != Op.LOAD:
            continue
        size = -(-load.dtype.itemsize // 4)
        if number < barrier:
            words -= size
        else:
            words_behind -= size
        if min(words, words_behind) < 0:
            break
        waiting = [load]
        while waiting:
            line = waiting.pop()
            if line not in moved:
                moved.add(line)
                waiting += [source for source in line.src if source in movable]
    front = [line for line in first if line in moved]
    rest = [line for line in lines if line not in moved]
    return make(Op.LINEAR, program.dtype, (*front, *rest))


def _is_small(program: UOp, context: CodegenContext) -> bool:
    """Whether few threads run at once."""
    compute = context.target.compute
    sizes = [line.src[0] for line in program.src if line.op == Op.SPECIAL]
    return (
        isinstance(compute, Simt)
        and all(size.op == Op.CONST for size in sizes)
        and math.prod(int(size.arg) for size in sizes) <= compute.units * FEW_THREADS
    )


def _movable(lines: Iterable[UOp], written: set[UOp]) -> set[UOp]:
    """What needs nothing but memory that nobody changes."""
    found: set[UOp] = set()
    for line in lines:
        if line.op not in _MOVED or (line.op == Op.INDEX and _is_changed(line.src[0], written)):
            continue
        if all(source in found or source.op in _LEAVES for source in line.src):
            found.add(line)
    return found


def _is_changed(memory: UOp, written: set[UOp]) -> bool:
    return memory.op != Op.PARAM or memory in written

"""Loops that fill tiles load the next ones while they use these.

In and Out: a LINEAR of PROGRAM_SPEC. A loop whose iterations fill local memory, wait, and use it,
waits for global memory each time. Here an iteration puts what the one before has loaded into the
tile, and loads what the next one needs once its threads have met; it is kept in registers.

    for k:                                  r = load x[0]
      barrier                               for k:
      store tile[t] = load x[k]               barrier
      barrier                          ->     store tile[t] = r
      use tile                                barrier
    end k                                     r = load x[min(k + 1, last)]
                                              use tile
                                            end k

The last iteration loads its own elements again, which costs less than a jump around the load.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.codegen.context import CodegenContext
from weft.codegen.lower.scalarize import is_scalar
from weft.ir.build import true
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.program import AHEAD
from weft.ir.spec.program import LEAVES
from weft.ir.uop import UOp, const, make
from weft.ir.views import behind
from weft.ir.walk import substitute, substitute_all, topological
from weft.target.memory import LOCAL, REGISTER

# Words of 32 bits that a thread keeps for the next iteration.
MOST_WORDS: Final = 32
_EFFECTS: Final = frozenset((Op.STORE, Op.BARRIER, Op.RANGE, Op.END))
_NAMED: Final = LEAVES | {Op.AFTER}


class _Fill(NamedTuple):
    """A loop that fills tiles: where it starts, where its threads have met, and its loads."""

    start: int
    met: int
    counter: UOp
    loads: list[UOp]


def prefetch_tiles(program: UOp, context: CodegenContext) -> UOp:
    """Load what an iteration puts into tiles one iteration ahead."""
    if not is_scalar(context.target):
        return program
    for fill in reversed(_fills(program.src)):
        program = _ahead(program, fill)
    return program


def _fills(lines: tuple[UOp, ...]) -> list[_Fill]:
    """The innermost loops whose first lines, between two barriers, fill local memory."""
    found: list[_Fill] = []
    for start, line in enumerate(lines):
        if line.op != Op.RANGE or line.src[0].op != Op.CONST or line.src[0].arg < 2:
            continue
        barriers = _barriers(lines, start)
        if len(barriers) != 2:
            continue
        part = lines[barriers[0] : barriers[1]]
        loads = [each for each in part if each.op == Op.LOAD]
        stores = [each for each in part if each.op == Op.STORE]
        words = sum(-(-load.dtype.itemsize // 4) for load in loads)
        is_plain = all(_is_plain(load, line) for load in loads) and all(map(_is_a_tile, stores))
        if loads and is_plain and words <= MOST_WORDS:
            found.append(_Fill(start, barriers[1], line, loads))
    return found


def _barriers(lines: tuple[UOp, ...], start: int) -> list[int]:
    """The barriers of a loop without a loop and without results inside; none of another one.

    Two arguments may be one piece of memory, so nothing is loaded before what is stored there.
    """
    found: list[int] = []
    for position in range(start + 1, len(lines)):
        line = lines[position]
        is_result = line.op == Op.STORE and behind(line.src[0].src[0]).op == Op.PARAM
        if line.op == Op.RANGE or is_result:
            return []
        if line.op == Op.END:
            return found
        if line.op == Op.BARRIER:
            found.append(position)
    return []


def _is_plain(load: UOp, counter: UOp) -> bool:
    """Whether a load is of an argument, at an address that is computed from the counter alone."""
    address = load.src[0]
    is_computed = not any(node.op == Op.LOAD for node in topological(address))
    is_argument = address.src[0].op == Op.PARAM and len(load.src) == 1
    return is_argument and is_computed and bool(address.ranges >> counter.arg & 1)


def _is_a_tile(store: UOp) -> bool:
    memory = behind(store.src[0].src[0])
    return memory.op == Op.MEMORY and memory.arg[1] == LOCAL


def _ahead(program: UOp, fill: _Fill) -> UOp:
    counter, last = fill.counter, const(fill.counter.dtype, fill.counter.src[0].arg - 1)
    after = make(Op.MIN, counter.dtype, (counter + 1, last))
    first: list[UOp] = []
    following: list[UOp] = []
    replaced: dict[UOp, UOp] = {}
    for number, load in enumerate(fill.loads):
        name = f"{AHEAD}{fill.start}_{number}"
        arg = (name, REGISTER, load.dtype.lanes)
        memory = make(Op.MEMORY, load.dtype.scalar, (), arg)
        zero = const(counter.dtype, 0)
        address = make(Op.INDEX, load.dtype, (memory, true(), zero))
        first.append(_store(address, substitute(load, {counter: zero})))
        following.append(_store(address, substitute(load, {counter: after})))
        kept = make(Op.AFTER, memory.dtype, (memory, first[-1]))
        replaced[load] = make(
            Op.LOAD, load.dtype, (make(Op.INDEX, load.dtype, (kept, true(), zero)),)
        )
    lines = substitute_all(program.src, replaced)
    before, during = lines[: fill.start], lines[fill.start : fill.met + 1]
    lines = [*before, *first, *during, *following, *lines[fill.met + 1 :]]
    return make(Op.LINEAR, program.dtype, tuple(_needed(_listed(lines))), program.arg)


def _store(address: UOp, value: UOp) -> UOp:
    return make(Op.STORE, dtypes.void, (address, value))


def _listed(lines: list[UOp]) -> list[UOp]:
    """The lines, each behind what it is computed from."""
    seen: set[UOp] = set()
    found: list[UOp] = []
    for line in lines:
        for node in topological(line, enter=lambda node: node not in seen):
            if node not in seen and (node is line or node.op not in _NAMED):
                found.append(node)
            seen.add(node)
    return found


def _needed(lines: list[UOp]) -> list[UOp]:
    """The lines without values that nothing uses."""
    used: set[UOp] = set()
    found: list[UOp] = []
    for line in reversed(lines):
        if line.op in _EFFECTS or line in used:
            used.update(map(behind, line.src))
            found.append(line)
    return found[::-1]

"""What a program reads whose addresses are known when it starts, as weights of a product.

A program that `waits` is started while those before it run. It can ask for such memory, or read it
(`Program.early`) where nobody writes it meanwhile, which whoever starts the program has to know.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from weft.ir.build import Size
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.program import Parameter
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp

# Arguments of so many bytes are worth it, if each element is read so often at most.
LEAST_BYTES: Final = 1 << 16
MOST_TIMES: Final = 4
# Registers of 32 bits that hold what is read before the wait.
EARLY_WORDS: Final = 64
# How much larger weights are than what they are multiplied with.
LARGER: Final = 16
_KNOWN: Final = frozenset((Op.CONST, Op.SPECIAL, Op.VARIABLE))


def loads_at_start(
    instructions: UOp,
    parameters: Sequence[Parameter],
    groups: Sequence[Size],
    threads: Sequence[int],
) -> dict[UOp, list[UOp]]:
    """Loads of large arguments that are read about once, by argument.

    What many groups read is near after the first of them. What is small was computed just before.
    """
    sizes = [size for size in groups if isinstance(size, int)]
    if len(sizes) < len(groups):
        return {}
    count = math.prod((*sizes, *threads))
    written = {each.slot for each in parameters if each.is_written}
    known: set[UOp] = set()
    found: dict[UOp, list[UOp]] = {}
    for node in instructions.src:
        if node.op in ELEMENTWISE and all(x.op in _KNOWN or x in known for x in node.src):
            known.add(node)
        if node.op != Op.LOAD or node.src[0].op != Op.INDEX:
            continue
        memory, *where = node.src[0].src
        is_known = all(x.op in _KNOWN or x in known for x in where)
        if memory.op == Op.PARAM and memory.arg[0] not in written and is_known:
            found.setdefault(memory, []).append(node)
    chosen: dict[UOp, list[UOp]] = {}
    for memory, loads in found.items():
        # What is read under a condition is often what another group reads without one.
        loads = [load for load in loads if load.src[0].src[1].op == Op.CONST] or loads
        lanes = sum(load.dtype.lanes for load in loads)
        is_large = bytes_of(memory) >= LEAST_BYTES
        if is_large and count * lanes <= MOST_TIMES * largest_size(shape_of(memory)):
            chosen[memory] = loads
    return chosen


def early_slots(
    instructions: UOp, parameters: Sequence[Parameter], loads: dict[UOp, list[UOp]]
) -> tuple[int, ...]:
    """The arguments that are read before the wait: weights, where the rest is small.

    Whoever reads nothing but what was just written would wait for that all the same.
    """
    if not instructions.ops >> Op.SHUFFLE & 1:
        return ()
    plain = {
        memory: each
        for memory, each in loads.items()
        if all(load.src[0].src[1].op == Op.CONST for load in each)
    }
    words = sum(-(-load.dtype.itemsize // 4) for each in plain.values() for load in each)
    slots = {memory.arg[0] for memory in plain}
    rest = [each.size for each in parameters if each.is_read and each.slot not in slots]
    least = min(map(bytes_of, plain), default=0)
    is_product = any(0 < LARGER * size <= least for size in rest)
    return tuple(sorted(slots)) if is_product and words <= EARLY_WORDS else ()


def bytes_of(memory: UOp) -> int:
    """The bytes of an argument, the most where its size is symbolic."""
    return largest_size(shape_of(memory)) * memory.dtype.itemsize

"""Memory for temporaries: values that do not live at the same time share it.

In: a LINEAR of CALLs whose arguments are PARAMs. Out: the same; `context.plan` has the offset of
each temporary in one arena, and the size of the arena, so the peak is known before anything runs.
"""

from __future__ import annotations

from typing import Final

from weft.ir.ops import Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp
from weft.schedule.context import Context, Plan

ALIGNMENT: Final = 256  # what any device asks of a part of its memory


def plan_memory(schedule: UOp, context: Context) -> UOp:
    """Give each temporary the lowest place that is free for as long as it lives."""
    spans = _lifetimes(schedule, context.first_temporary)
    placed: list[tuple[int, int, int, int]] = []  # offset, end, born, dies
    offsets: dict[int, int] = {}
    for slot, (born, dies, size) in sorted(spans.items(), key=lambda item: (-item[1][2], item[0])):
        offset = 0
        for start, end, other_born, other_dies in sorted(placed):
            overlaps = born <= other_dies and other_born <= dies
            if overlaps and start < offset + size and offset < end:
                offset = end
        offsets[slot] = offset
        placed.append((offset, offset + size, born, dies))
    context.plan = Plan(offsets, max((end for _, end, _, _ in placed), default=0))
    return schedule


def _lifetimes(schedule: UOp, first: int) -> dict[int, tuple[int, int, int]]:
    """First and last kernel that touches each temporary, and its size in bytes."""
    spans: dict[int, tuple[int, int, int]] = {}
    for position, call in enumerate(schedule.src):
        for memory in call.src:
            if memory.op == Op.PARAM and memory.arg[0] >= first:
                size = largest_size(shape_of(memory)) * memory.dtype.itemsize
                aligned = max(-(-size // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
                born = spans.get(memory.arg[0], (position, 0, 0))[0]
                spans[memory.arg[0]] = (born, position, aligned)
    return spans

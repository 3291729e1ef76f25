"""Memory for temporaries: values that do not live at the same time share it.

In: a LINEAR of CALLs whose arguments are PARAMs; its arg says from which slot on these are
temporaries. Out: the same, whose arg is the bytes of one arena and the offset in it of each
temporary, by slot, so the peak is known before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from weft.ir.ops import Op
from weft.ir.shapes import Shape, largest_size, shape_of
from weft.ir.uop import UOp, make
from weft.schedule.context import ScheduleContext

ALIGNMENT: Final = 256  # what any device asks of a part of its memory


class Plan(NamedTuple):
    """Byte offsets of the temporaries, by slot, and the bytes they take together."""

    offsets: dict[int, int]
    size: int


def plan_of(schedule: UOp) -> Plan:
    """The plan that a LINEAR has as its arg."""
    size, offsets = schedule.arg if len(schedule.arg) == 2 else (0, ())
    return Plan(dict(offsets), size)


class _Interval(NamedTuple):
    """A temporary with its offset, from its first kernel to its last."""

    offset: int
    end: int
    born: int
    dies: int


def plan_memory(schedule: UOp, context: ScheduleContext) -> UOp:
    """Give each temporary the lowest offset that is free for as long as it lives."""
    plan = plan_arena([call.src for call in schedule.src], schedule.arg[0], largest_size)
    arg = (plan.size, tuple(sorted(plan.offsets.items())))
    return make(Op.LINEAR, schedule.dtype, schedule.src, arg)


def plan_arena(
    kernels: Sequence[Sequence[UOp]], first: int, count: Callable[[Shape], int]
) -> Plan:
    """The plan of kernels that have these arguments; `count` says how many elements have room.

    Slots from `first` on are temporaries. The engine plans again by the values of symbolic sizes.
    """
    spans = _lifetimes(kernels, first, count)
    planned: list[_Interval] = []
    living: list[list[_Interval]] = [[] for _ in kernels]
    offsets: dict[int, int] = {}
    for slot, (born, dies, size) in sorted(spans.items(), key=lambda item: (-item[1][2], item[0])):
        offset = 0
        for other in sorted(_neighbors(planned, living, born, dies)):
            if other.offset < offset + size and offset < other.end:
                offset = other.end
        offsets[slot] = offset
        made = _Interval(offset, offset + size, born, dies)
        planned.append(made)
        for kernel in range(born, dies + 1):
            living[kernel].append(made)
    return Plan(offsets, max((each.end for each in planned), default=0))


def _neighbors(
    planned: list[_Interval], living: list[list[_Interval]], born: int, dies: int
) -> set[_Interval]:
    """Those that live at the same time.

    Most temporaries live for a few kernels. A long schedule has thousands of them, so these must
    not look at each other.
    """
    if sum(map(len, living[born : dies + 1])) < len(planned):
        return {other for kernel in range(born, dies + 1) for other in living[kernel]}
    return {other for other in planned if born <= other.dies and other.born <= dies}


def _lifetimes(
    kernels: Sequence[Sequence[UOp]], first: int, count: Callable[[Shape], int]
) -> dict[int, tuple[int, int, int]]:
    """First and last kernel that touches each temporary, and its size in bytes."""
    spans: dict[int, tuple[int, int, int]] = {}
    for position, arguments in enumerate(kernels):
        for memory in arguments:
            if memory.op == Op.PARAM and memory.arg[0] >= first:
                known = spans.get(memory.arg[0])
                born, _, size = known or (position, position, _bytes(memory, count))
                spans[memory.arg[0]] = (born, position, size)
    return spans


def _bytes(memory: UOp, count: Callable[[Shape], int]) -> int:
    """What a temporary takes of the arena."""
    size = count(shape_of(memory)) * memory.dtype.itemsize
    return max(-(-size // ALIGNMENT) * ALIGNMENT, ALIGNMENT)

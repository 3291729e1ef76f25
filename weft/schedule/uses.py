"""What fusion remembers of values: where each is used, and where it is kept."""

from __future__ import annotations

from typing import NamedTuple

from weft.ir.uop import UOp
from weft.schedule.indexing import Place
from weft.schedule.kernel import Kernel, Path


class Use(NamedTuple):
    """One edge: in which kernel, at which place, inside which loops a value is read."""

    kernel: Kernel
    place: Place
    path: Path


class Kept(NamedTuple):
    """A value in memory: which memory, and the kernel that computes it."""

    memory: UOp
    kernel: Kernel


def free_ranges(place: Place) -> int:
    """The ranges that a place depends on, as a set of their numbers."""
    free = place.gate.ranges
    for i in place.indices:
        free |= i.ranges
    return free

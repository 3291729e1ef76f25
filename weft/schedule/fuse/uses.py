"""What fusion remembers of values: where each is used, and where it is materialized."""

from __future__ import annotations

from typing import NamedTuple

from weft.ir.build import index, true
from weft.ir.ops import Op
from weft.ir.shapes import Shape
from weft.ir.uop import UOp
from weft.rules.simplify import simplify
from weft.schedule.fuse.kernel import Kernel, Path
from weft.schedule.indexing import Address


class Use(NamedTuple):
    """One edge: in which kernel, at which address, inside which loops a value is read."""

    kernel: Kernel
    address: Address
    path: Path


class Materialized(NamedTuple):
    """A value in memory: which memory, the kernel that computes it, and the write of it."""

    memory: UOp
    kernel: Kernel
    effect: UOp  # a STORE or CALL of the tensor graph, or the value itself where it is staged


def free_ranges(address: Address) -> int:
    """The ranges that an address depends on, as a set of their numbers."""
    free = address.mask.ranges
    for i in address.indices:
        free |= i.ranges
    return free


def covers(address: Address, scope: frozenset[UOp], shape: Shape) -> bool:
    """Whether the iterations of the scope meet every element of a value exactly once."""
    if address.mask is not true() or len(scope) != sum(i.op == Op.RANGE for i in address.indices):
        return False
    return all(
        (i.op == Op.RANGE and i.src[0] is simplify(index(size))) or size == 1
        for i, size in zip(address.indices, shape, strict=True)
    )

"""A kernel while it is being put together: its ranges, their order, its stores, what it waits for.

The ranges of the stores are in an order that can still change: a fold that depends on some of them
is computed once per value of those if they come first. Such a set is a scope, and the scopes of a
kernel form a chain, each inside the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from weft.ir.bounds import bounds
from weft.ir.build import Size, index, range_
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.rules.simplify import simplify
from weft.schedule.indexing import Place

Path = tuple[UOp, ...]


class Store(NamedTuple):
    """A value written by a kernel: at `target` of the memory, for all `ranges`."""

    node: UOp  # the STORE of the tensor graph, or the value itself where it is staged
    memory: UOp
    target: Place
    value: UOp
    place: Place  # where the value is taken
    ranges: tuple[UOp, ...]


class Kernel:
    """One kernel. `needs` are the kernels it reads from, `after` those it must not overtake."""

    def __init__(self, number: int, extents: tuple[Size, ...]) -> None:
        self.number = number
        self.extents = extents
        self.ranges: list[UOp] = []
        self.indices = tuple(self.fresh(extent) for extent in extents)
        self.order: list[UOp] = [r for r in self.indices if r.op == Op.RANGE]
        self.scopes: list[frozenset[UOp]] = []
        self.stores: list[Store] = []
        self.needs: set[Kernel] = set()
        self.after: set[Kernel] = set()
        self.leaves: set[UOp] = set()
        self.has_contraction = False
        self.call: UOp | None = None  # a CALL that runs here instead of stores
        self.is_alone = False
        self.work = 0.0

    def fresh(self, extent: Size) -> UOp:
        """A new range of this kernel; the index 0 where there is only one turn."""
        if isinstance(extent, int) and extent == 1:
            return index(0)
        made = range_(len(self.ranges), simplify(index(extent)))
        self.ranges.append(made)
        return made

    def prefix(self, path: Path, place: Place) -> Path:
        """The shortest part of a loop path, from outside, that fixes a place."""
        ordered = self.sorted(path)
        free = place.gate.ranges
        for i in place.indices:
            free |= i.ranges
        depth = 0
        for position, loop in enumerate(ordered):
            if loop.ranges & free:
                depth = position + 1
        return ordered[:depth]

    def sorted(self, path: Path) -> Path:
        """A path with the ranges of the stores in their present order."""
        inside = set(path)
        own = set(self.order)
        return tuple([r for r in self.order if r in inside] + [r for r in path if r not in own])

    def can_pin(self, scope: frozenset[UOp]) -> bool:
        return all(scope <= other or other <= scope for other in self.scopes)

    def pin(self, scope: frozenset[UOp]) -> None:
        """Keep a set of store ranges together outside all others."""
        if scope not in self.scopes:
            self.scopes.append(scope)
        self.order.sort(key=lambda loop: -sum(loop in other for other in self.scopes))

    def parallel(self, path: Iterable[UOp]) -> int:
        """How many turns of a path are independent of each other."""
        own = set(self.order)
        return math.prod(extent(loop) for loop in path if loop in own)

    def depends_on(self, other: Kernel) -> bool:
        """Whether this kernel can only run once the other has run; itself included."""
        seen: set[Kernel] = set()
        stack = [self]
        while stack:
            kernel = stack.pop()
            if kernel is other:
                return True
            if kernel not in seen:
                seen.add(kernel)
                stack.extend(kernel.needs | kernel.after)
        return False

    def __repr__(self) -> str:
        return f"kernel {self.number}"


def extent(loop: UOp) -> int:
    """The greatest number of turns of a range."""
    return bounds(loop)[1] + 1


def turns(path: Iterable[UOp]) -> int:
    return math.prod(map(extent, path))

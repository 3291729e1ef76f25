"""A kernel while it is being put together: its ranges, their order, its stores, what it waits for.

The ranges of the stores are in an order that can still change: a reduction that depends on some of
them is computed once per value of those if they come first. Such a set is a scope, and the scopes
of a kernel form a chain, each inside the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from weft.ir.bounds import bounds
from weft.ir.build import Size, all_of, index, range_, true
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.rules.simplify import simplify
from weft.schedule.indexing import Address

Path = tuple[UOp, ...]


class Store(NamedTuple):
    """A value written by a kernel: at `target` of the memory, for all `ranges`."""

    node: UOp  # the STORE of the tensor graph, or the value itself where it is staged
    memory: UOp
    target: Address
    value: UOp
    address: Address  # where the value is taken
    ranges: tuple[UOp, ...]

    @property
    def is_scatter(self) -> bool:
        """Whether the value is reduced into what is in memory, iteration by iteration."""
        return self.node.op == Op.STORE and self.node.src[1].op == Op.SCATTER


class Form(NamedTuple):
    """How a kernel walks an axis: in blocks of some size, backwards."""

    block: int | None = None
    is_backward: bool = False


NO_FORMS: Final[Mapping[int, Form]] = MappingProxyType({})


class Kernel:
    """One kernel. `needs` are the kernels it reads from, `after` those it must not overtake.

    `address` is the element of its first value that an iteration of its loops computes.
    """

    def __init__(
        self, number: int, extents: tuple[Size, ...], forms: Mapping[int, Form] = NO_FORMS
    ) -> None:
        self.number = number
        self.extents = extents
        self.ranges: list[UOp] = []
        self.ordered: set[UOp] = set()  # loops that a scan runs over
        masks: list[UOp] = []
        indices = [
            self._walk(extent, forms.get(axis), masks) for axis, extent in enumerate(extents)
        ]
        self.address = Address(tuple(indices), all_of(*masks))
        self.order: list[UOp] = list(self.ranges)
        self.scopes: list[frozenset[UOp]] = []
        self.stores: list[Store] = []
        self.needs: set[Kernel] = set()
        self.after: set[Kernel] = set()
        self.waiting = 1 << number  # all kernels that wait for it, and itself, as bits
        self.inputs = 0  # the memory below its values, as bits
        self.has_contraction = False
        self.code = 0  # ops of what is computed in it, roughly
        self.call: UOp | None = None  # a CALL that runs here instead of stores
        self.is_alone = False
        self.work = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether it writes no element."""
        return self.call is None and 0 in self.extents

    def fresh(self, extent: Size) -> UOp:
        """A new range of this kernel; the index 0 where there is only one iteration."""
        size = simplify(index(extent))  # of a variable with one value, that value
        if size.op == Op.CONST and size.arg == 1:
            return index(0)
        made = range_(len(self.ranges), size)
        self.ranges.append(made)
        return made

    def _walk(self, extent: Size, form: Form | None, masks: list[UOp]) -> UOp:
        """The index of an axis; past its end in the last block is a mask."""
        if form is None:
            return self.fresh(extent)
        walked = self.fresh(extent) if form.block is None else None
        if walked is None:
            assert form.block is not None
            blocks = -(-known_extent(extent) // form.block)
            walked = simplify(self.fresh(blocks) * form.block + self.fresh(form.block))
            if known_extent(extent) % form.block:
                masks.append(simplify(walked < index(extent)))
        return simplify(index(extent) - 1 - walked) if form.is_backward else walked

    def reachable(self, address: Address, shape: tuple[Size, ...]) -> Address:
        """An address of a value of this shape, without the kernel's mask where it needs none.

        The mask keeps iterations past the end of an axis out. A value that all of them see is
        computed where the mask is not known yet.
        """
        mask = self.address.mask
        is_ours = address.mask is mask and mask.op != Op.CONST
        if not is_ours or not all(
            _is_inside(i, n) for i, n in zip(address.indices, shape, strict=True)
        ):
            return address
        free = 0
        for i in address.indices:
            free |= i.ranges
        return address if mask.ranges & ~free == 0 else Address(address.indices, true())

    def prefix(self, path: Path, address: Address) -> Path:
        """The shortest part of a loop path, from outside, that fixes an address."""
        ordered = self.sorted(path)
        free = address.mask.ranges
        for i in address.indices:
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
        """How many iterations of a path are independent of each other."""
        own = set(self.order) - self.ordered
        return math.prod(extent(loop) for loop in path if loop in own)

    def is_plain(self) -> bool:
        """Whether it walks each axis by one loop."""
        return all(i.op in (Op.RANGE, Op.CONST) for i in self.address.indices)

    def element(self, shape: tuple[Size, ...]) -> Address:
        """Its element in a value that has a shape like its extents, but for axes of size 1."""
        if self.extents == shape:
            return self.address
        walked = zip(self.address.indices, self.extents, strict=True)
        loops = iter([i for i, size in walked if size != 1])
        indices = [index(0) if size == 1 else next(loops) for size in shape]
        return Address(tuple(indices), self.address.mask)

    def innermost(self) -> UOp | None:
        """The loop along the last axis of what the kernel writes, where there is one."""
        indices = [i for i in self.address.indices if i.op != Op.CONST]
        return indices[-1] if indices and indices[-1].op == Op.RANGE else None

    def __repr__(self) -> str:
        return f"kernel {self.number}"


def scatter_kernel(number: int, scatter: UOp) -> Kernel:
    """A kernel over the updates of a SCATTER, in order but along axes that are not indexed."""
    value, updates, _, *indices = scatter.src
    shape = shape_of(updates)
    kernel = Kernel(number, shape)
    kernel.is_alone = True
    count = len(shape) - len(shape_of(value)) + len(indices)
    kernel.ordered.update(i for i in kernel.address.indices[:count] if i.op == Op.RANGE)
    kernel.order.sort(key=lambda loop: loop in kernel.ordered)
    return kernel


def extent(loop: UOp) -> int:
    """The greatest number of iterations of a range."""
    return bounds(loop)[1] + 1


def _is_inside(i: UOp, size: Size) -> bool:
    low, high = bounds(i)
    return isinstance(size, int) and low >= 0 and high < size


def known_extent(size: Size) -> int:
    assert isinstance(size, int), "an axis that is walked in blocks has a known size"
    return size


def iterations(path: Iterable[UOp]) -> int:
    return math.prod(map(extent, path))

"""Chains that share a product and its loops are stored by one kernel, which computes it once.

The gradients of keys and values of attention both need the weights: for each key, along all
queries. Matrix units have room for the sums of both, so one kernel has five products where two
would have six or seven, and reads queries and slopes once.

`Materializer` asks for each value in memory that ends a chain. Whether loops are the same is seen
where the product that is shared is looked at: at the keys that both sum over, and otherwise at the
axes of what they store, but for the columns, which each has of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from weft.ir.build import index, range_, true
from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.schedule.fuse.chains.chain import Chain
from weft.schedule.fuse.chains.chains import Chains, product_addresses
from weft.schedule.fuse.kernel import Kernel, extent
from weft.schedule.fuse.order import waiting_for
from weft.schedule.indexing import Address, everywhere, through

# Results of a kernel, and columns of them: more sums leave no registers for scores.
MOST_RESULTS: Final = 2
MOST_COLUMNS: Final = 64


class _End(NamedTuple):
    """A chain whose result is stored: where the kernel is at the result."""

    chain: Chain
    kernel: Kernel
    address: Address


class ChainPairs:
    """The kernels that chains end in."""

    def __init__(self, chains: Chains) -> None:
        self._chains = chains
        self._ends: list[_End] = []

    def note(self, node: UOp, kernel: Kernel, address: Address) -> None:
        """Remember a kernel that stores a value."""
        found = self._end_of(node, address) if self._chains.is_on_units else None
        if found is not None:
            self._ends.append(_End(*found[:1], kernel, found[1]))

    def beside(self, node: UOp, readers: Iterable[Kernel]) -> tuple[Kernel, Address] | None:
        """A kernel that computes the weights of a value anyway, and its address there."""
        if not self._ends:
            return None
        shape = shape_of(node)
        axes = enumerate(shape)
        loops = tuple([index(0) if size == 1 else range_(axis, size) for axis, size in axes])
        found = self._end_of(node, everywhere(loops))
        if found is None:
            return None
        chain, address = found
        waiting = waiting_for(readers)
        for end in self._ends:
            is_full = len([each for each in self._ends if each.kernel is end.kernel])
            if is_full >= MOST_RESULTS or waiting >> end.kernel.number & 1 or end.kernel.is_alone:
                continue
            indices = _indices(end, chain, address)
            if indices is not None:
                self._chains.beside.add(chain.result)
                at = [indices.get(axis, index(0)) for axis in range(len(shape))]
                return end.kernel, everywhere(tuple(at))
        return None

    def _end_of(self, node: UOp, address: Address) -> tuple[Chain, Address] | None:
        """The chain that a value ends, and the address of its result where that is one element."""
        while node not in self._chains.results:
            if node.op in MOVEMENT:
                address = through(node, address)
            elif node.op != Op.CAST:
                return None
            node = node.src[0]
        return (self._chains.results[node], address) if address.mask is true() else None


def _indices(end: _End, chain: Chain, address: Address) -> dict[int, UOp] | None:
    """For each axis of a value the range of a kernel, if both chains have the same loops."""
    axes, others = _axes_of_product(end.chain, chain)
    if not axes:
        return None
    found: dict[int, UOp] = {}
    for there, here in zip(axes, others, strict=True):
        (keys,), (own_keys,) = end.chain.result.arg[1], chain.result.arg[1]
        if (there == keys) != (here == own_keys):
            return None
        if there != keys and not _add(found, address.indices[here], end.address.indices[there]):
            return None
    columns = [i for i in address.indices if i.op == Op.RANGE and i.arg not in found]
    if any(extent(loop) > MOST_COLUMNS for loop in columns):
        return None
    left = [loop for loop in end.kernel.order if loop not in found.values()]
    if len(columns) != 1 or len(left) != 1 or not _add(found, columns[0], left[0]):
        return None
    return found


def _add(found: dict[int, UOp], loop: UOp, other: UOp) -> bool:
    """Note that a loop is another one; False if it cannot be."""
    if loop.op == Op.CONST:
        return loop is other
    is_same = loop.op == other.op == Op.RANGE and loop.src[0] is other.src[0]
    return is_same and found.setdefault(loop.arg, other) is other


def _axes_of_product(one: Chain, other: Chain) -> tuple[list[int], list[int]]:
    """The axes of two results that a product which they share has; nothing if there is none."""
    addresses = product_addresses(one), product_addresses(other)
    for product in one.products:
        if product not in other.products or any(address is None for address in addresses):
            continue
        pairs = [
            (i, j)
            for i, j in zip(
                *(address[product].indices for address in addresses if address), strict=True
            )
            if i.op != Op.CONST or j.op != Op.CONST
        ]
        if pairs and all(i.op == j.op == Op.RANGE for i, j in pairs):
            return [i.arg for i, _ in pairs], [j.arg for _, j in pairs]
    return [], []

"""Memory behind views, versions and gathers: which memory a node means, and where in it.

The schedule asks these questions of the tensor graph in every pass. A gather is an index that is
loaded; until the kernel is built, a placeholder stands for it in the index arithmetic.
"""

from __future__ import annotations

from typing import Final

from weft.ir.build import index
from weft.ir.dtypes import dtypes
from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.ir.views import memory_of
from weft.ir.walk import topological
from weft.rules.simplify import simplify
from weft.schedule.indexing import Address, through

MEMORY: Final = frozenset((Op.PARAM, Op.BUFFER, Op.AFTER))
CALLS: Final = frozenset((Op.CALL, Op.ITEM))
VIEWS: Final = MOVEMENT | {Op.INDEX}


def gather_address(node: UOp, address: Address) -> tuple[Address, Address]:
    """The address in the source of an INDEX, and the address in its index tensors.

    The loaded indices are not known yet, so a placeholder stands for each: the element of a PARAM
    that no program has. `Builder` puts the loaded value there.
    """
    source, _, *indices = node.src
    rank = len(shape_of(node)) - (len(shape_of(source)) - len(indices))
    at = address.indices[:rank]
    loaded = [placeholder(node, axis, at, address.mask) for axis in range(len(indices))]
    mask = address.mask
    for i, size in zip(loaded, shape_of(source), strict=False):
        mask = mask & ~(i < 0) & (i < index(size))
    return Address((*loaded, *address.indices[rank:]), simplify(mask)), Address(at, address.mask)


def placeholder(node: UOp, axis: int, at: tuple[UOp, ...], mask: UOp) -> UOp:
    """What index number `axis` of a gather loads at an address, as an index expression."""
    slot = (node, axis)
    memory = make(Op.PARAM, dtypes.int64, (), (slot, tuple(1 << 40 for _ in at)))
    address = make(Op.INDEX, dtypes.int64, (memory, mask, *at))
    return simplify(make(Op.LOAD, dtypes.int64, (address,)).cast(dtypes.index))


def written_slots(body: UOp) -> frozenset[int]:
    """The parameters that the kernel of a call writes to."""
    if body.op == Op.PROGRAM:
        return frozenset(body.arg[4])
    stores = [node for node in topological(body) if node.op == Op.STORE]
    return frozenset(memory_of(store.src[0]).arg[0] for store in stores)


def target_of(effect: UOp) -> UOp:
    """The view of memory that a STORE writes to: where a SCATTER reduces its updates in, that."""
    address, value = effect.src
    if value.op != Op.SCATTER:
        return address
    return make(Op.INDEX, address.dtype, (address, *value.src[2:]))


def resolve_view(view: UOp, address: Address) -> tuple[UOp, Address]:
    """The memory behind a view, and where in it an address of the view lies."""
    while view.op in VIEWS:
        address = (
            through(view, address) if view.op in MOVEMENT else gather_address(view, address)[0]
        )
        view = view.src[0]
    return view, address

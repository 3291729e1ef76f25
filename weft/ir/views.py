"""What a view is of: the ways back from an address to the version and the memory behind it.

An address is memory, seen through movement ops and indices. A version of memory is the memory
itself, or AFTER writes to it. In kernels and programs AFTER stands on memory alone, and these hold
too.
"""

from __future__ import annotations

from weft.ir.ops import MOVEMENT, Op
from weft.ir.uop import UOp


def unmoved(node: UOp) -> UOp:
    """The value that movement ops move."""
    while node.op in MOVEMENT:
        node = node.src[0]
    return node


def version_of(address: UOp) -> UOp:
    """What an address is a view of, through movement ops and indices: a version, or a value."""
    while address.op in MOVEMENT or address.op == Op.INDEX:
        address = address.src[0]
    return address


def behind(node: UOp) -> UOp:
    """What a node is once the order of effects is left out: of a version, its memory."""
    while node.op == Op.AFTER:
        node = node.src[0]
    return node


def memory_of(address: UOp) -> UOp:
    """The memory that an address is in, whichever version it is of."""
    while address.op in MOVEMENT or address.op == Op.INDEX or address.op == Op.AFTER:
        address = address.src[0]
    return address


def views_between(address: UOp) -> tuple[UOp, list[UOp]]:
    """What an address is a view of, and the views that lead from there to the address."""
    views: list[UOp] = []
    while address.op in MOVEMENT or address.op == Op.INDEX:
        views.append(address)
        address = address.src[0]
    return address, views[::-1]

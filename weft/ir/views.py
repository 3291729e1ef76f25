"""What a view is of: the ways back from a place to the version and the memory behind it.

A place is memory, seen through movement ops and indices. A version of memory is the memory itself,
or AFTER writes to it. In kernels and programs AFTER stands on memory alone, and these hold too.
"""

from __future__ import annotations

from weft.ir.ops import MOVEMENT, Op
from weft.ir.uop import UOp


def unmoved(node: UOp) -> UOp:
    """The value that movement ops move."""
    while node.op in MOVEMENT:
        node = node.src[0]
    return node


def version_of(place: UOp) -> UOp:
    """What a place is a view of, through movement ops and indices: a version, or a value."""
    while place.op in MOVEMENT or place.op == Op.INDEX:
        place = place.src[0]
    return place


def behind(node: UOp) -> UOp:
    """What a node is once the order of effects is left out: of a version, its memory."""
    while node.op == Op.AFTER:
        node = node.src[0]
    return node


def memory_of(place: UOp) -> UOp:
    """The memory that a place is in, whichever version it is of."""
    while place.op in MOVEMENT or place.op == Op.INDEX or place.op == Op.AFTER:
        place = place.src[0]
    return place


def views_between(place: UOp) -> tuple[UOp, list[UOp]]:
    """What a place is a view of, and the views that lead from there to the place."""
    views: list[UOp] = []
    while place.op in MOVEMENT or place.op == Op.INDEX:
        views.append(place)
        place = place.src[0]
    return place, views[::-1]

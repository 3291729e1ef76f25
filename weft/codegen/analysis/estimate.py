"""What a run of a kernel costs: arithmetic, and bytes of global memory read and written.

Counted on the kernel before opts, because padding and repeated work are not part of what it does.
A value counts once per iteration of the loops it depends on. Memory counts once per distinct
element at most where indices are computed from ranges, and once per access where they are loaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Final

from weft.codegen.analysis.loops import own_ranges, ranges_of
from weft.ir.bounds import bounds
from weft.ir.dtypes import INDEX
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.program import Estimate
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp, range_ids
from weft.ir.views import behind
from weft.ir.walk import topological

_FREE: Final = frozenset((Op.CAST, Op.BITCAST))


def estimate(kernel: UOp) -> Estimate:
    """Count a kernel, each symbolic size at its greatest."""
    extents = {number: bounds(r.src[0])[1] for number, r in ranges_of(kernel).items()}

    def iterations(ranges: int) -> int:
        return math.prod([extents[number] for number in range_ids(ranges)])

    operations = 0
    read: dict[UOp, int] = {}
    written: dict[UOp, int] = {}
    for node in topological(kernel):
        if node.op in ELEMENTWISE - _FREE and node.src[-1].dtype.kind != INDEX:
            operations += iterations(node.ranges)
        elif node.op == Op.REDUCE:
            operations += iterations(node.src[0].ranges | _own(node))
        elif node.op == Op.SCAN:
            operations += iterations(node.ranges)
        elif node.op == Op.LOAD:
            _count(node.src[0], read, iterations)
        elif node.op == Op.STORE:
            _count(node.src[0], written, iterations)
    return Estimate(operations, _bytes(read), _bytes(written))


def _own(node: UOp) -> int:
    return sum(1 << r.arg for r in own_ranges(node))


def _count(address: UOp, found: dict[UOp, int], iterations: Callable[[int], int]) -> None:
    """Add the elements of an address to what is known of its memory."""
    memory = behind(address.src[0])
    indices = address.src[2:]
    accesses = iterations(reduce(or_, [each.ranges for each in indices], 0))
    count = found.get(memory, 0)
    if not reduce(or_, [each.ops for each in indices], 0) >> Op.LOAD & 1:
        spans = math.prod([high - low + 1 for low, high in map(bounds, indices)])
        size = largest_size(shape_of(memory))
        found[memory] = max(count, min(count + min(accesses, spans), size))
    else:
        found[memory] = count + accesses


def _bytes(found: dict[UOp, int]) -> int:
    return sum(count * memory.dtype.itemsize for memory, count in found.items())

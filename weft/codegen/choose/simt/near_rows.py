"""Rows of which one reads what another one does, at a fixed distance: a group has both.

So are the halves of each head that a rotation of queries and keys mixes: each result needs its own
product with a row of weights and that of another row. What two rows of a group read comes from far
only once.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.codegen.analysis.loops import THREAD
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simt.share import addresses_of
from weft.codegen.lower.flatten_memory import flat_index
from weft.codegen.opts.table import Bind, Split
from weft.ir.linear import linear
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.ir.walk import topological
from weft.rules.simplify import simplify


def share_near_rows(chooser: Chooser, number: int, threads: int, most: int) -> bool:
    """Let a group of at most `most` threads have the rows of a loop that read the same.

    False, and nothing taken, where there are none, or not all of them fit.
    """
    extent, distance = chooser.extent(number) or 1, _distance(chooser, number)
    if not distance or extent % distance or extent // distance * threads > most:
        return False
    return extent // distance > 1 and chooser.take(Split(number, distance), Bind(number, THREAD))


def _distance(chooser: Chooser, number: int) -> int:
    """How far rows are apart that read the same; 0 if none do."""
    found: dict[tuple[UOp, tuple[tuple[int, int], ...]], set[int]] = {}
    rolled: set[int] = set()
    for access in addresses_of(chooser):
        memory, stride = behind(access.node.src[0]), access.stride(number)
        rolled.update(_rolls(access.node, number, chooser.extent(number)))
        if memory.op != Op.PARAM or not stride or access.tangled:
            continue
        start, _ = linear(simplify(flat_index(access.node.src[2:], shape_of(memory))))
        if start % stride == 0:
            key = memory, tuple(sorted(access.strides.items()))
            found.setdefault(key, set()).add(start // stride)
    apart = [abs(a - b) for starts in found.values() for a in starts for b in starts if a != b]
    return min((*rolled, *apart), default=0)


def _rolls(address: UOp, number: int, extent: int | None) -> Iterator[int]:
    """How far an address rolls a range: it reads `(r + distance) % extent`."""
    for node in topological(*address.src[2:]):
        if node.op == Op.FLOORMOD and node.src[1].op == Op.CONST and node.src[1].arg == extent:
            start, terms = linear(node.src[0])
            if [(term.op, term.arg, factor) for term, factor in terms] == [(Op.RANGE, number, 1)]:
                yield start

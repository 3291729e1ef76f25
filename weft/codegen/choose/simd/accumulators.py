"""The part of the heuristic that gives a reduction over blocks enough accumulators.

Packed weights lie in blocks, and a reduction over them runs over short ranges: all of a range are
lanes, or few iterations are left of it. Each sum would wait for the one before. Further
accumulators come from the ranges around the lanes, the innermost first, so that memory is still
read in the order that it has; several rows at once would be several streams, each too short to
fetch ahead.
"""

from __future__ import annotations

from typing import Final

from weft.codegen.analysis.loops import LOOP, kinds_of, nodes_of, own_ranges
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simd.reductions import MOST_NODES, copies_of
from weft.codegen.opts.table import Unroll
from weft.ir.ops import TRANSCENDENTAL, Op
from weft.ir.uop import UOp
from weft.ir.walk import topological

# The share of the registers that sums may take; the rest holds what is unpacked for them.
SHARE: Final = 3 / 8


def add_accumulators(chooser: Chooser, lanes: int) -> None:
    """Copies of an iteration of the reduction with these lanes: of all of a range, or some.

    before:
      r0 < 18
      r1 < 2
      reduce ADD over r0, r1, r2 (lanes)

    after:
      r0 < 3
      reduce ADD over r0, r1 (2 copies), r2 (lanes), r3 (6 copies)
    """
    reduction = _reduction_over(chooser, lanes)
    nodes, copies = topological(reduction.src[0]), copies_of(chooser, reduction)
    if copies >= chooser.target.compute.latency or any(
        node.op in TRANSCENDENTAL for node in nodes
    ):
        return
    own = {r.arg for r in own_ranges(reduction)}
    kinds = kinds_of(chooser.kernel)
    most = min(int(chooser.target.vectors_in_registers * SHARE), MOST_NODES // len(nodes))
    for number in [n for n in reversed(kinds) if n in own and kinds[n] == LOOP]:
        extent = chooser.extent(number) or 1
        some = max(n for n in range(1, max(most // copies, 1) + 1) if extent % n == 0)
        if some > 1 and chooser.split_and(number, some, "clamp", Unroll) >= 0:
            copies *= some
        if some < extent:
            return


def _reduction_over(chooser: Chooser, number: int) -> UOp:
    """The reduction that closes a range."""
    return next(
        node
        for node in nodes_of(chooser.kernel)
        if node.op == Op.REDUCE and any(r.arg == number for r in own_ranges(node))
    )

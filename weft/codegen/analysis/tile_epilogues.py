"""What a kernel does with each sum of a tile, as time: it decides which tiles are fastest.

`tensor_core` asks. While a group computes and stores, it multiplies nothing. Where several groups
share a multiprocessor, others multiply meanwhile, so much of that time is hidden; such tiles are
smaller, and are worth it where much follows a short sum.
"""

from __future__ import annotations

from typing import Final

from weft.codegen.analysis.contraction_shape import ContractionShape
from weft.codegen.analysis.loops import nodes_of
from weft.ir.dtypes import FLOAT
from weft.ir.ops import ELEMENTWISE, TRANSCENDENTAL, Op
from weft.ir.uop import UOp
from weft.target.matrix import MatrixUnit
from weft.target.memory import GLOBAL
from weft.target.target import Target

# Bytes of a result that the overhead of a tile has already.
STORED: Final = 2
_FREE: Final = frozenset((Op.CAST, Op.BITCAST, Op.WHERE))
_SLOW: Final = TRANSCENDENTAL | {Op.DIV, Op.SQRT}


def epilogue_bytes(
    kernel: UOp, shape: ContractionShape, unit: MatrixUnit, target: Target
) -> float:
    """What follows a sum, as bytes of the sum that a unit multiplies in that time."""
    rows, columns, reduced = (
        sum(1 << number for number in numbers)
        for numbers in (shape.rows, shape.columns, shape.reduced)
    )
    stores = [node for node in kernel.src if node.op == Op.STORE]
    moved = sum(store.src[1].dtype.itemsize for store in stores) - STORED
    time = 0.0
    for node in nodes_of(kernel):
        if not (node.ranges & rows and node.ranges & columns) or node.ranges & reduced:
            continue
        if node.op == Op.LOAD:
            moved += node.dtype.itemsize
        elif node.op in ELEMENTWISE and node.op not in _FREE and node.dtype.kind == FLOAT:
            time += target.costs.transcendental if node.op in _SLOW else target.costs.op
    time += max(moved, 0) * target.memory(GLOBAL).cost
    rate = (
        target.peaks.reached * unit.rate / target.units / 1e9
    )  # of one multiprocessor, in a nanosecond
    item = unit.inputs[0][0].itemsize
    return time * rate * item / 2

"""Columns that two reductions need, as a mean and a variance, in parts that stay near.

A normalization over channels sums each of them, and then squares of what is left without the mean.
`split_reductions` asks here how many parts these are done in, both alike: a group of threads keeps
its part in registers, or in the cache beside them, and gets it from memory once for both;
`split_joins` says how parts are joined.
"""

from __future__ import annotations

import math
from typing import Final

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.layout.view_axes import sizes_of
from weft.schedule.reductions.split_joins import reference_of
from weft.target.compute import Simt
from weft.target.target import Target

# Rows of a part that a group of threads keeps, of as many columns as lie in a line of memory. All
# of its threads have equally many.
KEPT_ROWS: Final = (256, 128, 64)
# Groups that each multiprocessor has at least, where parts can be shorter.
FILLED_UNITS: Final = 2


def parts_of_columns(root: UOp, target: Target) -> dict[UOp, int]:
    """How many parts joined reductions along neighboring axes have, and those that they need."""
    found: dict[UOp, int] = {}
    for node in topological(root):
        count = _count(node, target) if node.op == Op.REDUCE else 0
        reference = reference_of(node) if count > 1 else None
        if reference is not None:
            found[node] = found[reference] = count
    return found


def _count(node: UOp, target: Target) -> int:
    """How many parts the rows of a long reduction have; 0 where no group could keep one."""
    compute, axes, sizes = target.compute, node.arg[1], sizes_of(node.src[0])
    is_long = math.prod(sizes) >= target.costs.least_split
    if not isinstance(compute, Simt) or not sizes or not is_long:
        return 0
    inside = math.prod(sizes[axes[-1] + 1 :])
    strips = inside * node.src[0].dtype.itemsize // compute.line_bytes
    whole = math.prod(sizes[axis] for axis in axes)
    lengths = [n for n in KEPT_ROWS if whole % n == 0]
    is_row = list(axes) == list(range(axes[0], axes[-1] + 1))
    if not lengths or not strips or not is_row or inside == 1:
        return 0
    groups = math.prod(sizes[: axes[0]]) * strips * whole
    wanted = FILLED_UNITS * compute.units
    return int(whole // next((n for n in lengths if groups // n >= wanted), lengths[-1]))

"""Loops over updates have no iteration where a condition that they do not change is false.

In and Out: a kernel of KERNEL_SPEC. `choose_opts` calls it behind all opts, because a range whose
extent depends on memory cannot be split.

    store p[i] if (load w[c] != 0) & m(j) = … for c, j      (j ordered, below 32)
    ->  j ends at where(load w[c] != 0, 32, 0), and the condition is gone from the mask
"""

from __future__ import annotations

from typing import Final

from weft.codegen.analysis.loops import (
    ORDERED,
    UPCAST,
    extent_of,
    kinds_of,
    loops_of,
    nodes_of,
    own_ranges,
    ranges_of,
    replace_ranges,
)
from weft.ir.build import all_of, index, range_, where
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.views import behind
from weft.ir.walk import substitute, topological
from weft.rules.logic import conditions
from weft.rules.simplify import simplify

# Iterations of a loop that is worth a branch around it.
LEAST_LOOP: Final = 8


def skip_updates(kernel: UOp) -> UOp:
    """The kernel whose innermost loop over updates is left out where no update counts."""
    kinds = kinds_of(kernel)
    loops = [number for number, kind in kinds.items() if kind not in UPCAST]
    if not loops or kinds[loops[-1]] != ORDERED:
        return kernel
    loop = ranges_of(kernel)[loops[-1]]
    closers = [node for node in nodes_of(kernel) if loop in own_ranges(node)]
    if (extent_of(loop) or 0) < LEAST_LOOP or [node.op for node in closers] != [Op.STORE]:
        return kernel
    (store,) = closers
    address = store.src[0]
    inside = 1 << loop.arg | sum(1 << n for n, kind in kinds.items() if kind in UPCAST)
    found = conditions(address.src[1])
    fixed = [each for each in found if not each.ranges & inside and _is_read(each, address)]
    if not fixed:
        return kernel
    rest = all_of(*(each for each in found if each not in fixed))
    changed = make(Op.INDEX, address.dtype, (address.src[0], rest, *address.src[2:]))
    kernel = substitute(kernel, {address: changed})
    extent = simplify(where(all_of(*fixed), loop.src[0], index(0)))
    ended = range_(loop.arg, extent)
    return replace_ranges(kernel, {loop: ended}, {loop: (ended,)}, loops_of(kernel))


def _is_read(condition: UOp, address: UOp) -> bool:
    """Whether a condition is one of memory, which the store does not write."""
    loads = [node for node in topological(condition) if node.op == Op.LOAD]
    written = behind(address.src[0])
    return bool(loads) and all(behind(each.src[0].src[0]) is not written for each in loads)

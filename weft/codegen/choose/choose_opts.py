"""The pass that gives a kernel its recipe.

In and Out: a kernel of KERNEL_SPEC. The opts are those that were asked for, else what the
heuristic chooses; NOOPT=1 takes none. Under SPEC every access is proven in bounds afterwards.
"""

from __future__ import annotations

import math

from weft.codegen.analysis.loops import THREAD, extent_of, kinds_of, ranges_of
from weft.codegen.analysis.verify_in_bounds import verify_in_bounds
from weft.codegen.choose import heuristic
from weft.codegen.context import Context
from weft.codegen.lower.hardware import MOST_AXES, thread_axes
from weft.codegen.opts.table import apply_opts
from weft.ir.uop import UOp
from weft.support.errors import NotSupported
from weft.support.settings import settings


def choose_opts(kernel: UOp, context: Context) -> UOp:
    """Apply the opts of this kernel."""
    opts = () if settings.NOOPT else context.opts
    if opts is None:
        opts, result = heuristic.choose_opts(kernel, context.target)
    else:
        result = apply_opts(kernel, opts)
    context.chosen = opts
    _require_threads(result, context)
    if settings.SPEC:
        verify_in_bounds(result, "choose-opts")
    return result


def _require_threads(kernel: UOp, context: Context) -> None:
    """Refuse threads that the target does not have."""
    threads = [number for number, kind in kinds_of(kernel).items() if kind == THREAD]
    if threads and not context.target.has_groups:
        raise NotSupported(
            f"threads inside a group, on {context.target.name}",
            law="a target without groups runs the turns of grid loops on its threads",
        )
    ranges = ranges_of(kernel)
    axes = {axis: extent_of(ranges[number]) for number, axis in thread_axes(kernel).items()}
    count = math.prod(extent or 1 for extent in axes.values())
    grid = context.target.grid
    is_long = any((axes.get(n) or 1) > limit for n, limit in enumerate(grid.thread_limits))
    if count > grid.group_threads or len(axes) > MOST_AXES or is_long:
        limits = f", along them {grid.thread_limits}" if grid.thread_limits else ""
        raise NotSupported(
            f"{count} threads on {len(axes)} axes of a group, on {context.target.name}",
            law=f"a group has {MOST_AXES} axes and {grid.group_threads} threads at most{limits}",
        )

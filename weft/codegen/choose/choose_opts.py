"""The pass that gives a kernel its recipe.

In and Out: a kernel of KERNEL_SPEC. The opts are those that were asked for, else what the
heuristic chooses; NOOPT=1 takes none. Under SPEC every access is proven in bounds afterwards.
"""

from __future__ import annotations

import math

from weft.codegen.analysis.loops import THREAD, kinds_of
from weft.codegen.analysis.verify_in_bounds import verify_in_bounds
from weft.codegen.choose import heuristic
from weft.codegen.context import Context
from weft.codegen.lower.hardware import MOST_AXES, fits_a_group, group_threads
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
    if not fits_a_group(kernel, context.target):
        axes, grid = group_threads(kernel), context.target.grid
        count = math.prod(axes.values())
        limits = f", along them {grid.thread_limits}" if grid.thread_limits else ""
        raise NotSupported(
            f"{count} threads on {len(axes)} axes of a group, on {context.target.name}",
            law=f"a group has {MOST_AXES} axes and {grid.group_threads} threads at most{limits}",
        )

"""The pass that gives a kernel its recipe.

In and Out: a kernel of KERNEL_SPEC. The opts are those that were asked for, else what the
heuristic chooses; NOOPT=1 takes none. Under SPEC every access is proven in bounds afterwards.
"""

from __future__ import annotations

from weft.codegen import heuristic
from weft.codegen.context import Context
from weft.codegen.loops import THREAD, extent_of, kinds_of, ranges_of
from weft.codegen.opts import apply_opts
from weft.codegen.verify_in_bounds import verify_in_bounds
from weft.ir.uop import UOp
from weft.support.errors import NotSupported
from weft.support.settings import settings


def choose_opts(kernel: UOp, context: Context) -> UOp:
    """Apply the opts of this kernel."""
    if context.opts is not None or settings.NOOPT:
        context.chosen = context.opts or ()
        result = apply_opts(kernel, context.chosen)
    else:
        context.chosen, result = heuristic.choose_opts(kernel, context.target)
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
    for number in threads:
        if (extent_of(ranges[number]) or 0) > context.target.group_limit:
            raise NotSupported(
                f"{extent_of(ranges[number])} threads in a group, on {context.target.name}",
                law=f"a group has at most {context.target.group_limit} threads",
            )

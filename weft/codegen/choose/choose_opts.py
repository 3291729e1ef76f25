"""The pass that gives a kernel its opts.

In and Out: a kernel of KERNEL_SPEC. The opts are those that were asked for, else what the
heuristic chooses; NOOPT=1 takes none. Under SPEC every access is proven in bounds afterwards.
"""

from __future__ import annotations

import math

from weft.codegen.analysis.loops import THREAD, kinds_of, nodes_of
from weft.codegen.analysis.verify_in_bounds import verify_in_bounds
from weft.codegen.choose import heuristic
from weft.codegen.choose.simt.tensor_core import unit_for
from weft.codegen.context import CodegenContext
from weft.codegen.lower.hardware import MOST_AXES, fits_a_group, group_threads
from weft.codegen.lower.skip_updates import skip_updates
from weft.codegen.lower.trim_loops import trim_loops
from weft.codegen.opts.table import apply_opts
from weft.ir.ops import Op
from weft.ir.program import DYNAMIC_ALIGNMENT
from weft.ir.reduction.contract import contract_parts
from weft.ir.spec.program import DYNAMIC
from weft.ir.uop import UOp
from weft.support.errors import NotSupported
from weft.support.settings import settings


def choose_opts(kernel: UOp, context: CodegenContext) -> UOp:
    """Apply the opts of this kernel."""
    opts = () if settings.NOOPT else context.opts
    if opts is None:
        opts, result = heuristic.choose_opts(kernel, context.target)
    else:
        result = apply_opts(kernel, opts)
    context.chosen = opts
    result = result if settings.NOOPT else skip_updates(trim_loops(result))
    _require_threads(result, context)
    if result.ops >> Op.CONTRACT & 1:
        _require_tiles(result, context)
    if settings.SPEC:
        verify_in_bounds(result, "choose-opts")
    return result


def _require_tiles(kernel: UOp, context: CodegenContext) -> None:
    """Refuse products of tiles that the target cannot copy, multiply or keep."""
    target = context.target
    if not any(copy.box_limits for copy in target.copies):
        raise NotSupported(
            f"products of tiles, on {target.name}",
            rule="tiles come by copies of boxes, which NVIDIA GPUs have from sm_90 on",
        )
    for node in nodes_of(kernel):
        if node.op != Op.CONTRACT:
            continue
        parts = contract_parts(node)
        inputs = (parts.factors[0].of, parts.factors[1].of)
        if unit_for(target, *inputs) is None:
            names = " by ".join(dtype.name for dtype in inputs)
            raise NotSupported(f"products of tiles of {names}, on {target.name}")
        if (
            not parts.is_in_pairs
            and parts.stages * parts.stage_bytes
            > target.memory(DYNAMIC).size - 2 * DYNAMIC_ALIGNMENT
        ):
            raise NotSupported(
                f"{parts.stages} stages of {parts.stage_bytes} bytes, on {target.name}",
                rule=f"a group has {target.memory(DYNAMIC).size} bytes of local memory",
            )


def _require_threads(kernel: UOp, context: CodegenContext) -> None:
    """Refuse threads that the target does not have."""
    threads = [number for number, kind in kinds_of(kernel).items() if kind == THREAD]
    if threads and not context.target.has_groups:
        raise NotSupported(
            f"threads inside a group, on {context.target.name}",
            rule="a target without groups runs the iterations of grid loops on its threads",
        )
    if not fits_a_group(kernel, context.target):
        axes, grid = group_threads(kernel), context.target.grid
        count = math.prod(axes.values())
        limits = f", along them {grid.thread_limits}" if grid.thread_limits else ""
        raise NotSupported(
            f"{count} threads on {len(axes)} axes of a group, on {context.target.name}",
            rule=f"a group has {MOST_AXES} axes and {grid.group_threads} threads at most{limits}",
        )

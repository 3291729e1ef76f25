"""What fusion says in a trace: the values of each kernel."""

from __future__ import annotations

from typing import Any

from weft.ir.uop import UOp
from weft.ir.walk import topological, try_line
from weft.rewrite.trace_file import TraceFile
from weft.schedule.fuse.kernel import Kernel
from weft.schedule.fuse.walk import Fused
from weft.schedule.memory import MEMORY


def record_fusion(trace: TraceFile, sink: UOp, fused: Fused) -> None:
    """The tensor graph, in groups: what each kernel computes on the way to its stores."""
    graph = trace.graph(sink)
    if graph is None:
        return
    groups = [group for kernel in fused.kernels if (group := _group(trace, fused, kernel))]
    trace.write("fusion", phase=trace.thread.phase, graph=graph, groups=groups)


def _group(trace: TraceFile, fused: Fused, kernel: Kernel) -> dict[str, Any]:
    roots = [store.value for store in kernel.stores]
    if kernel.call is not None:
        roots.append(kernel.call)
    elsewhere = {node for node, found in fused.materialized.items() if found.kernel is not kernel}

    def is_inside(node: UOp) -> bool:
        return node not in elsewhere and node.op not in MEMORY

    nodes = [n for n in topological(*roots, enter=is_inside) if is_inside(n)] if roots else []
    if not nodes:
        return {}
    group: dict[str, Any] = {"nodes": [trace.graph(node) for node in nodes]}
    group["outputs"] = [trace.graph(root) for root in dict.fromkeys(roots)]
    line = next((line for root in roots if (line := try_line(root)) is not None), None)
    if line is not None:
        group["line"] = trace.line(line)
    return group

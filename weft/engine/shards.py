"""Values over several devices, computed: the pass `shard`, then each device by itself.

`realize` calls this where a graph holds memory over several devices. What runs is ordinary graphs
of one device; the parts that they leave are put together again under one BUFFER node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.engine.buffer_nodes import BufferKind, hand_over
from weft.engine.buffers import PartedBuffer, parts_of
from weft.engine.request import Request
from weft.ir.build import global_stage, sink
from weft.ir.layouts import Layout, layout_of
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.views import unmoved
from weft.ir.walk import topological
from weft.rewrite.phase import run_phase
from weft.support.settings import settings

# A value, and the device to compute it on; None for that of its memory.
Wanted = tuple[UOp, str | None]
Compute = Callable[[Sequence[Wanted], Sequence[UOp], dict[UOp, UOp]], list[UOp]]
_REDUCTIONS: Final = 1 << Op.REDUCE | 1 << Op.SCAN | 1 << Op.SCATTER | 1 << Op.CALL
_SHARDED: Final = 1 << Op.SHARD | 1 << Op.CALL
_NO_VALUES: Final = (Op.AFTER, Op.STORE, Op.CALL, Op.TUPLE, Op.INDEX)


def may_hold_parts(ops: int) -> bool:
    """Whether graphs with these ops may hold something on several devices."""
    return PartedBuffer.count > 0 or bool(ops & _SHARDED)


def realize_parts(request: Request, pending: Sequence[UOp], compute: Compute) -> dict[UOp, UOp]:
    """As `realize`, of graphs over several devices."""
    roots, overwritten = request.roots, request.overwritten
    versions = {version: memory for memory, version in overwritten.last.items()}
    kept = [node for node in overwritten.read_by(pending) if layout_of(node) is not None]
    nodes = list(dict.fromkeys([*roots, *versions, *kept]))
    from weft.schedule.phases import SHARD  # what one device computes needs none of it

    tuples = run_phase(SHARD, sink(*nodes), parts_of).src
    if settings.CHECK == "levels":
        from weft.engine.checks.levels import check_shards

        check_shards(nodes, tuples)
    wanted: list[Wanted] = []
    seen: set[Wanted] = set()
    for node, parts in zip(nodes, tuples, strict=True):
        layout = layout_of(node)
        names = [None] if layout is None else layout.devices
        for part, name in zip(parts.src, names, strict=True):
            # Every value gets memory of its own; a version keeps that which it was written to.
            while node not in versions and (part.op == Op.BUFFER or (part, name) in seen):
                part = global_stage(part)
            seen.add((part, name))
            wanted.append((part, name))
    inside: dict[UOp, UOp] = {}
    found = iter(compute(wanted, pending, inside))
    made = {node: memory for node, memory in inside.items() if node.op in (Op.AFTER, Op.BUFFER)}
    for node, parts in zip(nodes, tuples, strict=True):
        memories = [next(found) for _ in parts.src]
        layout = layout_of(node)
        if layout is None:
            made[node] = memories[0]
        elif node in versions:
            made[node] = hand_over(versions[node], memories)
        else:
            made[node] = _join(node, layout, memories)
    return made


def _join(node: UOp, layout: Layout, parts: list[UOp]) -> UOp:
    """One BUFFER node for memory that is in shards."""
    return BufferKind(node.dtype, shape_of(node), tuple(layout)).holding(PartedBuffer(parts))


def read_again(sources: Sequence[UOp], roots: Sequence[UOp]) -> list[UOp]:
    """Values that are computed on the way to the sources and that other work reads later.

    Those with a reduction in them are kept in memory, so that no reduction is computed twice.
    """
    computed = set(topological(*sources))
    ends: set[UOp] = set()
    for node in topological(*roots):
        if node not in computed:
            ends.update(map(unmoved, computed.intersection(node.src)))
    kept: dict[UOp, None] = dict.fromkeys(sources)
    has_reduction: dict[UOp, bool] = {}
    for node in topological(*sources):
        below = any(has_reduction[source] for source in node.src if source not in kept)
        has_reduction[node] = below or bool(1 << node.op & _REDUCTIONS)
        is_value = node.ops >> Op.BUFFER & 1 and node.op not in _NO_VALUES
        if node in ends and has_reduction[node] and is_value:
            kept[node] = None
    return [node for node in kept if node not in sources]

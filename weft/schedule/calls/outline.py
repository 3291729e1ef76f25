"""Equal values over other memory become calls of one body, which is scheduled and compiled once.

In and Out: a tensor graph. Initial weights are the common case: hundreds of values of a few kinds
that have nothing to do with each other. What is stored falls into parts that share no memory; of
the parts that are equal but for the memory that they read, each becomes a call. Parts that write
memory which they read are left alone, and so are those with sizes that vary.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from weft.ir.build import call_results, one_or_tuple, store
from weft.ir.inline import is_inline
from weft.ir.memory_parameters import over_parameters
from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import rebuild, topological
from weft.schedule.context import ScheduleContext

# What a kernel computes again rather than reads, so that it ties no parts together.
_FREE: Final = sum(1 << op for op in (*MOVEMENT, Op.CONST, Op.IOTA, Op.CAST, Op.ADD, Op.MUL))
_LEFT: Final = sum(1 << op for op in (Op.AFTER, Op.VARIABLE, Op.BIND, Op.BUFFER))


def outline(root: UOp, context: ScheduleContext) -> UOp:
    """Let parts that are equal but for their memory be calls of one body.

    before: store p2 = p0 * 2;  store p3 = p1 * 2
    after:  store p2 = f(p0);  store p3 = f(p1)    where f(p0) = p0 * 2
    """
    if len(root.src) < 2:
        return root
    alike: dict[UOp, list[_Part]] = {}
    for stores in _parts(root):
        part = _try_part(stores)
        if part is not None:
            alike.setdefault(part.body, []).append(part)
    made: dict[UOp, UOp] = {}
    for body, parts in alike.items():
        if len(parts) > 1:
            for part in parts:
                made.update(part.called(body))
    return rebuild(root, tuple([made.get(effect, effect) for effect in root.src]))


class _Part:
    """Stores of values that share no memory with the rest."""

    def __init__(self, stores: list[UOp], memory: list[UOp], body: UOp) -> None:
        self.body = body
        self._stores = stores
        self._memory = memory

    def called(self, body: UOp) -> dict[UOp, UOp]:
        """Each store, and the one of what the call gives."""
        results = call_results(body, *self._memory)
        pairs = zip(self._stores, results, strict=True)
        return {each: store(each.src[0], result) for each, result in pairs}


def _try_part(stores: list[UOp]) -> _Part | None:
    """Stores as a body over parameters; None where they are not values of memory alone."""
    if any(each.op != Op.STORE or each.src[0].op != Op.PARAM for each in stores):
        return None
    if any(each.ops & _LEFT or each.src[1].op == Op.PARAM for each in stores):
        return None
    targets = {each.src[0] for each in stores}
    if any(each.ops >> Op.CALL & 1 for each in stores) and any(map(_is_run, topological(*stores))):
        return None
    memory, values = over_parameters([each.src[1] for each in stores], Op.PARAM)
    if not memory or not targets.isdisjoint(memory) or len(targets) < len(stores):
        return None
    # Equal parts are the same nodes from here on, so their shapes are found once.
    if any(shape_of(e.src[0]) != shape_of(v) for e, v in zip(stores, values, strict=True)):
        return None
    return _Part(stores, memory, one_or_tuple(values))


def _is_run(node: UOp) -> bool:
    """Whether a node is a call that runs by itself, and so is outlined already."""
    return node.op == Op.CALL and not is_inline(node)


def _parts(root: UOp) -> Iterable[list[UOp]]:
    """The effects of a sink, those together that share memory or work."""
    leader: dict[UOp, UOp] = {}

    def find(node: UOp) -> UOp:
        while (above := leader[node]) is not node:
            leader[node] = leader[above]
            node = above
        return node

    for node in topological(*root.src):
        leader[node] = node
        for source in node.src:
            if source.ops & ~_FREE:
                leader[find(source)] = node
    groups: dict[UOp, list[UOp]] = {}
    for effect in root.src:
        groups.setdefault(find(effect), []).append(effect)
    return groups.values()

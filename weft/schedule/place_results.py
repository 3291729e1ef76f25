"""Lets custom kernels fill the memory in which their results are wanted.

In: a tensor graph in which a CALL of a KERNEL or PROGRAM gives values. Out: where all of them are
stored as a whole to memory that nothing else touches, the call takes that memory as arguments and
writes it. Elsewhere the results stay values, which get temporaries.
"""

from __future__ import annotations

from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.results import FILLING, results_of
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute, topological, users
from weft.schedule.context import Context


def place_results(sink: UOp, context: Context) -> UOp:
    """The graph with the results of custom kernels in the memory that they are stored to.

    before: store p1 = call k(p0).item(0)
    after:  p1.after(call k(p0, p1))
    """
    while True:
        changed = _placed(sink)
        if not changed:
            return sink
        sink = substitute(sink, changed)


def _placed(sink: UOp) -> dict[UOp, UOp]:
    """What the first call that can be placed changes. It may hold others, so it is one a time."""
    calls = [n for n in topological(sink) if n.op == Op.CALL and n.arg.op in FILLING]
    used = users(sink) if calls else {}
    for node in calls:
        wanted = _places(node, used)
        if wanted:
            places = tuple(place for _, _, place in wanted)
            written = make(Op.CALL, dtypes.void, (*node.src, *places), node.arg)
            changed: dict[UOp, UOp] = {}
            for item, stored, place in wanted:
                changed[item] = changed[stored] = make(Op.AFTER, item.dtype, (place, written))
            return changed
    return {}


def _places(call: UOp, used: dict[UOp, list[UOp]]) -> list[tuple[UOp, UOp, UOp]]:
    """For each value of a call the ITEM, its STORE and the memory; nothing if one has none."""
    found: list[tuple[UOp, UOp, UOp]] = []
    for number, value in enumerate(results_of(call) or ()):
        item = make(Op.ITEM, value.dtype, (call,), number)
        stores = [user for user in used.get(item, ()) if user.op == Op.STORE]
        fresh = [s for s in stores if s.src[0].op == Op.PARAM and used[s.src[0]] == [s]]
        if not fresh:
            return []
        found.append((item, fresh[0], fresh[0].src[0]))
    return found

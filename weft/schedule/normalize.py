"""Tensor graphs made plain before they are scheduled: constants folded, written values forwarded.

In: a tensor graph. Out: the same values and writes. Movement ops need no rules of their own: they
become index arithmetic, whose normal form merges them.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.ir.dtypes import dtypes
from weft.ir.movement import expand, reshape
from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import map_graph, rebuild, topological, users, with_sources
from weft.rewrite.driver import rewrite
from weft.rewrite.pattern import node_, op_
from weft.rewrite.rule import structural
from weft.rewrite.ruleset import rules
from weft.rules.fold import FOLD_RULES
from weft.schedule.context import ScheduleContext
from weft.schedule.memory import written_slots


@structural(op_(Op.CUSTOM_GRADIENT))
def value_with_gradient(node: UOp) -> UOp | None:
    """A gradient of its own changes nothing about a value.

    before: custom_gradient(y, x)
    after:  y
    """
    return node.src[0]


@structural(op_(Op.DETACH))
def value_without_gradient(node: UOp) -> UOp | None:
    """A value that gradients do not go through is that value.

    before: x.detach()
    after:  x
    """
    return node.src[0]


@structural(node_(Op.ITEM, op_(Op.TUPLE, "x")))
def item_of_tuple(x: UOp, node: UOp) -> UOp | None:
    """Take a value where it stands.

    before: (x, y).item(1)
    after:  y
    """
    return x.src[node.arg]


NORMALIZE = rules(
    "normalize", FOLD_RULES, value_with_gradient, value_without_gradient, item_of_tuple
)


def normalize(root: UOp, context: ScheduleContext) -> UOp:
    """The graph with constants folded, written values forwarded, and none kept twice."""
    return store_directly(forward_writes(rewrite(root, NORMALIZE)))


def forward_writes(root: UOp) -> UOp:
    """Let readers of memory that was written as a whole see the value that was written.

    before: m1 = m.after(store m = g);  store w = m1 * 2
    after:  m1 = m.after(store m = g);  store w = g * 2
    """
    if not root.ops >> Op.AFTER & 1:
        return root
    read: dict[UOp, UOp] = {}  # what readers of a node see
    plain: dict[UOp, UOp] = {}  # the node itself, for the sink and for later writes
    for node in topological(root):
        src = [read[source] for source in node.src]
        if node.op == Op.STORE:
            src[0] = as_target(node.src[0], read, plain)
        elif node.op in (Op.AFTER, Op.SINK):
            src[0:1] = [plain[source] for source in node.src[:1]]
        if node.op == Op.SINK:
            src = [plain[source] for source in node.src]
        elif node.op == Op.CALL and node.dtype is dtypes.void:
            src = call_arguments(node, read, plain)
        plain[node] = rebuild(node, tuple(src))
        read[node] = plain[node] if node.op != Op.AFTER else _written(plain[node])
    return plain[root]


def _written(version: UOp) -> UOp:
    """The value of a version that one store wrote as a whole, or the version."""
    base, *effects = version.src
    if len(effects) != 1 or effects[0].op != Op.STORE or effects[0].src[0] is not base:
        return version
    value, shape = effects[0].src[1], shape_of(base)
    if shape_of(value) == shape:
        return value
    if not shape:
        return version
    return expand(reshape(value, (1,) * len(shape)), shape)


def call_arguments(call: UOp, read: dict[UOp, UOp], plain: dict[UOp, UOp]) -> list[UOp]:
    """The arguments of a call: what it writes is memory itself, what it reads may be a copy."""
    written = written_slots(call.arg)
    return [(plain if slot in written else read)[x] for slot, x in enumerate(call.src)]


def as_target(view: UOp, read: dict[UOp, UOp], plain: dict[UOp, UOp]) -> UOp:
    """A store's view of its memory: the memory itself, never a value that stands for it."""
    if view.op in MOVEMENT or view.op == Op.INDEX:
        inner = as_target(view.src[0], read, plain)
        return rebuild(view, (inner, *(read[source] for source in view.src[1:])))
    return plain[view]


def store_directly(root: UOp) -> UOp:
    """Let a store write what it was given to keep, where nobody else reads it.

    before: store m = stage(x)
    after:  store m = x
    """
    if not root.ops >> Op.STAGE & 1:
        return root
    readers = users(root)

    def direct(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = with_sources(node, made)
        if new.op != Op.STORE or new.src[1].op != Op.STAGE or len(readers[node.src[1]]) != 1:
            return new
        return rebuild(new, (new.src[0], new.src[1].src[0], *new.src[2:]))

    return map_graph(root, direct)

"""Joined reductions: reductions over the same ranges that need each other, in one loop.

    m = reduce MAX over k: s
    l = REDUCE(e, m, k; (join, (), 0.0, 1))

A joined REDUCE has a value, then its references, then its ranges. A reference is a plain REDUCE
over the same ranges. `join` is a scalar body over PARAMs, as that of a CALL: what two parts are
together. Slots 0 and 1 are the two parts of the value; each reference has three more: its two
parts, and what they become together. The third of the arg is the value before the first
iteration, and the last one is the number of references.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from weft.ir.build import param
from weft.ir.dtypes import DType, Scalar
from weft.ir.ops import Op
from weft.ir.reduction.reductions import identity
from weft.ir.uop import UOp, const, first_closed, make
from weft.ir.walk import substitute, topological


def is_joined(node: UOp) -> bool:
    """Whether a node is a REDUCE whose parts are joined by a body, not by an op."""
    return node.op == Op.REDUCE and node.arg[0].__class__ is UOp


def references(node: UOp) -> tuple[UOp, ...]:
    """The reductions that a REDUCE refers to; a plain one has none."""
    return node.src[1 : first_closed(node)]


def start_of(node: UOp) -> Scalar:
    """The value of a REDUCE or SCAN over nothing, which changes nothing that it is joined to."""
    scalar = node.dtype.scalar
    start: Scalar = node.arg[2] if is_joined(node) else identity(node.arg[0], scalar)
    return start


def skips_empty_parts(join: UOp) -> bool:
    """Whether a join leaves out parts whose first reference is -inf, unless all are.

    A sum of exponentials relative to the greatest does: a part without elements is such a part.
    """
    left_out = set[int]()
    for node in topological(join):
        if node.op != Op.WHERE or node.src[1].op != Op.CONST or node.src[1].arg != 0:
            continue
        condition, _, otherwise = node.src
        if condition.op == Op.EQUAL:
            x, y = condition.src
            reference, other = (y, x) if x.op == Op.CONST else (x, y)
            is_empty = other.op == Op.CONST and other.arg == -math.inf
            if is_empty and reference.op == Op.PARAM and reference.arg[0] in (2, 3):
                part = reference.arg[0] - 2
                if any(n.op == Op.PARAM and n.arg[0] == part for n in topological(otherwise)):
                    left_out.add(part)
    return left_out == {0, 1}


def scale_of(join: UOp) -> UOp | None:
    """What the first part is multiplied by, of a join that adds two parts; None of others.

    Both are parts relative to their own references, and become so to what these are together:
    what is relative to that already is added as it is.
    """
    if join.op != Op.ADD:
        return None
    scaled, _ = join.src
    (own, *others) = [n for n in topological(scaled) if n.op == Op.PARAM and n.arg[0] == 0] or (
        join,
    )
    slots = {node.arg[0] for node in topological(scaled) if node.op == Op.PARAM}
    if others or not slots <= {0, 2, 4} or not _is_linear(scaled, own):
        return None
    return substitute(scaled, {own: own.const_like(1)})


def _is_linear(node: UOp, own: UOp) -> bool:
    """Whether a body is a multiple of a slot, whatever it depends on beside it."""
    if node is own:
        return True
    if node.op == Op.WHERE and own not in topological(node.src[0]):
        return all(_is_linear(each, own) or each.arg == 0 for each in node.src[1:])
    if node.op != Op.MUL:
        return False
    holds = [own in topological(source) for source in node.src]
    return sum(holds) == 1 and _is_linear(node.src[holds.index(True)], own)


def join_slots(value: DType, refers: Sequence[DType]) -> list[UOp]:
    """The PARAMs that a join of a value with such references is made of."""
    kinds = [value, value, *(dtype for each in refers for dtype in (each, each, each))]
    return [param(slot, dtype, ()) for slot, dtype in enumerate(kinds)]


def joined_reduction(
    value: UOp, join: UOp, start: Scalar, refers: Sequence[UOp], ranges: Sequence[UOp]
) -> UOp:
    """The joined REDUCE of a value."""
    arg = (join, (), start, len(refers))
    return make(Op.REDUCE, value.dtype, (value, *refers, *ranges), arg)


def applied(body: UOp, values: Sequence[UOp]) -> UOp:
    """A scalar body with values instead of its PARAMs, lane by lane where these are vectors.

    >>> from weft.ir.build import range_
    >>> from weft.ir.dtypes import dtypes
    >>> x, y = (param(slot, dtypes.index, ()) for slot in range(2))
    >>> applied(x + y, [range_(0, 4), range_(1, 8)])
    (r0 + r1)
    """
    lanes = max(value.dtype.lanes for value in values)
    made: dict[UOp, UOp] = {}
    for node in topological(body):
        if node.op == Op.PARAM:
            made[node] = in_lanes(values[node.arg[0]], lanes)
        elif node.op == Op.CONST:
            made[node] = const(node.dtype.vector(lanes), node.arg)
        else:
            src = tuple([made[source] for source in node.src])
            made[node] = make(node.op, node.dtype.vector(lanes), src, node.arg)
    return made[body]


def in_lanes(node: UOp, lanes: int) -> UOp:
    """A scalar in every lane of a vector; a vector as it is."""
    if node.dtype.lanes == lanes:
        return node
    dtype = node.dtype.vector(lanes)
    if node.op == Op.CONST:
        return const(dtype, node.arg)
    return make(Op.VECTOR, dtype, (node,) * lanes)


Parts = Mapping[UOp, UOp]


def joined_parts(node: UOp, left: Parts, right: Parts) -> dict[UOp, UOp]:
    """What two parts of a REDUCE and of its references are together, references first."""
    done: dict[UOp, UOp] = {}
    for each in references(node):
        x, y = left[each], right[each]
        done[each] = make(each.arg[0], x.dtype, (x, y))
    values = [left[node], right[node]]
    for each in references(node):
        values += [left[each], right[each], done[each]]
    done[node] = applied(node.arg[0], values)
    return done

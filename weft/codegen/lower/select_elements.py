"""A sum that picks one element of a row is that element.

    reduce ADD over k: where(int32(k) == t, x[k], 0.0)   ->   where(0 <= t < n, x[t], 0.0)

Losses pick the score of the right class so: written as a sum, its gradient is not a scatter. Only
the chosen element is loaded then, and the other reductions of the row need not wait for its loop.
`merge_reductions` calls this. Short rows keep their sums, which lanes and copies compute at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from weft.codegen.analysis.loops import extent_of, rebuilt, without_unused
from weft.ir.build import all_of, index, where
from weft.ir.dtypes import INTEGER, canonical, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph
from weft.rules.logic import conditions
from weft.rules.simplify import simplify

# Iterations from which on a lookup costs less than to compare all elements.
LEAST_ROW: Final = 64


class _Choice(NamedTuple):
    """A sum over `loop` of `value` where the loop is at `position`, and `others` hold."""

    loop: UOp
    position: UOp
    value: UOp
    others: tuple[UOp, ...]


def select_elements(kernel: UOp) -> UOp:
    """Load the chosen element where a sum would look at all of them."""

    def selected(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = rebuilt(node, made, {})
        choice = _try_choice(new)
        return new if choice is None else _element(new, choice)

    return without_unused(map_graph(kernel, selected))


def _try_choice(node: UOp) -> _Choice | None:
    if node.op != Op.REDUCE or node.arg[0] != Op.ADD:
        return None
    value = node.src[0]
    is_negated = value.op == Op.NEG
    value = value.src[0] if is_negated else value
    if value.op != Op.WHERE or value.src[2].op != Op.CONST or value.src[2].arg != 0:
        return None
    parts = conditions(value.src[0])
    for part in parts:
        found = _try_index(part, node.src[1:])
        if found is not None:
            others = tuple([other for other in parts if other is not part])
            return _Choice(*found, -value.src[1] if is_negated else value.src[1], others)
    return None


def _try_index(condition: UOp, ranges: tuple[UOp, ...]) -> tuple[UOp, UOp] | None:
    """The range of a sum that a condition compares with a number, and that number."""
    if condition.op != Op.EQUAL:
        return None
    for this, other in (condition.src, condition.src[::-1]):
        loop = this.src[0] if this.op == Op.CAST else this
        if loop not in ranges or other.ranges >> loop.arg & 1:
            continue
        extent = extent_of(loop) or 0
        is_exact = canonical(this.dtype, extent) == extent
        is_number = bool(other.dtype.kind & INTEGER)
        if extent >= LEAST_ROW and is_exact and is_number:
            return loop, other
    return None


def _element(node: UOp, choice: _Choice) -> UOp:
    """The chosen element of a sum, or 0."""
    position = choice.position.cast(dtypes.index)
    inside = simplify(~(position < 0) & (position < index(extent_of(choice.loop) or 1)))

    def at_index(part: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = rebuilt(part, made, {})
        if part.op == Op.INDEX and part.ranges >> choice.loop.arg & 1:
            memory, mask, *indices = new.src
            return make(Op.INDEX, new.dtype, (memory, simplify(mask & inside), *indices))
        return new

    known = {choice.loop: position}
    root = make(Op.WHERE, node.dtype, (all_of(*choice.others), choice.value, node.const_like(0)))
    value = map_graph(root if choice.others else choice.value, at_index, known=known)
    value = where(inside, value, value.const_like(0))
    rest = tuple([r for r in node.src[1:] if r is not choice.loop])
    return make(Op.REDUCE, node.dtype, (value, *rest), node.arg) if rest else value

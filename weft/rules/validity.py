"""What is known where a condition holds: values and conditions simplified under a mask.

A mask such as `2 <= i + k < 58` bounds the expressions it compares. `narrow` simplifies a value
with those tighter bounds: each compared expression is replaced by a variable that has them, the
result is simplified, and the expression is put back. The value may change where the mask is false;
there nobody looks. These are functions and not rules, because they look at two nodes at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.ir.bounds import bounds
from weft.ir.build import all_of, variable
from weft.ir.dtypes import INDEX
from weft.ir.linear import from_linear, linear
from weft.ir.ops import Op
from weft.ir.uop import Interval, UOp
from weft.ir.walk import substitute, topological
from weft.rules.logic import conditions
from weft.rules.simplify import simplify


def narrow(node: UOp, mask: UOp) -> UOp:
    """The simplest form of a value that is only looked at where the mask holds.

    >>> from weft.ir.build import range_
    >>> i = range_(0, 64)
    >>> narrow((i - 4) // 16, (~(i < 4)) & (i < 20))
    0
    """
    node, mask = simplify(node), simplify(mask)
    if mask.op == Op.CONST and not mask.arg:
        return node.const_like(0)
    return _narrow_by(node, limits(conditions(mask)))


def _narrow_by(node: UOp, spans: dict[UOp, Interval]) -> UOp:
    """A value in normal form, simplified with what is known of some of its parts."""
    known = [(x, span) for x, span in spans.items() if not x.ranges or x.ranges & node.ranges]
    before = None
    while before is not node:  # one limit can lay open an expression that another one bounds
        before = node
        for chosen in [known] if len(known) < 2 else [known, *([limit] for limit in known)]:
            node = _under(node, chosen)
    return node


def narrow_mask(mask: UOp) -> UOp:
    """A conjunction without the conditions that the others imply.

    >>> from weft.ir.build import range_
    >>> i, j = range_(0, 8), range_(1, 8)
    >>> narrow_mask((i < 2) & (i + j < 9) & (j < 6))
    ((r0 < 2) & (r1 < 6))
    """
    mask = simplify(mask)
    before = None
    while before is not mask:
        before = mask
        kept = conditions(mask)
        for condition in kept if len(kept) > 1 else ():
            others = [other for other in kept if other is not condition]
            narrowed = _narrow_by(condition, limits(others))
            if size(narrowed) < size(condition):
                mask = simplify(all_of(narrowed, *others))
                break
    return mask


def limits(parts: list[UOp]) -> dict[UOp, Interval]:
    """For each index expression that conditions compare with constants, its interval there."""
    found: dict[UOp, Interval] = {}
    for condition in parts:
        inner = condition.src[0] if condition.op == Op.NOT else condition
        if inner.op not in (Op.LESS, Op.EQUAL) or inner.src[1].op != Op.CONST:
            continue
        subject, limit = inner.src[0], inner.src[1].arg
        if subject.dtype.kind != INDEX:
            continue
        low, high = found.get(subject) or bounds(subject)
        if inner.op == Op.EQUAL:
            if condition is inner:
                low, high = max(low, limit), min(high, limit)
        elif condition is inner:
            high = min(high, limit - 1)
        else:
            low = max(low, limit)
        found[subject] = (low, high)
    return {x: span for x, span in found.items() if span != bounds(x) and span[0] <= span[1]}


def _under(node: UOp, known: list[tuple[UOp, Interval]]) -> UOp:
    """Simplify a node with subjects that lie in intervals; kept if it became smaller.

    A sum is replaced by solving it for one of its terms: where i + k is v, i is v - k.
    """
    solved: dict[UOp, UOp] = {}
    subjects: dict[UOp, UOp] = {}
    for number, (subject, interval) in enumerate(known):
        terms = linear(subject)[1]
        for term, factor in terms:
            if abs(factor) == 1 and term not in solved:
                placeholder = variable(f"narrowed {number}", *interval)
                rest = [(t, -f * factor) for t, f in terms if t is not term]
                solved[term] = placeholder * factor + from_linear(subject.dtype, 0, rest)
                subjects[placeholder] = subject
                break
    replaced = substitute_values(node, solved)
    if replaced is node:
        return node
    result = simplify(substitute(simplify(replaced), subjects))
    return result if size(result) < size(node) else node


def substitute_values(node: UOp, mapping: Mapping[UOp, UOp]) -> UOp:
    """Replace parts of an expression by what they are there; ranges keep their extents.

    >>> from weft.ir.build import range_, variable
    >>> n = variable("n", 1, 8)
    >>> substitute_values(range_(0, n) + n, {n: variable("m", 2, 3)})
    (r0 + m)
    """
    below = topological(node, enter=lambda part: part.op != Op.RANGE)
    fixed = {part: part for part in below if part.op == Op.RANGE and part.src[0].op != Op.CONST}
    return substitute(node, {**fixed, **mapping})


def size(node: UOp) -> int:
    """The number of operations in an expression, each shared one counted once."""
    if not node.src or node.op == Op.RANGE:
        return 0
    seen = {node}
    stack = [node]
    while stack:
        for source in stack.pop().src:
            if source not in seen and source.src and source.op != Op.RANGE:
                seen.add(source)
                stack.append(source)
    return len(seen)

"""The proof that a kernel touches only memory it has: every index is in bounds or behind its gate.

Runs after opts under SPEC. It finds what values hide: an access past the end that lands in other
memory of the process gives right answers for a long time. Indices are proven by intervals, with
what the gate says; symbolic extents by putting in the last turn of each range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.loops import first_range
from weft.ir.bounds import bounds
from weft.ir.build import Size, index, variable
from weft.ir.dtypes import INDEX
from weft.ir.linear import from_linear, linear
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.spec_kernel import behind
from weft.ir.text import locate
from weft.ir.uop import Interval, UOp
from weft.ir.walk import substitute, topological
from weft.rules.logic import conditions
from weft.rules.simplify import simplify
from weft.support.errors import InternalError

_FAR: Final = 1 << 62


def verify_in_bounds(kernel: UOp, pass_name: str) -> None:
    """Raise an InternalError where an access is neither proven in bounds nor guarded."""
    for node in topological(kernel):
        if node.op in (Op.INDEX, Op.READ):
            gate, *indices = node.src[1:]
            memory = behind(node.src[0])
            sizes = memory.arg[1] if memory.op == Op.STAGE else shape_of(memory)
        elif node.op == Op.STAGE:
            gate, indices = None, list(node.src[1 : first_range(node)])
            sizes = node.arg[1]
        else:
            continue
        _verify(kernel, node, indices, sizes, gate, pass_name)


def _verify(
    kernel: UOp,
    node: UOp,
    indices: Sequence[UOp],
    sizes: Sequence[Size],
    gate: UOp | None,
    pass_name: str,
) -> None:
    for axis, (each, size) in enumerate(zip(indices, sizes, strict=True)):
        if is_in_bounds(each, size, gate):
            continue
        text, line = locate(kernel, node)
        low, high = bounds(each)
        raise InternalError(
            f"an access may be out of bounds on axis {axis}",
            pass_name=pass_name,
            ir_text=text,
            marked_line=line,
            facts=[("index", repr(each), f"{low}..{high}"), ("size", repr(size))],
        )


def is_in_bounds(each: UOp, size: Size, gate: UOp | None) -> bool:
    """Whether 0 <= index < size wherever the gate holds.

    >>> from weft.ir.build import range_
    >>> i = range_(0, 8)
    >>> is_in_bounds(i + 1, 8, None), is_in_bounds(i + 1, 8, i < 7)
    (False, True)
    """
    low, high = _bounds_under(each, gate)
    if low < 0:
        return False
    limit = size if isinstance(size, int) else bounds(size)[0]
    return high < limit or _is_below(each, index(size), gate) or _ends(each, size)


def _is_below(each: UOp, size: UOp, gate: UOp | None) -> bool:
    """Whether the gate itself, or the range of the index, says that it is below a size."""
    if each.op == Op.RANGE and each.src[0] is size:
        return True
    return gate is not None and simplify(each < size) in conditions(gate)


def _bounds_under(each: UOp, gate: UOp | None) -> Interval:
    """The interval of an index where the gate holds.

    What the gate compares are sums with known intervals; the index is written with those sums in
    the places of some of its terms: with each sum alone, for each of its terms, and with all sums
    together. What one way leaves open another may decide, so the intervals are intersected.
    """
    low, high = bounds(each)
    spans = _spans(gate) if gate is not None else {}
    parts = [(subject, span) for subject, span in spans.items() if subject.ranges & each.ranges]
    together: dict[UOp, UOp] = {}
    ways = [together]
    for number, (subject, span) in enumerate(parts):
        alone = _solved(subject, span, number)
        ways += [{term: value} for term, value in alone.items()]
        together |= dict([pair for pair in alone.items() if pair[0] not in together][:1])
    for way in ways:
        inner = bounds(simplify(substitute(each, way)))
        low, high = max(low, inner[0]), min(high, inner[1])
    return low, high


def _solved(subject: UOp, span: Interval, number: int) -> dict[UOp, UOp]:
    """Each term of a sum, in terms of the sum: where i + k is s, i is s - k and k is s - i."""
    solved: dict[UOp, UOp] = {}
    whole = variable(f"sum {number}", max(span[0], -_FAR), min(span[1], _FAR))
    terms = linear(subject)[1]
    for term, factor in terms:
        if abs(factor) == 1:
            rest = [(t, -f * factor) for t, f in terms if t is not term]
            solved[term] = whole * factor + from_linear(subject.dtype, 0, rest)
    return solved


def _spans(gate: UOp) -> dict[UOp, Interval]:
    """The interval that the gate leaves for each sum that it compares with a constant."""
    found: dict[UOp, Interval] = {}
    for condition in conditions(gate):
        inner = condition.src[0] if condition.op == Op.NOT else condition
        if inner.op not in (Op.LESS, Op.EQUAL) or inner.src[1].op != Op.CONST:
            continue
        subject, limit = inner.src[0], int(inner.src[1].arg)
        if subject.dtype.kind != INDEX:
            continue
        low, high = found.get(subject) or bounds(subject)
        if inner.op == Op.LESS and condition is inner:
            high = min(high, limit - 1)
        elif inner.op == Op.LESS:
            low = max(low, limit)
        elif condition is inner:
            low, high = limit, limit
        if low <= high:
            found[subject] = (low, high)
    return found


def _ends(each: UOp, size: Size) -> bool:
    """Whether an index is below a symbolic size with every range at its last turn."""
    constant, terms = linear(simplify(each))
    greatest = index(constant)
    for term, factor in terms:
        if factor < 0 or term.op != Op.RANGE:
            greatest = greatest + from_linear(each.dtype, 0, [(term, factor)])
        else:
            greatest = greatest + (term.src[0] - 1) * factor
    below = simplify(greatest < index(size))
    return below.op == Op.CONST and bool(below.arg)

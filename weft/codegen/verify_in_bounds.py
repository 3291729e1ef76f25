"""The proof that a kernel touches only memory it has: every index is in bounds or behind its gate.

Runs after opts under SPEC. It finds what values hide: an access past the end that lands in other
memory of the process gives right answers for a long time. Indices are proven by intervals, with
what the gate says; symbolic extents by putting in the last turn of each range.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.loops import first_range
from weft.ir.bounds import bounds
from weft.ir.build import Size, index
from weft.ir.linear import from_linear, linear
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.spec_kernel import behind
from weft.ir.text import locate
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.rules.simplify import simplify
from weft.rules.validity import narrow
from weft.support.errors import InternalError


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
    low, high = bounds(each)
    limit = size if isinstance(size, int) else bounds(size)[0]
    if low >= 0 and high < limit:
        return True
    is_low = low >= 0 or _follows(~(each < 0), gate)
    return is_low and (high < limit or _follows(each < index(size), gate) or _ends(each, size))


def _follows(condition: UOp, gate: UOp | None) -> bool:
    condition = simplify(condition)
    if gate is not None and gate.op != Op.CONST:
        condition = narrow(condition, gate)
    return condition.op == Op.CONST and bool(condition.arg)


def _ends(each: UOp, size: Size) -> bool:
    """Whether an index is below a symbolic size with every range at its last turn."""
    constant, terms = linear(simplify(each))
    greatest = index(constant)
    for term, factor in terms:
        if factor < 0 or term.op != Op.RANGE:
            greatest = greatest + from_linear(each.dtype, 0, [(term, factor)])
        else:
            greatest = greatest + (term.src[0] - 1) * factor
    return _follows(greatest < index(size), None)

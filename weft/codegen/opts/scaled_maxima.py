"""A number that scales all scores goes behind masks, maxima and differences, into the exponent.

    s = where(mask, x * c, -inf)                   s = where(mask, x, -inf)
    m = reduce MAX over k: s                ->     m = reduce MAX over k: s
    e = exp(s - m)                                 e = exp((s - m) * c)

Each element has one multiplication less: `x * c - m * c` is a multiply-add. Numbers above 0 alone
are moved, so that the order of scores stays what it was.
"""

from __future__ import annotations

import math

from weft.codegen.analysis.loops import rebuilt
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph


def scale_exponents(kernel: UOp) -> UOp:
    """The kernel with factors of scores moved to exponents that are relative to a maximum."""
    return map_graph(kernel, lambda node, made: _moved(rebuilt(node, made, {})))


def _moved(node: UOp) -> UOp:
    """A node times a number, if that is what its sources are."""
    if node.op == Op.EQUAL:
        x, y = node.src
        is_infinite = y.op == Op.CONST and x.dtype is dtypes.float32 and math.isinf(y.arg)
        found = _scaled(x) if is_infinite else None
        return make(node.op, node.dtype, (found[0], y)) if found else node
    if node.dtype is not dtypes.float32:
        return node
    if node.op == Op.WHERE:
        condition, x, y = node.src
        if _is_kept(y) and (found := _scaled(x)):
            return _times(make(node.op, node.dtype, (condition, found[0], y)), found[1])
        if _is_kept(x) and (found := _scaled(y)):
            return _times(make(node.op, node.dtype, (condition, x, found[0])), found[1])
    elif node.op == Op.NEG and (found := _scaled(node.src[0])):
        return _times(make(node.op, node.dtype, (found[0],)), found[1])
    elif node.op == Op.REDUCE and node.arg[0] == Op.MAX and (found := _scaled(node.src[0])):
        return _times(make(node.op, node.dtype, (found[0], *node.src[1:]), node.arg), found[1])
    elif node.op == Op.ADD:
        first, second = map(_scaled, node.src)
        if first and second and first[1] == second[1]:
            return _times(make(node.op, node.dtype, (first[0], second[0])), first[1])
    return node


def _scaled(node: UOp) -> tuple[UOp, float] | None:
    """A value that a reduction is in and the number above 0 that multiplies it."""
    if node.op not in (Op.MUL, Op.DIV) or not node.src[0].ops >> Op.REDUCE & 1:
        return None
    x, factor = node.src
    if factor.op != Op.CONST or not 0 < factor.arg < math.inf:
        return None
    return x, float(factor.arg) if node.op == Op.MUL else 1.0 / float(factor.arg)


def _times(node: UOp, factor: float) -> UOp:
    return make(Op.MUL, node.dtype, (node, node.const_like(factor)))


def _is_kept(node: UOp) -> bool:
    """Whether a constant is what it was times any number above 0."""
    return node.op == Op.CONST and node.arg in (0, math.inf, -math.inf)

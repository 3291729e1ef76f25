"""Values that a rule compares with what was computed from them, in memory where that is needed.

The rules of MAX and MIN ask which elements equal the greatest one. A cheap value is computed again
in every kernel that wants it, and two kernels may round it differently: a product and a sum that
stand side by side become one fused multiply-add, and a reduction adds in the order of its loops.
An element would then differ from its own maximum. `settled` has such a value computed once, so
that both sides of the comparison read the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.ir.build import global_stage
from weft.ir.inline import is_inline
from weft.ir.ops import COMPARE, ELEMENTWISE, MOVEMENT, Op
from weft.ir.uop import UOp
from weft.ir.walk import map_graph, topological, with_sources

# These choose and move; what they choose from is what may be rounded.
_CHOOSING: Final = MOVEMENT | COMPARE | {Op.WHERE, Op.MAX, Op.MIN, Op.NEG, Op.AND, Op.OR, Op.NOT}
_PRODUCTS: Final = frozenset((Op.MUL, Op.DIV))
# Correctly rounded, unless a product is fused with a sum.
_EXACT: Final = (
    _CHOOSING
    | _PRODUCTS
    | {Op.ADD, Op.SQRT, Op.FLOOR, Op.TRUNC, Op.ROUND, Op.CAST, Op.BITCAST, Op.INDEX, Op.DETACH}
    | {Op.INLINE}
)
_REDUCTIONS: Final = frozenset((Op.REDUCE, Op.SCAN, Op.SCATTER))
_COMPUTED: Final = ELEMENTWISE | MOVEMENT | _REDUCTIONS | {Op.INDEX, Op.DETACH, Op.INLINE}


def settled(value: UOp) -> UOp:
    """The value, such that every kernel has the same bits of it.

    The node itself where it is so anyway: memory, seen through whatever rounds in one way only.

    >>> from weft.ir.build import global_stage, param
    >>> from weft.ir.dtypes import dtypes
    >>> x, y = (param(slot, dtypes.float32, (4,)) for slot in range(2))
    >>> settled(x + y) is x + y, settled(x * y + 1.0) is x * y + 1.0
    (True, False)
    """

    def stood(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        if node.op in _CHOOSING:
            return with_sources(node, made)
        return node if _is_steady(node) else global_stage(node)

    return map_graph(value, stood, enter=lambda node: node.op in _CHOOSING)


def _is_steady(value: UOp) -> bool:
    """Whether all kernels that compute a value round it alike."""
    computed = [
        node
        for node in topological(value, enter=_is_computed)
        if node.dtype.is_inexact and _is_computed(node)
    ]
    ops = {node.op for node in computed}
    is_fused = Op.ADD in ops and not ops.isdisjoint(_PRODUCTS)
    return not is_fused and all(map(_is_exact, computed))


def _is_computed(node: UOp) -> bool:
    """Whether a kernel may compute it; everything else is memory, or a call with memory."""
    return node.op in _COMPUTED or is_inline(node)


def _is_exact(node: UOp) -> bool:
    if is_inline(node):
        return _is_steady(node.arg)
    return node.arg[0] in (Op.MAX, Op.MIN) if node.op in _REDUCTIONS else node.op in _EXACT

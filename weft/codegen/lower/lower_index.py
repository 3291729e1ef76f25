"""Index arithmetic gets a width, and grid and thread ranges become hardware counters.

In: a kernel of loops, stores and flat addresses, its indices of dtype `index`. Out: the same with
int32 where intervals prove that every value fits, int64 elsewhere; RANGEs are loops only, and a
VARIABLE, which a program receives as int64, is cast where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weft.codegen.analysis.loops import kinds_of, replace_ranges
from weft.codegen.context import CodegenContext
from weft.codegen.lower.hardware import grid_values, thread_values
from weft.ir.bounds import bounds
from weft.ir.dtypes import INDEX, DType, dtypes
from weft.ir.ops import COMPARE, Op
from weft.ir.uop import UOp, const, make
from weft.ir.walk import map_graph, topological

_NARROW: Final = (-(1 << 31), (1 << 31) - 1)
_ADDRESSES: Final = frozenset((Op.PARAM, Op.BUFFER))


def bind_hardware(kernel: UOp, context: CodegenContext) -> UOp:
    """Replace grid and thread ranges by group and thread counters."""
    values = {**grid_values(kernel, context.target), **thread_values(kernel, context.thread_axes)}
    if not values:
        return kernel
    for node in topological(*values.values()):
        if node.op == Op.SPECIAL:
            context.extents[node.arg] = node.src[0]
    bound = {r.arg for r in values}
    loops = [(number, kind) for number, kind in kinds_of(kernel).items() if number not in bound]
    return replace_ranges(kernel, values, dict.fromkeys(values, ()), loops)


def lower_index(kernel: UOp, context: CodegenContext) -> UOp:
    """Give every index expression int32 or int64."""
    return map_graph(kernel, _lowered, enter=lambda node: node.op not in _ADDRESSES)


def _lowered(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
    if node.op in _ADDRESSES:
        return node  # the sizes of an argument are not computed
    src = tuple(map(made.__getitem__, node.src))
    if node.dtype.kind == INDEX:
        return _with_width(node, src)
    if node.op in COMPARE and node.src[0].dtype.kind == INDEX:
        return make(node.op, node.dtype, _of_one_width(src))
    return node if src == node.src else make(node.op, node.dtype, src, node.arg)


def _with_width(node: UOp, src: tuple[UOp, ...]) -> UOp:
    low, high = bounds(node)
    is_narrow = _NARROW[0] <= low and high <= _NARROW[1]
    dtype = dtypes.int32 if is_narrow else dtypes.int64
    if node.op == Op.CONST:
        return const(_like(dtype, node), node.arg)
    if node.op in (Op.VARIABLE, Op.CAST):
        return make(Op.CAST, _like(dtype, node), src or (node,))
    if node.op == Op.LANES:
        return make(node.op, _like(src[0].dtype.scalar, node), src, node.arg)
    is_choice = node.op == Op.WHERE
    values = _of_one_width(src[1:] if is_choice else src, dtype)
    made = _like(values[-1].dtype.scalar, node)
    return make(node.op, made, (*src[:1], *values) if is_choice else values, node.arg)


def _like(dtype: DType, node: UOp) -> DType:
    return dtype.scalar.vector(node.dtype.lanes)


def _of_one_width(nodes: Sequence[UOp], least: DType = dtypes.int32) -> tuple[UOp, ...]:
    """The nodes in the widest dtype among them and `least`."""
    is_wide = least is dtypes.int64 or any(n.dtype.scalar is dtypes.int64 for n in nodes)
    dtype = dtypes.int64 if is_wide else dtypes.int32
    return tuple([_cast(node, _like(dtype, node)) for node in nodes])


def _cast(node: UOp, dtype: DType) -> UOp:
    if node.dtype is dtype:
        return node
    return const(dtype, node.arg) if node.op == Op.CONST else make(Op.CAST, dtype, (node,))

"""Divisions of vectors whose divisors have lanes that LLVM knows to be 0.

LLVM takes 0 / 0 in such a lane to be 0, not NaN: a choice between the quotient and 0 then becomes
the quotient alone, with its NaN (LLVM 20 to 22, `SimplifyDemandedVectorElts`). These divisions are
written lane by lane. They come of what is masked off in some of the lanes of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.dtypes import FLOAT
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.uop import UOp
from weft.render.llvm.types import scalar_type, value_type
from weft.render.llvm.vectors import join_scalars
from weft.render.llvm.writer import LlvmWriter

_PASSED_ON = ELEMENTWISE | {Op.VECTOR, Op.LANES, Op.SHUFFLE}


def quotients_by_zero(instructions: Sequence[UOp]) -> frozenset[UOp]:
    """The divisions of vectors of floats whose divisor may have lanes that are known to be 0."""
    with_zeros: set[UOp] = set()
    found: set[UOp] = set()
    for node in instructions:
        is_vector = node.dtype.lanes > 1
        if is_vector and node.op == Op.DIV and node.dtype.kind == FLOAT:
            divisor = node.src[1]
            if divisor in with_zeros or _is_zero(divisor):
                found.add(node)
        if node.op == Op.LOAD and node.src[0].op == Op.INDEX:
            mask = node.src[0].src[1]
            if _is_never(mask) or (is_vector and any(map(_is_never, mask.src))):
                with_zeros.add(node)
        elif node.op in _PASSED_ON:
            is_new = node.op == Op.VECTOR and any(map(_is_zero, node.src))
            if is_new or not with_zeros.isdisjoint(node.src):
                with_zeros.add(node)
    return frozenset(found)


def _is_zero(node: UOp) -> bool:
    return node.op == Op.CONST and node.arg == 0


def _is_never(mask: UOp) -> bool:
    return mask.op == Op.CONST and not mask.arg


def write_quotient_by_lanes(writer: LlvmWriter, node: UOp, operands: tuple[str, str]) -> str:
    """A division of vectors as one of each lane."""
    type_name, scalar = value_type(node.dtype), scalar_type(node.dtype)
    quotients = []
    for lane in range(node.dtype.lanes):
        x, y = (
            writer.value(f"extractelement {type_name} {operand}, i64 {lane}")
            for operand in operands
        )
        quotients.append(writer.value(f"fdiv {scalar} {x}, {y}"))
    return join_scalars(writer, scalar, quotients)

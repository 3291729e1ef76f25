"""Elementwise ops as operators.

Operators have fewer dtypes than ops: bools are computed by And, Or and Not, integers below 32 bits
and unsigned ones in wider ones and cut again, floats of 16 bits and fewer in float32.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.ir.dtypes import BOOL, DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.onnx.write.builder import Builder, emits, static_shape

_PLAIN: Final = {
    Op.SQRT: "Sqrt",
    Op.EXP: "Exp",
    Op.LOG: "Log",
    Op.SIN: "Sin",
    Op.COS: "Cos",
    Op.TANH: "Tanh",
    Op.ERF: "Erf",
    Op.FLOOR: "Floor",
    Op.ROUND: "Round",
    Op.NEG: "Neg",
    Op.ADD: "Add",
    Op.MUL: "Mul",
    Op.DIV: "Div",
    Op.POW: "Pow",
    Op.MAX: "Max",
    Op.MIN: "Min",
}
_OF_BOOLS: Final = {
    Op.ADD: "Or",
    Op.OR: "Or",
    Op.MAX: "Or",
    Op.MUL: "And",
    Op.AND: "And",
    Op.MIN: "And",
    Op.XOR: "Xor",
    Op.NOT: "Not",
    Op.EQUAL: "Equal",
}
_OF_BITS: Final = {
    Op.AND: "BitwiseAnd",
    Op.OR: "BitwiseOr",
    Op.XOR: "BitwiseXor",
    Op.NOT: "BitwiseNot",
}
_COMPARISONS: Final = {
    Op.LESS: "Less",
    Op.LESS_EQUAL: "LessOrEqual",
    Op.EQUAL: "Equal",
}


def computing_dtype(dtype: DType) -> DType:
    """The dtype that operators compute this one in."""
    if dtype.is_float:
        return dtypes.float32 if dtype.itemsize < 4 else dtype
    if dtype is dtypes.index or dtype in (dtypes.uint32, dtypes.uint64, dtypes.int64):
        return dtypes.int64
    return dtypes.int32


def operands(b: Builder, node: UOp) -> list[str]:
    """The values of the sources; what is only repeated is left to broadcasting."""
    names, shapes = [], []
    for source in node.src:
        inner = source
        while inner.op == Op.EXPAND and not inner.src[1:]:
            inner = inner.src[0]
        names.append(b.value(inner))
        shapes.append(static_shape(inner))
    if np.broadcast_shapes(*shapes) != static_shape(node):
        return [b.value(source) for source in node.src]
    return names


_ELEMENTWISE: Final = (*_PLAIN, *_OF_BITS, Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCDIV, Op.TRUNCMOD,
                       Op.SHL, Op.SHR, Op.EXP2, Op.LOG2, Op.TRUNC, Op.LOGADD)  # fmt: skip


@emits(*_ELEMENTWISE)
def computed(b: Builder, node: UOp) -> str:
    values = operands(b, node)
    if node.dtype.kind == BOOL:
        return b.add(_OF_BOOLS[node.op], *values)
    if node.op in _OF_BITS and node.dtype is not dtypes.index:
        return b.add(_OF_BITS[node.op], *values)
    wide = computing_dtype(node.dtype)
    ready = [value if wide is node.dtype else b.cast(value, wide) for value in values]
    result = arithmetic(b, node.op, wide, ready)
    return result if wide is node.dtype else b.cast(result, node.dtype)


def arithmetic(b: Builder, op: int, dtype: DType, values: list[str]) -> str:
    """An op in a dtype that operators have."""
    special = _SPECIAL.get(op)
    if special is not None:
        return str(special(b, dtype, *values))
    return b.add(_OF_BITS.get(op) or _PLAIN[op], *values)


def _guarded(b: Builder, dtype: DType, y: str) -> tuple[str, str]:
    """A divisor that is never zero, and where it was."""
    is_zero = b.add("Equal", y, b.scalar(0, dtype))
    return b.add("Where", is_zero, b.scalar(1, dtype), y), is_zero


def _trunc_div(b: Builder, dtype: DType, x: str, y: str) -> str:
    safe, is_zero = _guarded(b, dtype, y)
    return b.add("Where", is_zero, b.scalar(0, dtype), b.add("Div", x, safe))


def _floor_div(b: Builder, dtype: DType, x: str, y: str) -> str:
    if dtype.is_float:
        return b.add("Floor", b.add("Div", x, y))
    safe, is_zero = _guarded(b, dtype, y)
    rest = b.add("Mod", x, safe)  # the sign of the divisor, so that the rest divides evenly
    quotient = b.add("Div", b.add("Sub", x, rest), safe)
    return b.add("Where", is_zero, b.scalar(0, dtype), quotient)


def _floor_mod(b: Builder, dtype: DType, x: str, y: str) -> str:
    zero = b.scalar(0, dtype)
    if not dtype.is_float:
        safe, is_zero = _guarded(b, dtype, y)
        return b.add("Where", is_zero, zero, b.add("Mod", x, safe))
    rest = b.add("Mod", x, y, fmod=1)
    signs = b.add("Xor", b.add("Less", rest, zero), b.add("Less", y, zero))
    is_off = b.add("And", b.add("Not", b.add("Equal", rest, zero)), signs)
    return b.add("Where", is_off, b.add("Add", rest, y), rest)


def _trunc_mod(b: Builder, dtype: DType, x: str, y: str) -> str:
    if dtype.is_float:
        return b.add("Mod", x, y, fmod=1)
    safe, is_zero = _guarded(b, dtype, y)
    return b.add("Where", is_zero, b.scalar(0, dtype), b.add("Mod", x, safe, fmod=1))


def _trunc(b: Builder, dtype: DType, x: str) -> str:
    is_below = b.add("Less", x, b.scalar(0, dtype))
    return b.add("Where", is_below, b.add("Ceil", x), b.add("Floor", x))


def _exp2(b: Builder, dtype: DType, x: str) -> str:
    return b.add("Pow", b.scalar(2.0, dtype), x)


def _log2(b: Builder, dtype: DType, x: str) -> str:
    return b.add("Mul", b.add("Log", x), b.scalar(1 / math.log(2), dtype))


def _log_add(b: Builder, dtype: DType, x: str, y: str) -> str:
    most, least = b.add("Max", x, y), b.add("Min", x, y)
    is_same = b.add("Equal", x, y)  # also where both are infinite
    gap = b.add("Where", is_same, b.scalar(0, dtype), b.add("Sub", least, most))
    rest = b.add("Log", b.add("Add", b.add("Exp", gap), b.scalar(1, dtype)))
    return b.add("Add", most, rest)


def _power_of_two(b: Builder, y: str) -> str:
    return b.cast(b.add("Pow", b.scalar(2.0, dtypes.float64), b.cast(y, dtypes.float64)),
                  dtypes.int64)  # fmt: skip


def _shift_left(b: Builder, dtype: DType, x: str, y: str) -> str:
    product = b.add("Mul", b.cast(x, dtypes.int64), _power_of_two(b, y))
    return b.cast(product, dtype)


def _shift_right(b: Builder, dtype: DType, x: str, y: str) -> str:
    quotient = _floor_div(b, dtypes.int64, b.cast(x, dtypes.int64), _power_of_two(b, y))
    return b.cast(quotient, dtype)


_SPECIAL: Final[dict[int, Any]] = {
    Op.TRUNCDIV: _trunc_div,
    Op.FLOORDIV: _floor_div,
    Op.FLOORMOD: _floor_mod,
    Op.TRUNCMOD: _trunc_mod,
    Op.TRUNC: _trunc,
    Op.EXP2: _exp2,
    Op.LOG2: _log2,
    Op.LOGADD: _log_add,
    Op.SHL: _shift_left,
    Op.SHR: _shift_right,
}


@emits(*_COMPARISONS)
def compared(b: Builder, node: UOp) -> str:
    values = operands(b, node)
    source = node.src[0].dtype
    if source.kind == BOOL:
        if node.op == Op.EQUAL:
            return b.add("Equal", *values)
        left, right = values  # false is less than true
        lesser = b.add("And" if node.op == Op.LESS else "Or", b.add("Not", left), right)
        return lesser
    wide = computing_dtype(source)
    ready = [value if wide is source else b.cast(value, wide) for value in values]
    return b.add(_COMPARISONS[node.op], *ready)


@emits(Op.WHERE)
def chosen(b: Builder, node: UOp) -> str:
    condition, left, right = operands(b, node)
    if node.dtype.kind == BOOL:
        yes = b.add("And", condition, left)
        return b.add("Or", yes, b.add("And", b.add("Not", condition), right))
    wide = computing_dtype(node.dtype)
    if wide is node.dtype:
        return b.add("Where", condition, left, right)
    return b.cast(b.add("Where", condition, b.cast(left, wide), b.cast(right, wide)), node.dtype)


@emits(Op.CAST)
def converted(b: Builder, node: UOp) -> str:
    value, source = b.value(node.src[0]), node.src[0].dtype
    if node.dtype.kind == BOOL and source.kind != BOOL:
        wide = computing_dtype(source)
        ready = value if wide is source else b.cast(value, wide)
        return b.add("Not", b.add("Equal", ready, b.scalar(0, wide)))
    if source is dtypes.index and node.dtype is dtypes.int64:
        return value
    return b.cast(value, node.dtype)


@emits(Op.BITCAST)
def same_bits(b: Builder, node: UOp) -> str:
    from weft.onnx.write.builder import element

    return b.add("BitCast", b.value(node.src[0]), to=element(node.dtype))

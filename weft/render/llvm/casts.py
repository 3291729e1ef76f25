"""CAST and BITCAST as LLVM instructions, with the meaning the op table gives them."""

from __future__ import annotations

from weft.ir.dtypes import BOOL, FLOAT, UINT, DType, dtypes
from weft.render.llvm.types import suffix, value_type, with_lanes, zero
from weft.render.llvm.writer import Writer


def write_cast(writer: Writer, source: DType, target: DType, operand: str) -> str:
    """The value in another dtype with as many lanes."""
    if source.kind == target.kind and source.bits == target.bits:
        return operand
    if target.kind == BOOL:
        compare = "fcmp une" if source.kind == FLOAT else "icmp ne"
        nothing = zero(value_type(source))
        return writer.value(f"{compare} {value_type(source)} {operand}, {nothing}")
    if target.kind == FLOAT:
        return _to_float(writer, source, target, operand)
    if source.kind == FLOAT:
        return _float_to_integer(writer, source, target, operand)
    if source.kind == BOOL or source.bits < target.bits:
        extend = "zext" if source.kind in (BOOL, UINT) else "sext"
        return _convert(writer, extend, value_type(source), value_type(target), operand)
    return _convert(writer, "trunc", value_type(source), value_type(target), operand)


def _convert(writer: Writer, instruction: str, source: str, target: str, operand: str) -> str:
    """A conversion between LLVM types; between types of one width there is nothing to do."""
    if source == target:
        return operand
    return writer.value(f"{instruction} {source} {operand} to {target}")


def _to_float(writer: Writer, source: DType, target: DType, operand: str) -> str:
    if source.kind == FLOAT:
        instruction = "fpext" if source.bits < target.bits else "fptrunc"
    else:
        instruction = "uitofp" if source.kind in (BOOL, UINT) else "sitofp"
    return _convert(writer, instruction, value_type(source), value_type(target), operand)


def _float_to_integer(writer: Writer, source: DType, target: DType, operand: str) -> str:
    """Truncate to the nearest value of a middle integer type, NaN to 0, which then wraps."""
    is_wide = target.bits == 64 or (target.kind == UINT and target.bits == 32)
    middle = with_lanes("i64" if is_wide else "i32", source.lanes)
    number = _saturate(writer, "s", source, middle, operand)
    if target.kind == UINT and target.bits == 64:  # which reaches its own limit
        positive = _saturate(writer, "u", source, middle, operand)
        none = zero(value_type(source))
        is_negative = writer.value(f"fcmp olt {value_type(source)} {operand}, {none}")
        mask = with_lanes("i1", source.lanes)
        number = writer.select((mask, is_negative), middle, number, positive)
    return _convert(writer, "trunc", middle, value_type(target), number)


def _saturate(writer: Writer, sign: str, source: DType, middle: str, operand: str) -> str:
    source_type = value_type(source)
    function = f"llvm.fpto{sign}i.sat.{suffix(middle)}.{suffix(source_type)}"
    return writer.call(function, middle, (source_type, operand))


def write_bitcast(writer: Writer, source: DType, target: DType, operand: str) -> str:
    """The same bits as another dtype."""
    return _convert(writer, "bitcast", value_type(source), value_type(target), operand)


def widen(writer: Writer, source: DType, operand: str) -> str:
    """An integer as the int64 of equal value."""
    return write_cast(writer, source, dtypes.int64, operand)


def narrow(writer: Writer, target: DType, operand: str) -> str:
    """An int64 as an integer that is known to hold it."""
    return write_cast(writer, dtypes.int64, target, operand)

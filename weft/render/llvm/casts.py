"""CAST and BITCAST as LLVM instructions, with the meaning the op table gives them."""

from __future__ import annotations

import math
from typing import Final

from weft.ir.dtypes import BOOL, FLOAT, UINT, DType, dtypes
from weft.render.llvm.types import literal, suffix, value_type, with_lanes, zero
from weft.render.llvm.writer import LlvmWriter


def write_cast(
    writer: LlvmWriter,
    source: DType,
    target: DType,
    operand: str,
    saturates: bool = True,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> str:
    """The value in another dtype with as many lanes.

    Vectors of floats become integers by compares where the machine does not saturate them itself:
    LLVM would take them apart. `bounds` are those of a float that is not NaN.
    """
    if source.kind == target.kind and source.bits == target.bits:
        return operand
    if target.kind == BOOL:
        compare = "fcmp une" if source.kind == FLOAT else "icmp ne"
        nothing = zero(value_type(source))
        return writer.value(f"{compare} {value_type(source)} {operand}, {nothing}")
    if target.kind == FLOAT:
        return _to_float(writer, source, target, operand)
    if source.kind == FLOAT:
        return _float_to_integer(writer, source, target, operand, saturates, bounds)
    if source.kind == BOOL or source.bits < target.bits:
        extend = "zext" if source.kind in (BOOL, UINT) else "sext"
        return _convert(writer, extend, value_type(source), value_type(target), operand)
    return _convert(writer, "trunc", value_type(source), value_type(target), operand)


def _convert(writer: LlvmWriter, instruction: str, source: str, target: str, operand: str) -> str:
    """A conversion between LLVM types; between types of one width there is nothing to do."""
    if source == target:
        return operand
    return writer.value(f"{instruction} {source} {operand} to {target}")


def _to_float(writer: LlvmWriter, source: DType, target: DType, operand: str) -> str:
    if source.kind == FLOAT:
        instruction = "fpext" if source.bits < target.bits else "fptrunc"
    else:
        instruction = "uitofp" if source.kind in (BOOL, UINT) else "sitofp"
    return _convert(writer, instruction, value_type(source), value_type(target), operand)


def _float_to_integer(
    writer: LlvmWriter,
    source: DType,
    target: DType,
    operand: str,
    saturates: bool,
    bounds: tuple[float, float],
) -> str:
    """Truncate to the nearest value of a middle integer type, NaN to 0, which then wraps."""
    is_wide = target.bits == 64 or (target.kind == UINT and target.bits == 32)
    whole = (dtypes.int64 if is_wide else dtypes.int32).vector(source.lanes)
    middle = value_type(whole)
    if saturates or source.lanes == 1:
        number = _saturate(writer, "s", source, middle, operand)
    elif max(-bounds[0], bounds[1]) < 2.0 ** (whole.bits - 1):
        number = _convert_bounded(writer, source, whole, operand)
    else:
        number = _saturate_by_compares(writer, source, whole, operand)
    if target.kind == UINT and target.bits == 64:  # which reaches its own limit
        positive = _saturate(writer, "u", source, middle, operand)
        none = zero(value_type(source))
        is_negative = writer.value(f"fcmp olt {value_type(source)} {operand}, {none}")
        mask = with_lanes("i1", source.lanes)
        number = writer.select((mask, is_negative), middle, number, positive)
    return _convert(writer, "trunc", middle, value_type(target), number)


def _saturate(writer: LlvmWriter, sign: str, source: DType, middle: str, operand: str) -> str:
    source_type = value_type(source)
    function = f"llvm.fpto{sign}i.sat.{suffix(middle)}.{suffix(source_type)}"
    return writer.call(function, middle, (source_type, operand))


def _saturate_by_compares(writer: LlvmWriter, source: DType, target: DType, operand: str) -> str:
    """The same, of compares and a conversion of what is in range."""
    kind, mask = value_type(source), with_lanes("i1", source.lanes)
    edge = float(1 << target.bits - 1)
    inside = writer.value(f"fcmp olt {kind} {operand}, {literal(source, edge)}")
    above = writer.value(f"fcmp ogt {kind} {operand}, {literal(source, -edge)}")
    low = writer.select((mask, above), kind, operand, literal(source, -edge))  # NaN, too
    safe = writer.select((mask, inside), kind, low, zero(kind))
    number = writer.value(f"fptosi {kind} {safe} to {value_type(target)}")
    is_past = writer.value(f"fcmp oge {kind} {operand}, {literal(source, edge)}")
    most = literal(target, (1 << target.bits - 1) - 1)
    return writer.select((mask, is_past), value_type(target), most, number)


def _convert_bounded(writer: LlvmWriter, source: DType, target: DType, operand: str) -> str:
    """The same of what fits or is NaN."""
    kind, mask = value_type(source), with_lanes("i1", source.lanes)
    is_number = writer.value(f"fcmp ord {kind} {operand}, {operand}")
    safe = writer.select((mask, is_number), kind, operand, zero(kind))
    return writer.value(f"fptosi {kind} {safe} to {value_type(target)}")


# How PTX names small floats.
_HALVES: Final = {"float16": "f16", "bfloat16": "bf16"}


def write_rounded_pair(writer: LlvmWriter, dtype: DType, low: str, high: str) -> str:
    """Two float32s, rounded to 16 bits, as one i32: an instruction of NVIDIA GPUs."""
    instruction = f"cvt.rn.{_HALVES[dtype.scalar.name]}x2.f32 $0, $2, $1;"
    return writer.value(f'call i32 asm "{instruction}", "=r,f,f"(float {low}, float {high})')


def write_rounded(writer: LlvmWriter, dtype: DType, operand: str) -> str:
    """A float32, rounded to 16 bits; that of a single one takes several times as long."""
    pair = write_rounded_pair(writer, dtype, operand, zero("float"))
    bits = writer.value(f"trunc i32 {pair} to i16")
    return writer.value(f"bitcast i16 {bits} to {value_type(dtype)}")


def write_bitcast(writer: LlvmWriter, source: DType, target: DType, operand: str) -> str:
    """The same bits as another dtype."""
    return _convert(writer, "bitcast", value_type(source), value_type(target), operand)


def widen(writer: LlvmWriter, source: DType, operand: str) -> str:
    """An integer as the int64 of equal value."""
    return write_cast(writer, source, dtypes.int64, operand)


def narrow(writer: LlvmWriter, target: DType, operand: str) -> str:
    """An int64 as an integer that is known to hold it."""
    return write_cast(writer, dtypes.int64, target, operand)

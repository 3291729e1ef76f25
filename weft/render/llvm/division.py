"""Division and remainder as LLVM instructions, by rounding down or to zero.

LLVM leaves a division of integers by 0 undefined, and that of the least integer by -1, which x86
traps on. Unless the interval of the divisor excludes both, such a divisor is replaced by 1 and the
quotient is x * y: that is 0 for y = 0, and -x, wrapped, for y = -1. The remainder is then 0.
"""

from __future__ import annotations

from weft.ir.dtypes import UINT, DType, dtypes
from weft.ir.ops import Op
from weft.render.llvm.casts import write_cast
from weft.render.llvm.facts import Facts
from weft.render.llvm.types import literal, value_type, with_lanes, zero
from weft.render.llvm.writer import LlvmWriter

_FLOORS = (Op.FLOORDIV, Op.FLOORMOD)
_QUOTIENTS = (Op.FLOORDIV, Op.TRUNCDIV)


def write_integer_division(
    writer: LlvmWriter, op: int, dtype: DType, operands: tuple[str, ...], facts: Facts
) -> str:
    """One of FLOORDIV, FLOORMOD, TRUNCDIV and TRUNCMOD; 0 where the divisor is 0."""
    x, y = operands
    type_name, mask = value_type(dtype), with_lanes("i1", dtype.lanes)
    is_natural = dtype.kind == UINT or (facts.left[0] >= 0 and facts.right[0] >= 0)
    least, most = facts.right
    if least == most and least > 0 and least & least - 1 == 0 and (is_natural or op in _FLOORS):
        return _by_power_of_two(writer, op, dtype, x, least, is_natural)
    sign = "u" if is_natural else "s"
    divisor, is_odd = y, ""
    if least <= 0 <= most or (not is_natural and least <= -1 <= most):
        is_odd = _is_odd_divisor(writer, dtype, y, is_natural)
        divisor = writer.select((mask, is_odd), type_name, literal(dtype, 1), y)
    if op in _QUOTIENTS:
        result = writer.value(f"{sign}div {type_name} {x}, {divisor}")
    else:
        result = writer.value(f"{sign}rem {type_name} {x}, {divisor}")
    if op in _FLOORS and not is_natural:
        result = _round_down(writer, op, dtype, x, divisor, result)
    if is_odd and op in _QUOTIENTS:
        product = writer.value(f"mul {type_name} {x}, {y}")
        result = writer.select((mask, is_odd), type_name, product, result)
    return result


def _is_odd_divisor(writer: LlvmWriter, dtype: DType, y: str, is_natural: bool) -> str:
    """Whether y is 0 or, among signed integers, -1."""
    type_name = value_type(dtype)
    if is_natural:
        return writer.value(f"icmp eq {type_name} {y}, {zero(type_name)}")
    shifted = writer.value(f"add {type_name} {y}, {literal(dtype, 1)}")
    return writer.value(f"icmp ult {type_name} {shifted}, {literal(dtype, 2)}")


def _by_power_of_two(
    writer: LlvmWriter, op: int, dtype: DType, x: str, divisor: int, is_natural: bool
) -> str:
    """A shift or a mask; of signed integers both round down."""
    type_name = value_type(dtype)
    if op not in _QUOTIENTS:
        return writer.value(f"and {type_name} {x}, {literal(dtype, divisor - 1)}")
    shift = "lshr" if is_natural else "ashr"
    amount = literal(dtype, divisor.bit_length() - 1)
    return writer.value(f"{shift} {type_name} {x}, {amount}")


def _round_down(writer: LlvmWriter, op: int, dtype: DType, x: str, y: str, result: str) -> str:
    """Iteration a quotient or remainder that was rounded to zero into one that is rounded down."""
    type_name, mask = value_type(dtype), with_lanes("i1", dtype.lanes)
    rest = result
    if op == Op.FLOORDIV:
        product = writer.value(f"mul {type_name} {result}, {y}")
        rest = writer.value(f"sub {type_name} {x}, {product}")
    unlike = writer.value(f"xor {type_name} {rest}, {y}")
    has_other_sign = writer.value(f"icmp slt {type_name} {unlike}, {zero(type_name)}")
    is_inexact = writer.value(f"icmp ne {type_name} {rest}, {zero(type_name)}")
    is_off = writer.value(f"and {mask} {has_other_sign}, {is_inexact}")
    if op == Op.FLOORDIV:
        minus_one = writer.value(f"sext {mask} {is_off} to {type_name}")
        return writer.value(f"add {type_name} {result}, {minus_one}")
    correction = writer.select((mask, is_off), type_name, y, zero(type_name))
    return writer.value(f"add {type_name} {result}, {correction}")


def write_float_division(
    writer: LlvmWriter, op: int, dtype: DType, operands: tuple[str, ...]
) -> str:
    """FLOORDIV, FLOORMOD or TRUNCMOD of floats, computed in float64 and rounded once."""
    double = dtypes.float64.vector(dtype.lanes)
    x, y = (write_cast(writer, dtype, double, operand) for operand in operands)
    type_name = value_type(double)
    result = writer.value(f"frem {type_name} {x}, {y}")
    if op != Op.TRUNCMOD:
        finish = _floormod if op == Op.FLOORMOD else _floordiv
        result = finish(writer, type_name, with_lanes("i1", dtype.lanes), x, y, result)
    return write_cast(writer, double, dtype, result)


def _has_other_sign(writer: LlvmWriter, type_name: str, mask: str, rest: str, y: str) -> str:
    """Whether a remainder is there and has another sign than the divisor."""
    none = zero(type_name)
    is_inexact = writer.value(f"fcmp one {type_name} {rest}, {none}")
    below = writer.value(f"fcmp olt {type_name} {rest}, {none}")
    divisor_below = writer.value(f"fcmp olt {type_name} {y}, {none}")
    unlike = writer.value(f"xor {mask} {below}, {divisor_below}")
    return writer.value(f"and {mask} {is_inexact}, {unlike}")


def _floormod(writer: LlvmWriter, type_name: str, mask: str, x: str, y: str, rest: str) -> str:
    is_off = _has_other_sign(writer, type_name, mask, rest, y)
    raised = writer.value(f"fadd {type_name} {rest}, {y}")
    result = writer.select((mask, is_off), type_name, raised, rest)
    is_exact = writer.value(f"fcmp oeq {type_name} {rest}, {zero(type_name)}")
    signed_zero = writer.intrinsic("copysign", type_name, rest, y)
    return writer.select((mask, is_exact), type_name, signed_zero, result)


def _floordiv(writer: LlvmWriter, type_name: str, mask: str, x: str, y: str, rest: str) -> str:
    """The quotient that goes with FLOORMOD: integral but for a rounding error of either sign."""
    double = dtypes.float64
    lanes = 1 if mask == "i1" else int(mask[1:].partition(" ")[0])
    one, half = (literal(double.vector(lanes), number) for number in (1.0, 0.5))
    none = zero(type_name)
    is_off = _has_other_sign(writer, type_name, mask, rest, y)
    multiple = writer.value(f"fsub {type_name} {x}, {rest}")
    quotient = writer.value(f"fdiv {type_name} {multiple}, {y}")
    lowered = writer.value(f"fsub {type_name} {quotient}, {one}")
    quotient = writer.select((mask, is_off), type_name, lowered, quotient)
    down = writer.intrinsic("floor", type_name, quotient)
    excess = writer.value(f"fsub {type_name} {quotient}, {down}")
    is_high = writer.value(f"fcmp ogt {type_name} {excess}, {half}")
    raised = writer.value(f"fadd {type_name} {down}, {one}")
    result = writer.select((mask, is_high), type_name, raised, down)
    plain = writer.value(f"fdiv {type_name} {x}, {y}")
    is_zero = writer.value(f"fcmp oeq {type_name} {quotient}, {none}")
    signed_zero = writer.intrinsic("copysign", type_name, none, plain)
    result = writer.select((mask, is_zero), type_name, signed_zero, result)
    by_zero = writer.value(f"fcmp oeq {type_name} {y}, {none}")
    return writer.select((mask, by_zero), type_name, plain, result)

"""Elementwise ops but WHERE as LLVM instructions, with the exact meaning of `weft.ir.ops`.

`write_op` is called by the renderer for each such instruction. Where LLVM leaves a case undefined
(a division by zero, a shift past the width) and intervals do not exclude it, the case is written
out, so codegen need not guard against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from weft.ir.dtypes import BOOL, FLOAT, UINT, DType, Scalar
from weft.ir.ops import Op, name
from weft.render.llvm.casts import write_bitcast, write_cast
from weft.render.llvm.division import write_float_division, write_integer_division
from weft.render.llvm.facts import Facts
from weft.render.llvm.float_facts import ANY
from weft.render.llvm.functions import (
    FLOAT32_DIGITS,
    FUNCTIONS,
    write_function,
    write_safe_quotient,
)
from weft.render.llvm.types import literal, value_type, with_lanes, zero
from weft.render.llvm.writer import LlvmWriter
from weft.support.errors import InternalError


@dataclass(frozen=True, slots=True)
class LlvmOperation:
    """An elementwise instruction: its op, dtypes and operands, and what is known of it."""

    op: int
    dtype: DType
    source: DType  # of the last operand
    operands: tuple[str, ...]
    facts: Facts
    constant: Scalar | None = None  # the second operand, where it is known
    numerator: float | None = None  # the first one, of a division
    has_maximum: bool = False  # the machine has MAX and MIN with NaN as one instruction
    flips_extremes: bool = False  # MAX and MIN of integers take no negations
    saturates: bool = True  # vectors of floats become integers by one instruction
    digits: int = FLOAT32_DIGITS  # of the result that are looked at
    is_tame: bool = False  # a quotient far from the ends of float32
    bounds: tuple[float, float] = ANY  # of a float that is cast

    @property
    def type_name(self) -> str:
        return value_type(self.source)

    @property
    def mask(self) -> str:
        return with_lanes("i1", self.source.lanes)


# Words in a vector of the instruction that multiplies bytes.
_LEAST_WORDS: Final = 4
_MOST_WORDS: Final = 16

_Form = Callable[[LlvmWriter, LlvmOperation], str]


def write_op(writer: LlvmWriter, step: LlvmOperation) -> str:
    """Write an elementwise instruction and return its result."""
    kind = step.source.kind
    table = _FLOAT if kind == FLOAT else _BOOL if kind == BOOL else _INTEGER
    form = table.get(step.op) or _COMMON.get(step.op)
    if form is None:
        raise InternalError(f"LLVM has no {name(step.op)} of {step.source.name}")
    return form(writer, step)


def _binary(instruction: str) -> _Form:
    def write(writer: LlvmWriter, step: LlvmOperation) -> str:
        x, y = step.operands
        return writer.value(f"{instruction} {step.type_name} {x}, {y}")

    return write


def _intrinsic(stem: str) -> _Form:
    return lambda writer, step: writer.intrinsic(stem, step.type_name, *step.operands)


def _signed(stem: str) -> _Form:
    """An intrinsic that exists for signed and for unsigned integers."""

    def write(writer: LlvmWriter, step: LlvmOperation) -> str:
        sign = "u" if step.source.kind == UINT else "s"
        if step.flips_extremes and step.source.bits <= 32:
            return _flipped_extreme(writer, step, sign, stem)
        return writer.intrinsic(sign + stem, step.type_name, *step.operands)

    return write


def _flipped_extreme(writer: LlvmWriter, step: LlvmOperation, sign: str, stem: str) -> str:
    """The greater or smaller integer, of operands with their first bit flipped and the other sign.

    No operand of the instruction is a negation then. LLVM and ptxas leave this as it is.
    """
    wide, bits, other = step.operands, step.source.bits, "s" if sign == "u" else "u"
    if bits < 32:
        extend = "zext" if sign == "u" else "sext"
        wide = tuple(writer.value(f"{extend} {step.type_name} {x} to i32") for x in step.operands)
    flip = "xor.b32 {}, {}, 0x80000000;"
    code = (
        f"{{ .reg .b32 a, b; {flip.format('a', '$1')} {flip.format('b', '$2')} "
        f"{stem}.{other}32 a, a, b; {flip.format('$0', 'a')} }}"
    )
    chosen = writer.value(f'call i32 asm "{code}", "=r,r,r"(i32 {wide[0]}, i32 {wide[1]})')
    return chosen if bits == 32 else writer.value(f"trunc i32 {chosen} to {step.type_name}")


def _wrapping(instruction: str) -> _Form:
    def write(writer: LlvmWriter, step: LlvmOperation) -> str:
        x, y = step.operands
        flag = " nsw" if step.facts.never_wraps and step.source.kind != UINT else ""
        return writer.value(f"{instruction}{flag} {step.type_name} {x}, {y}")

    return write


def _rounding(instruction: str) -> _Form:
    def write(writer: LlvmWriter, step: LlvmOperation) -> str:
        x, y = step.operands
        flag = " contract" if step.facts.contracts else ""
        return writer.value(f"{instruction}{flag} {step.type_name} {x}, {y}")

    return write


def _negate_integer(writer: LlvmWriter, step: LlvmOperation) -> str:
    return writer.value(f"sub {step.type_name} {zero(step.type_name)}, {step.operands[0]}")


def _negate_float(writer: LlvmWriter, step: LlvmOperation) -> str:
    return writer.value(f"fneg {step.type_name} {step.operands[0]}")


def _invert(writer: LlvmWriter, step: LlvmOperation) -> str:
    ones = literal(step.source, True if step.source.kind == BOOL else -1)
    return writer.value(f"xor {step.type_name} {step.operands[0]}, {ones}")


def _is_inside(step: LlvmOperation) -> bool:
    """Whether an amount is below the width; LLVM defines no other, negative ones included."""
    low, high = step.facts.right
    return low >= 0 and high < step.source.bits


def _shift_left(writer: LlvmWriter, step: LlvmOperation) -> str:
    x, amount = step.operands
    shifted = writer.value(f"shl {step.type_name} {x}, {amount}")
    if _is_inside(step):
        return shifted
    width = literal(step.source, step.source.bits)
    fits = writer.value(f"icmp ult {step.type_name} {amount}, {width}")
    return writer.select((step.mask, fits), step.type_name, shifted, zero(step.type_name))


def _shift_right(writer: LlvmWriter, step: LlvmOperation) -> str:
    x, amount = step.operands
    bits, type_name = step.source.bits, step.type_name
    fits = _is_inside(step)
    if step.source.kind != UINT:
        if not fits:  # further shifts fill with the sign too
            amount = writer.intrinsic("umin", type_name, amount, literal(step.source, bits - 1))
        return writer.value(f"ashr {type_name} {x}, {amount}")
    shifted = writer.value(f"lshr {type_name} {x}, {amount}")
    if fits:
        return shifted
    inside = writer.value(f"icmp ult {type_name} {amount}, {literal(step.source, bits)}")
    return writer.select((step.mask, inside), type_name, shifted, zero(type_name))


def _compare(float_word: str, integer_word: str) -> _Form:
    def write(writer: LlvmWriter, step: LlvmOperation) -> str:
        x, y = step.operands
        if step.source.kind == FLOAT:
            return writer.value(f"fcmp o{float_word} {step.type_name} {x}, {y}")
        is_unsigned = step.source.kind in (UINT, BOOL)
        sign = "" if integer_word == "eq" else "u" if is_unsigned else "s"
        return writer.value(f"icmp {sign}{integer_word} {step.type_name} {x}, {y}")

    return write


def _extreme(greater: str, stem: str) -> _Form:
    """MAX and MIN of floats: NaN if either is.

    One instruction where the machine has it. On x86 a comparison and a choice are half as many
    instructions as the intrinsic, which also orders -0.0 below 0.0; between two zeros of unlike
    signs this form may choose either. Against a constant that is not a NaN it chooses exactly.
    """

    def write(writer: LlvmWriter, step: LlvmOperation) -> str:
        type_name, (x, y) = step.type_name, step.operands
        constant = step.constant
        if step.has_maximum or (constant is not None and math.isnan(constant)):
            return writer.intrinsic(stem, type_name, x, y)
        if constant is not None:
            keeps_zero = constant == 0 and (math.copysign(1.0, constant) < 0) == (greater == "gt")
            word = "u" + (greater[0] + "e" if keeps_zero else greater)
            chosen = writer.value(f"fcmp {word} {type_name} {x}, {y}")
            return writer.select((step.mask, chosen), type_name, x, y)
        chosen = writer.value(f"fcmp o{greater} {type_name} {x}, {y}")
        result = writer.select((step.mask, chosen), type_name, x, y)
        is_nan = writer.value(f"fcmp uno {type_name} {x}, {x}")
        return writer.select((step.mask, is_nan), type_name, x, result)

    return write


def _cast(writer: LlvmWriter, step: LlvmOperation) -> str:
    x = step.operands[0]
    return write_cast(writer, step.source, step.dtype, x, step.saturates, step.bounds)


def _bitcast(writer: LlvmWriter, step: LlvmOperation) -> str:
    return write_bitcast(writer, step.source, step.dtype, step.operands[0])


def _divide(writer: LlvmWriter, step: LlvmOperation) -> str:
    x, y = step.operands
    if step.is_tame:
        return write_safe_quotient(writer, step.numerator, x, y)
    return writer.value(f"fdiv {step.type_name} {x}, {y}")


def _function(writer: LlvmWriter, step: LlvmOperation) -> str:
    return write_function(writer, step.op, step.operands[0], step.digits)


def _divide_integers(writer: LlvmWriter, step: LlvmOperation) -> str:
    return write_integer_division(writer, step.op, step.source, step.operands, step.facts)


def _divide_floats(writer: LlvmWriter, step: LlvmOperation) -> str:
    return write_float_division(writer, step.op, step.source, step.operands)


def _dot_bytes(writer: LlvmWriter, step: LlvmOperation) -> str:
    x, y = step.operands
    return _summed_bytes(writer, step.source.lanes, zero(step.type_name), x, y)


def _summed_bytes(writer: LlvmWriter, lanes: int, total: str, x: str, y: str) -> str:
    """The instruction for 4, 8 or 16 words; other numbers are made of these."""
    if lanes > _MOST_WORDS:
        half = lanes // 2
        halves = []
        for start in (0, half):
            numbers = range(start, start + half)
            parts = (_picked(writer, lanes, each, numbers) for each in (total, x, y))
            halves.append(_summed_bytes(writer, half, *parts))
        return _joined(writer, half, halves)
    if lanes < _LEAST_WORDS:
        widened = (_widened(writer, lanes, each) for each in (total, x, y))
        whole = _summed_bytes(writer, _LEAST_WORDS, *widened)
        if lanes == 1:
            return writer.value(f"extractelement <{_LEAST_WORDS} x i32> {whole}, i32 0")
        return _picked(writer, _LEAST_WORDS, whole, range(lanes))
    kind = f"<{lanes} x i32>"
    stem = f"llvm.x86.avx512.vpdpbusd.{lanes * 32}"
    return writer.call(stem, kind, (kind, total), (kind, x), (kind, y))


def _picked(writer: LlvmWriter, lanes: int, value: str, numbers: Sequence[int]) -> str:
    kind = f"<{lanes} x i32>"
    mask = ", ".join(f"i32 {number}" for number in numbers)
    return writer.value(
        f"shufflevector {kind} {value}, {kind} poison, <{len(numbers)} x i32> <{mask}>"
    )


def _joined(writer: LlvmWriter, half: int, halves: list[str]) -> str:
    kind = f"<{half} x i32>"
    mask = ", ".join(f"i32 {number}" for number in range(2 * half))
    low, high = halves
    return writer.value(f"shufflevector {kind} {low}, {kind} {high}, <{2 * half} x i32> <{mask}>")


def _widened(writer: LlvmWriter, lanes: int, value: str) -> str:
    """A vector of the least width that starts with these lanes."""
    if lanes == 1:
        return writer.value(f"insertelement <{_LEAST_WORDS} x i32> poison, i32 {value}, i32 0")
    return _picked(writer, lanes, value, [*range(lanes), *[0] * (_LEAST_WORDS - lanes)])


_COMMON: Final[dict[int, _Form]] = {
    Op.LESS: _compare("lt", "lt"),
    Op.LESS_EQUAL: _compare("le", "le"),
    Op.EQUAL: _compare("eq", "eq"),
    Op.CAST: _cast,
    Op.BITCAST: _bitcast,
}
_BOOL: Final[dict[int, _Form]] = {
    **dict.fromkeys((Op.AND, Op.MIN, Op.MUL), _binary("and")),
    **dict.fromkeys((Op.OR, Op.MAX, Op.ADD), _binary("or")),
    Op.XOR: _binary("xor"),
    Op.NOT: _invert,
}
_INTEGER: Final[dict[int, _Form]] = {
    Op.ADD: _wrapping("add"),
    Op.MUL: _wrapping("mul"),
    Op.NEG: _negate_integer,
    Op.AND: _binary("and"),
    Op.OR: _binary("or"),
    Op.XOR: _binary("xor"),
    Op.DOT_BYTES: _dot_bytes,
    Op.NOT: _invert,
    Op.SHL: _shift_left,
    Op.SHR: _shift_right,
    Op.MAX: _signed("max"),
    Op.MIN: _signed("min"),
    Op.FLOORDIV: _divide_integers,
    Op.FLOORMOD: _divide_integers,
    Op.TRUNCDIV: _divide_integers,
    Op.TRUNCMOD: _divide_integers,
}
_FLOAT: Final[dict[int, _Form]] = {
    Op.ADD: _rounding("fadd"),
    Op.MUL: _rounding("fmul"),
    Op.DIV: _divide,
    Op.NEG: _negate_float,
    Op.MAX: _extreme("gt", "maximum"),
    Op.MIN: _extreme("lt", "minimum"),
    Op.SQRT: _intrinsic("sqrt"),
    Op.FLOOR: _intrinsic("floor"),
    Op.TRUNC: _intrinsic("trunc"),
    Op.ROUND: _intrinsic("rint"),
    Op.FLOORDIV: _divide_floats,
    Op.FLOORMOD: _divide_floats,
    Op.TRUNCMOD: _divide_floats,
    **dict.fromkeys(FUNCTIONS, _function),
}


def write_summed_bytes(writer: LlvmWriter, step: LlvmOperation) -> str:
    """`x + DOT_BYTES(y, z)`, one instruction."""
    total, x, y = step.operands
    return _summed_bytes(writer, step.source.lanes, total, x, y)


def write_difference(writer: LlvmWriter, step: LlvmOperation) -> str:
    """`x - y` of floats, for a sum with a negated term."""
    return _rounding("fsub")(writer, step)

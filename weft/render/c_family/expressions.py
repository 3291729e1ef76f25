"""Elementwise ops as expressions of a C-like language, one scalar at a time.

`Expressions.spell` writes one op on texts of its operands and means exactly what `weft/ir/ops.py`
says: integers wrap, division by zero gives 0, MAX propagates NaN. What no operator says exactly
becomes a call of a function from `c_family_helpers`. Each operand is written once.
"""

from __future__ import annotations

from typing import Final

from weft.ir.bounds import bounds, dtype_limits
from weft.ir.dtypes import BOOL, FLOAT, INT, INTEGER, UINT, DType, dtypes
from weft.ir.ops import Op, name
from weft.ir.uop import Interval, UOp
from weft.render.c_family.helpers import Helpers
from weft.render.c_family.language import (
    ADD,
    AND,
    ATOM,
    BITS,
    COMPARE,
    MULTIPLY,
    OR,
    PREFIX,
    TERNARY,
    Language,
    Text,
    fixed,
    unsigned,
)
from weft.support.errors import InternalError

# op -> operator and how it binds
_INFIX: Final[dict[int, tuple[str, int]]] = {
    Op.ADD: ("+", ADD),
    Op.MUL: ("*", MULTIPLY),
    Op.DIV: ("/", MULTIPLY),
    Op.AND: ("&", BITS),
    Op.OR: ("|", BITS),
    Op.XOR: ("^", BITS),
    Op.LESS: ("<", COMPARE),
    Op.LESS_EQUAL: ("<=", COMPARE),
    Op.EQUAL: ("==", COMPARE),
}
_COMPARISONS: Final = frozenset((Op.LESS, Op.LESS_EQUAL, Op.EQUAL))
_BOOL_INFIX: Final[dict[int, tuple[str, int]]] = {
    Op.AND: ("&&", AND),
    Op.MUL: ("&&", AND),
    Op.MIN: ("&&", AND),
    Op.OR: ("||", OR),
    Op.ADD: ("||", OR),
    Op.MAX: ("||", OR),
    Op.XOR: ("!=", COMPARE),
}
_FUNCTIONS: Final[dict[int, str]] = {
    Op.SQRT: "sqrt",
    Op.FLOOR: "floor",
    Op.TRUNC: "trunc",
    Op.ROUND: "rint",
    Op.TRUNCMOD: "fmod",
}
# Ops of floats that only some platforms round correctly in float32.
_ROUNDED: Final = frozenset((Op.DIV, Op.SQRT))
# Ops that the language writes for whole vectors as it does for scalars.
WHOLE: Final = frozenset((Op.ADD, Op.MUL, Op.NEG, Op.DIV, Op.AND, Op.OR, Op.XOR, Op.NOT))


class Expressions:
    """`rounds_float32` says whether `/` and `sqrt` of float32 are correctly rounded."""

    def __init__(self, language: Language, has_float64: bool, rounds_float32: bool) -> None:
        self.language = language
        self.helpers = Helpers(language, dtypes.float64 if has_float64 else dtypes.float32)
        self.is_detour_needed = has_float64 and not rounds_float32

    def spell(
        self, op: int, dtype: DType, source: DType, operands: list[Text], node: UOp | None = None
    ) -> Text:
        """The op with result `dtype` on operands of dtype `source` (that of the last).

        `node` is what the operands belong to; its bounds make integer arithmetic plainer.
        """
        if op == Op.CAST:
            return self._cast(dtype, source, operands[0])
        if op == Op.BITCAST:
            # A literal of a small type is an int in C.
            exact = f"({self.language.types[source]}){operands[0].at(PREFIX)}"
            text = operands[0].text if source.bits >= 32 else exact
            return Text(f"{self.helpers.bits(fixed(source), fixed(dtype))}({text})")
        if op == Op.WHERE:
            condition, x, y = operands
            return Text(f"{condition.at(OR)} ? {x.at(ADD)} : {y.at(ADD)}", TERNARY)
        if op in _COMPARISONS:
            return infix(*_INFIX[op], *operands)
        if source.kind == BOOL:
            return self._bool(op, operands)
        if source.kind == FLOAT:
            return self._float(op, dtype, operands)
        return self._integer(op, dtype, operands, node)

    def spells_whole(self, op: int, dtype: DType) -> bool:
        """Whether a vector type of the language has the op, with this meaning."""
        if op not in WHOLE or dtype.lanes not in self.language.vectors.lanes:
            return False
        if dtype.kind == BOOL:
            return op in (Op.AND, Op.OR, Op.XOR)
        if dtype.kind == FLOAT:
            return not (op == Op.DIV and dtype.bits == 32 and self.is_detour_needed)
        return self.language.wraps or dtype.kind != INT or op not in (Op.ADD, Op.MUL, Op.NEG)

    def whole(self, op: int, operands: list[Text]) -> Text:
        """An op by the operator that C has for it."""
        if op in (Op.NEG, Op.NOT):
            return prefix("-" if op == Op.NEG else "~", operands[0])
        return infix(*_INFIX[op], *operands)

    def _cast(self, dtype: DType, source: DType, x: Text) -> Text:
        if dtype.kind == BOOL:
            return x if source.kind == BOOL else Text(f"{x.at(ADD)} != 0", COMPARE)
        if source.kind == FLOAT and dtype.kind & INTEGER:
            return Text(f"{self.helpers.saturating_cast(source, dtype)}({x.text})")
        if fixed(dtype) is fixed(source):
            return x
        return self._convert(dtype, x)

    def _convert(self, dtype: DType, x: Text) -> Text:
        return Text(f"({self.language.types[fixed(dtype)]}){x.at(PREFIX)}", PREFIX)

    def _bool(self, op: int, operands: list[Text]) -> Text:
        if op == Op.NOT:
            return prefix("!", operands[0])
        if op in _BOOL_INFIX:
            return infix(*_BOOL_INFIX[op], *operands)
        raise _unknown(op, dtypes.bool)

    def _float(self, op: int, dtype: DType, operands: list[Text]) -> Text:
        if op in _ROUNDED and dtype is dtypes.float32 and self.is_detour_needed:
            # float64 has more than twice the digits, so rounding twice is rounding once.
            wide = [self._convert(dtypes.float64, x) for x in operands]
            return self._convert(dtype, self._float(op, dtypes.float64, wide))
        if op == Op.NEG:
            return prefix("-", operands[0])
        if op in (Op.ADD, Op.MUL, Op.DIV):
            return infix(*_INFIX[op], *operands)
        if op in _FUNCTIONS:
            return call(self.helpers.math(_FUNCTIONS[op], dtype), operands)
        if op in (Op.MAX, Op.MIN, Op.FLOORDIV, Op.FLOORMOD):
            return call(self.helpers.function(op, dtype), operands)
        raise _unknown(op, dtype)

    def _integer(self, op: int, dtype: DType, operands: list[Text], node: UOp | None) -> Text:
        if op in (Op.ADD, Op.MUL, Op.NEG):
            return self._wrapping(op, dtype, operands, node)
        if op == Op.NOT:
            flipped = prefix("~", operands[0])
            return self._convert(dtype, flipped) if dtype.bits < 32 else flipped
        if op in (Op.AND, Op.OR, Op.XOR):
            return infix(*_INFIX[op], *operands)
        plain = _plain_operator(op, node)
        if plain:
            return infix(plain, MULTIPLY, *operands)
        if op in _CALLED:
            return call(self.helpers.function(op, dtype), operands)
        raise _unknown(op, dtype)

    def _wrapping(self, op: int, dtype: DType, operands: list[Text], node: UOp | None) -> Text:
        """Arithmetic modulo 2 ** bits.

        C promotes small types to int. There only the product of two uint16 can overflow.
        """
        is_exact = _never_overflows(op, node)
        is_signed = dtype.kind != UINT
        may_overflow = is_signed if dtype.bits >= 32 else op == Op.MUL and dtype is dtypes.uint16
        if may_overflow and not is_exact and not self.language.wraps:
            wide = unsigned(dtype) if dtype.bits >= 32 else dtypes.uint32
            wrapping = [self._convert(wide, x) for x in operands]
            return self._convert(dtype, self.whole(op, wrapping))
        result = self.whole(op, operands)
        return result if dtype.bits >= 32 or is_exact else self._convert(dtype, result)


_CALLED: Final = frozenset(
    (Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCDIV, Op.TRUNCMOD, Op.SHL, Op.SHR, Op.MAX, Op.MIN)
)


def infix(operator: str, binds: int, x: Text, y: Text) -> Text:
    """`x operator y`; operators without a common order get parentheses among each other."""
    if operator == "+" and y.binds == PREFIX and y.text.startswith("-"):
        return Text(f"{x.at(binds)} - {y.text[1:]}", binds)
    left, right = _OPERANDS.get(binds, (binds, binds + 1))
    first = x.text if binds in (AND, OR) and x.binds == binds else x.at(left)
    return Text(f"{first} {operator} {y.at(right)}", binds)


# What binds tightly enough to the left and right; the rest associates to the left.
_OPERANDS: Final[dict[int, tuple[int, int]]] = {
    OR: (COMPARE, COMPARE),
    AND: (COMPARE, COMPARE),
    COMPARE: (ADD, ADD),
    BITS: (PREFIX, PREFIX),
}


def prefix(operator: str, x: Text) -> Text:
    return Text(f"{operator}{x.at(ATOM)}", PREFIX)


def call(function: str, operands: list[Text]) -> Text:
    return Text(f"{function}({', '.join(x.text for x in operands)})")


def _never_overflows(op: int, node: UOp | None) -> bool:
    """Whether the exact result of integer arithmetic fits its dtype."""
    if node is None or node.dtype.lanes != 1:
        return False
    low, high = dtype_limits(node.dtype)
    results = _exact(op, [bounds(source) for source in node.src])
    return low <= min(results) and max(results) <= high


def _exact(op: int, sources: list[Interval]) -> tuple[int, ...]:
    (a, b), (c, d) = sources[0], sources[-1]
    if op == Op.NEG:
        return -b, -a
    return (a + c, b + d) if op == Op.ADD else (a * c, a * d, b * c, b * d)


def _plain_operator(op: int, node: UOp | None) -> str:
    """The operator of a division whose operands are known to be harmless, or ""."""
    if node is None or node.dtype.lanes != 1:
        return ""
    if op not in (Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCDIV, Op.TRUNCMOD):
        return ""
    (least, _), (divisor, _) = bounds(node.src[0]), bounds(node.src[1])
    is_truncating = op in (Op.TRUNCDIV, Op.TRUNCMOD)
    if divisor < 1 or (least < 0 and not is_truncating):
        return ""
    return "/" if op in (Op.FLOORDIV, Op.TRUNCDIV) else "%"


def _unknown(op: int, dtype: DType) -> InternalError:
    return InternalError(f"the C family has no form of {name(op)} on {dtype.name}")

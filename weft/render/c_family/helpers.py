"""The small functions that a rendered program defines for what C has no operator for.

`Expressions` asks for a function by op and dtypes and gets its name; `c_family` writes the texts
of those that were asked for above the kernel. In the templates `$T` is the type, `$U` the unsigned
type of its width, `$W` that of 32 bits or more, `$D` the widest float there is.
"""

from __future__ import annotations

from string import Template
from typing import Final

from weft.ir.dtypes import FLOAT, INT, UINT, DType, dtypes
from weft.ir.ops import Op, name
from weft.render.c_family.language import Language, fixed, unsigned

# The body of a function of x and y (of x alone for a conversion).
_SIGNED: Final[dict[int, str]] = {
    Op.FLOORDIV: """
  if (y == 0) return 0;
  if (y == -1) return ($T)(0 - ($W)x);
  const $T quotient = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;""",
    Op.FLOORMOD: """
  if (y == 0 || y == -1) return 0;
  const $T rest = x % y;
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;""",
    Op.TRUNCDIV: """
  if (y == 0) return 0;
  return y == -1 ? ($T)(0 - ($W)x) : x / y;""",
    Op.TRUNCMOD: """
  return y == 0 || y == -1 ? 0 : x % y;""",
    Op.SHL: """
  return ($U)y < $bits ? ($T)(($W)x << y) : 0;""",
    Op.SHR: """
  return x >> (($U)y < $bits ? y : $bits - 1);""",
}
_DIVIDE: Final = """
  return y == 0 ? 0 : x / y;"""
_MODULO: Final = """
  return y == 0 ? 0 : x % y;"""
_UNSIGNED: Final[dict[int, str]] = {
    Op.FLOORDIV: _DIVIDE,
    Op.FLOORMOD: _MODULO,
    Op.TRUNCDIV: _DIVIDE,
    Op.TRUNCMOD: _MODULO,
    Op.SHL: """
  return y < $bits ? ($T)(($W)x << y) : 0;""",
    Op.SHR: """
  return y < $bits ? x >> y : 0;""",
}
_MAX: Final = """
  return x > y ? x : y;"""
_MIN: Final = """
  return x < y ? x : y;"""
# Of equal floats only the zeros differ. What is unordered has a NaN, and so has its sum.
_FLOAT_MAX: Final = """
  if (x > y) return x;
  if (y > x) return y;
  return x == y ? $float_of_bits($bits_of_float(x) & $bits_of_float(y)) : x + y;"""
_FLOAT_MIN: Final = """
  if (x < y) return x;
  if (y < x) return y;
  return x == y ? $float_of_bits($bits_of_float(x) | $bits_of_float(y)) : x + y;"""
_FLOAT: Final[dict[int, str]] = {
    Op.MAX: _FLOAT_MAX,
    Op.MIN: _FLOAT_MIN,
    Op.FLOORMOD: """
  const $T rest = $fmod(x, y);
  if (rest == 0) return $copysign(rest, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;""",
    # Wide, since the oracle rounds once, at the end.
    Op.FLOORDIV: """
  const $D wide_x = x, wide_y = y;
  if (y == 0) return x / y;
  const $D rest = $wide_fmod(wide_x, wide_y);
  $D quotient = (wide_x - rest) / wide_y;
  if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1;
  if (quotient == 0) return ($T)$wide_copysign(quotient, wide_x / wide_y);
  const $D down = $wide_floor(quotient);
  return ($T)(quotient - down > 0.5f ? down + 1 : down);""",
}
_SATURATE: Final = """
  if (x != x) return 0;
  if (x <= $least) return ($T)$low;
  if (x >= $most) return ($T)$high;
  return ($T)$convert;"""
_COPY_BITS: Final = """
  $T y;
  memcpy(&y, &x, sizeof(y));
  return y;"""


class Helpers:
    """The functions a program needs, in the order in which they were first asked for."""

    def __init__(self, language: Language, wide_float: DType) -> None:
        self.language = language
        self.wide_float = wide_float
        self.texts: dict[str, str] = {}

    def function(self, op: int, dtype: DType) -> str:
        """The name of the function of two values that computes an op."""
        dtype = fixed(dtype)
        word = f"{name(op).lower()}_{dtype.name}"
        if word not in self.texts:
            self._define(word, dtype, f"{self._type(dtype)} x, {self._type(dtype)} y", op)
        return word

    def saturating_cast(self, source: DType, target: DType) -> str:
        """The name of the conversion of floats to integers."""
        target = fixed(target)
        word = f"{target.name}_of_{source.name}"
        if word not in self.texts:
            fields = self._limits(source, target)
            self._write(word, target, f"{self._type(source)} x", _SATURATE, fields)
        return word

    def bits(self, source: DType, target: DType) -> str:
        """The name of the conversion that keeps the bits."""
        if self.language.reinterpret:
            return self.language.reinterpret.format(type=self._type(target))
        word = f"{target.name}_bits_of_{source.name}"
        if word not in self.texts:
            self._write(word, target, f"{self._type(source)} x", _COPY_BITS, {})
        return word

    def math(self, function: str, dtype: DType) -> str:
        """The name of a math function for a float dtype."""
        return self.language.functions[dtype].format(name=function)

    def _type(self, dtype: DType) -> str:
        return self.language.types[dtype]

    def _define(self, word: str, dtype: DType, arguments: str, op: int) -> None:
        if dtype.kind == FLOAT:
            fields = (
                self._bit_fields(dtype) if op in (Op.MAX, Op.MIN) else self._math_fields(dtype)
            )
            self._write(word, dtype, arguments, _FLOAT[op], fields)
            return
        table = _SIGNED if dtype.kind == INT else _UNSIGNED
        body = {Op.MAX: _MAX, Op.MIN: _MIN}.get(op) or table[op]
        self._write(word, dtype, arguments, body, {"bits": dtype.bits})

    def _bit_fields(self, dtype: DType) -> dict[str, object]:
        bits = unsigned(dtype)
        return {
            "float_of_bits": self.bits(bits, dtype),
            "bits_of_float": self.bits(dtype, bits),
        }

    def _math_fields(self, dtype: DType) -> dict[str, object]:
        return {
            "fmod": self.math("fmod", dtype),
            "copysign": self.math("copysign", dtype),
            "wide_fmod": self.math("fmod", self.wide_float),
            "wide_copysign": self.math("copysign", self.wide_float),
            "wide_floor": self.math("floor", self.wide_float),
        }

    def _limits(self, source: DType, target: DType) -> dict[str, object]:
        """Where a conversion stops: at the limits of int32, int64 or uint64, as CAST says."""
        is_wide = target.bits == 64 or target is dtypes.uint32
        middle = dtypes.int64 if is_wide else dtypes.int32
        top = dtypes.uint64 if target is dtypes.uint64 else middle
        literal = self.language.literal
        signed = f"({self._type(middle)})x"
        whole = f"(x < 0 ? ({self._type(target)}){signed} : ({self._type(target)})x)"
        return {
            "least": literal(source, float(middle.min)).text,
            "most": literal(source, float(int(top.max) + 1)).text,
            "low": literal(middle, middle.min).text,
            "high": literal(top, top.max).text,
            "convert": whole if top.kind == UINT else signed,
        }

    def _write(
        self, word: str, result: DType, arguments: str, body: str, fields: dict[str, object]
    ) -> None:
        width = unsigned(result)
        types = {
            "T": self._type(result),
            "U": self._type(width),
            "W": self._type(width if width.bits >= 32 else dtypes.uint32),
            "D": self._type(self.wide_float),
        }
        head = f"{self.language.function} {types['T']} {word}({arguments}) {{"
        self.texts[word] = head + Template(body).substitute(types | fields) + "\n}"

"""What each elementwise op means on scalars, in plain Python.

Constant folding and the interpreter of lowered programs both call `evaluate`, so a folded constant
is the value the program would have computed. Floats are computed in double precision and rounded
to their dtype once; for the four operations and the square root of types up to float32 that is the
correctly rounded result.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Final

from weft.ir.arrays import small_floats
from weft.ir.dtypes import (
    BOOL,
    COMPLEX,
    FIXED,
    FLOAT,
    INDEX,
    INT,
    INTEGER,
    UINT,
    DType,
    Scalar,
    canonical,
)
from weft.ir.ops import ELEMENTWISE, Op, name
from weft.support.errors import InternalError


def evaluate(op: int, dtype: DType, values: tuple[Scalar, ...], source: DType) -> Scalar:
    """The value of `op` with result `dtype` on `values` of dtype `source` (that of the last)."""
    if op == Op.CAST:
        return cast(values[0], source, dtype)
    if op == Op.BITCAST:
        return from_bits(dtype, to_bits(source, values[0]))
    if op in (Op.SHL, Op.SHR) and source.kind & INTEGER:
        return canonical(dtype, _shift(op, int(values[0]), int(values[1]), source))
    if op == Op.DOT_BYTES and source.kind == INT:
        return canonical(dtype, _dot_bytes(int(values[0]), int(values[1]), source.bits))
    return canonical(dtype, meaning(op, source)(*values))


def meaning(op: int, source: DType) -> Callable[..., Scalar]:
    """What an arithmetic `op` computes on `source` values, before rounding to its own dtype."""
    kind = source.kind
    table = _FLOAT if kind == FLOAT else _BOOL if kind == BOOL else _INTEGER
    found = table.get(op) or _COMMON.get(op)
    if found is None:
        raise InternalError(f"{name(op)} has no meaning on {source.name}")
    return found


def cast(value: Scalar, source: DType, target: DType) -> Scalar:
    """The value in another dtype, as the op table defines CAST."""
    if source.kind != FLOAT or target.kind in (FLOAT, BOOL):
        return canonical(target, value)
    if value != value:
        return 0
    if target.kind == INDEX:
        if math.isinf(value):
            raise InternalError("an infinity has no index value")
        return int(value)
    wide = target.bits == 64 or (target.kind == UINT and target.bits == 32)
    least, most = -(1 << (63 if wide else 31)), (1 << (63 if wide else 31)) - 1
    if target.kind == UINT and target.bits == 64:
        most = (1 << 64) - 1
    if value <= least:
        return canonical(target, least)
    return canonical(target, most if value >= most else int(value))


def to_bits(dtype: DType, value: Scalar) -> int:
    """The bits of a value as a non-negative integer."""
    if dtype.kind == FLOAT:
        assert dtype.format is not None
        return small_floats.encode(dtype.format, float(value))
    return int(value) & (1 << dtype.bits) - 1


def from_bits(dtype: DType, bits: int) -> Scalar:
    """The value with these bits."""
    if dtype.kind == FLOAT:
        assert dtype.format is not None
        return small_floats.decode(dtype.format, bits)
    return canonical(dtype, bits)


def _shift(op: int, x: int, amount: int, dtype: DType) -> int:
    if amount < 0:
        raise InternalError(f"{name(op)} by the negative amount {amount}")
    if op == Op.SHR:
        return x >> amount
    return x << amount if dtype.kind == INDEX or amount < dtype.bits else 0


def _truncdiv(x: int, y: int) -> int:
    if y == 0:
        return 0
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _int_pow(x: int, y: int) -> int:
    if y < 0:
        raise InternalError("POW of integers by a negative exponent")
    return int(x**y) if abs(x) <= 1 or y < 4096 else pow(x, y, 1 << 64)


def _sign(x: float) -> float:
    return math.copysign(1.0, x)


def _maximum(x: float, y: float) -> float:
    if x != x or y != y:
        return math.nan
    return x if x > y or (x == y and _sign(x) > 0) else y


def _minimum(x: float, y: float) -> float:
    if x != x or y != y:
        return math.nan
    return x if x < y or (x == y and _sign(x) < 0) else y


def _divide(x: float, y: float) -> float:
    if y != 0:
        return x / y
    if x != x or x == 0 or y != y:
        return math.nan
    return math.inf * _sign(x) * _sign(y)


def _float_truncmod(x: float, y: float) -> float:
    return math.nan if math.isinf(x) or y == 0 or x != x or y != y else math.fmod(x, y)


def _float_floormod(x: float, y: float) -> float:
    rest = _float_truncmod(x, y)
    if rest and (rest < 0) != (y < 0):
        return rest + y
    return math.copysign(rest, y) if rest == 0 else rest


def _float_floordiv(x: float, y: float) -> float:
    """The quotient that goes with FLOORMOD, as in NumPy, so an infinite x gives NaN.

    What FLOORMOD leaves of x is a multiple of y up to rounding, so the quotient is integral but
    for a rounding error of either sign.
    """
    if y == 0:
        return _divide(x, y)
    rest = _float_truncmod(x, y)
    quotient = (x - rest) / y
    if rest and (rest < 0) != (y < 0):
        quotient -= 1
    if quotient == 0:
        return math.copysign(0.0, x / y)
    down = _float_floor(quotient)
    return down + 1 if quotient - down > 0.5 else down


def _float_floor(x: float) -> float:
    return math.copysign(float(math.floor(x)), x) if math.isfinite(x) else x


def _float_trunc(x: float) -> float:
    return math.copysign(float(math.trunc(x)), x) if math.isfinite(x) else x


def _float_round(x: float) -> float:
    return math.copysign(float(round(x)), x) if math.isfinite(x) else x


def _guarded(function: Callable[[float], float], overflow: float) -> Callable[[float], float]:
    """`function` of the math module with infinities and NaN instead of exceptions."""

    def guarded(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return overflow
        except ValueError:
            return math.nan

    return guarded


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    guarded = _guarded(function, math.inf)
    return lambda x: -math.inf if x == 0 else guarded(x)


def _float_pow(x: float, y: float) -> float:
    if y == 2.0:
        return x * x  # rounded once; that of a library may not be
    try:
        return math.pow(x, y)
    except OverflowError:
        odd = y == int(y) and int(y) % 2 == 1
        return -math.inf if x < 0 and odd else math.inf
    except ValueError:
        if x != 0:
            return math.nan  # a negative number to a fractional power
        odd = math.isfinite(y) and y == int(y) and int(y) % 2 == 1
        return math.copysign(math.inf, x) if odd else math.inf


def _float_logadd(x: float, y: float) -> float:
    if x == y:  # infinities have no difference
        return x + math.log(2)
    top = _maximum(x, y)
    return top if top != top else top + math.log1p(math.exp(-abs(x - y)))


def _dot_bytes(x: int, y: int, bits: int) -> int:
    total = 0
    for low in range(0, bits, 8):
        signed = (y >> low & 255 ^ 128) - 128
        total += (x >> low & 255) * signed
    return total


_COMMON: Final[dict[int, Callable[..., Scalar]]] = {
    Op.LESS: operator.lt,
    Op.LESS_EQUAL: operator.le,
    Op.EQUAL: operator.eq,
    Op.WHERE: lambda x, y, z: y if x else z,
    Op.ADD: operator.add,
    Op.MUL: operator.mul,
}
_BOOL: Final[dict[int, Callable[..., Scalar]]] = {
    Op.AND: operator.and_,
    Op.OR: operator.or_,
    Op.XOR: operator.xor,
    Op.NOT: operator.not_,
    Op.MAX: operator.or_,
    Op.MIN: operator.and_,
    Op.ADD: operator.or_,
    Op.MUL: operator.and_,
}
_INTEGER: Final[dict[int, Callable[..., Scalar]]] = {
    Op.NEG: operator.neg,
    Op.AND: operator.and_,
    Op.OR: operator.or_,
    Op.XOR: operator.xor,
    Op.NOT: operator.invert,
    Op.MAX: max,
    Op.MIN: min,
    Op.FLOORDIV: lambda x, y: x // y if y else 0,
    Op.FLOORMOD: lambda x, y: x % y if y else 0,
    Op.TRUNCDIV: _truncdiv,
    Op.TRUNCMOD: lambda x, y: x - y * _truncdiv(x, y) if y else 0,
    Op.POW: _int_pow,
}
_FLOAT: Final[dict[int, Callable[..., Scalar]]] = {
    Op.NEG: operator.neg,
    Op.MAX: _maximum,
    Op.MIN: _minimum,
    Op.DIV: _divide,
    Op.FLOORDIV: _float_floordiv,
    Op.FLOORMOD: _float_floormod,
    Op.TRUNCMOD: _float_truncmod,
    Op.POW: _float_pow,
    Op.LOGADD: _float_logadd,
    Op.SQRT: _guarded(math.sqrt, math.inf),
    Op.EXP: _guarded(math.exp, math.inf),
    Op.EXP2: _guarded(math.exp2, math.inf),
    Op.LOG: _logarithm(math.log),
    Op.LOG2: _logarithm(math.log2),
    Op.SIN: _guarded(math.sin, math.nan),
    Op.COS: _guarded(math.cos, math.nan),
    Op.TANH: math.tanh,
    Op.ERF: math.erf,
    Op.FLOOR: _float_floor,
    Op.TRUNC: _float_trunc,
    Op.ROUND: _float_round,
}


# Complex numbers have no order, and functions of them are made of functions of their parts.
_ON_COMPLEX: Final = (Op.ADD, Op.MUL, Op.NEG, Op.DIV, Op.EQUAL, Op.WHERE, Op.REAL, Op.IMAG)


def _is_defined(op: int, kind: int) -> bool:
    if kind == COMPLEX or op in (Op.REAL, Op.IMAG):
        return kind == COMPLEX and op in _ON_COMPLEX
    if op == Op.COMPLEX:
        return kind == FLOAT
    if op in (Op.SHL, Op.SHR):
        return bool(kind & INTEGER)
    if op == Op.DOT_BYTES:
        return kind == INT
    if op in (Op.CAST, Op.BITCAST):
        return op == Op.CAST or bool(kind & (FIXED | FLOAT))
    table = _FLOAT if kind == FLOAT else _BOOL if kind == BOOL else _INTEGER
    return op in table or op in _COMMON


# The kinds of dtype an elementwise op takes; of WHERE, those it chooses from.
KINDS: Final[dict[int, int]] = {
    op: sum(kind for kind in (BOOL, INT, UINT, INDEX, FLOAT, COMPLEX) if _is_defined(op, kind))
    for op in sorted(ELEMENTWISE)
}

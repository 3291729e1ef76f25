"""Functions of float32 for NVIDIA GPUs, from the approximations that the machine has.

`ex2.approx` and `rcp.approx` are one instruction each and within 2 and 1 ulp (PTX ISA, "Floating
Point Instructions"). Around them a function is reduced with fused multiply-adds, so that its error
stays below 2 ulp; the tests prove that from these bounds. Every function is branch-free and right
for zeros of both signs, subnormals, infinities and NaN.

Where nothing but a rounding to 16 bits takes the result, `digits` tells how many are left of it,
and a shorter form is enough. So it is for the weights of a product: they are multiplied as 16
bits, and added up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.dtypes import canonical, dtypes
from weft.ir.ops import Op
from weft.render.llvm.types import literal
from weft.render.llvm.writer import LlvmWriter
from weft.support.polynomials import ERF, ERFC, LOG_NEAR_1, TANH

_F32: Final = dtypes.float32
_NAME: Final = _F32.name
_PER_LOG_2: Final = 1.4426950408889634
# As two float32s.
_PER_LOG_2_HIGH: Final = 1.4426950216293335
_PER_LOG_2_LOW: Final = 1.925963033500011e-08
# Digits of float32, of float16 and of bfloat16.
FLOAT32_DIGITS: Final = 24
_HALF_DIGITS: Final = 11
_BFLOAT_DIGITS: Final = 8
# Of weights that are multiplied with 16 bits and added up: what is left of their exponent.
WEIGHT_DIGITS: Final = 17
# Of what is at most 1 and then added to 1 or more: those after the point.
SHIFTED_DIGITS: Final = 22
# Exponents of a scale that is a float: its clamped number is 0 to 252 above the least.
_LEAST: Final = -126
_COUNT: Final = 252
_ROUND_AT: Final = 3.0 * 2**22  # a float of this size has no digits after the point
_MANTISSA: Final = 23
# The square from which on tanh is above 1/2, where digits are coarser.
_TANH_NEAR: Final = 0.302
_BIAS: Final = 127


class _Code:
    """Float32 arithmetic, written instruction by instruction."""

    def __init__(self, writer: LlvmWriter) -> None:
        self.writer = writer

    def const(self, value: float) -> str:
        return literal(_F32, canonical(_F32, value))

    def machine(self, instruction: str, *operands: str) -> str:
        """An instruction that LLVM has no name for."""
        slots = ", ".join(f"${number}" for number in range(len(operands) + 1))
        kinds = ",".join(["=f", *("f" for _ in operands)])
        given = ", ".join(f"float {operand}" for operand in operands)
        return self.writer.value(f'call float asm "{instruction} {slots};", "{kinds}"({given})')

    def power_of_two(self, x: str) -> str:
        return self.machine("ex2.approx.ftz.f32", x)

    def fma(self, x: str, y: str, z: str) -> str:
        return self.writer.intrinsic("fma", "float", x, y, z)

    def add(self, x: str, y: str) -> str:
        return self.writer.value(f"fadd float {x}, {y}")

    def subtract(self, x: str, y: str) -> str:
        return self.writer.value(f"fsub float {x}, {y}")

    def multiply(self, x: str, y: str) -> str:
        return self.writer.value(f"fmul float {x}, {y}")

    def negate(self, x: str) -> str:
        return self.writer.value(f"fneg float {x}")

    def absolute(self, x: str) -> str:
        return self.writer.intrinsic("fabs", "float", x)

    def with_sign_of(self, size: str, x: str) -> str:
        return self.writer.intrinsic("copysign", "float", size, x)

    def choose(self, comparison: str, x: str, y: str, yes: str, no: str) -> str:
        """`yes` where a comparison of floats holds, else `no`."""
        mask = self.writer.value(f"fcmp {comparison} float {x}, {y}")
        return self.writer.select(("i1", mask), "float", yes, no)

    def least(self, x: str, limit: float) -> str:
        """The lesser of x and a limit; NaN stays."""
        return self.choose("ogt", x, self.const(limit), self.const(limit), x)

    def bits(self, x: str) -> str:
        return self.writer.value(f"bitcast float {x} to i32")

    def float_of(self, bits: str) -> str:
        return self.writer.value(f"bitcast i32 {bits} to float")

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        total = self.const(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = self.fma(total, x, self.const(coefficient))
        return total

    def reciprocal(self, x: str) -> str:
        """1 / x, correctly rounded for an x whose exponent is not among the last ones."""
        near = self.machine("rcp.approx.ftz.f32", x)
        error = self.fma(self.negate(x), near, self.const(1.0))
        return self.fma(near, error, near)


def _exp(code: _Code, x: str, digits: int) -> str:
    """2 ** n * 2 ** w, where x / log(2) is n + w and n is clamped to exponents of floats.

    Past the clamp w leaves [0, 1), and its power goes over or under as the result does.
    """
    if digits <= _HALF_DIGITS:
        return code.machine("ex2.approx.f32", code.multiply(x, code.const(_PER_LOG_2)))
    whole, scale = _whole_power(code, x, _PER_LOG_2)
    rest = code.fma(x, code.const(_PER_LOG_2_HIGH), code.negate(whole))
    rest = code.fma(x, code.const(_PER_LOG_2_LOW), rest)
    return code.multiply(code.power_of_two(rest), scale)


def _whole_power(code: _Code, x: str, factor: float) -> tuple[str, str]:
    """The whole part n of x * factor, clamped to exponents of floats, and 2 ** n."""
    share = code.machine(
        "fma.rn.sat.f32", x, code.const(factor / _COUNT), code.const(-_LEAST / _COUNT)
    )
    at = _ROUND_AT + _BIAS + _LEAST
    counted = code.machine("fma.rm.f32", share, code.const(float(_COUNT)), code.const(at))
    whole = code.subtract(counted, code.const(_ROUND_AT + _BIAS))
    scale = code.writer.value(f"shl i32 {code.bits(counted)}, {_MANTISSA}")
    return whole, code.float_of(scale)


def _exp2(code: _Code, x: str, digits: int) -> str:
    if digits <= _HALF_DIGITS:
        return code.machine("ex2.approx.f32", x)
    if digits <= WEIGHT_DIGITS:
        return code.power_of_two(x)
    whole, scale = _whole_power(code, x, 1.0)
    return code.multiply(code.power_of_two(code.subtract(x, whole)), scale)


def _tanh(code: _Code, x: str, digits: int) -> str:
    """A polynomial near 0, else 1 - 2 / (e ** 2|x| + 1)."""
    if digits <= _BFLOAT_DIGITS:
        return code.machine("tanh.approx.f32", x)
    if digits <= SHIFTED_DIGITS:  # 2 / (e ** -2x + 1) - 1: near -1, where sums are small, exact
        grown = code.power_of_two(code.multiply(x, code.const(-2 * _PER_LOG_2)))
        share = code.machine("rcp.approx.ftz.f32", code.add(grown, code.const(1.0)))
        return code.fma(share, code.const(2.0), code.const(-1.0))
    size = code.absolute(x)
    square = code.multiply(x, x)
    inner = code.polynomial(square, TANH[_NAME])
    near = code.fma(code.multiply(size, square), inner, size)
    grown = code.power_of_two(code.multiply(size, code.const(2 * _PER_LOG_2)))
    bounded = code.least(grown, 2.0**_MANTISSA * 4)  # the rest of a reciprocal of more is lost
    share = code.reciprocal(code.add(bounded, code.const(1.0)))
    far = code.fma(share, code.const(-2.0), code.const(1.0))
    # NaN is not below, and the power of it is NaN too.
    return code.with_sign_of(code.choose("olt", square, code.const(_TANH_NEAR), near, far), x)


def _erf(code: _Code, x: str, digits: int) -> str:
    """A polynomial up to 1, then 1 - 2 ** (another)."""
    size = code.absolute(x)
    square = code.multiply(x, x)
    near = code.fma(size, code.polynomial(square, ERF[_NAME]), size)
    bounded = code.least(size, 4.0)
    power = [coefficient * _PER_LOG_2 for coefficient in ERFC[_NAME]]
    rest = code.power_of_two(code.polynomial(code.subtract(bounded, code.const(1.0)), power))
    far = code.subtract(code.const(1.0), rest)
    return code.with_sign_of(code.choose("olt", size, code.const(1.0), near, far), x)


def _log_parts(code: _Code, x: str) -> tuple[str, str]:
    """The logarithm of a positive number: that of m, and k, where x is m * 2**k.

    m is from 2/3 to 4/3.
    """
    writer, least = code.writer, code.const(2.0 ** (1 - _BIAS))
    large = code.multiply(x, code.const(2.0**_MANTISSA))
    is_small = writer.value(f"fcmp olt float {x}, {least}")
    normal = writer.select(("i1", is_small), "float", large, x)
    start = writer.select(
        ("i1", is_small), "float", code.const(-float(_MANTISSA)), code.const(0.0)
    )
    bits = code.bits(normal)
    two_thirds = 0x3F2AAAAB
    offset = writer.value(f"sub i32 {bits}, {two_thirds}")
    exponent = writer.value(f"and i32 {offset}, {-(1 << _MANTISSA)}")
    mantissa = code.float_of(writer.value(f"sub i32 {bits}, {exponent}"))
    count = writer.value(f"sitofp i32 {exponent} to float")
    count = code.fma(count, code.const(2.0**-_MANTISSA), start)
    rest = code.subtract(mantissa, code.const(1.0))
    tail = code.fma(rest, code.polynomial(rest, LOG_NEAR_1), code.const(-0.5))
    return code.fma(code.multiply(rest, rest), tail, rest), count


def _log_at_ends(code: _Code, x: str, result: str) -> str:
    """-inf of 0, inf of inf, and NaN of what is below 0 or NaN."""
    infinity = code.const(math.inf)
    beyond = code.writer.value(f"icmp uge i32 {code.bits(x)}, {0x7F800000}")
    special = code.fma(x, infinity, infinity)
    result = code.writer.select(("i1", beyond), "float", special, result)
    return code.choose("oeq", x, code.const(0.0), code.const(-math.inf), result)


def _log(code: _Code, x: str, digits: int) -> str:
    near, count = _log_parts(code, x)
    return _log_at_ends(code, x, code.fma(count, code.const(math.log(2)), near))


def _log2(code: _Code, x: str, digits: int) -> str:
    near, count = _log_parts(code, x)
    small = code.fma(near, code.const(_PER_LOG_2_LOW), count)
    return _log_at_ends(code, x, code.fma(near, code.const(_PER_LOG_2_HIGH), small))


_Function = Callable[[_Code, str, int], str]
FUNCTIONS: Final[dict[int, _Function]] = {
    Op.EXP: _exp,
    Op.EXP2: _exp2,
    Op.LOG: _log,
    Op.LOG2: _log2,
    Op.TANH: _tanh,
    Op.ERF: _erf,
}


def write_function(writer: LlvmWriter, op: int, x: str, digits: int) -> str:
    """A function of a float32, of which so many binary digits are looked at."""
    return FUNCTIONS[op](_Code(writer), x, digits)


def write_safe_quotient(writer: LlvmWriter, numerator: float | None, x: str, y: str) -> str:
    """x / y, correctly rounded, where neither they nor the result come near the ends of float32.

    This is what `div.rn` does without a check of its operands. `numerator` is x if that is known.
    """
    code = _Code(writer)
    near = code.reciprocal(y)
    if numerator is not None and abs(math.frexp(numerator)[0]) == 0.5:  # a power of two
        return near if numerator == 1.0 else code.multiply(near, x)
    minus = code.negate(y)
    quotient = code.multiply(x, near)
    for _ in range(2):
        quotient = code.fma(code.fma(minus, quotient, x), near, quotient)
    return quotient

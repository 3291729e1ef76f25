"""Division and remainders with the meaning of the op table, in terms of what a target has.

Division by a power of two is a shift, and where nothing is negative rounding down is rounding to
zero; both hold for every target and are always done. What remains is written with TRUNCDIV. Dot
products of bytes are shifts and products.
"""

from __future__ import annotations

from weft.codegen.decompose.float_parts import sign_bits, with_sign
from weft.ir.bounds import bounds
from weft.ir.dtypes import FIXED, FLOAT
from weft.ir.ops import Op
from weft.ir.uop import UOp, make


def simpler_quotient(node: UOp) -> UOp | None:
    """FLOORDIV as a shift or a truncating division, where that is the same."""
    x, y = node.src
    if not node.dtype.kind & FIXED:
        return None
    if y.op == Op.CONST and y.arg > 0 and y.arg & (y.arg - 1) == 0:
        return x >> (int(y.arg).bit_length() - 1)
    if bounds(x)[0] >= 0 and bounds(y)[0] > 0:
        return make(Op.TRUNCDIV, node.dtype, (x, y))
    return None


def simpler_remainder(node: UOp) -> UOp | None:
    """FLOORMOD as a mask or a truncating remainder, where that is the same."""
    x, y = node.src
    if not node.dtype.kind & FIXED:
        return None
    if y.op == Op.CONST and y.arg > 0 and y.arg & (y.arg - 1) == 0:
        return x & (int(y.arg) - 1)
    if bounds(x)[0] >= 0 and bounds(y)[0] > 0:
        return make(Op.TRUNCMOD, node.dtype, (x, y))
    return None


def dot_of_bytes(node: UOp) -> UOp:
    """DOT_BYTES as shifts and products, a byte after the other."""
    x, y = node.src
    bits = node.dtype.scalar.bits
    total: UOp | None = None
    for low in range(0, bits, 8):
        signed = (y << (bits - 8 - low)) >> (bits - 8)
        product = ((x >> low) & 255) * signed
        total = product if total is None else total + product
    assert total is not None
    return total


def floor_quotient(node: UOp) -> UOp | None:
    """FLOORDIV: the quotient to zero, one less where the signs differ and a rest is left."""
    x, y = node.src
    if node.dtype.kind == FLOAT:
        return _float_quotient(x, y)
    quotient = make(Op.TRUNCDIV, node.dtype, (x, y))
    if node.dtype.is_unsigned:
        return quotient
    rest = x - quotient * y
    is_less = ~rest.equal(0) & ((rest ^ y) < 0)
    return y.equal(0).where(x.const_like(0), is_less.where(quotient + -1, quotient))


def floor_remainder(node: UOp) -> UOp | None:
    """FLOORMOD: the remainder to zero, with the sign of the divisor."""
    x, y = node.src
    rest = make(Op.TRUNCMOD, node.dtype, (x, y))
    if node.dtype.is_unsigned:
        return rest
    if node.dtype.kind == FLOAT:
        return _float_remainder(x, y)
    is_unlike = ~rest.equal(0) & ((rest ^ y) < 0)
    return is_unlike.where(rest + y, rest)


def truncated_remainder(node: UOp) -> UOp | None:
    """TRUNCMOD of integers by TRUNCDIV; a zero divisor gives 0."""
    x, y = node.src
    if node.dtype.kind == FLOAT:
        return None
    rest = x - y * make(Op.TRUNCDIV, node.dtype, (x, y))
    return y.equal(0).where(x.const_like(0), rest)


def _float_remainder(x: UOp, y: UOp) -> UOp:
    """The remainder with the sign of the divisor, a zero too."""
    rest = make(Op.TRUNCMOD, x.dtype, (x, y))
    is_unlike = ~rest.equal(0.0) & ~((rest < 0.0) ^ (y < 0.0)).equal(False)
    zero = (y < 0.0).where(x.const_like(-0.0), 0.0)
    return rest.equal(0.0).where(zero, is_unlike.where(rest + y, rest))


def _float_quotient(x: UOp, y: UOp) -> UOp:
    """The quotient that goes with the remainder; integral but for a rounding error."""
    rest = make(Op.TRUNCMOD, x.dtype, (x, y))
    quotient = (x - rest) / y
    is_unlike = ~rest.equal(0.0) & ((rest < 0.0) ^ (y < 0.0))
    quotient = is_unlike.where(quotient + -1.0, quotient)
    down = make(Op.FLOOR, x.dtype, (quotient,))
    near = (quotient - down > 0.5).where(down + 1.0, down)
    zero = with_sign(x.const_like(0.0), sign_bits(x / y))
    result = quotient.equal(0.0).where(zero, near)
    return y.equal(0.0).where(x / y, result)

"""Floats that a target cannot compute with are computed in float32 and rounded after each op.

In: a lowered kernel. Out: a dtype such as float16, bfloat16 or fp8 that the target lacks occurs no
more, but for bits that the target itself turns into a float32. Memory of it is memory of unsigned
integers, its bits, and its values are float32s on the grid of the dtype. float32 has more than
twice the digits of each of them, so rounding the float32 result once more is the correctly rounded
result. Conversions agree bit for bit with `weft.ir.arrays.small_floats`: to nearest even, what is
too large becomes infinity, or NaN in a format without infinities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.codegen.analysis.loops import rebuilt
from weft.codegen.context import CodegenContext
from weft.codegen.decompose.float_parts import absolute, bits_of, float_of, like, where
from weft.ir.arrays import small_floats
from weft.ir.arrays.small_floats import FloatFormat
from weft.ir.dtypes import BOOL, FIXED, FLOAT, SCALARS, DType, dtypes
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.uop import UOp, const, make
from weft.ir.walk import map_graph, topological
from weft.target.target import Target

_F32: Final = dtypes.float32
_INFINITY: Final = 0x7F800000
_MAGNITUDE: Final = 0x7FFFFFFF
# What gives a value of the format again when its sources are such values.
_EXACT: Final = frozenset((Op.NEG, Op.MAX, Op.MIN, Op.WHERE, Op.FLOOR, Op.TRUNC, Op.ROUND))

_ADDRESSES: Final = frozenset((Op.PARAM, Op.BUFFER, Op.MEMORY, Op.AFTER, Op.INDEX))


def emulate_small_floats(kernel: UOp, context: CodegenContext) -> UOp:
    """Compute in float32 what the target has no instructions for."""
    target = context.target

    def enter(node: UOp) -> bool:
        return node.op not in (Op.PARAM, Op.BUFFER)

    dtypes_used = {node.dtype for node in topological(kernel, enter=enter)}
    if not any(_is_lacking(dtype, target) for dtype in dtypes_used):
        return kernel
    moved: dict[UOp, UOp] = {}

    def change(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        if _is_lacking(node.dtype, target):
            bits = _try_moved(node, made, moved, target)
            if bits is not None:
                moved[node] = bits
        return _emulated(node, made, moved, target)

    return map_graph(kernel, change, enter=enter)


def _is_lacking(dtype: DType, target: Target) -> bool:
    return dtype.kind == FLOAT and dtype.bits < 32 and dtype.scalar not in target.native_dtypes


def _try_moved(
    node: UOp, made: Mapping[UOp, UOp], moved: Mapping[UOp, UOp], target: Target
) -> UOp | None:
    """The bits of a value that is not computed, as they lie in memory: a NaN keeps all of them."""
    raw = _unsigned(node, node.dtype)
    if node.op == Op.CONST:
        return const(raw, small_floats.encode(_format(node.dtype), float(node.arg)))
    if node.op == Op.LOAD:
        return make(Op.LOAD, raw, (made[node.src[0]],))
    if node.op == Op.BITCAST:
        is_lacking = _is_lacking(node.src[0].dtype, target)
        source = moved.get(node.src[0]) if is_lacking else made[node.src[0]]
        if source is not None and source.dtype is not raw:
            source = make(Op.BITCAST, raw, (source,))
        return source
    if node.op in (Op.WHERE, Op.VECTOR, Op.LANES):
        is_chosen = node.op == Op.WHERE
        values = node.src[is_chosen:]
        if all(value in moved for value in values):
            chosen = (made[node.src[0]],) if is_chosen else ()
            return make(node.op, raw, (*chosen, *[moved[value] for value in values]), node.arg)
    return None


def _emulated(node: UOp, made: Mapping[UOp, UOp], moved: Mapping[UOp, UOp], target: Target) -> UOp:
    dtype = node.dtype
    if node.op == Op.STORE and _is_lacking(node.src[1].dtype, target):
        raw = _raw(node.src[1], made, moved, target)
        ranges = [made[r] for r in node.src[2:]]
        return make(Op.STORE, dtype, (made[node.src[0]], raw, *ranges))
    if node.op == Op.BITCAST and _is_lacking(node.src[0].dtype, target):
        raw = _raw(node.src[0], made, moved, target)
        if _is_lacking(dtype, target):
            return _value(raw, dtype, target)
        return raw if dtype is raw.dtype else make(Op.BITCAST, dtype, (raw,))
    if node.op in (Op.PARAM, Op.BUFFER) and not _is_lacking(dtype, target):
        return node
    if not _is_lacking(dtype, target):
        return rebuilt(node, made, {})
    if node.op in _ADDRESSES or node.op == Op.CONTRACT:
        src = node.src if node.op in (Op.PARAM, Op.BUFFER) else tuple([made[s] for s in node.src])
        return make(node.op, _unsigned(node, dtype), src, node.arg)
    wide = like(node, _F32)
    if node.op == Op.CONST:
        return const(wide, node.arg)
    src = tuple([made[source] for source in node.src])
    if node.op == Op.LOAD:
        return _value(make(Op.LOAD, src[0].dtype, src), dtype, target)
    if node.op == Op.BITCAST:
        raw_dtype = _unsigned(node, dtype)
        is_raw = src[0].dtype is raw_dtype
        return _value(src[0] if is_raw else make(Op.BITCAST, raw_dtype, src), dtype, target)
    if node.op == Op.CAST:
        return _rounded(_to_float32(src[0], target), dtype, target)
    result = make(node.op, wide, src, node.arg)
    if node.op not in ELEMENTWISE:
        return result
    loses_zero = _format(dtype).nan == "negative-zero"
    return result if node.op in _EXACT and not loses_zero else _rounded(result, dtype, target)


def _raw(node: UOp, made: Mapping[UOp, UOp], moved: Mapping[UOp, UOp], target: Target) -> UOp:
    """The bits of a value that the target lacks."""
    if node.op == Op.CONTRACT:
        return made[node]
    return moved[node] if node in moved else _bits(made[node], node.dtype, target)


def _rounded(x: UOp, dtype: DType, target: Target) -> UOp:
    """A float32 as the nearest value of a small dtype; by an instruction where there is one."""
    if dtype.scalar not in target.rounded_dtypes:
        return round_to(x, _format(dtype))
    return make(Op.CAST, x.dtype, (make(Op.CAST, dtype, (x,)),))


def _format(dtype: DType) -> FloatFormat:
    assert dtype.format is not None
    return dtype.format


def _unsigned(node: UOp, dtype: DType) -> DType:
    return like(node, SCALARS[f"uint{dtype.bits}"])


def _encoded(value: float) -> int:
    """The bits of a float32."""
    return small_floats.encode(small_floats.FLOAT32, value)


def round_to(x: UOp, format: FloatFormat) -> UOp:
    """A float32 rounded to the nearest value of a format."""
    bits = bits_of(x)
    size = bits & _MAGNITUDE
    cut = 23 - format.mantissa_bits
    odd = (size >> cut) & 1
    rounded = (size + ((1 << cut - 1) - 1) + odd) & ~((1 << cut) - 1)
    smallest = small_floats.finfo(format).smallest_normal
    if format.exponent_bits < 8:
        # Adding a power of two with the right last place rounds subnormals in hardware.
        at = 2.0 ** (1 - format.bias - format.mantissa_bits + 23)
        small = bits_of((absolute(x) + at) - at)
        rounded = where(size < _encoded(smallest), small, rounded)
    largest = _encoded(small_floats.finfo(format).max)
    beyond = _INFINITY if format.infinities else _encoded(float("nan"))
    rounded = where(rounded > largest, rounded.const_like(beyond), rounded)
    sign = bits & int(bits.dtype.min)
    if format.nan == "negative-zero":
        sign = where(rounded.equal(0), sign.const_like(0), sign)
    return where(size > _INFINITY, x, float_of(rounded | sign))


def _bits(x: UOp, dtype: DType, target: Target) -> UOp:
    """The bits, in a format, of a float32 that is one of its values."""
    if dtype.scalar in target.rounded_dtypes:
        is_there = x.op == Op.CAST and x.src[0].dtype is dtype
        small = x.src[0] if is_there else make(Op.CAST, dtype, (x,))
        return make(Op.BITCAST, _unsigned(x, dtype), (small,))
    format = _format(dtype)
    bits = bits_of(x)
    size = bits & _MAGNITUDE
    cut = 23 - format.mantissa_bits
    result = (size >> cut) - ((127 - format.bias) << format.mantissa_bits)
    if format.exponent_bits < 8:
        count = absolute(x) * 2.0 ** (format.bias - 1 + format.mantissa_bits)
        smallest = _encoded(small_floats.finfo(format).smallest_normal)
        result = where(size < smallest, make(Op.CAST, bits.dtype, (count,)), result)
    if format.infinities:
        result = where(size.equal(_INFINITY), bits.const_like(format.infinity_bits), result)
    sign = (bits >> 31) & format.sign_bit
    if format.nan == "negative-zero":
        sign = where(result.equal(0), sign.const_like(0), sign)
    result = where(size > _INFINITY, bits.const_like(format.nan_bits), result) | sign
    return make(Op.CAST, _unsigned(x, dtype), (result,))


def _value(raw: UOp, dtype: DType, target: Target) -> UOp:
    """The value of bits in a format, as a float32."""
    if dtype.scalar in target.widened_dtypes:
        small = make(Op.BITCAST, like(raw, dtype.scalar), (raw,))
        return make(Op.CAST, like(raw, _F32), (small,))
    format = _format(dtype)
    bits = make(Op.CAST, like(raw, dtypes.int32), (raw,))
    size = bits & (format.sign_bit - 1)
    cut = 23 - format.mantissa_bits
    result = (size << cut) + ((127 - format.bias) << 23)
    if format.exponent_bits < 8:
        count = make(Op.CAST, like(raw, _F32), (size,))
        small = bits_of(count * 2.0 ** (1 - format.bias - format.mantissa_bits))
        result = where(size < 1 << format.mantissa_bits, small, result)
    sign = (bits & format.sign_bit) << (32 - format.bits)
    if format.nan == "ieee":
        special = (size << cut) | _INFINITY
        result = where(size < format.infinity_bits, result, special) | sign
    else:
        pattern, whole = (
            (size, format.sign_bit - 1) if format.nan == "all-ones" else (bits, format.sign_bit)
        )
        nan = bits.const_like(_encoded(float("nan")))
        result = where(pattern.equal(whole), nan, result) | sign
    return float_of(result)


def _to_float32(x: UOp, target: Target) -> UOp:
    """A number as a float32 that rounds on as the number itself would.

    Where digits are lost, the last one kept is made odd, so that no tie arises that was none.
    """
    wide = like(x, _F32)
    kind, bits = x.dtype.kind, x.dtype.bits
    if kind == FLOAT and bits == 64:
        return _odd_float32(x)
    if kind in (BOOL, FLOAT) or bits < 32:
        return make(Op.CAST, wide, (x,))
    if bits == 64 and dtypes.float64 not in target.native_dtypes:
        return make(Op.CAST, wide, (x,))
    number = _with_sticky_bit(x, 8 if bits == 32 else 11)
    if bits == 32:
        return make(Op.CAST, wide, (number,))
    return _odd_float32(make(Op.CAST, like(x, dtypes.float64), (number,)))


def _with_sticky_bit(x: UOp, lost: int) -> UOp:
    """A large integer whose lowest bits are gathered in one."""
    assert x.dtype.kind & FIXED
    low = x & ((1 << lost) - 1)
    sticky = where(low.equal(0), x.const_like(0), x.const_like(1 << lost))
    short = (x >> lost) << lost | sticky
    limit = 1 << x.dtype.bits - lost
    is_large = ~(x < limit) if x.dtype.is_unsigned else ~(x < limit) | (x < -limit)
    return where(is_large, short, x)


def _odd_float32(x: UOp) -> UOp:
    """A float64 as a float32; where that is not exact, as the odd one of its two neighbors."""
    near = make(Op.CAST, like(x, _F32), (x,))
    back = make(Op.CAST, x.dtype, (near,))
    bits = bits_of(near)
    step = where(absolute(back) < absolute(x), bits.const_like(1), bits.const_like(-1))
    is_even = (bits & 1).equal(0)
    is_lossy = (back < x) | (x < back)
    return float_of(where(is_lossy & is_even, bits + step, bits))

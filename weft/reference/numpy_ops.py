"""Every elementwise op on arrays, and reductions by them.

Floats are computed in double and rounded to their dtype once, as `weft.ir.scalar` does. For
+ - * / and the square root that is the correctly rounded result in every dtype up to float32: a
double has more than twice their bits plus one, so a result that is not a tie of the narrow grid
never rounds to one. The functions for which libraries differ in the last bit come from
`weft.ir.scalar` itself, element by element; so the interpreters agree bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.arrays.casts import bitcast, cast
from weft.ir.arrays.values import Array, round_values, value_dtype
from weft.ir.dtypes import BOOL, COMPLEX, FLOAT, INDEX, INT, INTEGER, DType, canonical
from weft.ir.ops import COMPARE, TRANSCENDENTAL, Op, name
from weft.ir.reduction.reductions import identity
from weft.ir.scalar import meaning
from weft.reference.fault import fault
from weft.reference.reductions import accumulator


def elementwise(op: int, dtype: DType, source: DType, *values: Array) -> Array:
    """The op with result `dtype` on arrays; `source` is the dtype of the last of them."""
    with np.errstate(all="ignore"):
        if op == Op.CAST:
            return cast(values[0], source, dtype)
        if op == Op.BITCAST:
            return bitcast(values[0], source, dtype)
        if op == Op.WHERE:
            return np.where(*values)
        if op == Op.COMPLEX:
            return _joined(dtype, *np.broadcast_arrays(*values))
        if op in (Op.REAL, Op.IMAG):
            return np.array(values[0].real if op == Op.REAL else values[0].imag)
        if op in COMPARE:
            return np.asarray(_COMPARE[op](*values))
        if source.kind == COMPLEX:
            wide = [value.astype(np.complex128) for value in values]
            return np.asarray(_FLOAT[op](*wide)).astype(value_dtype(dtype))
        if source.kind == FLOAT:
            return _on_floats(op, dtype, source, values)
        if op == Op.POW and source.kind & INTEGER:
            return _integer_power(source, *values)
        table = _BOOL if source.kind == BOOL else _INTEGER
        if op not in table or (op == Op.DOT_BYTES and source.kind != INT):
            raise fault(f"{name(op)} has no meaning on {source.name}")
        if source.kind == INDEX and op in (Op.ADD, Op.MUL):
            _verify_exact(_FLOAT[op](*(value.astype(np.float64) for value in values)))
        return np.asarray(table[op](*values))


def _verify_exact(result: Array) -> None:
    """Index arithmetic does not wrap; int64 stands for it only as long as that does not either."""
    if bool(np.any(np.abs(result) >= 2.0**63)):
        raise fault("an index passes the 64 bits that this interpreter has for it")


def reduction(op: int, dtype: DType, values: Array, axes: Sequence[int]) -> Array:
    """The reduction over some axes, which keep size 1.

    Halves are reduced into each other until one is left: few steps, each by `elementwise`.
    """
    kept = [1 if axis in axes else extent for axis, extent in enumerate(values.shape)]
    count = math.prod(values.shape[axis] for axis in axes)
    if count == 0:
        return np.full(kept, identity(op, dtype), value_dtype(dtype))
    wide = accumulator(dtype)
    rows = np.moveaxis(values, axes, range(len(axes))).reshape(count, *kept)
    rows = elementwise(Op.CAST, wide, dtype, rows)
    while (count := len(rows)) > 1:
        half = count // 2
        reduced = elementwise(op, wide, wide, rows[:half], rows[half : 2 * half])
        rows = np.concatenate([reduced, rows[2 * half :]])
    return elementwise(Op.CAST, dtype, wide, rows[0])


def scan(op: int, dtype: DType, values: Array, axis: int) -> Array:
    """The reductions of all prefixes along an axis, each rounded once."""
    wide = accumulator(dtype)
    rows = elementwise(Op.CAST, wide, dtype, np.moveaxis(values, axis, 0))
    done = rows.copy()
    for iteration in range(1, len(rows)):
        done[iteration] = elementwise(op, wide, wide, done[iteration - 1], rows[iteration])
    return np.moveaxis(elementwise(Op.CAST, dtype, wide, done), 0, axis)


def _on_floats(op: int, dtype: DType, source: DType, values: tuple[Array, ...]) -> Array:
    wide = [value.astype(np.float64) for value in values]
    if op in TRANSCENDENTAL:
        function = np.frompyfunc(meaning(op, source), len(wide), 1)
        return round_values(dtype, np.asarray(function(*wide)).astype(np.float64))
    if op not in _FLOAT:
        raise fault(f"{name(op)} has no meaning on {source.name}")
    return round_values(dtype, np.asarray(_FLOAT[op](*wide)))


def _maximum(x: Array, y: Array) -> Array:
    """The greater; NaN if either is, and +0 is greater than -0."""
    first = (x > y) | ((x == y) & ~np.signbit(x))
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(first, x, y))


def _minimum(x: Array, y: Array) -> Array:
    first = (x < y) | ((x == y) & np.signbit(x))
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(first, x, y))


def _truncated_quotient(x: Array, y: Array) -> Array:
    """Integer division toward zero: the floor, and one more where that went away from zero."""
    inexact = (np.remainder(x, y) != 0) & ((x < 0) != (y < 0))
    return np.asarray(np.floor_divide(x, y) + inexact.astype(x.dtype))


def _truncated_rest(x: Array, y: Array) -> Array:
    return np.where(y == 0, np.zeros_like(x), x - y * _truncated_quotient(x, y))


def _shifted(shift: Callable[[Array, Array], Any]) -> Callable[[Array, Array], Array]:
    """NumPy's shift, which fills with zeros or the sign past the width, of amounts >= 0."""

    def shifted(x: Array, amount: Array) -> Array:
        if bool(np.any(amount < 0)):
            raise fault("a shift by a negative amount")
        return np.asarray(shift(x, amount))

    return shifted


def _integer_power(dtype: DType, x: Array, y: Array) -> Array:
    power = meaning(Op.POW, dtype)
    wrapped = np.frompyfunc(lambda base, exponent: canonical(dtype, power(base, exponent)), 2, 1)
    return np.asarray(wrapped(x, y)).astype(value_dtype(dtype))


def _joined(dtype: DType, real: Array, imag: Array) -> Array:
    """Complex numbers of their parts; a product with i would make NaN of infinities."""
    result = np.empty(real.shape, value_dtype(dtype))
    result.real, result.imag = real, imag
    return result


def _dot_bytes(x: Array, y: Array) -> Array:
    """The sum over the bytes of words, unsigned ones of x by signed ones of y."""
    wide, other = x.astype(np.int64), y.astype(np.int64)
    shifts = range(0, x.dtype.itemsize * 8, 8)
    parts = [(wide >> low & 255) * (((other >> low & 255) ^ 128) - 128) for low in shifts]
    return np.asarray(sum(parts, np.zeros_like(wide))).astype(x.dtype)


_Table = dict[int, Callable[..., Any]]
_COMPARE: Final[_Table] = {
    Op.LESS: np.less,
    Op.LESS_EQUAL: np.less_equal,
    Op.EQUAL: np.equal,
}
_BOOL: Final[_Table] = {
    **dict.fromkeys((Op.AND, Op.MIN, Op.MUL), np.logical_and),
    **dict.fromkeys((Op.OR, Op.MAX, Op.ADD), np.logical_or),
    Op.XOR: np.logical_xor,
    Op.NOT: np.logical_not,
}
_INTEGER: Final[_Table] = {
    Op.ADD: np.add,
    Op.MUL: np.multiply,
    Op.NEG: np.negative,
    Op.AND: np.bitwise_and,
    Op.OR: np.bitwise_or,
    Op.XOR: np.bitwise_xor,
    Op.NOT: np.invert,
    Op.MAX: np.maximum,
    Op.MIN: np.minimum,
    Op.FLOORDIV: np.floor_divide,
    Op.FLOORMOD: np.remainder,
    Op.TRUNCDIV: _truncated_quotient,
    Op.TRUNCMOD: _truncated_rest,
    Op.DOT_BYTES: _dot_bytes,
    Op.SHL: _shifted(np.left_shift),
    Op.SHR: _shifted(np.right_shift),
}
_FLOAT: Final[_Table] = {
    Op.ADD: np.add,
    Op.MUL: np.multiply,
    Op.NEG: np.negative,
    Op.DIV: np.divide,
    Op.MAX: _maximum,
    Op.MIN: _minimum,
    Op.FLOORDIV: np.floor_divide,
    Op.FLOORMOD: np.remainder,
    Op.TRUNCMOD: np.fmod,
    Op.SQRT: np.sqrt,
    Op.FLOOR: np.floor,
    Op.TRUNC: np.trunc,
    Op.ROUND: np.rint,
}

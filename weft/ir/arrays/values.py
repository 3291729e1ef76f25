"""How values of each dtype stand in NumPy arrays, and how those become memory and back.

The tensor layer brings arrays in and out with these, and the oracle computes on them.

A dtype that NumPy has is held natively, `index` as int64. bfloat16 and the fp8 types are held as
float32 arrays whose elements lie on the type's grid; `to_storage` and `from_storage` convert to
and from the bits that memory holds. Rounding goes straight from a double to the grid, with the
values of `weft.ir.arrays.small_floats`, so it agrees with constant folding bit for bit.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.ir.arrays import small_floats
from weft.ir.arrays.small_floats import FloatFormat
from weft.ir.dtypes import FLOAT, INDEX, DType
from weft.support.errors import InternalError

Array = NDArray[Any]


def is_emulated(dtype: DType) -> bool:
    """Whether NumPy lacks the dtype, so that float32 stands for it."""
    return dtype.kind == FLOAT and dtype.name not in ("float16", "float32", "float64")


def value_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype of an array of values."""
    if dtype.lanes != 1 or not dtype.bits:
        raise InternalError(f"no array holds values of {dtype.name}")
    if dtype.kind == INDEX:
        return np.dtype(np.int64)
    return np.dtype(np.float32 if is_emulated(dtype) else dtype.name)


@cache
def storage_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype of the values' form in memory."""
    return np.dtype(f"uint{dtype.bits}") if is_emulated(dtype) else value_dtype(dtype)


def require_values(dtype: DType, array: Array) -> Array:
    """The array itself, if it is one of values of `dtype`."""
    if array.dtype != value_dtype(dtype):
        raise InternalError(f"an array of {array.dtype} does not hold values of {dtype.name}")
    return array


def round_values(dtype: DType, wide: Array) -> Array:
    """Doubles rounded once to the nearest values of a float dtype, ties to even."""
    if not is_emulated(dtype):
        with np.errstate(all="ignore"):
            return np.asarray(wide, value_dtype(dtype))
    assert dtype.format is not None
    return np.asarray(_patterns(dtype.format)[_encode(dtype.format, wide)])


def to_storage(dtype: DType, values: Array) -> Array:
    """The form in memory of an array of values.

    >>> from weft.ir.dtypes import dtypes
    >>> to_storage(dtypes.bfloat16, np.array([1.0], np.float32))
    array([16256], dtype=uint16)
    """
    require_values(dtype, values)
    if not is_emulated(dtype):
        return values
    assert dtype.format is not None
    with np.errstate(invalid="ignore"):  # a signaling NaN is a NaN like others
        return _encode(dtype.format, values.astype(np.float64)).astype(storage_dtype(dtype))


def from_storage(dtype: DType, raw: Array) -> Array:
    """The values of an array as memory holds it."""
    if raw.dtype != storage_dtype(dtype):
        raise InternalError(f"memory of {dtype.name} is not held as {raw.dtype}")
    if not is_emulated(dtype):
        return raw
    assert dtype.format is not None
    return np.asarray(_patterns(dtype.format)[raw])


def to_bits(dtype: DType, values: Array) -> Array:
    """The bits of fixed-width values, unsigned. A NaN keeps its sign and loses its payload."""
    bits = to_storage(dtype, values).view(f"uint{dtype.bits}")
    if dtype.kind != FLOAT:
        return bits
    assert dtype.format is not None
    sign, nan_bits = bits.dtype.type(dtype.format.sign_bit), dtype.format.nan_bits
    nan = np.where(np.signbit(values), sign, bits.dtype.type(0)) | bits.dtype.type(nan_bits)
    return np.where(np.isnan(values), nan, bits)


def from_bits(dtype: DType, bits: Array) -> Array:
    """The values with these bits."""
    return from_storage(dtype, bits.view(storage_dtype(dtype)))


@cache
def _patterns(format: FloatFormat) -> Array:
    """The values of all bit patterns, in order."""
    values = [small_floats.decode(format, bits) for bits in range(1 << format.bits)]
    return np.array(values, np.float64).astype(np.float32)


@cache
def _midpoints(format: FloatFormat) -> Array:
    """Where rounding iterations from one magnitude to the next; past the last one it overflows."""
    finite = _patterns(format)[: format.largest_bits + 1].astype(np.float64)
    beyond = 2 * finite[-1] - finite[-2]
    values = np.append(finite, beyond)
    halfway: Array = (values[:-1] + values[1:]) / 2
    return halfway


def _encode(format: FloatFormat, wide: Array) -> Array:
    """The bit patterns of doubles, as `small_floats.encode` chooses them.

    Patterns are ordered as the magnitudes are, so the pattern of a magnitude is the number of
    midpoints below it. On a midpoint there are two counts, and the even one is right.
    """
    magnitude = np.abs(wide)
    below = np.asarray(np.searchsorted(_midpoints(format), magnitude, side="left"))
    above = np.asarray(np.searchsorted(_midpoints(format), magnitude, side="right"))
    bits = np.where(below % 2 == 0, below, above)
    overflow = format.infinity_bits if format.infinities else format.nan_bits
    bits = np.where(bits > format.largest_bits, overflow, bits)
    bits = np.where(np.isnan(wide), format.nan_bits, bits)
    signed = np.where(np.signbit(wide), bits | format.sign_bit, bits)
    # Where the pattern of negative zero is NaN, zero has no sign.
    return np.where(bits == 0, 0, signed) if format.nan == "negative-zero" else signed

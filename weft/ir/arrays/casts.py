"""CAST and BITCAST on arrays: what `weft.ir.scalar` does to a scalar, done to every element."""

from __future__ import annotations

import numpy as np

from weft.ir.arrays.values import Array, from_bits, round_values, to_bits, value_dtype
from weft.ir.dtypes import BOOL, COMPLEX, FLOAT, INDEX, INTEGER, UINT, DType
from weft.support.errors import InternalError


def cast(values: Array, source: DType, target: DType) -> Array:
    """The values in another dtype."""
    if target.kind == COMPLEX:
        return values.astype(value_dtype(target))
    if source.kind == COMPLEX and target.kind != BOOL:
        return cast(np.asarray(values.real), source.part, target)
    if target.kind == BOOL:
        return np.asarray(values != 0)
    if source.kind == FLOAT:
        wide = values.astype(np.float64)
        return round_values(target, wide) if target.kind == FLOAT else _to_integer(wide, target)
    if target.kind == INDEX and source.kind == UINT and bool(np.any(values >= 1 << 63)):
        raise InternalError("CAST of an integer past the 64 bits that an array has for an index")
    if target.kind != FLOAT:
        return values.astype(value_dtype(target))
    if target.bits == 64 or not source.kind & INTEGER or source.bits < 64:
        return round_values(target, values.astype(np.float64))
    return round_values(target, _odd_doubles(values))


def bitcast(values: Array, source: DType, target: DType) -> Array:
    """The same bits read as another dtype of equal width."""
    if source.bits != target.bits:
        raise InternalError(
            f"BITCAST of {source.name} to {target.name}, which is of another width"
        )
    return from_bits(target, to_bits(source, values))


def _odd_doubles(values: Array) -> Array:
    """64-bit integers as doubles that round on to a narrower float as the integers would.

    Where a double is too short, the lowest 12 bits are replaced by one bit that says whether any
    of them is set, so that the second rounding sees no tie that was none before.
    """
    sticky = (values & 4095 != 0).astype(values.dtype)
    short = (values >> 12 | sticky).astype(np.float64) * 4096
    plain = values.astype(np.float64)
    return np.where(np.abs(plain) < 2.0**53, plain, short)


def _to_integer(wide: Array, target: DType) -> Array:
    """Truncate to the nearest int32, or to the nearest int64 for wider targets; then wrap."""
    whole = np.where(np.isnan(wide), 0.0, np.trunc(wide))
    if target.kind == INDEX and bool(np.any(np.abs(whole) >= 2.0**63)):
        raise InternalError("CAST of a float past all indices")
    if target.bits < 64 and not (target.kind == UINT and target.bits == 32):
        narrow = np.clip(whole, -(2.0**31), 2.0**31 - 1).astype(np.int64)
        return narrow.astype(value_dtype(target))
    inside = np.where((whole >= -(2.0**63)) & (whole < 2.0**63), whole, 0.0).astype(np.int64)
    limits = np.iinfo(np.int64)
    result = np.where(whole < -(2.0**63), limits.min, inside)
    result = np.where(whole >= 2.0**63, limits.max, result).astype(value_dtype(target))
    return _fill_upper_half(whole, result) if target.kind == UINT and target.bits == 64 else result


def _fill_upper_half(whole: Array, result: Array) -> Array:
    """uint64 reaches twice as far up as int64 does."""
    upper = (whole >= 2.0**63) & (whole < 2.0**64)
    values = np.where(upper, whole, 0.0).astype(np.uint64)
    result = np.where(upper, values, result)
    return np.where(whole >= 2.0**64, np.iinfo(np.uint64).max, result)

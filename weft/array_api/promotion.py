"""Dtypes by the standard's words: promotion, kinds, limits and casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from weft.ir.dtypes import DType, complex_of, dtypes, promote
from weft.support.errors import ArgumentError, ArgumentTypeError, DTypeError
from weft.tensor.tensor import Tensor

SIGNED: Final = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
UNSIGNED: Final = (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
FLOATS: Final = (dtypes.float32, dtypes.float64)
COMPLEX: Final = (dtypes.complex64, dtypes.complex128)
KINDS: Final[dict[str, tuple[DType, ...]]] = {
    "bool": (dtypes.bool,),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": (*SIGNED, *UNSIGNED),
    "real floating": FLOATS,
    "complex floating": COMPLEX,
    "numeric": (*SIGNED, *UNSIGNED, *FLOATS, *COMPLEX),
}
# What integers become whose dtype nobody named, and what positions are.
DEFAULT_INTEGER: Final = dtypes.int64
INDEX: Final = dtypes.int64
Scalar = bool | int | float | complex


class FloatInfo(NamedTuple):
    """The limits of a floating-point dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntegerInfo(NamedTuple):
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype of a result of arrays, dtypes and Python scalars; scalars are weak."""
    named = [
        each.dtype if isinstance(each, Tensor) else each
        for each in arrays_and_dtypes
        if isinstance(each, (Tensor, DType))
    ]
    if not named:
        raise ArgumentError(
            "result_type: there is no array or dtype among the arguments",
            rule="scalars alone have no dtype",
        )
    found = promote(*named)
    for each in arrays_and_dtypes:
        if isinstance(each, complex) and not found.is_complex:
            found = complex_of(found if found.is_float else dtypes.default_float)
        elif isinstance(each, float) and not found.is_inexact:
            found = dtypes.default_float
        elif isinstance(each, int) and not isinstance(each, bool) and found is dtypes.bool:
            found = DEFAULT_INTEGER
    return found


def promoted(name: str, *operands: Any) -> list[Any]:
    """Operands in their common dtype: two or more, of which scalars become arrays."""
    for each in operands:
        if not isinstance(each, (Tensor, bool, int, float, complex)):
            raise ArgumentTypeError(
                f"{name}: expected an array or a number, got {type(each).__name__}",
                fix="make an array of it: asarray(data)",
            )
    common = result_type(*operands)
    device = next(each.device for each in operands if isinstance(each, Tensor))
    return [
        each.cast(common)
        if isinstance(each, Tensor)
        else Tensor.full((), each, dtype=common, device=device, buffer=False)
        for each in operands
    ]


def can_cast(from_: DType | Tensor, to: DType, /) -> bool:
    """Whether promotion ever turns the one into the other."""
    source = from_.dtype if isinstance(from_, Tensor) else from_
    return promote(source, to) is to


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """Whether a dtype is of a kind, or one of several."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    for each in kinds:
        if isinstance(each, str) and each not in KINDS:
            raise ArgumentError(
                f"isdtype: unknown kind {each!r}", rule="kinds are " + ", ".join(KINDS)
            )
    return any(dtype in KINDS[each] if isinstance(each, str) else dtype is each for each in kinds)


def finfo(type: DType | Tensor, /) -> FloatInfo:
    """The limits of a floating-point dtype."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    dtype = dtype.part if dtype.is_complex else dtype
    if not dtype.is_float:
        raise DTypeError(f"finfo: {dtype.name} has no fractions", fix="use iinfo")
    limits: Any = dtypes.finfo(dtype)
    return FloatInfo(dtype.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, dtype)


def iinfo(type: DType | Tensor, /) -> IntegerInfo:
    """The limits of an integer dtype."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    if not dtype.is_int:
        raise DTypeError(f"iinfo: {dtype.name} is not an integer dtype")
    return IntegerInfo(dtype.bits, int(dtype.max), int(dtype.min), dtype)


def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: str | None = None) -> Tensor:
    """The array in another dtype; without `copy` it is itself where nothing changes."""
    made = x if device is None else x.to(device)
    if made.dtype.is_complex and not dtype.is_complex:
        raise DTypeError(
            f"astype: {made.dtype.name} becomes {dtype.name}",
            rule="a complex number has no one real number",
            fix="write real(x) or imag(x)",
        )
    if made.dtype is not dtype:
        return made.cast(dtype)
    return made.clone() if copy and made is x else made


def named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function that was made, under its public name."""
    function.__name__ = function.__qualname__ = name
    return function

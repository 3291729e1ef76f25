"""How LLVM writes the dtypes and constants of Weft.

A bool is `i1` as a value and one byte in memory. Integers have no sign in LLVM, so ops choose. The
index dtype is 64 bits wide.
"""

from __future__ import annotations

import math
import struct
from typing import Final

from weft.ir.dtypes import BOOL, FLOAT, INDEX, DType, Scalar
from weft.support.errors import InternalError

_FLOATS: Final = {"float16": "half", "bfloat16": "bfloat", "float32": "float", "float64": "double"}
# How the names of intrinsics spell a type.
_SHORT: Final = {"half": "f16", "float": "f32", "double": "f64"}
_NAN: Final = 0x7FF8000000000000


def scalar_type(dtype: DType) -> str:
    """The type of one lane as a value."""
    if dtype.kind == FLOAT:
        found = _FLOATS.get(dtype.scalar.name)
        if found is None:
            raise InternalError(f"LLVM has no {dtype.scalar.name}; it is to be decomposed")
        return found
    if dtype.kind == BOOL:
        return "i1"
    return "i64" if dtype.kind == INDEX else f"i{dtype.bits}"


def with_lanes(scalar: str, lanes: int) -> str:
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def value_type(dtype: DType) -> str:
    """The type of a value.

    >>> from weft.ir.dtypes import dtypes
    >>> value_type(dtypes.float32.vector(4)), value_type(dtypes.bool)
    ('<4 x float>', 'i1')
    """
    return with_lanes(scalar_type(dtype), dtype.lanes)


def element_type(dtype: DType) -> str:
    """The type of one element in memory."""
    return "i8" if dtype.kind == BOOL else scalar_type(dtype)


def memory_type(dtype: DType) -> str:
    """The type in which a value lies in memory."""
    return with_lanes(element_type(dtype), dtype.lanes)


def suffix(type_name: str) -> str:
    """The type as the name of an intrinsic has it.

    >>> suffix("<16 x float>"), suffix("i32")
    ('v16f32', 'i32')
    """
    if type_name.startswith("<"):
        lanes, _, scalar = type_name[1:-1].partition(" x ")
        return f"v{lanes}{suffix(scalar)}"
    return _SHORT.get(type_name, type_name)


def literal(dtype: DType, value: Scalar) -> str:
    """A constant of `dtype`, in every lane.

    >>> from weft.ir.dtypes import dtypes
    >>> literal(dtypes.float32.vector(2), 1.5)
    'splat (float 0x3FF8000000000000)'
    """
    text = _scalar_literal(dtype, value)
    return text if dtype.lanes == 1 else f"splat ({scalar_type(dtype)} {text})"


def _scalar_literal(dtype: DType, value: Scalar) -> str:
    if dtype.kind == BOOL:
        return "true" if value else "false"
    if dtype.kind != FLOAT:
        return str(int(value))
    # A float is written as the double of equal value; all of them are exact.
    number = float(value)
    bits = _NAN if math.isnan(number) else int.from_bytes(struct.pack(">d", number))
    return f"0x{bits:016X}"


def zero(type_name: str) -> str:
    """Nothing but zero bits in any type but a pointer."""
    return "zeroinitializer" if type_name.startswith("<") else _ZEROS.get(type_name, "0")


_ZEROS: Final = {"i1": "false", "float": "0.0", "double": "0.0"}

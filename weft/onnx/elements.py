"""The element types of ONNX, and what holds them here.

Most are dtypes of Weft. Those below a byte, and exponents of eight bits, are `Small`: a tensor of
a wider dtype with the exact values, and the element type that they are of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from onnx import TensorProto

from weft.ir.dtypes import DType, dtypes
from weft.onnx.real_sizes import RealSize
from weft.support.errors import NotSupported
from weft.tensor.tensor import Tensor

DTYPES: Final[dict[int, DType]] = {
    TensorProto.FLOAT: dtypes.float32,
    TensorProto.UINT8: dtypes.uint8,
    TensorProto.INT8: dtypes.int8,
    TensorProto.UINT16: dtypes.uint16,
    TensorProto.INT16: dtypes.int16,
    TensorProto.INT32: dtypes.int32,
    TensorProto.INT64: dtypes.int64,
    TensorProto.BOOL: dtypes.bool,
    TensorProto.FLOAT16: dtypes.float16,
    TensorProto.DOUBLE: dtypes.float64,
    TensorProto.UINT32: dtypes.uint32,
    TensorProto.UINT64: dtypes.uint64,
    TensorProto.BFLOAT16: dtypes.bfloat16,
    TensorProto.FLOAT8E4M3FN: dtypes.fp8e4m3,
    TensorProto.FLOAT8E4M3FNUZ: dtypes.fp8e4m3fnuz,
    TensorProto.FLOAT8E5M2: dtypes.fp8e5m2,
    TensorProto.FLOAT8E5M2FNUZ: dtypes.fp8e5m2fnuz,
}


class SmallElement(NamedTuple):
    """An element type without a dtype: its name, its least and greatest value, what holds it."""

    name: str
    least: float
    most: float
    held_as: DType


SMALL: Final[dict[int, SmallElement]] = {
    TensorProto.UINT4: SmallElement("uint4", 0, 15, dtypes.uint8),
    TensorProto.INT4: SmallElement("int4", -8, 7, dtypes.int8),
    TensorProto.UINT2: SmallElement("uint2", 0, 3, dtypes.uint8),
    TensorProto.INT2: SmallElement("int2", -2, 1, dtypes.int8),
    TensorProto.FLOAT4E2M1: SmallElement("float4e2m1", -6.0, 6.0, dtypes.float32),
    TensorProto.FLOAT8E8M0: SmallElement("float8e8m0", 2.0**-127, 2.0**127, dtypes.float32),
}

_NUMBERS: Final = {dtype: number for number, dtype in DTYPES.items()}
_ARRAYS_OF_FEW_BITS: Final = {
    "uint4": TensorProto.UINT4,
    "int4": TensorProto.INT4,
    "uint2": TensorProto.UINT2,
    "int2": TensorProto.INT2,
    "float4_e2m1fn": TensorProto.FLOAT4E2M1,
    "float8_e8m0fnu": TensorProto.FLOAT8E8M0,
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8_e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "float8_e5m2": TensorProto.FLOAT8E5M2,
    "float8_e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
}


@dataclass(frozen=True, slots=True)
class Small:
    """A tensor of elements that no dtype has."""

    tensor: Tensor
    element: int

    @property
    def shape(self) -> Any:
        return self.tensor.shape


def element_name(number: int) -> str:
    """The name of an element type, as the format spells it."""
    try:
        return str(TensorProto.DataType.Name(number))
    except ValueError:
        return f"element type {number}"


def dtype_of(number: int) -> DType:
    """The dtype that holds an element type."""
    if number in DTYPES:
        return DTYPES[number]
    if number in SMALL:
        return SMALL[number].held_as
    raise NotSupported(
        f"onnx: elements of type {element_name(number)}",
        rule="elements are bools, integers, floats down to 4 bits, and strings that pass through",
    )


def element_of(value: Any) -> int:
    """The element type of a value."""
    if isinstance(value, Small):
        return value.element
    if isinstance(value, Tensor):
        return _NUMBERS[value.dtype]
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        is_text = not array.size or isinstance(array.flat[0], (str, bytes))
        if any(isinstance(cell, (RealSize, float)) for cell in array.flat):
            return int(TensorProto.FLOAT)
        return int(TensorProto.STRING if is_text else TensorProto.INT64)
    if array.dtype.name in _ARRAYS_OF_FEW_BITS:
        return int(_ARRAYS_OF_FEW_BITS[array.dtype.name])
    from weft.tensor.host.convert import dtype_of as dtype_of_array

    return _NUMBERS[dtype_of_array(array.dtype.name, dtypes.float32)]

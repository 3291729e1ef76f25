"""Data of the host as memory of a device: lists, bytes, arrays and anything with a buffer."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.engine.contents import buffer_from
from weft.engine.devices import Placement, is_file
from weft.ir.arrays.casts import cast
from weft.ir.arrays.values import Array, from_storage, is_emulated, storage_dtype, to_storage
from weft.ir.dtypes import DType, complex_of, dtypes
from weft.ir.uop import UOp
from weft.support.errors import ArgumentTypeError, DeviceError, ShapeError
from weft.tensor.checks import require_number_fits
from weft.tensor.host.dlpack import consume
from weft.tensor.trace.state import tracing

# Names of the ml_dtypes package for dtypes that NumPy lacks.
_FOREIGN: Final[dict[str, DType]] = {
    "bfloat16": dtypes.bfloat16,
    "float8_e4m3fn": dtypes.fp8e4m3,
    "float8_e5m2": dtypes.fp8e5m2,
    "float8_e4m3fnuz": dtypes.fp8e4m3fnuz,
    "float8_e5m2fnuz": dtypes.fp8e5m2fnuz,
}
# What NumPy has in the byte order of the machine, and that needs no look at its name.
_NATIVE: Final[dict[np.dtype[Any], DType]] = {
    np.dtype(dtype.name): dtype
    for dtype in (
        *(dtypes.bool, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
        *(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
        *(dtypes.float16, dtypes.float32, dtypes.float64),
    )
}


def from_host(data: Any, dtype: DType | None, device: Placement) -> UOp:
    """A BUFFER with a copy of the data, cast to the dtype where one is given."""
    if is_file(device):
        raise DeviceError(
            f"Tensor: data of the host is not on {device}",
            rule="a tensor on DISK is a file",
            fix="make it elsewhere and write it: Tensor(data).to('DISK:path')",
        )
    if isinstance(data, (bytes, bytearray)):
        return _from_bytes(data, dtype or dtypes.uint8, device)
    is_list = isinstance(data, (list, tuple))
    values, source = _from_list(data, dtype is not None) if is_list else _from_array(data)
    target = source if dtype is None else dtype
    if is_list and dtype is None and source.is_int:
        target = dtypes.default_int
    if is_list and values.size:
        for number in (values.min(), values.max()):
            require_number_fits("Tensor", number.item(), target)
    if target is not source:
        with np.errstate(all="ignore"):
            values = cast(values, source, target)
    return _copied(values, target, device)


def _copied(values: Array, dtype: DType, device: Placement) -> UOp:
    raw = np.ascontiguousarray(to_storage(dtype, values)).reshape(-1)
    data: Any = raw.view(np.uint8)
    return buffer_from(dtype, values.shape, device, memoryview(data))


def _from_bytes(data: bytes | bytearray, dtype: DType, device: Placement) -> UOp:
    if len(data) % dtype.itemsize:
        raise ShapeError(
            f"Tensor: {len(data)} bytes are not a whole number of {dtype.name} elements",
            facts=[("bytes", len(data)), (dtype.name, f"{dtype.itemsize} bytes each")],
            rule="bytes are read as elements of the dtype",
        )
    return buffer_from(dtype, (len(data) // dtype.itemsize,), device, memoryview(data))


def _from_list(data: Any, has_dtype: bool) -> tuple[Array, DType]:
    """The values of a list; Python's floats are as wide as they are where a dtype is given."""
    first = data
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if hasattr(type(first), "uop"):
        raise ArgumentTypeError(
            "Tensor: expected numbers, got a list of tensors",
            rule="a list holds numbers; tensors are joined with stack or cat",
            fix="use Tensor.stack(*tensors) or Tensor.cat(*tensors)",
        )
    if isinstance(first, (bytes, bytearray)):
        data = np.array([np.frombuffer(each, np.uint8) for each in data])
    try:
        values = np.array(data)
    except (ValueError, OverflowError) as failure:
        raise ShapeError(
            "Tensor: a nested list is not rectangular",
            facts=[("NumPy says", str(failure))],
            rule="the lists at one depth have one length",
        ) from None
    except Exception:  # whatever an object of somebody else does when it is asked
        values = np.asarray(None)
    if values.size == 0 and values.dtype == np.float64:
        return values.astype(_numpy_of(dtypes.default_float)), dtypes.default_float
    if values.dtype == np.float64 and not isinstance(first, np.generic) and not has_dtype:
        with np.errstate(over="ignore"):
            return cast(values, dtypes.float64, dtypes.default_float), dtypes.default_float
    if values.dtype == np.complex128 and not isinstance(first, np.generic) and not has_dtype:
        narrow = complex_of(dtypes.default_float)
        return values.astype(narrow.name), narrow
    return _from_array(values)


def _numpy_of(dtype: DType) -> np.dtype[Any]:
    return np.dtype(np.float32 if is_emulated(dtype) else dtype.name)


def dtype_of_array(array: Any) -> DType:
    """The dtype of the elements of a NumPy array."""
    if array.dtype.name in _FOREIGN:
        return _FOREIGN[array.dtype.name]
    return _from_array(array)[1]


def _from_array(data: Any) -> tuple[Array, DType]:
    """An array of values and the dtype they are of."""
    if data.__class__ is np.ndarray and data.dtype in _NATIVE:
        if tracing.trace is not None:
            tracing.trace.note_array(data)
        return data, _NATIVE[data.dtype]
    if hasattr(type(data), "__dlpack__") and not isinstance(data, np.ndarray):
        stored, dtype, _ = consume(data)
        return from_storage(dtype, stored), dtype
    try:
        array = np.asarray(data)
    except Exception:  # whatever an object of somebody else does when it is asked
        array = np.asarray(None)
    if array is data and tracing.trace is not None:
        tracing.trace.note_array(array)
    name = array.dtype.name
    if name in _FOREIGN:
        dtype = _FOREIGN[name]
        return from_storage(dtype, array.view(storage_dtype(dtype))), dtype
    widest = 16 if array.dtype.kind == "c" else 8
    if array.dtype.kind not in "biufc" or array.dtype.itemsize > widest:
        raise ArgumentTypeError(
            f"Tensor: cannot be made of {type(data).__name__}"
            + (f" of {name}" if isinstance(data, np.ndarray) else ""),
            rule="data is a number, a nested list, bytes, a NumPy array, a buffer, a path, a "
            "Tensor or a UOp; elements are bools, integers, floats or complex numbers",
        )
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return native, getattr(dtypes, native.dtype.name)

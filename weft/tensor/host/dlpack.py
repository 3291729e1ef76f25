"""DLPack by ctypes: capsules made of memory, and memory found in capsules.

Memory of the host is an array; that of another device is a `Foreign`, which only names it. A
capsule holds a struct that describes memory and a function that lets go of it. Ours is kept alive
by `_ALIVE` until that function is called; a foreign one is let go of when the array that was made
of it dies.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import Any, Final, NamedTuple

import numpy as np

from weft.ir.arrays.values import Array, storage_dtype
from weft.ir.dtypes import DType, dtypes
from weft.support.errors import ArgumentTypeError, DTypeError, NotSupported

CPU: Final = (1, 0)
# Kinds of memory that devices of ours can share.
GPU_KINDS: Final = {2: "CUDA"}
_HOST_KINDS: Final = (1, 3)  # plain memory, and memory that a GPU reads too
_READ_ONLY: Final = 1
_VERSION: Final = (1, 0)

# Codes of DLDataType, by our dtypes: (code, bits).
_CODES: Final[dict[str, tuple[int, int]]] = {
    **{f"int{bits}": (0, bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (2, bits) for bits in (16, 32, 64)},
    "bfloat16": (4, 16),
    **{f"complex{bits}": (5, bits) for bits in (64, 128)},
    "bool": (6, 8),
    "fp8e4m3": (10, 8),
    "fp8e4m3fnuz": (11, 8),
    "fp8e5m2": (12, 8),
    "fp8e5m2fnuz": (13, 8),
}
_NAMES: Final = {code: name for name, code in _CODES.items()}


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensor, in capsules called "dltensor"."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned, in capsules called "dltensor_versioned"."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_api = ctypes.pythonapi
_CapsuleEnd = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = _api.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, _CapsuleEnd)
_pointer = _api.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_valid = _api.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)
_rename = _api.PyCapsule_SetName
_rename.restype = ctypes.c_int
_rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
# The same two for a capsule that is being destroyed, which must not be referred to any more.
_dying_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_dying_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)

_PLAIN: Final = b"dltensor"
_WITH_VERSION: Final = b"dltensor_versioned"
# A capsule keeps only the address of its name.
_USED: Final = {_PLAIN: b"used_dltensor", _WITH_VERSION: b"used_dltensor_versioned"}
_ALIVE: Final[dict[int, tuple[Any, ...]]] = {}


def _let_go(address: int) -> None:
    _ALIVE.pop(address, None)


def _capsule_ends(capsule_address: int) -> None:
    """A capsule that nobody took over lets go of its memory."""
    for name in (_PLAIN, _WITH_VERSION):
        if _dying_is_valid(capsule_address, name):
            _let_go(_dying_pointer(capsule_address, name))


_DELETER: Final = _Deleter(_let_go)
_CAPSULE_END: Final = _CapsuleEnd(_capsule_ends)


def bytes_at(address: int, count: int) -> Any:
    """The bytes at an address, as an object with the buffer protocol."""
    return (ctypes.c_ubyte * count).from_address(address or ctypes.addressof(_EMPTY))


_EMPTY: Final = (ctypes.c_ubyte * 1)()


class Shown(NamedTuple):
    """Memory that a capsule shows, without gaps unless it has strides; `keep` holds it."""

    address: int
    device: tuple[int, int]
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_constant: bool
    keep: object


def capsule(array: Array, dtype: DType, versioned: bool = False) -> Any:
    """A capsule that shows an array, whose elements are the storage form of the dtype."""
    return capsule_of(
        Shown(
            address=array.__array_interface__["data"][0],
            device=CPU,
            dtype=dtype,
            shape=array.shape,
            strides=tuple(step // array.itemsize for step in array.strides),
            is_constant=not array.flags.writeable,
            keep=array,
        ),
        versioned,
    )


def capsule_of(shown: Shown, versioned: bool = False) -> Any:
    """A capsule of memory on any device."""
    if shown.dtype.name not in _CODES:
        raise DTypeError(f"__dlpack__: {shown.dtype.name} has no code in DLPack")
    rank = len(shown.shape)
    shape = (ctypes.c_int64 * rank)(*shown.shape)
    strides = (ctypes.c_int64 * rank)(*shown.strides)
    code, bits = _CODES[shown.dtype.name]
    managed: Any = _Versioned() if versioned else _Managed()
    tensor = managed.tensor
    tensor.data = shown.address
    tensor.device_type, tensor.device_id = shown.device
    tensor.ndim, tensor.code, tensor.bits, tensor.lanes = rank, code, bits, 1
    tensor.shape, tensor.strides = shape, strides
    managed.deleter = _DELETER
    if versioned:
        managed.major, managed.minor = _VERSION
        managed.flags = _READ_ONLY if shown.is_constant else 0
    address = ctypes.addressof(managed)
    _ALIVE[address] = (managed, shown.keep, shape, strides)
    return _new_capsule(address, _WITH_VERSION if versioned else _PLAIN, _CAPSULE_END)


class Foreign(NamedTuple):
    """Memory of another library on a device that is not the host; `keep` holds it."""

    address: int
    dtype: DType
    shape: tuple[int, ...]
    is_contiguous: bool
    keep: object


def kind_of(x: Any) -> tuple[int, int]:
    """The DLPack name of the device on which an object has its memory."""
    if not hasattr(type(x), "__dlpack__") or not hasattr(type(x), "__dlpack_device__"):
        raise ArgumentTypeError(
            f"from_dlpack: expected an object with __dlpack__, got {type(x).__name__}",
            rule="from_dlpack takes arrays and tensors of other libraries",
            fix="use Tensor(data), which copies",
        )
    kind, number = x.__dlpack_device__()
    return int(kind), int(number)


def consume(x: Any) -> tuple[Array, DType, bool]:
    """An array over the memory of an object with `__dlpack__`, its dtype, whether it is constant.

    The array holds the storage form of the dtype.
    """
    kind, number = kind_of(x)
    if kind not in _HOST_KINDS:
        raise NotSupported(
            f"from_dlpack: memory of device ({kind}, {number})",
            rule="memory of the CPU and of CUDA can be shared",
            fix="move it there first",
        )
    made, name, managed = _taken(x)
    raw, array, dtype = _array_of(managed.tensor)
    _rename(made, _USED[name])
    # The bytes are what the array and all views of it hold.
    weakref.finalize(raw, _release, managed).atexit = False
    return array, dtype, bool(getattr(managed, "flags", 0) & _READ_ONLY)


def _taken(x: Any, **more: Any) -> tuple[Any, bytes, Any]:
    """The capsule of an object, its name and the struct that it holds."""
    try:
        made = x.__dlpack__(max_version=_VERSION, **more)
    except TypeError:  # made before versions came
        made = x.__dlpack__(**more)
    name = _WITH_VERSION if _is_valid(made, _WITH_VERSION) else _PLAIN
    struct = _Versioned if name is _WITH_VERSION else _Managed
    return made, name, struct.from_address(_pointer(made, name))


class _Holder:
    """What keeps memory of another library: it lets go when this dies."""

    __slots__ = ("__weakref__",)


def consume_on_device(x: Any, stream: int) -> Foreign:
    """The memory of an object on a device that is not the host, to be used on this stream."""
    made, name, managed = _taken(x, stream=stream)
    tensor = managed.tensor
    dtype = _dtype_of(tensor)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = [tensor.strides[i] for i in range(tensor.ndim)] if tensor.strides else None
    dense = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    is_contiguous = strides is None or all(
        size == 1 or own == step for size, own, step in zip(shape, strides, dense, strict=True)
    )
    keep = _Holder()
    _rename(made, _USED[name])
    weakref.finalize(keep, _release, managed).atexit = False
    address = (tensor.data or 0) + tensor.byte_offset
    return Foreign(address, dtype, shape, is_contiguous or not math.prod(shape), keep)


def _release(managed: Any) -> None:
    if managed.deleter:
        managed.deleter(ctypes.addressof(managed))


def _dtype_of(tensor: Any) -> DType:
    name = _NAMES.get((tensor.code, tensor.bits))
    if name is None or tensor.lanes != 1:
        raise DTypeError(
            f"from_dlpack: no dtype for code {tensor.code} with {tensor.bits} bits",
            rule="elements are bools, integers or floats of up to 64 bits",
        )
    dtype: DType = getattr(dtypes, name)
    return dtype


def _array_of(tensor: Any) -> tuple[Any, Array, DType]:
    """The bytes that a DLTensor spans, and an array over them."""
    dtype = _dtype_of(tensor)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    stored = storage_dtype(dtype)
    if tensor.strides:
        strides = tuple(tensor.strides[i] * stored.itemsize for i in range(tensor.ndim))
    else:
        strides = tuple(math.prod(shape[i + 1 :]) * stored.itemsize for i in range(tensor.ndim))
    steps = [step * (size - 1) for step, size in zip(strides, shape, strict=True)]
    first, last = sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
    count = last - first + stored.itemsize if math.prod(shape) else 0
    raw = bytes_at((tensor.data or 0) + tensor.byte_offset + first, count)
    if not count:
        return raw, np.zeros(shape, stored), dtype
    return raw, np.ndarray(shape, stored, raw, -first, strides), dtype

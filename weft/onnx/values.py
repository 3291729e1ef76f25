"""What flows between nodes, and how one kind becomes another.

A value is a `Tensor`, a `Small` (elements below a byte), a `Dequantized` or a `Scaled` (integers
and a scale), an array of NumPy that the host knows (shapes and what is computed of them, strings),
a `Weight`, a list (a sequence), a dict (a map) or None (an optional that is empty, an input that
is left out).
Sizes that are symbolic are elements of an object array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from weft.onnx.dequantized import Dequantized, Scaled
from weft.onnx.elements import DTYPES, SMALL, Small, dtype_of, element_of
from weft.onnx.real_sizes import RealSize
from weft.support.errors import ArgumentError, NotSupported
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor

# Arrays up to this many elements are computed on the host where all inputs of a node are known.
MOST_FOLDED = 4096


class NeedsValue(Exception):  # noqa: N818 -- a signal, caught by the model
    """A function that is traced needs the value of a tensor."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name
        self.node = ""  # that needs it


class Weight:
    """An initializer or constant: an array that is read when asked for, and its tensor."""

    def __init__(self, name: str, proto: Any, read: Any, is_constant: bool) -> None:
        self.name, self._proto, self._read = name, proto, read
        self.element = int(proto.data_type)
        self.shape = tuple(int(size) for size in proto.dims)
        self._is_constant = is_constant
        self._array: Any = None
        self._tensor: Any = None
        self._derived: dict[str, Any] = {}

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_host(self) -> bool:
        """Whether the host computes with it: constants, integers and numbers, as far as small."""
        if self.element == TensorProto.STRING:
            return True
        if self.element in SMALL or self.size > MOST_FOLDED:
            return False
        is_float = self.element in DTYPES and DTYPES[self.element].is_float
        return self._is_constant or not is_float or not self.shape

    @property
    def array(self) -> Any:
        if self._array is None:
            self._array = self._read(self._proto)
        return self._array

    def tensor(self, device: str | None) -> Any:
        """The tensor (or Small) of it; that of a weight is made once, before any trace."""
        if self.is_host:
            return to_tensor(self.array, device)
        if self._tensor is None:
            self._tensor = to_tensor(self.array, device)
            self._array = None  # read again where something is derived of it
        return self._tensor

    def derived(self, name: str, made: Callable[[Any], Any]) -> Any:
        """An array that is made of this one once; a trace copies it, and nobody writes to it."""
        if name not in self._derived:
            array = np.ascontiguousarray(made(self.array))
            array.setflags(write=False)
            self._derived[name] = array
        return self._derived[name]

    def replace(self, tensor: Any) -> None:
        """Be another tensor from now on; to be called outside of a trace."""
        self._tensor, self._derived = tensor, {}
        self._read = lambda _: plain(tensor).numpy()
        if not plain(tensor).dtype.is_float:  # what is derived of it is made inside of a trace
            self._array = self._read(None)


def to_tensor(value: Any, device: str | None) -> Any:
    """A tensor, or a Small, of any value that holds numbers."""
    if isinstance(value, (Tensor, Small)) or value is None:
        return value
    if isinstance(value, Weight):
        return value.tensor(device)
    if isinstance(value, (Dequantized, Scaled)):
        return value.floats()
    if isinstance(value, (list, dict)):
        raise ArgumentError("onnx: expected a tensor, got a sequence or a map")
    array = np.asarray(value)
    element = element_of(array)
    if element == TensorProto.STRING:
        raise NotSupported("onnx: strings are not computed with", rule="strings pass through")
    if array.dtype == object:
        return _of_sizes(array, device)
    dtype = dtype_of(element)
    if element in SMALL:
        return Small(Tensor(array.astype(np.float32), device=device).cast(dtype), element)
    if array.size == 1:
        return Tensor.full(array.shape, array.reshape(()).item(), dtype=dtype, device=device)
    return Tensor(np.ascontiguousarray(array).reshape(array.shape), device=device)


def _of_sizes(array: Any, device: str | None) -> Tensor:
    """Symbolic sizes as a tensor of int64, or of float32 where some are floats."""
    cells = array.reshape(-1)
    is_real = any(isinstance(cell, (RealSize, float)) for cell in cells)
    parts = []
    for cell in cells:
        if isinstance(cell, RealSize):
            parts.append(cell.tensor(device).reshape(1))
        else:
            dtype = "float32" if is_real else "int64"
            parts.append(Tensor(cell, device=device, dtype=dtype).reshape(1))
    if not parts:
        return Tensor.zeros(*array.shape, dtype="int64", device=device)
    return parts[0].cat(*parts[1:]).reshape(array.shape)


def element_of_value(value: Any) -> int:
    """The element type of any value that has one."""
    if isinstance(value, Weight):
        return value.element
    return element_of(value.floats() if isinstance(value, (Dequantized, Scaled)) else value)


def is_host(value: Any) -> bool:
    """Whether the host knows a value and may compute with it."""
    if isinstance(value, Weight):
        return value.is_host
    return isinstance(value, np.ndarray) and (value.size <= MOST_FOLDED or value.dtype == object)


def host_array(value: Any) -> Any:
    """The array of a value that the host knows."""
    return value.array if isinstance(value, Weight) else value


def whole_number(array: Any) -> int:
    """The one integer of a host array; a symbolic size is refused."""
    return int(known(np.asarray(array).reshape(-1)[0]))


def plain(value: Any) -> Any:
    """A tensor without the mark of a small element type."""
    return value.tensor if isinstance(value, Small) else value

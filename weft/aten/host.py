"""Tensors of bytes and files, names of types, and numbers of Python that may be symbolic."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from weft.ir.dtypes import DType, dtypes
from weft.support.errors import ArgumentError
from weft.tensor.host.convert import dtype_of
from weft.tensor.tensor import Tensor


def frombuffer(
    buffer: Any,
    *,
    dtype: Any,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of the bytes of an object, copied. PyTorch: frombuffer, which shares them.

    >>> frombuffer(bytes([1, 0, 2, 0]), dtype="int16").tolist()
    [1, 2]
    """
    kind = dtype_of(dtype, dtypes.void)
    size = kind.bits // 8
    data = memoryview(buffer).cast("B")
    length = len(data) - offset if count < 0 else count * size
    if offset < 0 or offset + length > len(data) or (count < 0 and length % size):
        raise ArgumentError(
            f"frombuffer: {count} elements of {size} bytes from byte {offset} of {len(data)}",
            rule="offset + count * size is inside of the buffer, which is whole elements",
        )
    raw = Tensor(np.frombuffer(bytes(data[offset : offset + length]), np.uint8))
    made = raw.bitcast(kind) if length else Tensor([], dtype=kind)
    return made.requires_grad_() if requires_grad else made


def from_file(
    filename: Any, shared: bool | None = None, size: int = 0, *, dtype: Any = None, **options: Any
) -> Tensor:
    """The first elements of a file, read when they are needed. PyTorch: from_file.

    Writes to the tensor do not reach the file, so `shared=True` is refused.
    """
    if shared:
        raise ArgumentError(
            "from_file: shared=True writes to the file",
            fix='write Tensor(Path(filename)), whose device is "DISK"',
        )
    kind = dtype_of(dtype, dtypes.default_float)
    found: Tensor = Tensor(Path(filename))[: size * (kind.bits // 8)]
    return found.to(options.get("device") or "CPU").bitcast(kind)


def _kind(dtype: DType) -> int:
    """Bool, integer, float, complex: the order in which a cast loses nothing."""
    if dtype is dtypes.bool:
        return 0
    return 1 if dtype.is_int else 2 if dtype.is_float else 3


def can_cast(from_: DType, to: DType) -> bool:
    """Whether a cast keeps the kind of number: floats become no integers. PyTorch: can_cast.

    >>> can_cast(dtypes.int32, dtypes.float32), can_cast(dtypes.float32, dtypes.int32)
    (True, False)
    """
    return _kind(from_) <= _kind(to)


def typename(obj: Any) -> str:
    """The name of the type of a tensor, as `type()` says it, or of another object.

    >>> typename(Tensor([1.0])), typename(1)
    ('torch.FloatTensor', 'builtins.int')
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"


def to_dlpack(tensor: Tensor) -> Any:
    """The capsule of DLPack. PyTorch: to_dlpack."""
    return tensor.__dlpack__()


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over all axes but one, which stay as 1. PyTorch: norm_except_dim."""
    axes = tuple(axis for axis in range(v.ndim) if axis != dim % v.ndim or dim == -1)
    return v.norm(pow, axes, True) if dim != -1 else v.norm(pow)


def frobenius_norm(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """The root of the sum of squares. PyTorch: frobenius_norm."""
    axes = (dim,) if isinstance(dim, int) else tuple(dim)
    return input.norm(2, axes or None, keepdim)


def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values. PyTorch: nuclear_norm."""
    from weft.linalg import matrix_norm

    return matrix_norm(input, "nuc", dim, keepdim)


def sym_not(a: Any) -> Any:
    """`not`, of a bool. PyTorch: sym_not."""
    return not a


def sym_float(a: Any) -> Any:
    """A number as a float. PyTorch: sym_float."""
    return float(a)


def sym_int(a: Any) -> Any:
    """A number as an int, towards 0. PyTorch: sym_int."""
    return int(a)


def sym_max(a: Any, b: Any) -> Any:
    """The greater. PyTorch: sym_max."""
    return max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The less. PyTorch: sym_min."""
    return min(a, b)


def sym_sqrt(a: Any) -> Any:
    """The root. PyTorch: sym_sqrt."""
    return math.sqrt(a)


def sym_sum(args: Any) -> Any:
    """The sum. PyTorch: sym_sum."""
    return sum(args)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """One of two numbers. PyTorch: sym_ite."""
    return t if b else f

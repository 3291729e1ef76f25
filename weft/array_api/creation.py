"""Arrays made of numbers, of other arrays, and of nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.array_api.promotion import DEFAULT_INTEGER
from weft.ir.dtypes import DType, Scalar, complex_of, dtypes
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


def _default(value: Any) -> DType:
    """The dtype of a number, or of a list of numbers, whose dtype nobody named."""
    if isinstance(value, bool):
        return dtypes.bool
    if isinstance(value, complex):
        return complex_of(dtypes.default_float)
    return DEFAULT_INTEGER if isinstance(value, int) else dtypes.default_float


def asarray(
    obj: Any, /, *, dtype: DType | None = None, device: str | None = None, copy: bool | None = None
) -> Tensor:
    """An array of numbers, lists of them, buffers, and arrays of any library."""
    if isinstance(obj, Tensor):
        if copy is False and dtype is not None and dtype is not obj.dtype:
            raise ArgumentError(f"asarray: {obj.dtype.name} becomes {dtype.name} by a copy only")
        made = obj if device is None else obj.to(device)
        made = made if dtype is None else made.cast(dtype)
        return made.clone() if copy and made is obj else made
    is_foreign = hasattr(type(obj), "__dlpack__") or isinstance(obj, (memoryview, bytearray))
    if copy is False:
        if not hasattr(type(obj), "__dlpack__"):
            raise ArgumentError("asarray: numbers become an array by a copy only")
        return asarray(from_dlpack(obj, device=device), dtype=dtype, copy=False)
    values = np.array(obj)
    if dtype is None and not is_foreign and not isinstance(obj, (np.ndarray, np.generic)):
        first = values.reshape(-1)[0].item() if values.size else 0.0
        dtype = _default(first)
    return Tensor(values, dtype=dtype, device=device)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """An array over the memory of another library's."""
    made = Tensor.from_dlpack(x, device)
    return made.clone() if copy else made


def arange(
    start: Scalar,
    /,
    stop: Scalar | None = None,
    step: Scalar = 1,
    *,
    dtype: DType | None = None,
    device: str | None = None,
) -> Tensor:
    """Numbers from `start` to before `stop`."""
    first, last = (0, start) if stop is None else (start, stop)
    if dtype is None:
        is_float = any(isinstance(each, float) for each in (first, last, step))
        dtype = dtypes.default_float if is_float else DEFAULT_INTEGER
    return Tensor.arange(first, last, step, dtype=dtype, device=device)


def linspace(
    start: Scalar,
    stop: Scalar,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers at equal distances; the last is `stop`, unless that is left out."""
    is_complex = any(isinstance(each, complex) for each in (start, stop))
    if is_complex or (dtype is not None and dtype.is_complex):
        made = complex_of(dtypes.default_float) if dtype is None else dtype
        values = np.linspace(start, stop, num, endpoint=endpoint)
        return Tensor(values, dtype=made, device=device)
    dtype = dtypes.default_float if dtype is None else dtype
    if endpoint:
        return Tensor.linspace(start, stop, num, dtype=dtype, device=device)
    return Tensor.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def full(
    shape: int | tuple[int, ...],
    fill_value: Scalar,
    *,
    dtype: DType | None = None,
    device: str | None = None,
) -> Tensor:
    """An array of one number."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return Tensor.full(sizes, fill_value, dtype=dtype or _default(fill_value), device=device)


def zeros(
    shape: int | tuple[int, ...], *, dtype: DType | None = None, device: str | None = None
) -> Tensor:
    """An array of zeros."""
    return full(shape, 0, dtype=dtype or dtypes.default_float, device=device)


def ones(
    shape: int | tuple[int, ...], *, dtype: DType | None = None, device: str | None = None
) -> Tensor:
    """An array of ones."""
    return full(shape, 1, dtype=dtype or dtypes.default_float, device=device)


empty = zeros


def full_like(
    x: Tensor, /, fill_value: Scalar, *, dtype: DType | None = None, device: str | None = None
) -> Tensor:
    """An array of one number with the shape of another."""
    shape = tuple(map(int, x.shape))
    return full(shape, fill_value, dtype=dtype or x.dtype, device=device or _device(x))


def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """An array of zeros with the shape of another."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """An array of ones with the shape of another."""
    return full_like(x, 1, dtype=dtype, device=device)


empty_like = zeros_like


def _device(x: Tensor) -> str | None:
    return x.device if isinstance(x.device, str) else None


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: str | None = None,
) -> Tensor:
    """Ones on a diagonal, zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    row = Tensor.arange(n_rows, device=device).reshape((n_rows, 1))
    column = Tensor.arange(columns, device=device).reshape((1, columns))
    return (column - row == k).cast(dtype or dtypes.default_float)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The part below a diagonal, and the diagonal."""
    return x.tril(k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The part above a diagonal, and the diagonal."""
    return x.triu(k)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid, an array for each axis."""
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: unknown indexing {indexing!r}", rule="xy or ij")
    if not arrays:
        return []
    swaps = indexing == "xy" and len(arrays) > 1
    order = [1, 0, *range(2, len(arrays))] if swaps else list(range(len(arrays)))
    sizes = [int(arrays[number].shape[0]) if arrays[number].ndim else 1 for number in order]
    made = []
    for number, each in enumerate(arrays):
        shape = [1] * len(arrays)
        shape[order.index(number)] = -1
        made.append(each.reshape(tuple(shape)).expand(tuple(sizes)))
    return made

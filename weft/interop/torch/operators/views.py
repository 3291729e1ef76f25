"""Operators that move elements, make tensors, and name dtypes and sizes."""

from __future__ import annotations

import math
from typing import Any

from weft.interop.torch.layout import order_of
from weft.interop.torch.table import Call, aten
from weft.support.errors import NotSupported
from weft.tensor.tensor import Tensor


@aten("view", "reshape", "_unsafe_view", "view_copy", "_reshape_copy")
def _view(call: Call, x: Tensor, shape: Any) -> Tensor:
    return x.reshape(tuple(shape))


@aten("view.dtype")
def _view_dtype(call: Call, x: Tensor, dtype: Any) -> Tensor:
    return x.bitcast(dtype)


@aten("permute", "permute_copy")
def _permute(call: Call, x: Tensor, order: Any) -> Tensor:
    return x.permute(tuple(order)) if x.ndim else x


@aten("t")
def _t(call: Call, x: Tensor) -> Tensor:
    return x.transpose(0, 1) if x.ndim == 2 else x


@aten("transpose.int")
def _transpose(call: Call, x: Tensor, first: int, second: int) -> Tensor:
    return x.transpose(first, second) if x.ndim else x


@aten("expand", "expand_copy")
def _expand(call: Call, x: Tensor, shape: Any, implicit: bool = False) -> Tensor:
    return x.expand(tuple(shape))


@aten("unsqueeze", "unsqueeze_copy")
def _unsqueeze(call: Call, x: Tensor, dim: int) -> Tensor:
    return x.unsqueeze(dim)


@aten("squeeze", "squeeze.dim", "squeeze.dims", "squeeze_copy.dims")
def _squeeze(call: Call, x: Tensor, dim: Any = None) -> Tensor:
    axes = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {axis % max(x.ndim, 1) for axis in axes}
    shape = [size for axis, size in enumerate(x.shape) if axis not in gone or size != 1]
    return x.reshape(tuple(shape))


@aten("select.int", "select_copy.int")
def _select(call: Call, x: Tensor, dim: int, index: int) -> Tensor:
    return x.select(dim, index)


@aten("slice.Tensor", "slice_copy.Tensor")
def _slice(
    call: Call, x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    return x.slice(dim, start, end, step)


@aten("slice_scatter")
def _slice_scatter(
    call: Call, x: Tensor, src: Tensor, dim: int = 0, start: Any = None, end: Any = None,
    step: int = 1,
) -> Tensor:  # fmt: skip
    return x.slice_scatter(src, dim, start, end, step)


@aten("select_scatter")
def _select_scatter(call: Call, x: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    return x.select_scatter(src, dim, index)


@aten("split_with_sizes", "split_with_sizes_copy", "split.Tensor")
def _split(call: Call, x: Tensor, sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(x.split(sizes if isinstance(sizes, int) else list(sizes), dim))


@aten("unbind.int")
def _unbind(call: Call, x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(x.unbind(dim))


@aten("cat")
def _cat(call: Call, tensors: Any, dim: int = 0) -> Any:
    # An empty tensor of one axis is left out, whatever the shape of the others.
    parts = [each.cast(call.result) for each in tensors if each.shape != (0,)] or tensors
    return parts[0].cat(*parts[1:], dim=dim) if len(parts) > 1 else parts[0]


@aten("stack")
def _stack(call: Call, tensors: Any, dim: int = 0) -> Any:
    return tensors[0].stack(*tensors[1:], dim=dim)


@aten("flip")
def _flip(call: Call, x: Tensor, dims: Any) -> Tensor:
    return x.flip(tuple(dims)) if tuple(dims) else x


@aten("roll")
def _roll(call: Call, x: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    axes = tuple(dims)
    return x.roll(tuple(shifts), axes) if axes else x.flatten().roll(shifts[0], 0).reshape(x.shape)


@aten("repeat")
def _repeat(call: Call, x: Tensor, repeats: Any) -> Tensor:
    return x.repeat(tuple(repeats))


@aten("diagonal", "diagonal_copy")
def _diagonal(call: Call, x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    return x.diagonal(offset, dim1, dim2)


@aten("tril")
def _tril(call: Call, x: Tensor, diagonal: int = 0) -> Tensor:
    return x.tril(diagonal)


@aten("triu")
def _triu(call: Call, x: Tensor, diagonal: int = 0) -> Tensor:
    return x.triu(diagonal)


@aten("constant_pad_nd")
def _constant_pad(call: Call, x: Tensor, pad: Any, value: Any = 0) -> Tensor:
    return x.pad(tuple(pad), value=value)


@aten("as_strided")
def _as_strided(call: Call, x: Tensor, size: Any, stride: Any, offset: Any = None) -> Tensor:
    """The elements by their addresses, which are those of a tensor without gaps."""
    strides = call.strides[0] if call.strides else None
    order = tuple(range(x.ndim)) if strides is None else order_of(x.shape, strides)
    if order is None:
        raise NotSupported("torch.compile: as_strided of memory with gaps")
    flat = x.permute(order).flatten() if x.ndim else x.reshape((1,))
    index = Tensor.full((), int(offset or 0), dtype="int64")
    for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
        shape = [1] * len(size)
        shape[axis] = count
        index = index + (Tensor.arange(count, dtype="int64") * step).reshape(tuple(shape))
    return flat[index]


@aten("clone", "alias", "detach", "contiguous", "lift_fresh_copy", "lift")
def _same(call: Call, x: Tensor) -> Tensor:
    return x


@aten("_to_copy", "to.dtype")
def _to_copy(call: Call, x: Tensor, dtype: Any = None) -> Tensor:
    return x if dtype is None else x.cast(dtype)


@aten("copy")
def _copy(call: Call, x: Tensor, src: Tensor) -> Tensor:
    return src.cast(x.dtype).expand(x.shape)


@aten("fill.Scalar", "fill.Tensor")
def _fill(call: Call, x: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value.cast(x.dtype).expand(x.shape)
    return Tensor.full(x.shape, value, dtype=x.dtype, buffer=False)


def _filled(call: Call, shape: Any, value: Any) -> Tensor:
    return Tensor.full(tuple(shape), value, dtype=call.result, buffer=False)


@aten("full")
def _full(call: Call, shape: Any, value: Any, dtype: Any = None) -> Tensor:
    return _filled(call, shape, value)


@aten("full_like")
def _full_like(call: Call, x: Tensor, value: Any, dtype: Any = None) -> Tensor:
    return _filled(call, x.shape, value)


@aten("scalar_tensor")
def _scalar_tensor(call: Call, value: Any, dtype: Any = None) -> Tensor:
    return _filled(call, (), value)


@aten("zeros", "empty.memory_format", "empty_strided", "empty_permuted")
def _zeros(call: Call, shape: Any, *strides: Any, dtype: Any = None) -> Tensor:
    return _filled(call, shape, 0)


@aten("zeros_like", "empty_like")
def _zeros_like(call: Call, x: Tensor, dtype: Any = None) -> Tensor:
    return _filled(call, x.shape, 0)


@aten("new_zeros", "new_empty", "new_empty_strided")
def _new_zeros(call: Call, x: Tensor, shape: Any, *strides: Any, dtype: Any = None) -> Tensor:
    return _filled(call, shape, 0)


@aten("new_full")
def _new_full(call: Call, x: Tensor, shape: Any, value: Any, dtype: Any = None) -> Tensor:
    return _filled(call, shape, value)


@aten("new_ones")
def _new_ones(call: Call, x: Tensor, shape: Any, dtype: Any = None) -> Tensor:
    return _filled(call, shape, 1)


@aten("ones")
def _ones(call: Call, shape: Any, dtype: Any = None) -> Tensor:
    return _filled(call, shape, 1)


@aten("ones_like")
def _ones_like(call: Call, x: Tensor, dtype: Any = None) -> Tensor:
    return _filled(call, x.shape, 1)


@aten("eye", "eye.m")
def _eye(call: Call, rows: int, columns: int | None = None, dtype: Any = None) -> Tensor:
    return Tensor.eye(rows, rows if columns is None else columns, dtype=call.result)


@aten("arange.start_step")
def _arange(call: Call, start: Any, end: Any, step: Any = 1, dtype: Any = None) -> Tensor:
    return Tensor.arange(start, end, step, dtype=call.result)


@aten("arange.start")
def _arange_start(call: Call, start: Any, end: Any, dtype: Any = None) -> Tensor:
    return Tensor.arange(start, end, dtype=call.result)


@aten("arange")
def _arange_end(call: Call, end: Any, dtype: Any = None) -> Tensor:
    return Tensor.arange(0, end, dtype=call.result)


@aten("sym_size.int")
def _sym_size(call: Call, x: Tensor, dim: int) -> Any:
    return x.shape[dim]


@aten("sym_numel")
def _sym_numel(call: Call, x: Tensor) -> int:
    return math.prod(map(int, x.shape))

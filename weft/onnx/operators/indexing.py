"""Gathers, scatters, one-hot vectors: elements chosen by indices."""

from __future__ import annotations

import math
from typing import Any

from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.sizes import most
from weft.ir.uop import UOp
from weft.onnx.elements import Small
from weft.onnx.operators.movement import sizes_of
from weft.onnx.table import op
from weft.onnx.values import plain, whole_number
from weft.tensor.tensor import Tensor


def wrapped(call: Any, index: Tensor, size: Any) -> Tensor:
    """Indices from 0, where negative ones count from the end; those that are known are checked."""
    known = call.run.known_array(index)
    if known is not None and known.size and known.dtype != object:
        low, high = int(known.min()), int(known.max())
    else:
        low, high = _ends(index.uop) or (0, -1)
    if low <= high and isinstance(size, int) and not (-size <= low and high < size):
        raise call.error(f"indices from {low} to {high} of an axis of size {size}")
    return from_front(index, size)


def from_front(index: Tensor, size: Any) -> Tensor:
    """Indices from 0, where negative ones count from the end."""
    if index.dtype.is_unsigned:
        return index
    return (index < 0).where(index + size, index)


def _ends(node: UOp) -> tuple[int, int] | None:
    """The ends of indices that count up, as a Range makes them, at the greatest sizes; or None."""
    if node.op in (Op.CAST, Op.RESHAPE, Op.PERMUTE, Op.EXPAND, Op.FLIP):
        return _ends(node.src[0])
    if node.op == Op.IOTA:
        return 0, most(shape_of(node)[-1]) - 1
    if node.op not in (Op.ADD, Op.MUL) or node.src[1].op != Op.CONST:
        return None
    found, number = _ends(node.src[0]), int(node.src[1].arg)
    if found is None:
        return None
    ends = [end + number if node.op == Op.ADD else end * number for end in found]
    return min(ends), max(ends)


@op("Gather", keeps_element=True)
def gather(call: Any, x: Tensor, index: Tensor) -> Tensor:
    axis = call.axis(0, x.ndim)
    key: list[Any] = [slice(None)] * x.ndim
    key[axis] = wrapped(call, index, x.shape[axis])
    return x[tuple(key)]


@op("GatherElements", keeps_element=True)
def gather_elements(call: Any, x: Tensor, index: Tensor) -> Tensor:
    axis = call.axis(0, x.ndim)
    return x.gather(axis, wrapped(call, index, x.shape[axis]))


@op("GatherND", keeps_element=True)
def gather_nd(call: Any, x: Tensor, index: Tensor) -> Tensor:
    batch = call.get("batch_dims", 0)
    width = index.shape[-1]
    lead = index.shape[:batch]
    rows = math.prod(lead)
    flat = index.reshape(rows, -1, width)  # (batch, points, width)
    number = Tensor.arange(rows, dtype=index.dtype, device=x.device).reshape(rows, 1)
    source = x.reshape(rows, *x.shape[batch:])
    key = [wrapped(call, flat[..., i], x.shape[batch + i]) for i in range(width)]
    found = source[(number.expand(rows, flat.shape[1]), *key)]
    return found.reshape(*index.shape[:-1], *x.shape[batch + width :])


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@op("Scatter", "ScatterElements", keeps_element=True)
def scatter_elements(call: Any, x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    axis = call.axis(0, x.ndim)
    how = call.get("reduction", "none")
    where = wrapped(call, index, x.shape[axis])
    if how == "none":
        return x.scatter(axis, where, updates)
    return x.scatter_reduce(axis, where, updates, _REDUCTIONS[how])


@op("ScatterND", keeps_element=True)
def scatter_nd(call: Any, x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    """Rows of the flat leading axes get the updates, in the order of the indices."""
    width: Any = index.shape[-1]
    sizes = x.shape[:width]
    flat = x.reshape(math.prod(sizes), -1)  # (rows, elements of a row)
    number: Any = None
    for axis in range(width):
        own = wrapped(call, index[..., axis], sizes[axis])
        number = own if number is None else number * sizes[axis] + own
    rows = number.reshape(-1, 1).expand(number.numel(), flat.shape[1])
    values = updates.reshape(number.numel(), flat.shape[1])
    how = call.get("reduction", "none")
    if how == "none":
        return flat.scatter(0, rows, values).reshape(x.shape)
    return flat.scatter_reduce(0, rows, values, _REDUCTIONS[how]).reshape(x.shape)


@op("TensorScatter", keeps_element=True)
def tensor_scatter(
    call: Any, cache: Tensor, update: Tensor, starts: Tensor | None = None
) -> Tensor:
    """Write rows into a cache, each sample of the batch from its own position on."""
    axis = call.axis(-2, cache.ndim)
    size, count = cache.shape[axis], update.shape[axis]
    rows = Tensor.arange(count, dtype=dtypes.int64, device=cache.device)
    shape = [1] * cache.ndim
    shape[axis] = count
    where = rows.reshape(shape)
    if starts is not None:
        where = where + starts.reshape(-1, *[1] * (cache.ndim - 1)).cast(dtypes.int64)
    if call.get("mode", "linear") == "circular":
        where = where % size
    return cache.scatter(axis, where.expand(update.shape), update)


@op("OneHot", raw=True)
def one_hot(call: Any, index: Any, depth: Any, values: Any) -> Any:
    (count,) = sizes_of(call.run.host(depth))
    numbers, levels = plain(call.run.tensor(index)), plain(call.run.tensor(values))
    whole = numbers.cast(dtypes.int64)
    axis = call.get("axis", -1)
    axis = axis + whole.ndim + 1 if axis < 0 else axis
    whole = ((whole < 0).where(whole + count, whole)).unsqueeze(axis)
    shape = [1] * whole.ndim
    shape[axis] = count
    classes = Tensor.arange(count, dtype=dtypes.int64, device=whole.device).reshape(shape)
    return (whole == classes).where(levels[1], levels[0])


@op("ArgMax", "ArgMin")
def arg_extreme(call: Any, x: Tensor) -> Tensor:
    axis, keeps = call.get("axis", 0), bool(call.get("keepdims", 1))
    axis %= max(x.ndim, 1)
    is_last = bool(call.get("select_last_index", 0))
    rows = x.flip(axis) if is_last else x
    found = rows.argmax(axis, keeps) if call.node.op == "ArgMax" else rows.argmin(axis, keeps)
    found = found.cast(dtypes.int64)
    return x.shape[axis] - 1 - found if is_last else found


@op("TopK", since=1)
def top_k_by_attribute(call: Any, x: Tensor) -> Any:
    return _top_k(call, x, call.get("k"))


@op("TopK", since=10, host=(1,))
def top_k(call: Any, x: Tensor, k: Any) -> Any:
    return _top_k(call, x, whole_number(k))


def _top_k(call: Any, x: Tensor, k: int) -> Any:
    axis = call.get("axis", -1)
    found = x.topk(k, axis, bool(call.get("largest", 1)), True)
    return found[0], found[1].cast(dtypes.int64)


@op("NonZero", raw=True)
def nonzero(call: Any, x: Any) -> Any:
    """How many there are depends on the values, so the mask is read."""
    import numpy as np

    mask = call.run.host(plain(call.run.tensor(x)) != 0)
    return np.array(np.nonzero(np.atleast_1d(mask)), dtype=np.int64).reshape(mask.ndim, -1)


@op("Compress", raw=True)
def compress(call: Any, x: Any, mask: Any) -> Any:
    import numpy as np

    chosen = np.flatnonzero(call.run.host(mask))
    value = call.run.tensor(x)
    data, axis = plain(value), call.get("axis")
    if axis is None:
        data, axis = data.reshape(-1), 0
    axis %= data.ndim
    if chosen.size:
        found = data.index_select(axis, Tensor(chosen.astype(np.int64), device=data.device))
    else:
        found = data.shrink([(0, 0) if i == axis else (0, n) for i, n in enumerate(data.shape)])
    return Small(found, value.element) if isinstance(value, Small) else found


@op("Unique", raw=True)
def unique(call: Any, x: Any) -> Any:
    """The values decide how many there are, so the host finds them."""
    import numpy as np

    array, axis = call.run.host(x), call.get("axis")
    if axis is None:
        array, axis = array.reshape(-1), 0
    found, first, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not call.get("sorted", 1):
        order = np.argsort(first, kind="stable")
        found = np.take(found, order, axis)
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    numbers = [each.astype(np.int64) for each in (first, inverse, counts)]
    result: Any = found.astype(array.dtype)
    if array.dtype != object:  # floats of 16 bits and fewer come to the host as wider ones
        result = call.run.tensor(result).cast(plain(call.run.tensor(x)).dtype)
    return result, *numbers

"""Operators that read and write at indices, embeddings among them."""

from __future__ import annotations

from typing import Any

from weft.interop.torch.slopes import slopes_of
from weft.interop.torch.table import Call, aten
from weft.ir.dtypes import dtypes
from weft.support.errors import NotSupported
from weft.tensor.tensor import Tensor


def _key(indices: Any) -> tuple[Any, ...]:
    return tuple(slice(None) if each is None else each for each in indices)


@aten("index.Tensor", "_unsafe_index.Tensor")
def _index(call: Call, x: Tensor, indices: Any) -> Any:
    if any(each is not None and each.dtype is dtypes.bool for each in indices):
        raise NotSupported(
            "torch.compile: an index of bools",
            rule="the size of what it selects is a value, and sizes must be known",
        )
    return x[_key(indices)]


@aten("index_put", "_unsafe_index_put")
def _index_put(
    call: Call, x: Tensor, indices: Any, values: Tensor, accumulate: bool = False, *_: Any
) -> Any:
    given = [each for each in indices if each is not None]
    if len(given) == 1 and given[0].dtype is dtypes.bool and not accumulate:
        mask = given[0]
        if values.numel() == 1:
            (first,) = [axis for axis, each in enumerate(indices) if each is not None]
            wide = mask.reshape((*mask.shape, *[1] * (x.ndim - first - mask.ndim)))
            return wide.where(values.reshape(()).cast(x.dtype), x)
    if any(each.dtype is dtypes.bool for each in given):
        raise NotSupported("torch.compile: index_put with bools and several values")
    if len(given) == len(indices):
        return x.index_put(tuple(given), values.cast(x.dtype), accumulate)
    return _put_along(x, indices, values.cast(x.dtype), accumulate)


def _put_along(x: Tensor, indices: Any, values: Tensor, accumulate: bool) -> Tensor:
    """index_put where some axes are whole: numbers of all elements select what is written."""
    numbers = Tensor.arange(x.numel(), dtype=dtypes.int64).reshape(x.shape)
    positions = numbers[_key(indices)]
    flat = x.flatten().index_put(
        (positions.flatten(),), values.expand(positions.shape).flatten(), accumulate
    )
    return flat.reshape(x.shape)


@aten("index_select")
def _index_select(call: Call, x: Tensor, dim: int, index: Tensor) -> Tensor:
    return x.index_select(dim, index)


@aten("index_add")
def _index_add(
    call: Call, x: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Any = 1
) -> Tensor:
    return x.index_add(dim, index, source * alpha)


@aten("gather")
def _gather(call: Call, x: Tensor, dim: int, index: Tensor, sparse_grad: bool = False) -> Tensor:
    if not x.ndim:
        return x.expand(index.shape)
    return x.gather(dim, index) if index.ndim else x.gather(dim, index.reshape((1,))).reshape(())


@aten("scatter.src", "scatter.value")
def _scatter(call: Call, x: Tensor, dim: int, index: Tensor, source: Any) -> Tensor:
    return x.scatter(dim, index, source)


@aten("scatter_add")
def _scatter_add(call: Call, x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    return x.scatter_add(dim, index, source)


@aten("scatter_reduce.two")
def _scatter_reduce(
    call: Call,
    x: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    include_self: bool = True,
) -> Tensor:
    return x.scatter_reduce(dim, index, source, reduce, include_self)


@aten("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(call: Call, x: Tensor, mask: Tensor, value: Any) -> Tensor:
    return mask.where(value.cast(x.dtype) if isinstance(value, Tensor) else value, x)


@aten("masked_scatter")
def _masked_scatter(call: Call, x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    return x.masked_scatter(mask, source)


@aten("embedding")
def _embedding(
    call: Call, weight: Tensor, indices: Tensor, padding: int = -1, *options: bool
) -> Any:
    return weight[indices]


@aten("embedding_dense_backward")
def _embedding_slope(
    call: Call, slope: Tensor, indices: Tensor, rows: int, padding: int, by_frequency: bool
) -> Tensor:
    index = indices.flatten()
    flat = slope.reshape((index.shape[0], slope.shape[-1]))
    if by_frequency:
        ones = Tensor.ones(index.shape[0], dtype=slope.dtype)
        counts = Tensor.zeros(rows, dtype=slope.dtype).index_add(0, index, ones)
        flat = flat / counts[index].unsqueeze(1)
    if padding >= 0:
        flat = (index == padding).unsqueeze(1).where(0, flat)
    return Tensor.zeros(rows, slope.shape[-1], dtype=slope.dtype).index_add(0, index, flat)


def _bag_of_each(indices: Tensor, offsets: Tensor) -> Tensor:
    """The number of the bag that each index is in."""
    positions = Tensor.arange(indices.shape[0], dtype=dtypes.int64)
    return (positions.unsqueeze(1) >= offsets.unsqueeze(0)).sum(1).cast(dtypes.int64) - 1


def _bagged(
    weight: Tensor, indices: Tensor, bag: Tensor, bags: int, mode: int, scale: Any, kept: Tensor
) -> Tensor:
    """The sum, mean or greatest of the rows of each bag."""
    rows = weight[indices]
    if scale is not None:
        rows = rows * scale.unsqueeze(1)
    width = int(weight.shape[1])
    if mode == 2:
        least = kept.unsqueeze(1).where(rows, -float("inf"))
        table = Tensor.full((bags, width), -float("inf"), dtype=weight.dtype, buffer=False)
        where = bag.unsqueeze(1).expand((bag.shape[0], width))
        found = table.scatter_reduce(0, where, least, "amax")
        return (found == -float("inf")).where(0, found)
    rows = kept.unsqueeze(1).where(rows, 0)
    total = Tensor.zeros(bags, width, dtype=weight.dtype).index_add(0, bag, rows)
    if mode == 0:
        return total
    counts = Tensor.zeros(bags, dtype=weight.dtype).index_add(0, bag, kept.cast(weight.dtype))
    return total / counts.clamp(1).unsqueeze(1)


@aten("_embedding_bag", "_embedding_bag_forward_only")
def _embedding_bag(
    call: Call,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    by_frequency: bool = False,
    mode: int = 0,
    sparse: bool = False,
    scale: Tensor | None = None,
    include_last: bool = False,
    padding: int = -1,
) -> tuple[Tensor, ...]:
    """The rows. The other results are for the gradient, which asks the indices again."""
    bags = int(offsets.shape[0]) - int(include_last)
    bag = _bag_of_each(indices, offsets[:bags])
    rows = _bagged(weight, indices, bag, bags, mode, scale, indices != padding)
    rest = [Tensor.zeros(*(shape or (0,)), dtype=dtypes.int64) for shape in call.shapes[1:]]
    return rows, *rest


@aten("_embedding_bag_backward", "_embedding_bag_dense_backward")
def _embedding_bag_slope(
    call: Call,
    slope: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bags_of: Tensor,
    sizes: Tensor,
    greatest: Tensor,
    rows: int,
    by_frequency: bool,
    mode: int,
    sparse: bool,
    scale: Tensor | None,
    padding: int = -1,
) -> Any:
    if sparse or by_frequency or mode == 2:
        raise NotSupported(
            "torch.compile: the gradient of an embedding bag that is sparse, scaled by frequency"
            " or a maximum",
            rule="sums and means have dense gradients",
        )
    kept, bag = indices != padding, _bag_of_each(indices, offsets[: slope.shape[0]])
    table = Tensor.zeros(rows, slope.shape[1], dtype=slope.dtype)
    bags = int(slope.shape[0])
    (found,) = slopes_of(
        lambda weight: _bagged(weight, indices, bag, bags, mode, scale, kept), (table,), slope
    )
    return found

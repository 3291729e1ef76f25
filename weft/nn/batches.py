"""What a batch is made of: rows of arrays, samples that are joined, and tensors of both.

`DataLoader` makes batches as NumPy arrays in its threads, and tensors of them in the thread that
asks for batches: here are both halves. `_Rows` and `_Stack` are placeholders in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from weft.ir.arrays.values import storage_dtype
from weft.ir.dtypes import scalar_dtype
from weft.support.errors import ArgumentTypeError, ShapeError
from weft.tensor.tensor import Tensor


def _is_column(value: Any) -> bool:
    return isinstance(value, (np.ndarray, Tensor))


def is_columns(dataset: Any) -> bool:
    """Whether a dataset is arrays with a row for each sample."""
    parts = dataset.values() if isinstance(dataset, dict) else dataset
    if isinstance(dataset, (tuple, dict)):
        return bool(parts) and all(_is_column(each) for each in parts)
    return _is_column(dataset)


def size_of(dataset: Any) -> int | None:
    """The number of samples, or None if only iterating tells."""
    if is_columns(dataset):
        parts = dataset.values() if isinstance(dataset, dict) else dataset
        columns = [dataset] if _is_column(dataset) else list(parts)
        sizes = {len(each) for each in columns}
        if len(sizes) != 1:
            raise ShapeError(
                f"DataLoader: arrays with {', '.join(map(str, sorted(sizes)))} rows",
                facts=[(number, each.shape) for number, each in enumerate(columns)],
                rule="every array has a row for each sample",
            )
        return sizes.pop()
    if hasattr(type(dataset), "__getitem__") and hasattr(type(dataset), "__len__"):
        return len(dataset)
    if not hasattr(type(dataset), "__iter__"):
        raise ArgumentTypeError(
            f"DataLoader: expected a dataset, got {type(dataset).__name__}",
            rule="a dataset is arrays, has __len__ and __getitem__, or is an iterable",
        )
    return None


class _Rows(NamedTuple):
    """Rows of a tensor, which is indexed where tensors are made."""

    column: Tensor
    rows: Any


def rows_of(column: Any, rows: Any) -> Any:
    return _Rows(column, rows) if isinstance(column, Tensor) else column[rows]


def joined(samples: list[Any]) -> Any:
    """Make one batch of samples: numbers and arrays are stacked, tuples and dicts entered.

    >>> joined([(1.5, "a"), (2.5, "b")])
    (array([1.5, 2.5], dtype=float32), ['a', 'b'])
    """
    first = samples[0]
    if isinstance(first, Tensor):
        return _Stack(samples)
    if isinstance(first, Mapping):
        return {key: joined([each[key] for each in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        return tuple(joined(list(column)) for column in zip(*samples, strict=True))
    if isinstance(first, (np.generic, np.ndarray)):
        return np.stack([np.asarray(each) for each in samples])
    if isinstance(first, (bool, int, float)):  # in the dtype that a tensor of them has
        return np.array(samples, storage_dtype(scalar_dtype(first)))
    return samples


class _Stack(list[Any]):
    """Tensors that become one where tensors are made."""


def mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(tree, Mapping):
        return {key: change(part) for key, part in tree.items()}
    return tuple(change(part) for part in tree) if isinstance(tree, tuple) else change(tree)


def tensors_of(batch: Any, device: str | None) -> Any:
    """A batch with its arrays as tensors."""
    if isinstance(batch, _Stack):
        return batch[0].stack(*batch[1:]).to(device)
    if isinstance(batch, (np.ndarray, np.generic)):
        return Tensor(np.asarray(batch), device=device)
    if isinstance(batch, Mapping):
        return {key: tensors_of(part, device) for key, part in batch.items()}
    if isinstance(batch, _Rows):
        numbers = Tensor(np.asarray(batch.rows, np.int32), device=batch.column.device)
        return batch.column[numbers].to(device)
    if isinstance(batch, tuple):
        return tuple(tensors_of(part, device) for part in batch)
    return batch

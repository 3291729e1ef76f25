"""Datasets: samples by number, or one after another, and what is made of several."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from weft.nn.batches import joined, tensors_of
from weft.support.errors import ArgumentError, IndexOutOfRange, ShapeError
from weft.tensor.create.generator import Generator
from weft.tensor.tensor import Tensor

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Samples by number: a class of its own defines `__getitem__` and `__len__`."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Samples one after another: a class of its own defines `__iter__`."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class TensorDataset(Dataset[Any]):
    """Rows of tensors that have as many.

    >>> data = TensorDataset(Tensor([1, 2]), Tensor([3, 4]))
    >>> len(data), [each.item() for each in data[1]]
    (2, [2, 4])
    """

    def __init__(self, *tensors: Tensor) -> None:
        sizes = {int(each.shape[0]) for each in tensors}
        if len(sizes) > 1:
            raise ShapeError(
                f"TensorDataset: tensors with {', '.join(map(str, sorted(sizes)))} rows",
                rule="every tensor has a row for each sample",
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(each[index] for each in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Several datasets side by side: a sample is a tuple, or a dict, of theirs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.datasets: Any = kwargs or args
        listed = list(kwargs.values() if kwargs else args)
        if len({len(each) for each in listed}) != 1:
            raise ShapeError("StackDataset: datasets of different lengths")
        self._length = len(listed[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {key: each[index] for key, each in self.datasets.items()}
        return tuple(each[index] for each in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """Several datasets, one after another."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ArgumentError("ConcatDataset: no datasets", rule="there is one or more")
        self.cumulative_sizes = list(itertools.accumulate(len(each) for each in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        count = len(self)
        if not -count <= index < count:
            raise IndexOutOfRange(f"ConcatDataset: sample {index} of {count}")
        index %= count
        number = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[number - 1] if number else 0
        return self.datasets[number][index - before]


class ChainDataset(IterableDataset[Any]):
    """Several iterable datasets, one after another."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for each in self.datasets:
            yield from each


class Subset(Dataset[T]):
    """Some samples of a dataset, by their numbers."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[float], generator: Any = None
) -> list[Subset[Any]]:
    """Cut a dataset into parts of these lengths, or shares, at random.

    >>> [len(part) for part in random_split(range(10), [0.7, 0.3])]
    [7, 3]
    """
    count = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1 + 1e-9 and count != 1:
        sizes = [math.floor(count * share) for share in lengths]
        for number in range(count - sum(sizes)):
            sizes[number % len(sizes)] += 1
    else:
        sizes = [int(each) for each in lengths]
    if sum(sizes) != count:
        raise ArgumentError(
            f"random_split: parts of {sizes} for {count} samples",
            rule="the lengths sum up to that of the dataset",
        )
    order = source_of(generator).permutation(count).tolist()
    ends = list(itertools.accumulate(sizes))
    return [
        Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes, strict=True)
    ]


def source_of(generator: Any) -> np.random.Generator:
    """NumPy's generator; without one, it is seeded by the tensors' own random numbers."""
    if isinstance(generator, np.random.Generator):
        return generator
    if generator is None or isinstance(generator, Generator):
        seed = Tensor.randint(2, low=0, high=2**31 - 1, generator=generator).tolist()
        return np.random.default_rng(seed)
    return np.random.default_rng(generator)


def default_collate(batch: list[Any]) -> Any:
    """Make one batch of samples: numbers, arrays and tensors are stacked.

    >>> default_collate([(1.0, 2), (3.0, 4)])[1].tolist()
    [2, 4]
    """
    return tensors_of(joined(batch), None)

"""Samplers: the order in which a loader asks for samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from weft.support.errors import ArgumentError
from weft.utils.data.datasets import source_of

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """Numbers of samples: a class of its own defines `__iter__`."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class SequentialSampler(Sampler[int]):
    """0, 1, 2 …"""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """All numbers in an order of chance, or so many with replacement."""

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self.num_samples = len(data_source) if num_samples is None else num_samples

    def __iter__(self) -> Iterator[int]:
        source, count = source_of(self.generator), len(self.data_source)
        if self.replacement:
            yield from source.integers(0, count, self.num_samples).tolist()
            return
        left = self.num_samples
        while left > 0:
            yield from source.permutation(count)[:left].tolist()
            left -= count

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some numbers in an order of chance."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for index in source_of(self.generator).permutation(len(self.indices)).tolist():
            yield self.indices[index]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Numbers with these probabilities."""

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        values = weights.tolist() if hasattr(weights, "tolist") else weights
        self.weights = np.asarray(values, np.float64)
        if self.weights.ndim != 1 or (self.weights < 0).any():
            raise ArgumentError(
                "WeightedRandomSampler: weights of another kind",
                rule="weights are a list of numbers from 0 on",
            )
        self.num_samples, self.replacement = num_samples, replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        shares = self.weights / self.weights.sum()
        drawn = source_of(self.generator).choice(
            len(shares), self.num_samples, self.replacement, shares
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The numbers of another sampler in lists."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if batch_size < 1:
            raise ArgumentError(
                f"BatchSampler: batch_size is {batch_size}", rule="it is 1 or more"
            )
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for number in self.sampler:
            batch.append(number)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        whole, rest = divmod(count, self.batch_size)
        return whole + bool(rest and not self.drop_last)

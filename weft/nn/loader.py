"""DataLoader: batches of a dataset, in an order that a seed decides, made ahead of their use.

The order of an epoch follows from the seed and the number of the epoch alone, so a run can be
repeated, and resumed in the middle of an epoch from `state_dict`. Threads make NumPy arrays ahead
of time; tensors are made from them in the thread that asks for batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from weft.ir.dtypes import scalar_dtype
from weft.reference.numpy_values import storage_dtype
from weft.support.errors import ArgumentError, ArgumentTypeError, ShapeError
from weft.tensor.tensor import Tensor

Collate = Callable[[list[Any]], Any]


class DataLoader:
    """Iterate over batches; each pass is an epoch with an order of its own.

    The dataset is an array or tensor, a tuple or dict of those with equal first sizes, anything
    with `__len__` and `__getitem__` (samples, which `collate` joins), or an iterable of samples.
    `workers` threads make `prefetch` batches ahead; with 0 a batch is made when it is asked for.
    Arrays become tensors on `device`; strings and other objects stay as they are.

    >>> loader = DataLoader((np.arange(5), np.arange(5) * 10), batch_size=2, shuffle=True, seed=1)
    >>> sorted(number for x, y in loader for number in y.tolist())
    [0, 10, 20, 30, 40]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        collate: Collate | None = None,
        workers: int = 0,
        prefetch: int = 2,
        device: str | None = None,
    ) -> None:
        for name, value, least in (("batch_size", batch_size, 1), ("workers", workers, 0),
                                   ("prefetch", prefetch, 1)):  # fmt: skip
            if value < least:
                raise ArgumentError(
                    f"DataLoader: {name} is {value}", law=f"{name} is {least} or more"
                )
        self.dataset, self.batch_size, self.shuffle, self.seed = dataset, batch_size, shuffle, seed
        self.drop_last, self.workers, self.prefetch = drop_last, workers, prefetch
        self.device, self.collate = device, collate or joined
        self.size = _size(dataset)
        if self.size is None and shuffle:
            raise ArgumentError(
                "DataLoader: an iterable cannot be shuffled",
                law="shuffling needs __len__ and __getitem__",
                fix="shuffle where the samples come from, or make a list of them",
            )
        self._epoch = self._batch = 0
        self._is_started = False

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        if self.size is None:
            raise ArgumentTypeError("DataLoader: an iterable has no length")
        whole, rest = divmod(self.size, self.batch_size)
        return whole + bool(rest and not self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        if self._is_started:  # the pass before was left early
            self._epoch, self._batch = self._epoch + 1, 0
        self._is_started = True
        jobs = self._jobs(self._epoch, self._batch)
        return self._run(jobs if not self.workers else self._ahead(jobs))

    def state_dict(self) -> dict[str, int]:
        """Return how far the iteration is: seed, epoch, and batches of it that were handed out."""
        return {"seed": self.seed, "epoch": self._epoch, "batch": self._batch}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on where a state was taken: the next pass hands out the rest of that epoch."""
        missing = {"seed", "epoch", "batch"} - state.keys()
        if missing:
            raise ArgumentError(
                f"DataLoader: the state lacks {', '.join(sorted(missing))}",
                law="a state has seed, epoch and batch",
            )
        self.seed, self._epoch, self._batch = state["seed"], state["epoch"], state["batch"]
        self._is_started = False

    def _run(self, made: Iterable[Callable[[], Any]]) -> Iterator[Any]:
        for make in made:
            values = make()
            self._batch += 1
            yield _tensors(values, self.device)
        self._epoch, self._batch, self._is_started = self._epoch + 1, 0, False

    def _ahead(self, jobs: Iterator[Callable[[], Any]]) -> Iterator[Callable[[], Any]]:
        """The same batches in the same order, while threads make the next ones."""
        waiting: deque[Future[Any]] = deque()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="weft-data") as pool:
            try:
                for job in jobs:
                    waiting.append(pool.submit(job))
                    if len(waiting) > self.prefetch:
                        yield waiting.popleft().result
                while waiting:
                    yield waiting.popleft().result
            finally:
                for each in waiting:
                    each.cancel()

    def _jobs(self, epoch: int, first: int) -> Iterator[Callable[[], Any]]:
        """What makes each batch from the first one on."""
        if self.size is None:
            yield from self._jobs_of_iterable(first)
            return
        order = np.arange(self.size)
        if self.shuffle:
            order = np.random.default_rng((self.seed, epoch)).permutation(self.size)
        for number in range(first, len(self)):
            chosen = order[number * self.batch_size : (number + 1) * self.batch_size]
            yield partial(self._chosen, chosen)

    def _chosen(self, rows: Any) -> Any:
        if _is_columns(self.dataset):
            return _mapped(self.dataset, lambda column: _rows(column, rows))
        return self.collate([self.dataset[int(row)] for row in rows])

    def _jobs_of_iterable(self, first: int) -> Iterator[Callable[[], Any]]:
        samples = iter(self.dataset)
        for _ in islice(samples, first * self.batch_size):  # already handed out
            pass
        while samples_now := list(islice(samples, self.batch_size)):
            if len(samples_now) == self.batch_size or not self.drop_last:
                yield partial(self.collate, samples_now)


def _is_column(value: Any) -> bool:
    return isinstance(value, (np.ndarray, Tensor))


def _is_columns(dataset: Any) -> bool:
    """Whether a dataset is arrays with a row for each sample."""
    parts = dataset.values() if isinstance(dataset, dict) else dataset
    if isinstance(dataset, (tuple, dict)):
        return bool(parts) and all(_is_column(each) for each in parts)
    return _is_column(dataset)


def _size(dataset: Any) -> int | None:
    """The number of samples, or None if only iterating tells."""
    if _is_columns(dataset):
        parts = dataset.values() if isinstance(dataset, dict) else dataset
        columns = [dataset] if _is_column(dataset) else list(parts)
        sizes = {len(each) for each in columns}
        if len(sizes) != 1:
            raise ShapeError(
                f"DataLoader: arrays with {', '.join(map(str, sorted(sizes)))} rows",
                facts=[(number, each.shape) for number, each in enumerate(columns)],
                law="every array has a row for each sample",
            )
        return sizes.pop()
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return len(dataset)
    if not hasattr(dataset, "__iter__"):
        raise ArgumentTypeError(
            f"DataLoader: a {type(dataset).__name__} is no dataset",
            law="a dataset is arrays, has __len__ and __getitem__, or is an iterable",
        )
    return None


class _Rows(NamedTuple):
    """Rows of a tensor, which is indexed where tensors are made."""

    column: Tensor
    rows: Any


def _rows(column: Any, rows: Any) -> Any:
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


def _mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(tree, Mapping):
        return {key: change(part) for key, part in tree.items()}
    return tuple(change(part) for part in tree) if isinstance(tree, tuple) else change(tree)


def _tensors(batch: Any, device: str | None) -> Any:
    """A batch with its arrays as tensors."""
    if isinstance(batch, _Stack):
        return batch[0].stack(*batch[1:]).to(device)
    if isinstance(batch, (np.ndarray, np.generic)):
        return Tensor(np.asarray(batch), device=device)
    if isinstance(batch, Mapping):
        return {key: _tensors(part, device) for key, part in batch.items()}
    if isinstance(batch, _Rows):
        numbers = Tensor(batch.rows.astype(np.int32), device=batch.column.device)
        return batch.column[numbers].to(device)
    if isinstance(batch, tuple):
        return tuple(_tensors(part, device) for part in batch)
    return batch

"""DataLoader: batches of a dataset, in an order that a seed decides, made ahead of their use.

The order of an epoch follows from the seed and the number of the epoch alone, so a run can be
repeated, and resumed in the middle of an epoch from `state_dict`. Threads make NumPy arrays ahead
of time; tensors are made from them in the thread that asks for batches. Workers are threads, not
processes: reading files, decompressing and NumPy let other threads run meanwhile, and nothing is
copied from one process to another.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, islice
from typing import Any, Final

import numpy as np

from weft.nn.batches import is_columns, joined, mapped, rows_of, size_of, tensors_of
from weft.support.errors import ArgumentError, ArgumentTypeError
from weft.support.workers import Task, Workers

Job = Callable[[], Any]
_END: Final = object()  # what a job gives where an iterable has no more samples


class _Workers:
    """Threads that take jobs in order; each begins with a function of its number, if any."""

    def __init__(self, threads: int, begin: Callable[[int], object] | None) -> None:
        self.begin, self.numbers, self.own = begin, count(), threading.local()
        self.pool = Workers(threads, "weft-data")

    def submit(self, job: Job) -> Task[Any]:
        return self.pool.submit(self._begun, job)

    def _begun(self, job: Job) -> Any:
        if self.begin is not None and not hasattr(self.own, "number"):
            number = next(self.numbers)
            self.begin(number)
            self.own.number = number
        return job()


class DataLoader:
    """Iterate over batches; each pass is an epoch with an order of its own.

    The dataset is an array or tensor, a tuple or dict of those with equal first sizes, anything
    with `__len__` and `__getitem__` (samples, which `collate_fn` joins), or an iterable of them.
    The order is that of the dataset, one that `seed` and the epoch decide (`shuffle`), or that of
    a `sampler`, which gives indices; a `batch_sampler` gives the indices of each batch. With
    `batch_size=None` samples come one by one.

    `num_workers` threads make `prefetch_factor` batches each ahead; with 0 a batch is made when it
    is asked for. An iterable is read by one thread. `worker_init_fn(number)` runs first in each
    thread, once an epoch, or once at all with `persistent_workers`. An error in a thread is raised
    where its batch is asked for. Arrays become tensors on `device`; strings and other objects stay
    as they are. `pin_memory` is accepted for programs that set it: memory is shared anyway.

    >>> loader = DataLoader((np.arange(5), np.arange(5) * 10), batch_size=2, shuffle=True, seed=1)
    >>> sorted(number for x, y in loader for number in y.tolist())
    [0, 10, 20, 30, 40]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        worker_init_fn: Callable[[int], object] | None = None,
        prefetch_factor: int = 2,
        persistent_workers: bool = False,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        for name, value, least in (("batch_size", 1 if batch_size is None else batch_size, 1),
                                   ("num_workers", num_workers, 0),
                                   ("prefetch_factor", prefetch_factor, 1)):  # fmt: skip
            if value < least:
                raise ArgumentError(
                    f"DataLoader: {name} is {value}", rule=f"{name} is {least} or more"
                )
        self.dataset, self.batch_size, self.shuffle, self.seed = dataset, batch_size, shuffle, seed
        self.sampler, self.batch_sampler, self.drop_last = sampler, batch_sampler, drop_last
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor
        self.worker_init_fn, self.persistent_workers = worker_init_fn, persistent_workers
        self.device, self.collate_fn = device, collate_fn
        self.size = size_of(dataset)
        self._require_one_order()
        self._epoch = self._batch = 0
        self._is_started = False
        self._kept: _Workers | None = None

    def _require_one_order(self) -> None:
        orders = {
            "shuffle": self.shuffle,
            "sampler": self.sampler is not None,
            "batch_sampler": self.batch_sampler is not None,
        }
        named = [name for name, is_given in orders.items() if is_given]
        if self.size is None and named:
            raise ArgumentError(
                "DataLoader: an iterable cannot be shuffled or sampled",
                rule="an order of its own needs __len__ and __getitem__",
                fix="shuffle where the samples come from, or make a list of them",
            )
        if len(named) > 1:
            raise ArgumentError(f"DataLoader: {' and '.join(named)}", rule="one of them is given")
        if self.batch_sampler is not None and (self.batch_size != 1 or self.drop_last):
            raise ArgumentError(
                "DataLoader: batch_sampler together with batch_size or drop_last",
                rule="a batch_sampler decides what a batch is",
            )
        if self.batch_size is None and self.drop_last:
            raise ArgumentError(
                "DataLoader: drop_last without a batch_size", rule="one sample is always whole"
            )

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        if self.size is None:
            raise ArgumentTypeError("DataLoader: an iterable has no length")
        given: Any = self.batch_sampler if self.batch_sampler is not None else self.sampler
        if given is not None and not hasattr(type(given), "__len__"):
            raise ArgumentTypeError("DataLoader: the sampler has no length")
        total = self.size if given is None else len(given)
        if self.batch_sampler is not None or self.batch_size is None:
            return total
        whole, rest = divmod(total, self.batch_size)
        return whole + bool(rest and not self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        if self._is_started:  # the pass before was left early
            self._epoch, self._batch = self._epoch + 1, 0
        self._is_started = True
        jobs = self._jobs(self._epoch, self._batch)
        return self._run(jobs if not self.num_workers else self._ahead(jobs))

    def state_dict(self) -> dict[str, int]:
        """Return how far the iteration is: seed, epoch, and batches of it that were handed out."""
        return {"seed": self.seed, "epoch": self._epoch, "batch": self._batch}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on where a state was taken: the next pass hands out the rest of that epoch."""
        missing = {"seed", "epoch", "batch"} - state.keys()
        if missing:
            raise ArgumentError(
                f"DataLoader: the state lacks {', '.join(sorted(missing))}",
                rule="a state has seed, epoch and batch",
            )
        self.seed, self._epoch, self._batch = state["seed"], state["epoch"], state["batch"]
        self._is_started = False

    def _run(self, made: Iterable[Job]) -> Iterator[Any]:
        for make in made:
            values = make()
            if values is _END:
                break
            self._batch += 1
            yield tensors_of(values, self.device)
        self._epoch, self._batch, self._is_started = self._epoch + 1, 0, False

    def _ahead(self, jobs: Iterator[Job]) -> Iterator[Job]:
        """The same batches in the same order, while threads make the next ones."""
        waiting: deque[Task[Any]] = deque()
        workers, most = self._workers(), self.num_workers * self.prefetch_factor
        try:
            for job in jobs:
                waiting.append(workers.submit(job))
                if len(waiting) > most:
                    yield waiting.popleft().result
            while waiting:
                yield waiting.popleft().result
        finally:
            for each in waiting:
                each.cancel()
            if workers is not self._kept:
                workers.pool.close()

    def _workers(self) -> _Workers:
        if self._kept is not None:
            return self._kept
        # One thread reads an iterable, so that its samples keep their order.
        threads = self.num_workers if self.size is not None else 1
        made = _Workers(threads, self.worker_init_fn)
        self._kept = made if self.persistent_workers else None
        return made

    def _jobs(self, epoch: int, first: int) -> Iterator[Job]:
        """What makes each batch from the first one on."""
        if self.size is None:
            yield from self._jobs_of_iterable(first)
            return
        for chosen in islice(self._orders(epoch), first, None):
            yield partial(self._chosen, chosen)

    def _orders(self, epoch: int) -> Iterator[Any]:
        """The indices of each batch; one index, where samples come one by one."""
        if self.batch_sampler is not None:
            yield from (np.asarray(batch, np.int64) for batch in self.batch_sampler)
            return
        order: Iterable[Any] = range(self.size or 0)
        if self.shuffle:
            order = np.random.default_rng((self.seed, epoch)).permutation(self.size or 0)
        rows = iter(order if self.sampler is None else self.sampler)
        if self.batch_size is None:
            yield from rows
            return
        while chosen := list(islice(rows, self.batch_size)):
            if len(chosen) == self.batch_size or not self.drop_last:
                yield np.asarray(chosen, np.int64)

    def _chosen(self, rows: Any) -> Any:
        if is_columns(self.dataset) and self.collate_fn is None:
            return mapped(self.dataset, lambda column: rows_of(column, rows))
        if self.batch_size is None:
            return self._together(self._sample(int(rows)))
        return self._together([self._sample(int(row)) for row in rows])

    def _sample(self, row: int) -> Any:
        if is_columns(self.dataset):
            return mapped(self.dataset, lambda column: column[row])
        return self.dataset[row]

    def _together(self, samples: Any) -> Any:
        if self.collate_fn is not None:
            return self.collate_fn(samples)
        return samples if self.batch_size is None else joined(samples)

    def _jobs_of_iterable(self, first: int) -> Iterator[Job]:
        samples = iter(self.dataset)
        size = self.batch_size or 1

        def job() -> Any:
            found = list(islice(samples, size))
            if not found or (len(found) < size and self.drop_last):
                return _END
            return self._together(found if self.batch_size else found[0])

        for _ in islice(samples, first * size):  # already handed out
            pass
        while True:
            yield job

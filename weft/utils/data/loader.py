"""The loader with PyTorch's arguments: a shuffled order follows from the random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from weft.nn.loader import DataLoader as SeededLoader
from weft.tensor.tensor import Tensor


class DataLoader(SeededLoader):
    """Iterate over batches. With `shuffle`, each pass draws an order from `weft.manual_seed`'s
    numbers, or from those of a `generator`; `seed=` fixes the orders of all passes instead.

    What is accepted and changes nothing: `timeout`, `multiprocessing_context` (workers are
    threads), `pin_memory`, `pin_memory_device`, `in_order`.

    >>> [batch.tolist() for batch in DataLoader([1.0, 2.0, 3.0], batch_size=2)]
    [[1.0, 2.0], [3.0]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed: int | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__(
            dataset,
            batch_size,
            bool(shuffle),
            sampler,
            batch_sampler,
            num_workers,
            collate_fn,
            pin_memory,
            drop_last,
            worker_init_fn,
            2 if prefetch_factor is None else prefetch_factor,
            persistent_workers,
            0 if seed is None else seed,
            device,
        )
        self.generator, self._is_seeded = generator, seed is not None

    def __iter__(self) -> Iterator[Any]:
        if self.shuffle and not self._is_seeded and not self._is_resumed():
            high = 2**31 - 1
            self.seed = int(Tensor.randint(1, low=0, high=high, generator=self.generator).item())
            # The order is that of the numbers alone, however many passes there were before.
            self._epoch, self._batch, self._is_started = 0, 0, False
        return super().__iter__()

    def _is_resumed(self) -> bool:
        """Whether `load_state_dict` said where the next pass begins."""
        return self._batch > 0 and not self._is_started

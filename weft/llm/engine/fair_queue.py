"""Requests that wait: clients take turns, and those of one client stay in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """A queue for each client.

    >>> queue = FairQueue[int]()
    >>> for client, item in (("a", 1), ("a", 2), ("b", 3)):
    ...     queue.add(client, item)
    >>> [queue.take({"a": 1}), queue.take({}), queue.take({}), queue.take({})]
    [3, 1, 2, None]
    """

    def __init__(self) -> None:
        self._queues: dict[str, deque[T]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def add(self, client: str, item: T) -> None:
        self._queues.setdefault(client, deque()).append(item)

    def put_back(self, client: str, item: T) -> None:
        """An item that had its turn and could not stay: it is the next of its client."""
        self._queues = {client: self._queues.pop(client, deque()), **self._queues}
        self._queues[client].appendleft(item)

    def take(self, active: Mapping[str, int]) -> T | None:
        """The next item: of the client with the fewest active ones, who waited longest."""
        if not self._queues:
            return None
        client = min(self._queues, key=lambda name: active.get(name, 0))
        queue = self._queues.pop(client)
        item = queue.popleft()
        if queue:
            self._queues[client] = queue  # behind all others
        return item

    def find(self, wanted: Callable[[T], bool]) -> T | None:
        """The first item that is wanted."""
        return next(
            (each for queue in self._queues.values() for each in queue if wanted(each)), None
        )

    def remove(self, client: str, item: T) -> bool:
        """Take an item out, wherever it stands; whether it was there."""
        queue = self._queues.get(client, deque())
        if item not in queue:
            return False
        queue.remove(item)
        if not queue:
            del self._queues[client]
        return True

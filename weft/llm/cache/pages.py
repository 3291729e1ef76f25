"""Which pages are free, and how many sequences hold each."""

from __future__ import annotations

from collections.abc import Iterable

from weft.support.errors import OutOfMemory


class PagePool:
    """Pages 1 to `count`, each with the number of its holders."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = list(range(count, 0, -1))
        self._holders = [0] * (count + 1)

    @property
    def free(self) -> int:
        return len(self._free)

    def require(self, count: int) -> None:
        if count > len(self._free):
            raise OutOfMemory(
                f"cache: {count} more pages are needed and {len(self._free)} are free",
                facts=[("pages", self.count)],
                fix="free sequences, or make a cache for more tokens",
            )

    def take(self, count: int) -> list[int]:
        """Pages of one holder each."""
        if count <= 0:
            return []
        self.require(count)
        taken = [self._free.pop() for _ in range(count)]
        self.share(taken)
        return taken

    def share(self, pages: Iterable[int]) -> None:
        for page in pages:
            self._holders[page] += 1

    def is_shared(self, page: int) -> bool:
        return self._holders[page] > 1

    def give_back(self, pages: Iterable[int]) -> None:
        for page in pages:
            self._holders[page] -= 1
            if not self._holders[page]:
                self._free.append(page)

"""A bar for what takes a while: kernels that are compiled, searches, downloads, epochs.

    for batch in weft.progress(loader, "epoch 1"):
        ...

It is on a terminal alone, and only where the work takes longer than a moment; it goes away when
the work is done. Of bars inside each other the innermost is shown.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from shutil import get_terminal_size
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from weft.support.colors import is_terminal
from weft.support.fork import renew_in_child

Item = TypeVar("Item")
_MOMENT: Final = 0.5  # seconds until a bar shows
_PAUSE: Final = 0.1  # seconds between two drawings
_LONGEST: Final = 30  # columns of the bar
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_OPEN: Final[list[Progress]] = []
_LOCK: Final = threading.Lock()
renew_in_child(_LOCK)


class Progress:
    """Work of `total` steps, as a scope; without a total it counts."""

    def __init__(self, title: str, total: float | None = None, unit: str = "") -> None:
        self.title, self.total, self.unit = title, total, unit
        self.done = 0.0
        self.note = ""
        self._start = time.monotonic()
        self._drawn = self._start + _MOMENT - _PAUSE
        self._is_shown = is_terminal(sys.stderr)
        self._width = 0

    def __enter__(self) -> Self:
        if self._is_shown:
            with _LOCK:
                _OPEN.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_shown:
            with _LOCK:
                _OPEN.remove(self)
                self._clear()

    def advance(self, steps: float = 1.0) -> None:
        """So many steps are done."""
        self.done += steps
        if self._is_shown:
            self._draw()

    def set_postfix(self, **numbers: object) -> None:
        """Show these beside the bar, such as the loss."""
        self.note = ", ".join(f"{name}={value}" for name, value in numbers.items())

    def _draw(self) -> None:
        now = time.monotonic()
        if now - self._drawn < _PAUSE:
            return
        with _LOCK:
            if not _OPEN or _OPEN[-1] is not self:
                return
            self._drawn = now
            columns = get_terminal_size((80, 24)).columns
            text = self.line(now - self._start, columns)
            padding = " " * (self._width - len(text))
            self._width = len(text)
            print(f"\r{text}{padding}", end="", file=sys.stderr, flush=True)

    def _clear(self) -> None:
        if self._width:
            print(f"\r{' ' * self._width}\r", end="", file=sys.stderr, flush=True)
            self._width = 0

    def line(self, seconds: float, columns: int) -> str:
        """What is shown after so many seconds.

        >>> bar = Progress("compiling", 4, "kernels")
        >>> bar.done = 2
        >>> bar.line(10, 60)
        'compiling ██████████           2/4 kernels  10 s, 10 s left'
        """
        count = f"{_number(self.done)}"
        rest = ""
        if self.total:
            count += f"/{_number(self.total)}"
            if self.done:
                rest = f", {_time(seconds * (self.total - self.done) / self.done)} left"
        text = f"{count} {self.unit}".rstrip() + f"  {_time(seconds)}{rest}"
        text += f"  {self.note}" if self.note else ""
        size = min(_LONGEST, columns // 3, columns - len(self.title + text) - 3)
        bar = f"{_bar(self.done / self.total, size)} " if self.total and size >= 5 else ""
        return f"{self.title} {bar}{text}"[: columns - 1]


def _bar(share: float, size: int) -> str:
    eighths = round(8 * size * min(max(share, 0.0), 1.0))
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[part] if part else "")).ljust(size)


def _number(count: float) -> str:
    if count >= 1e6:
        return f"{count / 1e6:.1f}M"
    return f"{count:.0f}"


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, seconds = divmod(int(seconds), 60)
    return (
        f"{minutes} min {seconds} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
    )


def progress(
    items: Iterable[Item], title: str = "", total: int | None = None
) -> ProgressItems[Item]:
    """Iterate over items with a bar on a terminal; elsewhere they come alone.

    What it returns has `set_postfix(loss=...)`, for numbers beside the bar.

    >>> list(progress([1, 2, 3], "steps"))
    [1, 2, 3]
    """
    return ProgressItems(items, title, total)


class ProgressItems(Generic[Item]):
    """Items that move a bar forward as they are taken."""

    def __init__(self, items: Iterable[Item], title: str, total: int | None) -> None:
        self._items = items
        sized: Any = items
        total = len(sized) if total is None and hasattr(items, "__len__") else total
        self._bar = Progress(title, total)

    def __iter__(self) -> Iterator[Item]:
        with self._bar as bar:
            for item in self._items:
                yield item
                bar.advance()

    def set_postfix(self, **numbers: object) -> None:
        """Show these beside the bar, such as the loss."""
        self._bar.set_postfix(**numbers)

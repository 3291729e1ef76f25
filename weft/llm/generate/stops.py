"""Stop strings: text up to the first of them, held back while one may still come."""

from __future__ import annotations

from collections.abc import Sequence


class StopWatch:
    """Text that comes in pieces, until a stop string.

    >>> watch = StopWatch(["END"])
    >>> watch.add("a EN"), watch.add("ergy E"), watch.add("ND more"), watch.is_stopped
    ('a ', 'ENergy ', '', True)
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.stops = [stop for stop in stops if stop]
        self.is_stopped = False
        self._held = ""

    def add(self, text: str) -> str:
        """The text that is certain to stand before a stop string."""
        if self.is_stopped:
            return ""
        text = self._held + text
        positions = [position for stop in self.stops if (position := text.find(stop)) >= 0]
        if positions:
            self.is_stopped, self._held = True, ""
            return text[: min(positions)]
        size = self._begun(text)
        self._held = text[len(text) - size :]
        return text[: len(text) - size]

    def end(self) -> str:
        """What was held back and is not a stop string."""
        text, self._held = self._held, ""
        return text

    def _begun(self, text: str) -> int:
        """How many characters at the end may begin a stop string."""
        longest = max((len(stop) for stop in self.stops), default=0)
        for size in range(min(longest - 1, len(text)), 0, -1):
            if any(stop.startswith(text[-size:]) for stop in self.stops):
                return size
        return 0

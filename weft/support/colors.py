"""Colors for people: on a terminal, and nowhere else.

`NO_COLOR` in the environment turns them off, as in other programs.
"""

from __future__ import annotations

import os
import sys
from typing import IO, Final

_CODES: Final = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36}


def is_terminal(stream: IO[str] | None = None) -> bool:
    """Whether somebody reads a stream on a terminal; standard output unless one is given."""
    stream = sys.stdout if stream is None else stream
    return stream is not None and not stream.closed and stream.isatty()


def has_colors(stream: IO[str] | None = None) -> bool:
    """Whether a stream shows colors."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def colored(text: str, color: str, is_on: bool) -> str:
    """The text in a color, where they are on.

    >>> colored("slow", "red", True), colored("slow", "red", False)
    ('\\x1b[31mslow\\x1b[0m', 'slow')
    """
    return f"\x1b[{_CODES[color]}m{text}\x1b[0m" if is_on and color else text

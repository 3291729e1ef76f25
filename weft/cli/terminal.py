"""What commands share: the width of the terminal, text wrapped to it, numbers from 1 on."""

from __future__ import annotations

import argparse
import textwrap
from shutil import get_terminal_size
from typing import Final

# Lines longer than this are hard to read, however wide the terminal is.
WIDEST: Final = 88
NARROWEST: Final = 30


def columns(widest: int = WIDEST) -> int:
    """The columns to write in; the most there may be where nothing says how wide it is."""
    return max(NARROWEST, min(widest, get_terminal_size((widest, 24)).columns))


def wrapped(text: str, indent: str = "") -> str:
    """A paragraph in lines that fit, each behind the indent.

    >>> wrapped("one two", "  ")
    '  one two'
    """
    return textwrap.fill(text, columns(), initial_indent=indent, subsequent_indent=indent)


def positive(text: str) -> int:
    """The type of an argument that counts something."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text!r}")
    return number

"""A bar for loops that take a while, where tqdm is installed; else the loop alone."""

from collections.abc import Iterable
from typing import Any


def progress(items: Iterable[Any], title: str) -> Any:
    """The items, with a bar on a terminal. What it returns has `set_postfix`."""
    try:
        from tqdm import tqdm
    except ImportError:
        return _Plain(items)
    return tqdm(items, desc=title, leave=False, disable=None)


class _Plain:
    def __init__(self, items: Iterable[Any]) -> None:
        self.items = items

    def __iter__(self) -> Any:
        return iter(self.items)

    def set_postfix(self, **numbers: object) -> None:
        """Show nothing."""

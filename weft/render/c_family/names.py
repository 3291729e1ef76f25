"""Names of a rendered program: legal, distinct, and close to what the program calls things."""

from __future__ import annotations

import re


class Names:
    """The names in use. `claim` gives a new one like a word, `fresh` a numbered one.

    >>> names = Names({"if"})
    >>> names.claim("if"), names.claim("acc"), names.claim("acc"), names.fresh("v")
    ('if_1', 'acc', 'acc_1', 'v0')
    """

    def __init__(self, reserved: set[str]) -> None:
        self._taken = set(reserved)
        self._next: dict[str, int] = {}

    def reserve(self, word: str) -> str:
        """This very word, which may have been reserved before."""
        self._taken.add(word)
        return word

    def claim(self, word: str) -> str:
        plain = re.sub(r"\W", "_", word, flags=re.ASCII).strip("_") or "value"
        plain = f"_{plain}" if plain[0].isdigit() else plain
        found, number = plain, 0
        while found in self._taken:
            number += 1
            found = f"{plain}_{number}"
        return self.reserve(found)

    def fresh(self, prefix: str) -> str:
        number = self._next.get(prefix, 0)
        while f"{prefix}{number}" in self._taken:
            number += 1
        self._next[prefix] = number + 1
        return self.reserve(f"{prefix}{number}")

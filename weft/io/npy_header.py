"""The header of an npy file: a dict in Python's notation, read without Python.

Strings, counts, True, False, tuples and lists are known; whatever else stands there is damage.
"""

from __future__ import annotations

import re
from typing import Any, Final

_TOKENS: Final = re.compile(
    r"""'[^'\\]*'|"[^"\\]*"|-?[0-9]+L?|True|False|[{}()\[\]:,]|\s+|.""", re.S
)
_CLOSE: Final = {"{": "}", "(": ")", "[": "]"}
_MOST_NESTED: Final = 20
_MOST_DIGITS: Final = 20


def parse_header(text: str) -> dict[str, Any]:
    """The header as a dict; raises ValueError where it is none.

    >>> parse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }")
    {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}
    """
    parser = _HeaderParser([token for token in _TOKENS.findall(text) if not token.isspace()])
    value = parser.value(0)
    if parser.tokens[parser.at :] or not isinstance(value, dict):
        raise ValueError("a header is one dict")
    return value


class _HeaderParser:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0

    def _next(self) -> str:
        if self.at == len(self.tokens):
            raise ValueError("the header ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def _skip(self, token: str) -> bool:
        found = self.tokens[self.at : self.at + 1] == [token]
        self.at += found
        return found

    def value(self, depth: int) -> Any:
        token = self._next()
        if token[0] in "'\"" and len(token) > 1:
            return token[1:-1]
        if token[-1] in "0123456789L" and token != "L" and len(token) <= _MOST_DIGITS:
            return int(token.rstrip("L"))
        if token in ("True", "False"):
            return token == "True"
        if token not in _CLOSE or depth > _MOST_NESTED:
            raise ValueError(f"expected a header, got {token[:20]!r}")
        return self._container(token, depth)

    def _container(self, opening: str, depth: int) -> Any:
        items: list[Any] = []
        has_comma = False
        while not self._skip(_CLOSE[opening]):
            if items and not has_comma:
                raise ValueError("a comma is missing")
            key = self.value(depth + 1)
            if opening == "{":
                if not isinstance(key, str) or not self._skip(":"):
                    raise ValueError("a dict maps names to values")
                key = key, self.value(depth + 1)
            items.append(key)
            has_comma = self._skip(",")
        if opening == "{":
            return dict(items)
        if opening == "(" and len(items) == 1 and not has_comma:
            return items[0]  # parentheses around one value are not a tuple
        return items if opening == "[" else tuple(items)

"""The tokens of one line of the text form, and a cursor over them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from json import loads as unquoted
from typing import Final, TypeVar

from weft.ir.dtypes import DType
from weft.ir.ops import BY_NAME
from weft.ir.text.syntax import dtype_named
from weft.support.message import nearest

T = TypeVar("T")

TOKENS: Final = re.compile(
    r"""[A-Za-z_][A-Za-z0-9_]*|[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"""
    r"""|"(?:[^"\\]|\\.)*"|\.\.|//|<<|>>|<=|==|\#.*|\S""",
)


class LineError(Exception):
    """What is wrong, at which token of the line."""

    def __init__(self, what: str, at: int, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.at = at
        self.fix = fix


class Cursor:
    """A position in a list of tokens that ends with an empty one."""

    def __init__(self) -> None:
        self.tokens: list[str] = [""]
        self.at = 0

    def fail(self, expected: str) -> LineError:
        found = self.tokens[self.at]
        what = f"expected {expected}, found {found}" if found else f"expected {expected}"
        return LineError(what, self.at)

    def expect(self, token: str) -> None:
        if self.tokens[self.at] != token:
            raise self.fail(token)
        self.at += 1

    def skip(self, token: str) -> bool:
        found = self.tokens[self.at] == token
        self.at += found
        return found

    def name(self, expected: str = "a name") -> str:
        token = self.tokens[self.at]
        if not token.isidentifier():
            raise self.fail(expected)
        self.at += 1
        return token

    def integer(self) -> int:
        sign = -1 if self.skip("-") else 1
        token = self.tokens[self.at]
        if not token.isdecimal():
            raise self.fail("an integer")
        self.at += 1
        return sign * int(token)

    def string(self) -> str:
        token = self.tokens[self.at]
        try:
            text = unquoted(token) if token[:1] == '"' else None
        except ValueError:
            text = None
        if not isinstance(text, str):
            raise self.fail("a string")
        self.at += 1
        return text

    def word(self) -> str:
        return (
            self.string() if self.tokens[self.at][:1] == '"' else self.name("a word or a string")
        )

    def dtype(self) -> DType:
        token = self.tokens[self.at]
        found = dtype_named(token)
        if found is None:
            raise self.fail("a dtype")
        self.at += 1
        return found

    def op(self) -> int:
        token = self.tokens[self.at]
        if token not in BY_NAME:
            raise self.fail("the name of an op")
        self.at += 1
        return BY_NAME[token]

    def items(self, item: Callable[[], T], close: str) -> list[T]:
        """Items between commas up to the closing token, which is taken too."""
        found: list[T] = []
        while not self.skip(close):
            if found:
                self.expect(",")
                if self.skip(close):
                    break
            found.append(item())
        return found

    def unknown(self, token: str, known: Iterable[str], kind: str) -> LineError:
        near = nearest(token, known)
        return LineError(
            f"unknown {kind} {token!r}", self.at - 1, f"the nearest one is {near}" if near else ""
        )

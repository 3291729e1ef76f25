r"""Grammars as text: rules with strings, classes of characters, groups, repeats and comments.

    root   ::= "yes" | "no" | number      # the text follows root
    number ::= [1-9] [0-9]{0,3}

A class may be negated ([^"\\]), `.` is any character, and `* + ? {n} {n,} {n,m}` repeat.
"""

from __future__ import annotations

import re
from typing import Final

from weft.llm.generate.grammar import Alternative, Grammar, Rule, characters, literal
from weft.support.errors import ArgumentError

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_SPACE: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_COUNT: Final = re.compile(r"\{\s*(\d{1,9})\s*(,)?\s*(\d{1,9})?\s*\}")
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}
_LAST: Final = 0x10FFFF
MOST_REPEATS: Final = 2000
MOST_TEXT: Final = 1 << 18
MOST_WRITTEN: Final = 500_000
MOST_DEPTH: Final = 100


def parse_grammar(text: str) -> Grammar:
    r"""The grammar that a text describes.

    >>> grammar = parse_grammar('root ::= "a"+ [0-9]{2}')
    >>> grammar.matches("aaa42"), grammar.matches("a4")
    (True, False)
    """
    return _Parser(text).grammar()


class Rules(dict[str, list[Alternative]]):
    """Rules by name, and how much repeats have written out."""

    written = 0

    def write_out(self, count: int) -> None:
        """Called before a repeat writes out so many parts."""
        self.written += count
        if self.written > MOST_WRITTEN:
            raise ArgumentError(
                f"grammar: its repeats write out more than {MOST_WRITTEN:,} parts",
                rule="repeats inside of repeats multiply",
            )


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.rules = Rules()
        self.depth = 0

    def grammar(self) -> Grammar:
        if len(self.text) > MOST_TEXT:
            raise ArgumentError(
                f"grammar: a text of {len(self.text):,} characters",
                rule=f"a grammar has at most {MOST_TEXT:,}",
            )
        self._skip()
        while self.at < len(self.text):
            name = self._name()
            self._expect("::=")
            if name in self.rules:
                raise self._wrong(f"the rule {name!r} is there twice")
            self.rules[name] = []
            self.rules[name] = self._alternatives(name)
        return Grammar(self.rules)

    def _alternatives(self, name: str) -> list[Alternative]:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise self._wrong("groups are nested too deep")
        found = [self._sequence(name)]
        while self._take("|"):
            found.append(self._sequence(name))
        self.depth -= 1
        return found

    def _sequence(self, name: str) -> Alternative:
        found: Alternative = ()
        while (part := self._item(name)) is not None:
            found += self._repeated(name, part)
        return found

    def _item(self, name: str) -> Alternative | None:
        """One thing of a sequence; None at its end."""
        head = self.text[self.at : self.at + 1]
        if head == '"':
            return literal(self._string())
        if head == "[":
            return self._one_of(name, characters(self._class()))
        if head == ".":
            self._take(".")
            return self._one_of(name, characters([(0, _LAST)]))
        if head == "(":
            self._take("(")
            inner = self._alternatives(name)
            self._expect(")")
            return self._one_of(name, inner)
        match = _NAME.match(self.text, self.at)
        if match is None or self._begins_rule(match.end()):
            return None
        return (Rule(self._name()),)

    def _begins_rule(self, at: int) -> bool:
        space = _SPACE.match(self.text, at)
        assert space is not None
        return self.text.startswith("::=", space.end())

    def _repeated(self, name: str, part: Alternative) -> Alternative:
        least, most = 1, 1
        while True:
            head = self.text[self.at : self.at + 1]
            if head in ("*", "+", "?") and head:
                self._take(head)
                least, most = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[head]
            elif match := _COUNT.match(self.text, self.at):
                self.at = match.end()
                self._skip()
                least = int(match[1])
                most = least if not match[2] else int(match[3]) if match[3] else -1
            else:
                return part
            if max(least, most) > MOST_REPEATS or 0 <= most < least:
                raise self._wrong(f"a repeat is at most {MOST_REPEATS} times, the least first")
            part = repeated(self.rules, name, part, least, most)

    def _one_of(self, name: str, alternatives: list[Alternative]) -> Alternative:
        if len(alternatives) == 1:
            return alternatives[0]
        return (new_rule(self.rules, name, alternatives),)

    def _string(self) -> str:
        self.at += 1
        found = ""
        while not self.text.startswith('"', self.at):
            found += chr(self._character())
        self.at += 1
        self._skip()
        return found

    def _class(self) -> list[tuple[int, int]]:
        self.at += 1
        is_negated = self.text.startswith("^", self.at)
        self.at += is_negated
        ranges = []
        while not self.text.startswith("]", self.at):
            low = high = self._character()
            if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] != "]":
                self.at += 1
                high = self._character()
            if high < low:
                raise self._wrong("a range goes backwards")
            ranges.append((low, high))
        self.at += 1
        self._skip()
        return _without(ranges) if is_negated else ranges

    def _character(self) -> int:
        if self.at >= len(self.text):
            raise self._wrong("the text ends inside of quotes or brackets")
        head = self.text[self.at]
        self.at += 1
        if head != "\\":
            return ord(head)
        kind = self.text[self.at : self.at + 1]
        self.at += 1
        if size := {"x": 2, "u": 4, "U": 8}.get(kind):
            digits = self.text[self.at : self.at + size]
            self.at += size
            if not re.fullmatch(r"[0-9a-fA-F]+", digits) or int(digits, 16) > _LAST:
                raise self._wrong(f"expected a character, got \\{kind}{digits}")
            return int(digits, 16)
        if not kind:
            raise self._wrong("the text ends after a backslash")
        return ord(_ESCAPES.get(kind, kind))

    def _name(self) -> str:
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise self._wrong("expected the name of a rule")
        self.at = match.end()
        self._skip()
        return match[0]

    def _expect(self, what: str) -> None:
        if not self._take(what):
            raise self._wrong(f"expected {what}")

    def _take(self, what: str) -> bool:
        if not self.text.startswith(what, self.at):
            return False
        self.at += len(what)
        self._skip()
        return True

    def _skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def _wrong(self, what: str) -> ArgumentError:
        line = self.text.count("\n", 0, self.at) + 1
        near = self.text[self.at : self.at + 20].split("\n")[0]
        return ArgumentError(
            f"grammar: {what}, at line {line}" + (f" before {near!r}" if near else ""),
            rule="a rule is written as name ::= alternatives",
        )


def _without(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """All characters but those of the ranges."""
    found, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            found.append((start, low - 1))
        start = max(start, high + 1)
    return [*found, (start, _LAST)] if start <= _LAST else found


def new_rule(
    rules: dict[str, list[Alternative]], name: str, alternatives: list[Alternative]
) -> Rule:
    """A rule of its own, with a name that no text can write."""
    made = f"{name} {len(rules)}"
    rules[made] = alternatives
    return Rule(made)


def repeated(rules: Rules, name: str, part: Alternative, least: int, most: int) -> Alternative:
    """A part so many times; a `most` of -1 is any number."""
    rules.write_out(len(part) * max(least, most, 1))
    tail: Alternative = ()
    if most < 0:
        more = new_rule(rules, name, [])
        rules[more.name] = [(*part, more), ()]
        tail = (more,)
    else:
        for _ in range(most - least):
            tail = (new_rule(rules, name, [(*part, *tail), ()]),)
    return part * least + tail

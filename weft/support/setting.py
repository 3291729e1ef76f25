"""What one setting is: its row in the table, the values it takes, and the scope it is read from.

`settings.py` lists the rows and is what the rest of Weft imports. This module reads the
environment, once, at the first use of any setting, and refuses what it cannot understand.
"""

from __future__ import annotations

import os
from contextvars import ContextVar

from weft.support.errors import ArgumentError, ArgumentTypeError, UnknownAttribute, UnknownName
from weft.support.message import nearest
from weft.support.source_line import NOWHERE

# A plain constant: importing `typing` costs more than the rest of this package together.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Value = bool | int | str

ROWS: dict[str, Setting] = {}
"""Every setting by name, in the order of the table."""

_WORDS = {"true": 1, "yes": 1, "on": 1, "false": 0, "no": 0, "off": 0, "1": 1, "0": 0}


class Setting:
    """One row of the table; as a class attribute it reads the value in force."""

    __slots__ = ("choices", "default", "in_cache_key", "meaning", "most", "name", "variable")

    def __init__(
        self,
        default: Value,
        meaning: str,
        variable: str = "",
        choices: tuple[str, ...] = (),
        in_cache_key: bool = False,
        most: int | None = None,
    ) -> None:
        self.default = default
        self.meaning = meaning
        self.variable = variable
        self.choices = choices
        self.in_cache_key = in_cache_key
        self.most = most
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.variable = self.variable or name
        ROWS[name] = self

    def __get__(self, instance: object, owner: type) -> object:
        return self if instance is None else scope.get()[self.name]

    def __set__(self, instance: object, value: object) -> None:
        raise UnknownAttribute(
            f"settings.{self.name}: a setting cannot be assigned",
            rule="a setting changes in a scope, or for the whole process by the environment",
            fix=f"with Context({self.name}={value!r}): ...",
        )

    @property
    def kind(self) -> type[Value]:
        """The type of the value: bool, int or str."""
        return type(self.default)

    @property
    def expects(self) -> str:
        """The accepted values, in words."""
        if self.kind is bool:
            return "0 or 1"
        if self.kind is int:
            return "a whole number, 0 " + ("or more" if self.most is None else f"to {self.most}")
        if self.choices:
            return "one of " + ", ".join(choice for choice in self.choices if choice)
        return "text"

    def try_parse(self, text: str) -> Value | None:
        """Return the value that the text of an environment variable means, or None."""
        if self.kind is str:
            return self.try_accept(text)
        if (word := _WORDS.get(text.lower())) is not None:
            return self.try_accept(word)
        return self.try_accept(int(text)) if text.isascii() and text.isdecimal() else None

    def try_accept(self, value: object) -> Value | None:
        """Return a Python value in the type of this setting, or None where it does not fit."""
        if isinstance(value, str):
            fits = self.kind is str and (not self.choices or value in self.choices)
            return value if fits else None
        if not isinstance(value, int) or self.kind is str or value < 0:
            return None
        if self.kind is int:
            return int(value) if self.most is None or value <= self.most else None
        return bool(value) if value in (0, 1) else None

    def __repr__(self) -> str:
        return f"<Setting {self.name}>"


class Scope(dict[str, "Value"]):
    """The values in force; `outer` is the scope that comes back when this one ends."""

    __slots__ = ("cache_key", "outer")

    def __init__(self, values: Mapping[str, Value], outer: Scope | None) -> None:
        super().__init__(values)
        self.outer = outer
        self.cache_key: tuple[tuple[str, Value], ...] | None = None  # made when first asked for

    def __missing__(self, name: str) -> Value:
        # Only the environment's scope is ever empty: it fills itself when first asked.
        self.update(read_environment(os.environ))
        return self[name]

    def inner(self, changes: Mapping[str, Value]) -> Scope:
        """Return a scope inside this one, with a copy of all values and some changes.

        The copy makes a read one lookup, however deep scopes nest.
        """
        if not self:
            self.update(read_environment(os.environ))
        return Scope({**self, **changes}, self)


_environment = Scope({}, None)
# A context variable is private to a thread and to an async task; its default is shared by all.
scope = ContextVar("weft.settings", default=_environment)


def read_environment(environment: Mapping[str, str]) -> dict[str, Value]:
    """Return the value of every setting; an empty variable counts as unset."""
    values = {}
    for row in ROWS.values():
        text = environment.get(row.variable, "").strip()
        values[row.name] = require_parsed(row, text) if text else row.default
    return values


def require_parsed(row: Setting, text: str) -> Value:
    """Return the value that the text of an environment variable means."""
    value = row.try_parse(text)
    if value is not None:
        return value
    near = nearest(text, row.choices) or row.default
    good = f"{near:d}" if isinstance(near, int) else near
    raise ArgumentError(
        f"environment: {row.variable}={text} is not {row.expects}",
        facts=[("variable", row.variable, f"is {text!r}"), ("setting", row.name, row.meaning)],
        rule=f"{row.variable} needs {row.expects}",
        fix=(f"set {row.variable}={good}, or " if good else "")
        + f"unset {row.variable} where it belongs to another program",
        where=NOWHERE,
    )


def require_accepted(name: str, value: object) -> Value:
    """Return a value given in code, in the type of the named setting."""
    row = ROWS.get(name)
    if row is None:
        near = nearest(name, ROWS)
        raise UnknownName(
            f"Context: no setting is called {name}",
            rule="" if near else "the settings are " + _joined(list(ROWS)),
            fix=f"the nearest one is {near}: Context({near}={value!r})" if near else "",
        )
    accepted = row.try_accept(value)
    if accepted is not None:
        return accepted
    of_right_type = isinstance(value, str) if row.kind is str else isinstance(value, int)
    near = nearest(value, row.choices) if isinstance(value, str) else None
    raise (ArgumentError if of_right_type else ArgumentTypeError)(
        f"Context: {name}={value!r} is not {row.expects}",
        facts=[("setting", name, row.meaning)],
        rule=f"{name} needs {row.expects}",
        fix=f"the nearest one is {near}: Context({name}={near!r})" if near else "",
    )


def _joined(names: list[str], per_line: int = 8) -> str:
    """Return the names with commas, broken into lines of a readable length."""
    groups = (names[i : i + per_line] for i in range(0, len(names), per_line))
    return ",\n".join(", ".join(group) for group in groups)

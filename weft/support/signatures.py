"""Calls whose arguments do not fit, answered with names: missing, unknown or too many."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from weft.support.errors import ArgumentTypeError
from weft.support.message import nearest


def with_named_errors(init: Any) -> Any:
    """A constructor that says which argument is wrong, and which there are.

    The check costs nothing where the call is right: it is made when Python has refused it.
    """

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except TypeError as failure:
            if isinstance(failure, ArgumentTypeError):
                raise
            try:
                inspect.signature(init).bind(self, *args, **kwargs)
            except TypeError as mismatch:
                raise _mismatch(type(self).__name__, init, kwargs, str(mismatch)) from None
            raise

    checked._names_errors = True  # type: ignore[attr-defined]
    return checked


def _mismatch(name: str, init: Any, given: dict[str, Any], message: str) -> ArgumentTypeError:
    known = list(inspect.signature(init).parameters)[1:]
    unknown = next((each for each in given if each not in known), None)
    guess = None if unknown is None else nearest(unknown, known)
    return ArgumentTypeError(
        f"{name}: unknown argument {unknown!r}" if unknown is not None else f"{name}: {message}",
        rule="the arguments are " + ", ".join(known),
        fix=f"write {guess}=" if guess else "",
    )


class NamedErrors:
    """A base whose subclasses in this package answer wrong arguments of constructors so."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        init = cls.__dict__.get("__init__")
        is_own = cls.__module__.partition(".")[0] == "weft"
        if is_own and init is not None and not hasattr(init, "_names_errors"):
            setattr(cls, "__init__", with_named_errors(init))  # noqa: B010 -- as mypy wants it

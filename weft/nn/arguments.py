"""Constructors of layers by PyTorch's names: other keyword names, `device=` and `dtype=`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from weft.support.errors import ArgumentTypeError
from weft.support.message import nearest


def also_named(**names: str) -> Callable[[Any], Any]:
    """Let a constructor take arguments by other names, here by the names that they have.

    `device` and `dtype` move what was made, unless the constructor takes them itself. An unknown
    argument is refused with the nearest one.
    """

    def changed(init: Any) -> Any:
        known = list(inspect.signature(init).parameters)[1:]

        @functools.wraps(init)
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
            if not kwargs:
                init(self, *args)
                return
            given = {names.get(key, key): value for key, value in kwargs.items()}
            moves = {key: given.pop(key, None) for key in ("device", "dtype") if key not in known}
            for key in given:
                if key not in known:
                    raise _unknown(type(self).__name__, key, [*known, *names])
            init(self, *args, **given)
            moves = {key: value for key, value in moves.items() if value is not None}
            if moves:
                self.to(**moves)

        return wrapped

    return changed


def _unknown(layer: str, key: str, known: list[str]) -> ArgumentTypeError:
    guess = nearest(key, known)
    return ArgumentTypeError(
        f"{layer}: unknown argument {key!r}",
        rule="the arguments are " + ", ".join(known),
        fix=f"write {guess}=" if guess else "",
    )

"""The table of operators: a row for each operator and the opset that its function begins with.

A function takes the `Call` of its node and one value for each input, None where an input is left
out, and returns its output, or a tuple of them. Inputs are tensors, but those whose positions are
in `host`, which are arrays of NumPy; a row that is `raw` gets what there is: sequences, optionals,
strings, host arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final, NamedTuple

ML: Final = "ai.onnx.ml"
MICROSOFT: Final = "com.microsoft"
TRAINING: Final = "ai.onnx.preview.training"
PREVIEW: Final = "ai.onnx.preview"
DOMAINS: Final = ("", ML, MICROSOFT, TRAINING, PREVIEW)

Function = Callable[..., Any]


class Row(NamedTuple):
    """What computes an operator, from an opset on."""

    name: str
    domain: str
    since: int
    function: Function
    host: tuple[int, ...]
    raw: bool
    keeps_element: bool  # the outputs have the element type of the first input, also a small one


_ROWS: dict[tuple[str, str], list[Row]] = {}
_FOLDS: dict[tuple[str, str], Function] = {}


def op(
    *names: str,
    since: int = 1,
    domain: str = "",
    host: tuple[int, ...] = (),
    raw: bool = False,
    keeps_element: bool = False,
) -> Callable[[Function], Function]:
    """Enter a function in the table under these names."""

    def entered(function: Function) -> Function:
        for name in names:
            rows = _ROWS.setdefault((domain, name), [])
            rows.append(Row(name, domain, since, function, host, raw, keeps_element))
            rows.sort(key=lambda row: row.since)
        return function

    return entered


def folds(*names: str) -> Callable[[Function], Function]:
    """Enter what an operator of the default domain does to host arrays."""

    def entered(function: Function) -> Function:
        for name in names:
            _FOLDS["", name] = function
        return function

    return entered


def try_row(domain: str, name: str, version: int) -> Row | None:
    """The row of an operator in an opset."""
    _fill()
    rows = [row for row in _ROWS.get((domain, name), ()) if row.since <= version]
    return rows[-1] if rows else None


def try_fold(domain: str, name: str) -> Function | None:
    """What an operator does to host arrays, if anything."""
    return _FOLDS.get((domain, name))


def rows() -> list[Row]:
    """All rows, in the order of their names."""
    _fill()
    return [row for key in sorted(_ROWS) for row in _ROWS[key]]


@cache
def _fill() -> None:
    """Import every module of `operators` and of the folders in it; each enters its rows."""
    waiting = ["weft.onnx.operators"]
    while waiting:
        package = waiting.pop()
        for module in iter_modules(import_module(package).__path__):
            name = f"{package}.{module.name}"
            if module.ispkg:
                waiting.append(name)
            else:
                import_module(name)

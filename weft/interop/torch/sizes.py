"""Sizes that vary: the symbols of a graph, and their values in a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) or hasattr(value, "node")


def static_ints(sizes: Any) -> tuple[int, ...] | None:
    """Sizes as ints; None where one of them varies."""
    return tuple(map(int, sizes)) if all(isinstance(size, int) for size in sizes) else None


def hint(size: Any) -> int:
    """A size, or what it was when the graph was made."""
    return size if isinstance(size, int) else int(size.node.hint)


class Symbols:
    """Where the inputs of a graph show the value of each symbol."""

    def __init__(self) -> None:
        self._where: dict[Any, tuple[int, int | None]] = {}

    def enter(self, value: Any, number: int) -> None:
        """Note the symbols in what input `number` is."""
        if hasattr(value, "shape"):
            for axis, size in enumerate(value.shape):
                self._note(size, number, axis)
        else:
            self._note(value, number, None)

    def _note(self, size: Any, number: int, axis: int | None) -> None:
        expression = getattr(getattr(size, "node", None), "expr", None)
        if expression is not None and expression.is_Symbol:
            self._where.setdefault(expression, (number, axis))

    def __bool__(self) -> bool:
        return bool(self._where)

    def values(self, args: Sequence[Any]) -> dict[Any, int]:
        return {
            symbol: int(args[number] if axis is None else args[number].shape[axis])
            for symbol, (number, axis) in self._where.items()
        }


class Sizes:
    """The sizes of one call."""

    def __init__(self, symbols: Symbols, args: Sequence[Any]) -> None:
        self._values = symbols.values(args) if symbols else {}

    def number(self, size: Any) -> Any:
        """A number that may be an expression of symbols."""
        node = getattr(size, "node", None)
        if node is None:
            return size
        found = node.expr.xreplace(self._values)
        return int(found) if found == int(found) else float(found)

    def __call__(self, shape: Any) -> tuple[int, ...]:
        return tuple(self.number(size) for size in shape)

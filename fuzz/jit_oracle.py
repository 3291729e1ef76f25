"""What a program with jitted functions means: NumPy with functions and the same random numbers."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from fuzz.program_oracle import Array, Line, Oracle, new_value, reshaped


class Draws:
    """The random numbers of Weft, in NumPy: Threefry of a seed and a counter."""

    _ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))

    def __init__(self) -> None:
        self.seed(0)

    def seed(self, seed: int) -> None:
        self._key = (seed & 0xFFFFFFFF, seed >> 32)
        self._counter = 0

    def integers(self, shape: tuple[int, ...], low: int, high: int) -> Array:
        count = int(np.prod(shape))
        at = self._counter + np.arange(count, dtype=np.uint64)
        self._counter += count
        x, y = self._noise(at & np.uint64(0xFFFFFFFF), at >> np.uint64(32))
        wide = x << np.uint64(32) | y
        return ((wide % np.uint64(high - low)).astype(np.int64) + low).reshape(shape)

    def _noise(self, x: Array, y: Array) -> tuple[Array, Array]:
        word = np.uint64(0xFFFFFFFF)
        first, second = self._key
        keys = [np.uint64(key) for key in (first, second, first ^ second ^ 0x1BD11BDA)]
        x, y = x + keys[0] & word, y + keys[1] & word
        for group in range(5):
            for amount in self._ROTATIONS[group % 2]:
                x = x + y & word
                y = (y << np.uint64(amount) | y >> np.uint64(32 - amount)) & word ^ x
            x = x + keys[(group + 1) % 3] & word
            y = y + keys[(group + 2) % 3] + np.uint64(group + 1) & word
        return x, y


def _unchanged(function: Any = None, donate: tuple[int, ...] = ()) -> Any:
    """What `jit` means to NumPy."""
    return _unchanged if function is None else function


class JitOracle(Oracle):
    """NumPy with functions: names in `t` are arrays, names in `f` are functions."""

    def __init__(self, lines: list[Line] | None = None) -> None:
        self.draws = Draws()
        self.scope: dict[str, Any] = {
            "np": np,
            "new": new_value,
            "reshaped": reshaped,
            "draws": self.draws,
            "jit": _unchanged,
        }
        super().__init__(lines or ())

    def run(self, line: Line) -> None:
        with np.errstate(all="ignore"):
            exec(line.numpy, self.scope)
        self.names = {name: self.scope[name] for name in self.scope if re.match(r"t\d+$", name)}
        self.check()


class BodyOracle(JitOracle):
    """The oracle inside of a function: the program so far, and values for the parameters."""

    def __init__(self, lines: list[Line], parameters: dict[str, Any]) -> None:
        self._lines = list(lines)
        self._parameters = parameters
        super().__init__(lines)
        given = {
            name: value if isinstance(value, int) else np.array(value)
            for name, value in parameters.items()
        }
        self.scope.update(given)
        self.names.update({name: given[name] for name in given if name[0] == "t"})

    def again(self, body: list[Line]) -> BodyOracle:
        made = BodyOracle(self._lines, self._parameters)
        for line in body:
            made.run(line)
        return made

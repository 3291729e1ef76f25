"""What a program with jitted functions means: NumPy with functions and the same random numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fuzz.program_oracle import Array, Line, Oracle, new_value, reshaped


class Stop(Exception):  # noqa: N818 -- it is nobody's mistake
    """What a function raises when it is asked to."""


@dataclass
class Pair:
    """A tree of two parts."""

    first: Any
    second: Any


class Box:
    """An object with a tensor and a number, which functions find in their globals."""

    def __init__(self, tensor: Any, number: int) -> None:
        self.t = tensor
        self.k = number


class Descent:
    """What `nn.optim.SGD` means, with slopes that are given."""

    def __init__(self, weight: Array, lr: float, momentum: float) -> None:
        self._weight, self._lr, self._momentum = weight, lr, momentum
        self._velocity: Any = 0.0

    def step(self, slope: Array) -> None:
        self._velocity = self._momentum * self._velocity + like(slope, self._weight)
        self._weight -= self._lr * self._velocity


def like(array: Array, other: Array) -> Array:
    """A new array, if it has the shape of the other."""
    if array.shape != other.shape:
        raise ValueError("another shape")
    return np.array(array)


def counted(array: Array) -> Array:
    """The number of each element along the first axis, from 1 on."""
    rows = np.arange(1, array.shape[0] + 1).reshape(-1, *[1] * (array.ndim - 1))
    return np.broadcast_to(rows, array.shape)


class Draws:
    """The random numbers of Weft, in NumPy: Threefry of a seed and a counter."""

    _ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))

    def __init__(self) -> None:
        self.seed(0)

    def seed(self, seed: int) -> None:
        self._key = (seed & 0xFFFFFFFF, seed >> 32)
        self._counter = 0

    def integers(self, shape: tuple[int, ...], low: int, high: int) -> Array:
        x, y = self._words(int(np.prod(shape)))
        wide = x << np.uint64(32) | y
        return ((wide % np.uint64(high - low)).astype(np.int64) + low).reshape(shape)

    def unit(self, shape: tuple[int, ...]) -> Array:
        first, _ = self._words(int(np.prod(shape)))
        return ((first >> np.uint64(8)).astype(np.float64) * 2.0**-24).reshape(shape)

    def permutation(self, count: int) -> Array:
        return np.argsort(self._words(count)[0], kind="stable")

    def _words(self, count: int) -> tuple[Array, Array]:
        at = self._counter + np.arange(count, dtype=np.uint64)
        self._counter += count
        return self._noise(at & np.uint64(0xFFFFFFFF), at >> np.uint64(32))

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
    """What `jit` and `function` mean to NumPy."""
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
            "function": _unchanged,
            **{each.__name__: each for each in (Stop, Pair, Box, Descent, like, counted)},
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

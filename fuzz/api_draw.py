"""Random shapes, values and arguments for calls of the tensor API, from one seeded source."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

Shape = tuple[int, ...]
Function = Callable[..., Any]

INTS: Final = ("int8", "int16", "int32", "int64", "uint8")
FLOATS: Final = ("float32", "float64", "float16")
NUMBERS: Final = (*INTS, *FLOATS)
EVERY: Final = (*NUMBERS, "bool")
EDGES: Final = (0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0, 0.5, -2.5, 1e-3, 1e4)


class Call(NamedTuple):
    """A call in both libraries on the same arrays; `ulps` of the largest element may differ."""

    name: str
    ours: Function
    theirs: Function
    arrays: list[Any]
    text: str
    ulps: float = 0.0
    has_gradient: bool = False


class Draw:
    """One case: everything random about it is drawn here."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numpy = np.random.default_rng(seed)

    def choice(self, items: Sequence[Any]) -> Any:
        return self.random.choice(items)

    def flag(self) -> bool:
        return self.random.random() < 0.5

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return self.random.randint(low, high)

    def shape(self, least: int = 0, most: int = 4, empty: bool = True) -> Shape:
        rank = self.integer(least, most)
        sizes = (0, 1, 1, 2, 3, 4, 5) if empty and self.random.random() < 0.1 else (1, 2, 3, 4, 5)
        return tuple(self.choice(sizes) for _ in range(rank))

    def axis(self, rank: int) -> int:
        count = max(rank, 1)
        return self.integer(-count, count - 1)

    def axes(self, rank: int) -> Any:
        """None, an axis or several."""
        kind = self.integer(0, 2)
        if kind == 0 or not rank:
            return None
        if kind == 1:
            return self.axis(rank)
        chosen = self.random.sample(range(rank), self.integer(1, rank))
        return tuple(axis - rank if self.flag() else axis for axis in chosen)

    def broadcast(self, shape: Shape) -> Shape:
        """A shape that broadcasts with this one and makes it no larger."""
        kept = shape[self.integer(0, len(shape)) :] if self.flag() else shape
        return tuple(1 if self.random.random() < 0.3 else size for size in kept)

    def values(self, shape: Shape, dtype: str, kind: str = "numbers") -> Any:
        """An array; kinds are numbers, positive, unit, above, edges and distinct."""
        if dtype == "bool":
            return self.numpy.integers(0, 2, shape).astype(bool)
        if "int" in dtype:
            low = 1 if kind in ("positive", "above") else 0 if dtype == "uint8" else -9
            return self.numpy.integers(low, 10, shape).astype(dtype)
        if kind == "distinct":
            size = math.prod(shape)
            return (self.numpy.permutation(size).reshape(shape) / 4 - 1).astype(dtype)
        limits = {"positive": (0.0625, 4), "unit": (-0.9375, 0.9375), "above": (1.0625, 9)}
        low, high = limits.get(kind, (-4, 4))
        drawn = np.round(self.numpy.uniform(low, high, shape) * 64) / 64 + 1 / 128
        if kind == "edges" and drawn.size:
            hits = self.numpy.random(shape) < 0.3
            drawn = np.where(hits, self.numpy.choice(EDGES, shape), drawn)
        return drawn.astype(dtype)

    def index(self, shape: Shape, size: int, negative: bool = False) -> Any:
        return self.numpy.integers(-size if negative else 0, max(size, 1), shape)

    def distinct_index(self, count: int, size: int) -> Any:
        return self.numpy.permutation(size)[:count]


def show(*args: Any, **kwargs: Any) -> str:
    """Arguments as they are written."""
    return ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])

"""What a line of a random program is, and what it means: NumPy, with exact floats.

Integers wrap alike everywhere, and floats stay small multiples of 1/256, so that results are exact
and every order of a sum is the same. Only what is rounded by nature has a name in `r`; nothing is
computed from that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

Array = Any  # an array of NumPy, whose type says nothing more here
# Sums of 128 floats below 512, all multiples of 1/256, need 24 bits: float32 holds them exactly.
LARGEST_ARRAY: Final = 128
LARGEST_FLOAT: Final = 512.0
FINEST_FLOAT: Final = 1 / 256


class Line(NamedTuple):
    """A line of a program, for Weft and for NumPy."""

    ours: str
    numpy: str


def realizing(names: Sequence[str]) -> Line:
    """A line that computes some names, and means nothing to NumPy."""
    first, *rest = names
    return Line(f"{first}.realize({', '.join(rest)})", ", ".join(names))


class InvalidLineError(Exception):
    """A line has no exact meaning, or none that Weft shares with NumPy."""


def new_value(value: Any, dtype: str) -> Array:
    """A new array. Floats of the oracle are float64, in which the exact values are exact too."""
    return np.array(value).astype("float64" if dtype == "float32" else dtype)


def reshaped(array: Array, shape: tuple[int, ...]) -> Array:
    """A reshape that is a view, as it always is in Weft."""
    result = array.reshape(shape)
    if array.size and not np.shares_memory(array, result):
        raise InvalidLineError("a reshape that copies")
    return result


class Oracle:
    """What a program means: its names and their arrays."""

    def __init__(self, lines: Sequence[Line] = ()) -> None:
        self.names: dict[str, Any] = {}
        for line in lines:
            self.run(line)

    def run(self, line: Line) -> None:
        scope = {"np": np, "new": new_value, "reshaped": reshaped}
        with np.errstate(all="ignore"):
            exec(line.numpy, scope, self.names)
        self.check()

    def check(self) -> None:
        """Raise where an array has grown too large, or a float is not exact."""
        for name, array in self.names.items():
            if array.size > LARGEST_ARRAY or array.ndim > 4:
                raise InvalidLineError("too large")
            if array.dtype.kind == "f" and name.startswith("t") and not _is_exact(array):
                raise InvalidLineError("a float that rounds")


def _is_exact(array: Array) -> bool:
    scaled = array / FINEST_FLOAT
    return bool(np.all((np.abs(array) <= LARGEST_FLOAT) & (scaled == np.floor(scaled))))

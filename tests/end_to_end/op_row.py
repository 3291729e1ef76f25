"""A row of the table of ops: how to call an op, what to call it on, what it must equal.

Unless a row says otherwise PyTorch is called in the same way and gives the expected value. An
input is named by its kind of values (`values_of`) and has one shape for each variant of the row.
"""

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

Shape = tuple[int, ...]
Function = Callable[..., Any]

INTS = ("int8", "int16", "int32", "int64", "uint8")
FLOATS = ("float32", "float64", "float16", "bfloat16")
NUMBERS = (*INTS, *FLOATS)
EVERY = ("bool", *NUMBERS)
PRECISE = ("float32", "float64")

# A function that the compiler makes of other ops has 2 ulp (docs of the ops); a formula of several
# has the sum of what its parts have.
FUNCTION = 2.0
# A sum of n terms in any order has n roundings, of numbers that the largest result bounds.
SUM = 16.0


class Row(NamedTuple):
    """An op on inputs; errors are counted in ulp, 0 is equality of every bit but those of NaN."""

    name: str
    ours: Function
    kinds: tuple[str, ...] = ()
    shapes: tuple[tuple[Shape, ...], ...] = ((),)
    theirs: Function | None = None
    dtypes: tuple[str, ...] = ("float32",)
    has_gradient: bool = False
    ulps: float = 0.0
    # Whether the error is one of the largest element: sums cancel, so that a small result may
    # have the error of large terms.
    of_largest: bool = False
    # Whether a zero has the sign of PyTorch's. Which of 0.0 and -0.0 is the greater, and whether
    # a sum starts from 0.0, no definition of these ops says.
    has_zero_sign: bool = True
    numpy: Function | None = None


def nn(name: str, **kwargs: Any) -> Function:
    """A function of torch.nn.functional."""
    return lambda *inputs: getattr(import_module("torch.nn.functional"), name)(*inputs, **kwargs)


def pt(name: str, **kwargs: Any) -> Function:
    """A function of torch."""
    return lambda *inputs: getattr(import_module("torch"), name)(*inputs, **kwargs)


def method(name: str, *args: Any, **kwargs: Any) -> Function:
    return lambda x, *others: getattr(x, name)(*others, *args, **kwargs)


def put(key: Any) -> Function:
    """A write to a copy."""

    def function(x: Any, value: Any) -> Any:
        x = x.clone()
        x[key] = value
        return x

    return function


def in_place(name: str) -> Function:
    def function(x: Any, *others: Any) -> Any:
        x = x.clone()
        return getattr(x, name)(*others)

    return function


EDGES = (0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0, 0.5, -2.5, 3.25, 1e-3, -7.0, 1e-40)


def values_of(kind: str, dtype: str, shape: Shape, seed: int) -> Any:
    """Values of a kind; those of floats are exact in every float dtype unless they are edges."""
    source = np.random.default_rng(seed)
    size = math.prod(shape)
    if kind.startswith("below "):
        return source.integers(0, int(kind.split()[1]), shape).astype(np.int64)
    if kind == "bools" or dtype == "bool":
        return source.integers(0, 2, shape).astype(bool)
    if not dtype.endswith(("16", "32", "64")) or "int" in dtype:
        return _integers(kind, dtype, shape, source)
    name = "float32" if dtype == "bfloat16" else dtype
    if kind == "edges":
        drawn = np.round(source.normal(0, 3, max(size - len(EDGES), 0)) * 8) / 8
        return np.array([*EDGES, *drawn][:size]).reshape(shape).astype(name)
    # Numbers between eighths are on no kink of a function, and all are different.
    drawn = source.permutation(np.arange(-size, size))[:size] / 8 + 1 / 16
    limits = {"positive": (0.0625, 4), "unit": (-0.9375, 0.9375), "above": (1.0625, 9)}
    if kind in limits:
        low, high = limits[kind]
        drawn = np.round((low + (high - low) * source.random(size)) * 64) / 64
    return drawn.reshape(shape).astype(name)


def _integers(kind: str, dtype: str, shape: Shape, source: Any) -> Any:
    limits = np.iinfo(dtype)
    low = 1 if kind in ("positive", "above") else 0 if limits.min == 0 else -9
    drawn = source.integers(low, 10, shape)
    if kind == "edges" and drawn.size > 4:
        drawn.reshape(-1)[:4] = [limits.min, limits.max, 0, 1]
    return drawn.astype(dtype)


# One matrix of odd sizes.
SMALL = (((3, 5),),)

"""What `fuzz.onnx_graphs` draws: operators over a pool of values, in the form of each opset.

A drawing adds nodes, inputs and weights to the pool. What onnxruntime then refuses is taken back,
so a drawing may ask for too much, but not for what no file should say.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

MICROSOFT = "com.microsoft"
NEWEST = 99


class Refused(Exception):  # noqa: N818 -- nothing is wrong
    """A drawing that has nothing to work on."""


class Pool:
    """The values of a model that is being made, and what is written of it so far."""

    def __init__(self, rng: random.Random, opset: int) -> None:
        self.rng, self.opset = rng, opset
        self.numbers = np.random.default_rng(rng.randrange(1 << 30))
        self.nodes: list[Any] = []
        self.infos: list[Any] = []
        self.weights: list[Any] = []
        self.outputs: list[str] = []
        self.feeds: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        self._count = 0

    def mark(self) -> tuple[int, ...]:
        return (len(self.nodes), len(self.infos), len(self.weights), len(self.outputs))

    def reset(self, mark: tuple[int, ...]) -> None:
        """Forget what was added since a mark."""
        lost = {each.name for each in (*self.infos[mark[1] :], *self.weights[mark[2] :])}
        lost |= set(self.outputs[mark[3] :])
        for held, length in zip(
            (self.nodes, self.infos, self.weights, self.outputs), mark, strict=True
        ):
            del held[length:]
        for name in lost:
            self.feeds.pop(name, None)
            self.values.pop(name, None)

    def settle(self, results: list[Any]) -> None:
        """Take the values of all outputs."""
        self.results = dict(zip(self.outputs, results, strict=True))
        self.values.update(self.results)

    def fresh(self, prefix: str = "v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def node(self, op: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> list[str]:
        from onnx import helper

        names = [self.fresh() for _ in range(outputs)]
        domain = attributes.pop("domain", "")
        kept = {name: value for name, value in attributes.items() if value is not None}
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        title = f"{op}_{self._count}"
        self.nodes.append(helper.make_node(op, inputs, names, name=title, domain=domain, **kept))
        self.outputs += names
        return names

    def input(self, array: Any) -> str:
        from onnx import helper, numpy_helper

        array = np.asarray(array)
        name = self.fresh("x")
        kind = numpy_helper.from_array(array).data_type
        sizes: list[Any] = list(array.shape)
        if self.rng.random() < 0.3:  # a size of any length
            sizes = [f"n{size}" if self.rng.random() < 0.5 else size for size in sizes]
        self.infos.append(helper.make_tensor_value_info(name, kind, sizes))
        self.feeds[name] = self.values[name] = array
        return name

    def weight(self, array: Any) -> str:
        """A constant."""
        from onnx import numpy_helper

        array = np.asarray(array)
        name = self.fresh("w")
        proto = numpy_helper.from_array(array, name)
        self.weights.append(proto)
        self.values[name] = array
        return name

    def given(self, array: Any) -> str:
        return self.weight(array) if self.rng.random() < 0.5 else self.input(array)

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        rank = self.rng.choice((0, 1, 2, 2, 3, 3, 4)) if rank is None else rank
        return tuple(self.rng.choice((1, 2, 3, 4, 5)) for _ in range(rank))

    def drawn(self, dtype: str, shape: tuple[int, ...]) -> Any:
        if dtype.startswith("float"):
            return (self.numbers.standard_normal(shape) * self.rng.choice((1, 1, 3))).astype(dtype)
        if dtype == "bool":
            return self.numbers.random(shape) < 0.5
        low = 0 if dtype.startswith("uint") else -7
        return self.numbers.integers(low, 8, shape).astype(dtype)

    def old(self, wanted: Callable[[Any], bool]) -> str | None:
        names = [
            name
            for name, value in self.values.items()
            if isinstance(value, np.ndarray) and value.dtype != object and wanted(value)
        ]
        return self.rng.choice(names) if names and self.rng.random() < 0.6 else None

    def of(self, *dtypes: str, rank: int | None = None, least: int = 0) -> str:
        """A value of one of the dtypes, old or new."""
        found = self.old(
            lambda value: (
                value.dtype.name in dtypes
                and (rank is None or value.ndim == rank)
                and value.ndim >= least
                and value.size <= 400
            )
        )
        if found is not None:
            return found
        shape = self.shape(rank)
        while len(shape) < least:
            shape = (*shape, self.rng.randint(1, 4))
        return self.given(self.drawn(self.rng.choice(dtypes), shape))

    def floats(self, rank: int | None = None, least: int = 0) -> str:
        return self.of("float32", rank=rank, least=least)

    def finite(self, rank: int | None = None, least: int = 0) -> str:
        """Floats without NaN, which some operators of onnxruntime lose."""
        name = self.floats(rank, least)
        if not np.isfinite(self.values[name]).all():
            raise Refused
        return name

    def beside(self, name: str) -> str:
        """A value that broadcasts with another one."""
        like = self.values[name]
        found = self.old(lambda value: value.dtype == like.dtype and _fits(value, like))
        if found is not None:
            return found
        shape = [size if self.rng.random() < 0.7 else 1 for size in like.shape]
        cut = self.rng.randint(0, len(shape)) if self.rng.random() < 0.3 else 0
        return self.given(self.drawn(like.dtype.name, tuple(shape[cut:])))

    def axis(self, name: str) -> int:
        rank = self.values[name].ndim
        if not rank:
            raise Refused
        axis = self.rng.randrange(rank)
        return axis - rank if self.rng.random() < 0.4 and self.opset >= 11 else axis

    def ints(self, numbers: Any) -> str:
        return self.weight(np.asarray(numbers, np.int64).reshape(-1))


def _fits(value: Any, like: Any) -> bool:
    try:
        return math.prod(np.broadcast_shapes(value.shape, like.shape)) <= 600
    except ValueError:
        return False


class Row(NamedTuple):
    """How an operator is drawn, and the opsets it is of."""

    draw: Callable[[Pool], Any]
    first: int
    last: int


OPERATORS: dict[str, Row] = {}


def draws(*names: str, first: int = 7, last: int = NEWEST) -> Callable[[Any], Any]:
    def entered(function: Callable[[Pool, str], Any]) -> Any:
        for name in names:
            OPERATORS[f"{name} {function.__name__}"] = Row(
                lambda pool, name=name: function(pool, name), first, last
            )
        return function

    return entered

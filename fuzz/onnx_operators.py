"""What `onnx_graphs.py` draws: operators over a pool of values, in the form of each opset.

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


def _draws(*names: str, first: int = 7, last: int = NEWEST) -> Callable[[Any], Any]:
    def entered(function: Callable[[Pool, str], Any]) -> Any:
        for name in names:
            OPERATORS[f"{name} {function.__name__}"] = Row(
                lambda pool, name=name: function(pool, name), first, last
            )
        return function

    return entered


_UNARY = [
    "Abs",
    "Neg",
    "Floor",
    "Ceil",
    "Sqrt",
    "Exp",
    "Log",
    "Sigmoid",
    "Tanh",
    "Relu",
    "Reciprocal",
    "Softplus",
    "Softsign",
    "Sin",
    "Cos",
    "Tan",
    "Asin",
    "Acos",
    "Atan",
    "Identity",
    "Elu",
    "Selu",
    "LeakyRelu",
    "HardSigmoid",
]
_LATER = {
    **dict.fromkeys(["Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Erf", "Sign"], 9),
    **dict.fromkeys(["Round"], 11),
    **dict.fromkeys(["HardSwish"], 14),
    **dict.fromkeys(["Celu"], 12),
    **dict.fromkeys(["Mish"], 18),
    **dict.fromkeys(["Gelu"], 20),
    **dict.fromkeys(["ThresholdedRelu"], 10),
}


def _unary(pool: Pool, name: str) -> None:
    alpha = pool.rng.choice((None, 0.3, 1.5))
    takes = name in ("Elu", "LeakyRelu", "HardSigmoid", "ThresholdedRelu", "Celu")
    pool.node(name, [pool.floats()], alpha=alpha if takes else None)


for _name in _UNARY:
    _draws(_name)(_unary)
for _name, _first in _LATER.items():
    _draws(_name, first=_first)(_unary)


@_draws("Add", "Sub", "Mul", "Div")
def _arithmetic(pool: Pool, name: str) -> None:
    left = pool.of("float32", "float32", "int32", "int64", "float64", "float16")
    right = pool.beside(left)
    if name == "Div" and (pool.values[right] == 0).any():
        raise Refused
    pool.node(name, [left, right] if pool.rng.random() < 0.5 or name == "Div" else [right, left])


@_draws("Pow", first=12)
def _power(pool: Pool, name: str) -> None:
    base = pool.node("Abs", [pool.floats()])[0]
    pool.node(name, [base, pool.given(pool.drawn(pool.rng.choice(("float32", "int64")), ()))])


@_draws("Mod", first=10)
def _mod(pool: Pool, name: str) -> None:
    is_float = pool.rng.random() < 0.4
    left = pool.floats() if is_float else pool.of("int32", "int64")
    shape = pool.values[left].shape
    right = pool.drawn(pool.values[left].dtype.name, shape)
    right = np.where(right == 0, 3, right).astype(right.dtype)
    pool.node(name, [left, pool.given(right)], fmod=1 if is_float else pool.rng.choice((0, 1)))


@_draws("Min", "Max", "Sum", "Mean", first=8)
def _variadic(pool: Pool, name: str) -> None:
    left = pool.floats() if name in ("Sum", "Mean") or pool.opset < 12 else pool.of(
        "float32", "int32", "int64", "float64")  # fmt: skip
    count = pool.rng.randint(0, 2)
    pool.node(name, [left, *(pool.beside(left) for _ in range(count))])


@_draws("Less", "Greater", "Equal")
def _compared(pool: Pool, name: str) -> None:
    kinds = ("float32", "int32", "int64") if pool.opset >= 11 else ("int32", "int64")
    left = pool.of(*kinds) if name == "Equal" or pool.opset >= 9 else pool.floats()
    pool.node(name, [left, pool.beside(left)])


@_draws("LessOrEqual", "GreaterOrEqual", first=12)
def _compared_or_equal(pool: Pool, name: str) -> None:
    left = pool.of("float32", "int32", "int64")
    pool.node(name, [left, pool.beside(left)])


@_draws("And", "Or", "Xor")
def _logic(pool: Pool, name: str) -> None:
    left = pool.of("bool")
    pool.node(name, [left, pool.beside(left)])


@_draws("BitwiseAnd", "BitwiseOr", "BitwiseXor", first=18)
def _bitwise(pool: Pool, name: str) -> None:
    left = pool.of("int32", "int64", "int8", "uint8", "uint16")
    pool.node(name, [left, pool.beside(left)])


@_draws("BitShift", first=11)
def _shift(pool: Pool, name: str) -> None:
    left = pool.drawn(pool.rng.choice(("uint8", "uint32", "uint64")), pool.shape())
    right = pool.numbers.integers(0, 7, left.shape).astype(left.dtype)
    direction = pool.rng.choice(("LEFT", "RIGHT"))
    pool.node(name, [pool.given(left), pool.given(right)], direction=direction)


@_draws("Not", "Where", "IsNaN", first=9)
def _logical(pool: Pool, name: str) -> None:
    if name == "IsNaN":
        pool.node(name, [pool.floats()])
        return
    mask = pool.of("bool")
    if name == "Not":
        pool.node(name, [mask])
        return
    shape = pool.values[mask].shape
    kind = pool.rng.choice(("float32", "int64", "int32"))
    left = pool.given(pool.drawn(kind, tuple(pool.rng.choice((1, size)) for size in shape)))
    pool.node(name, [mask, left, pool.beside(left)])


_REDUCTIONS = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]


@_draws(*(f"Reduce{each}" for each in _REDUCTIONS))
def _reduced(pool: Pool, name: str) -> None:
    from_input = 13 if name == "ReduceSum" else 18
    value = pool.floats(least=1)
    rank = pool.values[value].ndim
    if name == "ReduceLogSum":
        value = pool.node("Exp", [value])[0]
    axes: list[int] | None = sorted(pool.rng.sample(range(rank), pool.rng.randint(1, rank)))
    if pool.opset >= 11 and pool.rng.random() < 0.3:
        axes = [axis - rank for axis in axes]
    axes = None if pool.rng.random() < 0.25 else axes
    keeps = pool.rng.choice((None, 0, 1))
    if pool.opset < from_input:
        pool.node(name, [value], axes=axes, keepdims=keeps)
    else:
        noop = pool.rng.choice((None, 0, 1))
        pool.node(
            name,
            [value, "" if axes is None else pool.ints(axes)],
            keepdims=keeps,
            noop_with_empty_axes=noop,
        )


@_draws("ArgMax", "ArgMin")
def _arg_extreme(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int32", least=1)
    last = pool.rng.choice((None, 0, 1)) if pool.opset >= 12 else None
    pool.node(
        name, [value], axis=pool.axis(value), keepdims=pool.rng.choice((None, 0, 1)),
        select_last_index=last,
    )  # fmt: skip


@_draws("Softmax", "LogSoftmax", "Hardmax")
def _softmax(pool: Pool, name: str) -> None:
    value = pool.floats(least=1)
    axis = None if pool.rng.random() < 0.3 else pool.axis(value)
    if axis is None and pool.opset < 13 and pool.values[value].ndim < 2:
        axis = 0
    pool.node(name, [value], axis=axis)


@_draws("CumSum", first=11)
def _cumulative(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int32", "int64", least=1)
    axis = pool.weight(np.array(pool.axis(value), np.int64))
    flags = {key: pool.rng.choice((None, 0, 1)) for key in ("exclusive", "reverse")}
    pool.node(name, [value, axis], **flags)


@_draws("Transpose")
def _transpose(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", "bool", "float64", "uint8")
    perm = list(range(pool.values[value].ndim))
    pool.rng.shuffle(perm)
    pool.node(name, [value], perm=None if pool.rng.random() < 0.2 else perm)


@_draws("Reshape")
def _reshape(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", "float64", least=1)
    shape = list(pool.values[value].shape)
    kind = pool.rng.randrange(4)
    wanted = [[-1], [0, -1], shape[::-1], [1, *shape, 1]][kind]
    pool.node(name, [value, pool.ints(wanted)])


@_draws("Flatten")
def _flatten(pool: Pool, name: str) -> None:
    value = pool.floats(least=1)
    pool.node(name, [value], axis=pool.rng.choice((None, pool.axis(value))))


@_draws("Squeeze", "Unsqueeze")
def _squeeze(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64")
    shape = pool.values[value].shape
    if name == "Squeeze":
        ones = [axis for axis, size in enumerate(shape) if size == 1]
        axes = pool.rng.sample(ones, pool.rng.randint(1, len(ones))) if ones else None
        axes = None if pool.rng.random() < 0.3 else axes
    else:
        count = pool.rng.randint(1, 2)
        axes = sorted(pool.rng.sample(range(len(shape) + count), count))
    if pool.opset >= 13:
        pool.node(name, [value, "" if axes is None else pool.ints(axes)])
    else:
        pool.node(name, [value], axes=axes)


@_draws("Concat")
def _concat(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    axis = pool.axis(value)
    shape = list(pool.values[value].shape)
    shape[axis] = pool.rng.randint(1, 3)
    other = pool.given(pool.drawn(pool.values[value].dtype.name, tuple(shape)))
    pool.node(name, pool.rng.sample([value, other, value], 3), axis=axis)


@_draws("Split")
def _split(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    axis = pool.axis(value)
    size = pool.values[value].shape[axis]
    if size < 2:
        raise Refused
    first = pool.rng.randint(1, size - 1)
    is_even = pool.rng.random() < 0.4 and (size % 2 == 0 or pool.opset >= 18)
    sizes = None if is_even else [first, size - first]
    if pool.opset < 13:
        pool.node(name, [value], 2, axis=axis, split=sizes)
        return
    count = 2 if is_even and pool.opset >= 18 else None
    pool.node(
        name, [value, "" if sizes is None else pool.ints(sizes)], 2, axis=axis, num_outputs=count
    )


@_draws("Slice")
def _slice(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    rank = pool.values[value].ndim
    axes = sorted(pool.rng.sample(range(rank), pool.rng.randint(1, rank)))
    edges = (-100, -3, -2, -1, 0, 1, 2, 3, 100, 2**31 - 1)
    starts = [pool.rng.choice(edges[:7]) for _ in axes]
    ends = [pool.rng.choice(edges) for _ in axes]
    if pool.opset < 10:
        pool.node(name, [value], starts=starts, ends=ends, axes=axes)
        return
    steps = [pool.rng.choice((1, 1, 2, -1, -2)) for _ in axes]
    # onnxruntime takes the greatest end for the least one where it goes backward.
    ends = [min(end, 100) if step < 0 else end for end, step in zip(ends, steps, strict=True)]
    listed = [pool.ints(each) for each in (starts, ends, axes, steps)]
    if pool.rng.random() < 0.3:
        listed[3] = ""
    pool.node(name, [value, *listed])


@_draws("Tile")
def _tile(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    repeats = [pool.rng.choice((1, 1, 2, 3)) for _ in pool.values[value].shape]
    pool.node(name, [value, pool.ints(repeats)])


@_draws("Expand", first=8)
def _expand(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", "bool")
    shape = [size if size > 1 else pool.rng.randint(1, 3) for size in pool.values[value].shape]
    shape = [1 if pool.rng.random() < 0.2 else size for size in shape]
    pool.node(name, [value, pool.ints([2, *shape] if pool.rng.random() < 0.4 else shape)])


@_draws("Pad")
def _pad(pool: Pool, name: str) -> None:
    value = pool.floats(least=1)
    shape = pool.values[value].shape
    mode = pool.rng.choice((None, "constant", "edge", "reflect"))
    least = -1 if mode in (None, "constant") else 0
    pads = [pool.rng.randint(least, min(2, size - 1)) for size in (*shape, *shape)]
    if pool.opset < 11:
        pool.node(name, [value], mode=mode, pads=pads, value=pool.rng.choice((None, 1.5)))
        return
    filler = pool.weight(np.float32(2.5)) if pool.rng.random() < 0.5 else ""
    pool.node(name, [value, pool.ints(pads), filler], mode=mode)


@_draws("Gather")
def _gather(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    axis = pool.axis(value)
    size = pool.values[value].shape[axis]
    low = -size if pool.opset >= 11 else 0
    index = pool.numbers.integers(low, size, pool.shape(pool.rng.randint(0, 2)))
    pool.node(name, [value, pool.given(index.astype(np.int64))], axis=axis)


@_draws("GatherElements", "ScatterElements", first=11)
def _elements(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    axis = pool.axis(value)
    shape = list(pool.values[value].shape)
    size = shape[axis]
    shape[axis] = pool.rng.randint(1, size)
    index = np.argsort(pool.numbers.random((*shape[:axis], size, *shape[axis:][1:])), axis)
    index = np.take(index, range(shape[axis]), axis).astype(np.int64)
    if name == "GatherElements":
        pool.node(name, [value, pool.given(index)], axis=axis)
        return
    updates = pool.drawn(pool.values[value].dtype.name, index.shape)
    how = pool.rng.choice((None, "add", "mul")) if pool.opset >= 16 else None
    pool.node(name, [value, pool.given(index), pool.given(updates)], axis=axis, reduction=how)


@_draws("GatherND", "ScatterND", first=12)
def _nd(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", least=1)
    shape = pool.values[value].shape
    depth = pool.rng.randint(1, len(shape))
    count = pool.rng.randint(1, 3)
    columns = [pool.numbers.integers(0, size, count) for size in shape[:depth]]
    index = np.stack(columns, -1).astype(np.int64)
    if name == "GatherND":
        pool.node(name, [value, pool.given(index)])
        return
    index = np.unique(index, axis=0)
    updates = pool.drawn(pool.values[value].dtype.name, (len(index), *shape[depth:]))
    how = pool.rng.choice((None, "add")) if pool.opset >= 16 else None
    pool.node(name, [value, pool.given(index), pool.given(updates)], reduction=how)


@_draws("OneHot", first=9)
def _one_hot(pool: Pool, name: str) -> None:
    index = pool.given(pool.numbers.integers(-2, 4, pool.shape(pool.rng.randint(1, 2))))
    pair = pool.weight(np.array([0.5, 2.0], np.float32))
    depth = pool.weight(np.array(pool.rng.randint(2, 5), np.int64))
    pool.node(name, [index, depth, pair], axis=pool.rng.choice((None, 0, -1)))


@_draws("TopK")
def _topk(pool: Pool, name: str) -> None:
    value = pool.floats(least=1)
    axis = pool.axis(value)
    count = pool.rng.randint(1, pool.values[value].shape[axis])
    if pool.opset < 10:
        pool.node(name, [value], 2, axis=axis, k=count)
        return
    later = {"largest": pool.rng.choice((None, 0, 1))} if pool.opset >= 11 else {}
    pool.node(name, [value, pool.ints([count])], 2, axis=axis, **later)


@_draws("MatMul")
def _matmul(pool: Pool, name: str) -> None:
    left = pool.of("float32", "float32", "float64", least=1)
    value = pool.values[left]
    if pool.rng.random() < 0.2:
        shape: tuple[int, ...] = (value.shape[-1],)
    else:
        batch = value.shape[:-2] if pool.rng.random() < 0.5 else ()
        shape = (*batch, value.shape[-1], pool.rng.randint(1, 4))
    pool.node(name, [left, pool.given(pool.drawn(value.dtype.name, shape))])


@_draws("Gemm")
def _gemm(pool: Pool, name: str) -> None:
    left = pool.floats(rank=2)
    turned, other = pool.rng.randint(0, 1), pool.rng.randint(0, 1)
    rows, depth = pool.values[left].shape[:: -1 if turned else 1]
    columns = pool.rng.randint(1, 4)
    right = pool.drawn("float32", (columns, depth) if other else (depth, columns))
    bias = pool.drawn("float32", pool.rng.choice(((columns,), (rows, 1), (rows, columns), ())))
    inputs = [left, pool.given(right)]
    if pool.opset < 11 or pool.rng.random() < 0.7:
        inputs.append(pool.given(bias))
    pool.node(
        name, inputs, transA=turned, transB=other, alpha=pool.rng.choice((None, 0.5)),
        beta=pool.rng.choice((None, 2.0)),
    )  # fmt: skip


@_draws("Einsum", first=12)
def _einsum(pool: Pool, name: str) -> None:
    sizes = {letter: pool.rng.randint(1, 4) for letter in "abcde"}
    equation = pool.rng.choice(
        ("ab,bc->ac", "abc,acd->abd", "ab,cb", "abc->cb", "aab->b", "ab,ab->", "...a,ab->...b",
         "a b , b c -> c a", "abc,dc->bda", "ii->i")
    )  # fmt: skip
    sizes["i"] = 3
    left, _, _ = equation.partition("->")
    terms = [term.replace(" ", "").replace("...", "de") for term in left.split(",")]
    values = [pool.given(pool.drawn("float32", tuple(sizes[c] for c in term))) for term in terms]
    pool.node(name, values, equation=equation)


def _window(pool: Pool, rank: int, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Kernel, strides, gaps and edges that fit."""
    kernel = [pool.rng.randint(1, min(3, size)) for size in sizes]
    found: dict[str, Any] = {"kernel_shape": kernel}
    if pool.rng.random() < 0.6:
        found["strides"] = [pool.rng.randint(1, 2) for _ in range(rank)]
    if pool.rng.random() < 0.5:
        found["pads"] = [pool.rng.randint(0, max(0, size - 1)) for size in (*kernel, *kernel)]
    elif pool.rng.random() < 0.4:
        found["auto_pad"] = pool.rng.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    return found


@_draws("Conv", "ConvTranspose")
def _conv(pool: Pool, name: str) -> None:
    rank = pool.rng.choice((1, 2, 2, 3))
    value = pool.old(lambda v: v.dtype == np.float32 and v.ndim == rank + 2 and v.size < 300)
    if value is None:
        shape = (pool.rng.randint(1, 2), pool.rng.choice((1, 2, 4)))
        shape = (*shape, *(pool.rng.randint(3, 6) for _ in range(rank)))  # type: ignore[assignment]
        value = pool.given(pool.drawn("float32", shape))
    inner, *sizes = pool.values[value].shape[1:]
    window = _window(pool, rank, tuple(sizes))
    groups = pool.rng.choice([n for n in (1, 2, 4) if inner % n == 0])
    width = pool.rng.choice((1, 2, 3)) * groups
    if pool.rng.random() < 0.3 and "auto_pad" not in window:
        window["dilations"] = [pool.rng.randint(1, 2) for _ in range(rank)]
    kernel = window["kernel_shape"] if pool.rng.random() < 0.7 else window.pop("kernel_shape")
    if name == "ConvTranspose":
        window.pop("auto_pad", None)  # onnxruntime has shapes that the specification does not
    if name == "Conv":
        shape = (width, inner // groups, *kernel)
    else:
        shape = (inner, width // groups, *kernel)
        if pool.rng.random() < 0.4 and "strides" in window and "auto_pad" not in window:
            window["output_padding"] = [pool.rng.randint(0, s - 1) for s in window["strides"]]
    inputs = [value, pool.given(pool.drawn("float32", shape))]
    if pool.rng.random() < 0.5:
        inputs.append(pool.given(pool.drawn("float32", (width,))))
    pool.node(name, inputs, group=groups, **window)


@_draws("MaxPool", "AveragePool", "LpPool")
def _pool_windows(pool: Pool, name: str) -> None:
    rank = pool.rng.choice((1, 2, 2, 3))
    value = pool.finite(rank=rank + 2)
    sizes = pool.values[value].shape[2:]
    window = _window(pool, rank, sizes)
    if name == "AveragePool":
        window["count_include_pad"] = pool.rng.choice((None, 0, 1))
    if name != "LpPool" and pool.opset >= 10:
        window["ceil_mode"] = pool.rng.choice((None, 0, 1))
    later = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[name]
    is_roomy = all(
        2 * k - 1 <= size for k, size in zip(window["kernel_shape"], sizes, strict=True)
    )
    if pool.opset >= later and pool.rng.random() < 0.3 and is_roomy and "auto_pad" not in window:
        window["dilations"] = [pool.rng.randint(1, 2) for _ in range(rank)]
    count = 2 if name == "MaxPool" and pool.rng.random() < 0.3 and pool.opset >= 8 else 1
    pool.node(name, [value], count, **window)


@_draws(
    "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "DepthToSpace", "SpaceToDepth", "LRN"
)
def _images(pool: Pool, name: str) -> None:
    shape = (pool.rng.randint(1, 2), pool.rng.choice((4, 8)), 4, 2)
    value = pool.given(pool.drawn("float32", shape))
    extra: dict[str, Any] = {}
    if name in ("DepthToSpace", "SpaceToDepth"):
        extra["blocksize"] = 2
        if name == "DepthToSpace" and pool.opset >= 11:
            extra["mode"] = pool.rng.choice(("DCR", "CRD"))
    if name == "LRN":
        extra["size"] = pool.rng.choice((1, 3))
    pool.node(name, [value], **extra)


@_draws("BatchNormalization", "InstanceNormalization")
def _norms(pool: Pool, name: str) -> None:
    value = pool.floats(rank=pool.rng.choice((3, 4)))
    width = pool.values[value].shape[1]
    rows = [pool.given(pool.drawn("float32", (width,))) for _ in range(3)]
    epsilon = pool.rng.choice((None, 1e-3))
    if name == "InstanceNormalization":
        pool.node(name, [value, *rows[:2]], epsilon=epsilon)
        return
    spread = pool.given(np.abs(pool.drawn("float32", (width,))) + np.float32(0.5))
    pool.node(name, [value, *rows, spread], epsilon=epsilon)


@_draws("LayerNormalization", first=17)
def _layer_norm(pool: Pool, name: str) -> None:
    value = pool.floats(least=2)
    shape = pool.values[value].shape
    axis = pool.rng.randrange(1, len(shape))
    rows = [pool.given(pool.drawn("float32", shape[axis:])) for _ in range(2)]
    pool.node(name, [value, *rows[: pool.rng.randint(1, 2)]], axis=axis - len(shape))


@_draws("GroupNormalization", first=21)
def _group_norm(pool: Pool, name: str) -> None:
    value = pool.given(pool.drawn("float32", (2, 4, *pool.shape(pool.rng.randint(1, 2)))))
    rows = [pool.given(pool.drawn("float32", (4,))) for _ in range(2)]
    pool.node(name, [value, *rows], num_groups=pool.rng.choice((1, 2, 4)))


@_draws("RMSNormalization", first=23)
def _rms_norm(pool: Pool, name: str) -> None:
    value = pool.floats(least=1)
    shape = pool.values[value].shape
    pool.node(name, [value, pool.given(pool.drawn("float32", shape[-1:]))])


@_draws("LpNormalization", "MeanVarianceNormalization", first=9)
def _other_norms(pool: Pool, name: str) -> None:
    if name == "LpNormalization":
        value = pool.floats(least=1)
        pool.node(name, [value], axis=pool.axis(value), p=pool.rng.choice((1, 2)))
    else:
        pool.node(name, [pool.floats(rank=4)])


@_draws("Cast")
def _cast(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int32", "int64", "bool", "float64", "uint8", "float16")
    array = pool.values[value]
    is_small = array.dtype.kind == "f" and not np.all(np.abs(array) < 100)
    kinds = (1, 11) if is_small else (1, 6, 7, 9, 10, 11)
    pool.node(name, [value], to=pool.rng.choice(kinds))


@_draws("Clip")
def _clip(pool: Pool, name: str) -> None:
    low, high = pool.rng.choice(((-1.0, 1.0), (0.0, 6.0), (None, 0.5), (-0.5, None)))
    if pool.opset < 11:
        pool.node(name, [pool.floats()], min=low, max=high)
        return
    kind = "float32" if pool.opset < 12 else pool.rng.choice(("float32", "int32", "float64"))
    ends = ["" if end is None else pool.given(np.array(end).astype(kind)) for end in (low, high)]
    pool.node(name, [pool.of(kind), *ends])


@_draws("PRelu")
def _prelu(pool: Pool, name: str) -> None:
    value = pool.floats()
    shape = pool.values[value].shape
    slope = pool.drawn("float32", tuple(pool.rng.choice((1, size)) for size in shape))
    pool.node(name, [value, pool.given(slope)])


@_draws("Shape", "Size")
def _shape(pool: Pool, name: str) -> None:
    pool.node(name, [pool.floats()])


@_draws("ConstantOfShape", "EyeLike", first=9)
def _made(pool: Pool, name: str) -> None:
    from onnx import helper

    if name == "EyeLike":
        pool.node(name, [pool.floats(rank=2)], k=pool.rng.choice((None, -1, 1)))
        return
    value = helper.make_tensor("value", 7, [1], [3]) if pool.rng.random() < 0.5 else None
    pool.node(name, [pool.node("Shape", [pool.floats()])[0]], value=value)


@_draws("Range", first=11)
def _range(pool: Pool, name: str) -> None:
    ends = [np.array(value, np.int64) for value in (pool.rng.randint(-3, 3), 5, 2)]
    pool.node(name, [pool.given(end) for end in ends])


@_draws("NonZero", "Compress", first=9)
def _data_sized(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int64", "bool", least=1)
    if name == "NonZero":
        pool.node(name, [value])
        return
    size = pool.values[value].shape[0]
    pool.node(name, [value, pool.given(pool.drawn("bool", (size,)))], axis=0)


@_draws("Unique", first=11)
def _unique(pool: Pool, name: str) -> None:
    value = pool.of("int64", "float32", rank=1)
    pool.node(name, [value], 4, sorted=1)


@_draws("Trilu", first=14)
def _trilu(pool: Pool, name: str) -> None:
    value = pool.floats(least=2)
    offset = pool.weight(np.array(pool.rng.randint(-1, 1), np.int64))
    pool.node(name, [value, offset][: pool.rng.randint(1, 2)], upper=pool.rng.choice((None, 0)))


@_draws("ReverseSequence", first=10)
def _reverse_sequence(pool: Pool, name: str) -> None:
    value = pool.given(pool.drawn("float32", (4, 3, 2)))
    pool.node(name, [value, pool.given(np.array([4, 1, 2], np.int64))], time_axis=0, batch_axis=1)


@_draws("Upsample", last=9)
def _upsample(pool: Pool, name: str) -> None:
    value = pool.given(pool.drawn("float32", (1, 2, 3, 4)))
    scales = [1.0, 1.0, pool.rng.choice((1.0, 2.0)), pool.rng.choice((2.0, 3.0))]
    if pool.opset < 9:
        pool.node(name, [value], mode="nearest", scales=scales)
    else:
        given = pool.weight(np.array(scales, np.float32))
        pool.node(name, [value, given], mode=pool.rng.choice(("nearest", "linear")))


@_draws("Resize", first=10)
def _resize(pool: Pool, name: str) -> None:
    value = pool.given(pool.drawn("float32", (1, 2, 4, 5)))
    scales = np.array(
        [1, 1, *(pool.rng.choice((0.6, 1.0, 1.5, 2.0)) for _ in range(2))], np.float32
    )
    if pool.opset == 10:
        pool.node(name, [value, pool.weight(scales)], mode=pool.rng.choice(("nearest", "linear")))
        return
    modes = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    found: dict[str, Any] = {
        "mode": pool.rng.choice(("nearest", "linear", "cubic")),
        "coordinate_transformation_mode": pool.rng.choice(modes),
    }
    if found["mode"] == "nearest":
        rounds = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        found["nearest_mode"] = pool.rng.choice(rounds)
    if found["mode"] == "cubic":
        found["cubic_coeff_a"] = pool.rng.choice((None, -0.5))
    roi = pool.weight(np.zeros(0, np.float32)) if pool.opset < 13 else ""
    if pool.rng.random() < 0.5:
        pool.node(name, [value, roi, pool.weight(scales)], **found)
    else:
        empty = pool.weight(np.zeros(0, np.float32)) if pool.opset < 13 else ""
        sizes = pool.ints([1, 2, pool.rng.randint(1, 7), pool.rng.randint(1, 7)])
        pool.node(name, [value, roi, empty, sizes], **found)


@_draws("LSTM", "GRU", "RNN")
def _recurrent(pool: Pool, name: str) -> None:
    time, batch, width, hidden = 3, pool.rng.randint(1, 2), 2, 2
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[name]
    direction = pool.rng.choice(("forward", "reverse", "bidirectional"))
    sides = 2 if direction == "bidirectional" else 1
    inputs = [
        pool.given(pool.drawn("float32", (time, batch, width))),
        pool.weight(pool.drawn("float32", (sides, gates * hidden, width))),
        pool.weight(pool.drawn("float32", (sides, gates * hidden, hidden))),
    ]
    extra: dict[str, Any] = {}
    if pool.rng.random() < 0.6:
        inputs.append(pool.weight(pool.drawn("float32", (sides, 2 * gates * hidden))))
        if pool.rng.random() < 0.5:
            lengths = pool.numbers.integers(1, time + 1, batch).astype(np.int32)
            inputs.append(pool.given(lengths))
            if pool.rng.random() < 0.5:
                inputs.append(pool.given(pool.drawn("float32", (sides, batch, hidden))))
    if name == "GRU":
        extra["linear_before_reset"] = pool.rng.choice((None, 0, 1))
    if pool.rng.random() < 0.3:
        extra["clip"] = 0.5
    if name == "RNN" and pool.rng.random() < 0.3:
        extra["activations"] = ["Relu"] * sides
    count = 3 if name == "LSTM" else 2
    pool.node(name, inputs, count, hidden_size=hidden, direction=direction, **extra)


@_draws("If", "Loop", "Scan", first=11)
def _control(pool: Pool, name: str) -> None:
    from onnx import TensorProto, helper

    value = pool.floats(least=1)
    shape, kind = list(pool.values[value].shape), TensorProto.FLOAT
    a, b, c, d = (pool.fresh("s") for _ in range(4))
    described = helper.make_tensor_value_info
    if name == "If":
        left = helper.make_graph(
            [helper.make_node("Neg", [value], [a])], "then", [], [described(a, kind, None)]
        )
        right = helper.make_graph(
            [helper.make_node("Abs", [value], [b])], "else", [], [described(b, kind, None)]
        )
        flag = pool.given(np.array(pool.rng.random() < 0.5))
        pool.node("If", [flag], then_branch=left, else_branch=right)
        return
    if name == "Loop":
        more, flag = pool.fresh("s"), pool.fresh("s")
        nodes = [
            helper.make_node("Identity", [flag], [more]),
            helper.make_node("Sin", [a], [b]),
            helper.make_node("Add", [b, value], [c]),
            helper.make_node("Identity", [c], [d]),
        ]
        body = helper.make_graph(
            nodes,
            "body",
            [
                described(pool.fresh("s"), TensorProto.INT64, []),
                described(flag, TensorProto.BOOL, []),
                described(a, kind, None),
            ],
            [described(more, TensorProto.BOOL, []), described(c, kind, None),
             described(d, kind, None)],
        )  # fmt: skip
        count = pool.given(np.array(pool.rng.randint(1, 3), np.int64))
        pool.node("Loop", [count, "", value], 2, body=body)
        return
    row = shape[1:]
    nodes = [
        helper.make_node("Add", [a, b], [c]),
        helper.make_node("Tanh", [c], [d]),
    ]
    body = helper.make_graph(
        nodes, "body", [described(a, kind, row), described(b, kind, row)],
        [described(c, kind, row), described(d, kind, row)],
    )  # fmt: skip
    start = pool.given(np.zeros(row, np.float32))
    backward = {key: [pool.rng.randint(0, 1)] for key in (
        "scan_input_directions", "scan_output_directions")}  # fmt: skip
    pool.node("Scan", [start, value], 2, body=body, num_scan_inputs=1, **backward)


@_draws("Sequence", first=11)
def _sequences(pool: Pool, name: str) -> None:
    left, right = pool.floats(rank=2), pool.floats(rank=2)
    made = pool.node("SequenceConstruct", [left, right, left])[0]
    at = pool.weight(np.array(pool.rng.randint(-3, 2), np.int64))
    kind = pool.rng.randrange(4)
    if kind == 0:
        pool.node("SequenceAt", [made, at])
    elif kind == 1:
        pool.node("SequenceErase", [made, at])
    elif kind == 2:
        pool.node("SequenceInsert", [made, right, at])
    else:
        pool.node("SequenceLength", [made])
        pool.node("ConcatFromSequence", [pool.node("SequenceConstruct", [left, left])[0]], axis=0)


@_draws("QuantizeLinear", first=10)
def _quantize(pool: Pool, name: str) -> None:
    value = pool.floats(least=2)
    kind = pool.rng.choice(("uint8", "int8"))
    scale, zero = pool.weight(np.float32(0.05)), pool.weight(np.array(3, kind))
    made = pool.node(name, [value, scale, zero])[0]
    if pool.rng.random() < 0.7:
        pool.node("DequantizeLinear", [made, scale, zero])


@_draws("QLinearMatMul", "MatMulInteger", first=10)
def _integer_product(pool: Pool, name: str) -> None:
    left = pool.numbers.integers(0, 255, (2, 3, 4)).astype(np.uint8)
    kind = pool.rng.choice((np.int8, np.uint8))
    right = pool.numbers.integers(0, 127, (4, 3)).astype(kind)
    zeros = [pool.weight(np.array(5, np.uint8)), pool.weight(np.array(2, kind))]
    if name == "MatMulInteger":
        pool.node(name, [pool.given(left), pool.given(right), *zeros[: pool.rng.randint(0, 2)]])
        return
    scales = [pool.weight(np.float32(each)) for each in (0.02, 0.03, 0.9)]
    out = pool.weight(np.array(7, np.uint8))
    pool.node(
        name,
        [pool.given(left), scales[0], zeros[0], pool.given(right), scales[1], zeros[1],
         scales[2], out],
    )  # fmt: skip


@_draws("QLinearConv", "ConvInteger", first=10)
def _integer_conv(pool: Pool, name: str) -> None:
    left = pool.numbers.integers(0, 255, (1, 4, 5, 5)).astype(np.uint8)
    right = pool.numbers.integers(-127, 127, (3, 4, 3, 3)).astype(np.int8)
    pads = [pool.rng.randint(0, 1)] * 4
    zero = pool.weight(np.array(100, np.uint8))
    if name == "ConvInteger":
        pool.node(name, [pool.given(left), pool.weight(right), zero], pads=pads)
        return
    scales = [pool.weight(np.float32(each)) for each in (0.02, 0.03, 0.9)]
    inputs = [pool.given(left), scales[0], zero, pool.weight(right), scales[1]]
    inputs += [pool.weight(np.array(0, np.int8)), scales[2], zero]
    if pool.rng.random() < 0.5:
        inputs.append(pool.weight(pool.numbers.integers(-99, 99, 3).astype(np.int32)))
    pool.node(name, inputs, pads=pads)


@_draws("DynamicQuantizeLinear", first=11)
def _dynamic(pool: Pool, name: str) -> None:
    pool.node(name, [pool.finite(least=1)], 3)


@_draws("GridSample", first=16)
def _grid_sample(pool: Pool, name: str) -> None:
    value = pool.given(pool.drawn("float32", (1, 2, 4, 5)))
    grid = pool.given(pool.numbers.uniform(-1.3, 1.3, (1, 3, 2, 2)).astype(np.float32))
    modes = (
        ("bilinear", "nearest", "bicubic") if pool.opset < 20 else ("linear", "nearest", "cubic")
    )
    pool.node(
        name, [value, grid], mode=pool.rng.choice(modes),
        padding_mode=pool.rng.choice((None, "zeros", "border", "reflection")),
        align_corners=pool.rng.choice((None, 0, 1)),
    )  # fmt: skip


@_draws("Dropout")
def _dropout(pool: Pool, name: str) -> None:
    pool.node(name, [pool.floats()], 2 if pool.opset >= 12 and pool.rng.random() < 0.5 else 1)


@_draws("NonMaxSuppression", first=10)
def _suppression(pool: Pool, name: str) -> None:
    corners = np.sort(pool.numbers.random((1, 6, 2, 2)), axis=2).reshape(1, 6, 4)
    boxes = pool.given(corners.astype(np.float32))
    scores = pool.given(pool.numbers.random((1, 2, 6)).astype(np.float32))
    limits = [pool.ints([2]), pool.weight(np.float32(0.3)), pool.weight(np.float32(0.2))]
    pool.node(name, [boxes, scores, *limits], center_point_box=pool.rng.choice((None, 0)))


@_draws("Strings", first=10)
def _strings(pool: Pool, name: str) -> None:
    words = pool.input(np.array(["ab", "", "é"], dtype=object))
    turned = pool.node("Gather", [words, pool.ints([1, 0, 2])], axis=0)[0]
    pool.node("Concat", [words, words], axis=0)
    if pool.opset >= 19:
        pool.node("Equal", [words, turned])


@_draws("Gelu", "FastGelu", "QuickGelu", "BiasGelu")
def _contributed_unary(pool: Pool, name: str) -> None:
    value = pool.floats(least=1)
    inputs = [value]
    if name == "BiasGelu":
        shape = pool.values[value].shape[-1:]
        inputs.append(pool.given(pool.drawn("float32", shape)))
    pool.node(name, inputs, domain=MICROSOFT)


@_draws("MultiHeadAttention", "Attention")
def _contributed_attention(pool: Pool, name: str) -> None:
    heads, size, time = 2, 4, 3
    width = heads * size
    one_way = pool.rng.choice((None, 0, 1))
    if name == "Attention":
        inputs = [
            pool.given(pool.drawn("float32", (2, time, 5))),
            pool.weight(pool.drawn("float32", (5, 3 * width))),
            pool.weight(pool.drawn("float32", (3 * width,))),
        ]
        if pool.rng.random() < 0.5:
            masks = (np.array([[1, 1, 0], [1, 1, 1]]), np.array([2, 3]))
            inputs.append(pool.given(pool.rng.choice(masks).astype(np.int32)))
    else:
        inputs = [pool.given(pool.drawn("float32", (2, length, width))) for length in (time, 5, 5)]
        if one_way:
            inputs = [inputs[0]] * 3
        if pool.rng.random() < 0.4:
            inputs.append(pool.weight(pool.drawn("float32", (3 * width,))))
    pool.node(name, inputs, domain=MICROSOFT, num_heads=heads, unidirectional=one_way)


@_draws("MatMulNBits")
def _few_bits(pool: Pool, name: str) -> None:
    bits, block, depth, columns = pool.rng.choice((4, 4, 8)), 16, pool.rng.choice((16, 32, 40)), 3
    blocks = -(-depth // block)
    packed = pool.numbers.integers(0, 255, (columns, blocks, block * bits // 8)).astype(np.uint8)
    scales = (pool.numbers.random((columns, blocks)) * 0.1).astype(np.float32)
    inputs = [
        pool.given(pool.drawn("float32", (2, depth))), pool.weight(packed), pool.weight(scales)
    ]  # fmt: skip
    if pool.rng.random() < 0.5:
        size = columns, -(-blocks * bits // 8)
        inputs.append(pool.weight(pool.numbers.integers(0, 255, size).astype(np.uint8)))
    pool.node(name, inputs, domain=MICROSOFT, K=depth, N=columns, bits=bits, block_size=block)

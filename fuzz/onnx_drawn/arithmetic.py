"""Elementwise operators, comparisons, reductions and casts."""

from __future__ import annotations

import numpy as np

from fuzz.onnx_drawn.pool import Pool, Refused, draws

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
    draws(_name)(_unary)
for _name, _first in _LATER.items():
    draws(_name, first=_first)(_unary)


@draws("Add", "Sub", "Mul", "Div")
def _arithmetic(pool: Pool, name: str) -> None:
    left = pool.of("float32", "float32", "int32", "int64", "float64", "float16")
    right = pool.beside(left)
    if name == "Div" and (pool.values[right] == 0).any():
        raise Refused
    pool.node(name, [left, right] if pool.rng.random() < 0.5 or name == "Div" else [right, left])


@draws("Pow", first=12)
def _power(pool: Pool, name: str) -> None:
    base = pool.node("Abs", [pool.floats()])[0]
    pool.node(name, [base, pool.given(pool.drawn(pool.rng.choice(("float32", "int64")), ()))])


@draws("Mod", first=10)
def _mod(pool: Pool, name: str) -> None:
    is_float = pool.rng.random() < 0.4
    left = pool.floats() if is_float else pool.of("int32", "int64")
    shape = pool.values[left].shape
    right = pool.drawn(pool.values[left].dtype.name, shape)
    right = np.where(right == 0, 3, right).astype(right.dtype)
    pool.node(name, [left, pool.given(right)], fmod=1 if is_float else pool.rng.choice((0, 1)))


@draws("Min", "Max", "Sum", "Mean", first=8)
def _variadic(pool: Pool, name: str) -> None:
    left = pool.floats() if name in ("Sum", "Mean") or pool.opset < 12 else pool.of(
        "float32", "int32", "int64", "float64")  # fmt: skip
    count = pool.rng.randint(0, 2)
    pool.node(name, [left, *(pool.beside(left) for _ in range(count))])


@draws("Less", "Greater", "Equal")
def _compared(pool: Pool, name: str) -> None:
    kinds = ("float32", "int32", "int64") if pool.opset >= 11 else ("int32", "int64")
    left = pool.of(*kinds) if name == "Equal" or pool.opset >= 9 else pool.floats()
    pool.node(name, [left, pool.beside(left)])


@draws("LessOrEqual", "GreaterOrEqual", first=12)
def _compared_or_equal(pool: Pool, name: str) -> None:
    left = pool.of("float32", "int32", "int64")
    pool.node(name, [left, pool.beside(left)])


@draws("And", "Or", "Xor")
def _logic(pool: Pool, name: str) -> None:
    left = pool.of("bool")
    pool.node(name, [left, pool.beside(left)])


@draws("BitwiseAnd", "BitwiseOr", "BitwiseXor", first=18)
def _bitwise(pool: Pool, name: str) -> None:
    left = pool.of("int32", "int64", "int8", "uint8", "uint16")
    pool.node(name, [left, pool.beside(left)])


@draws("BitShift", first=11)
def _shift(pool: Pool, name: str) -> None:
    left = pool.drawn(pool.rng.choice(("uint8", "uint32", "uint64")), pool.shape())
    right = pool.numbers.integers(0, 7, left.shape).astype(left.dtype)
    direction = pool.rng.choice(("LEFT", "RIGHT"))
    pool.node(name, [pool.given(left), pool.given(right)], direction=direction)


@draws("Not", "Where", "IsNaN", first=9)
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


@draws(*(f"Reduce{each}" for each in _REDUCTIONS))
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


@draws("ArgMax", "ArgMin")
def _arg_extreme(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int32", least=1)
    last = pool.rng.choice((None, 0, 1)) if pool.opset >= 12 else None
    pool.node(
        name, [value], axis=pool.axis(value), keepdims=pool.rng.choice((None, 0, 1)),
        select_last_index=last,
    )  # fmt: skip


@draws("Softmax", "LogSoftmax", "Hardmax")
def _softmax(pool: Pool, name: str) -> None:
    value = pool.floats(least=1)
    axis = None if pool.rng.random() < 0.3 else pool.axis(value)
    if axis is None and pool.opset < 13 and pool.values[value].ndim < 2:
        axis = 0
    pool.node(name, [value], axis=axis)


@draws("CumSum", first=11)
def _cumulative(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int32", "int64", least=1)
    axis = pool.weight(np.array(pool.axis(value), np.int64))
    flags = {key: pool.rng.choice((None, 0, 1)) for key in ("exclusive", "reverse")}
    pool.node(name, [value, axis], **flags)


@draws("Cast")
def _cast(pool: Pool, name: str) -> None:
    value = pool.of("float32", "int32", "int64", "bool", "float64", "uint8", "float16")
    array = pool.values[value]
    is_small = array.dtype.kind == "f" and not np.all(np.abs(array) < 100)
    kinds = (1, 11) if is_small else (1, 6, 7, 9, 10, 11)
    pool.node(name, [value], to=pool.rng.choice(kinds))


@draws("Clip")
def _clip(pool: Pool, name: str) -> None:
    low, high = pool.rng.choice(((-1.0, 1.0), (0.0, 6.0), (None, 0.5), (-0.5, None)))
    if pool.opset < 11:
        pool.node(name, [pool.floats()], min=low, max=high)
        return
    kind = "float32" if pool.opset < 12 else pool.rng.choice(("float32", "int32", "float64"))
    ends = ["" if end is None else pool.given(np.array(end).astype(kind)) for end in (low, high)]
    pool.node(name, [pool.of(kind), *ends])


@draws("PRelu")
def _prelu(pool: Pool, name: str) -> None:
    value = pool.floats()
    shape = pool.values[value].shape
    slope = pool.drawn("float32", tuple(pool.rng.choice((1, size)) for size in shape))
    pool.node(name, [value, pool.given(slope)])

"""The calls that `fuzz.api` draws: for each method, how to draw legal arguments for it.

Here are elementwise functions and reductions; `api_calls_shapes` and `api_calls_layers` add
theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from fuzz.api_draw import EVERY, FLOATS, INTS, NUMBERS, Call, Draw, Function, show

Maker = Callable[[Draw], Call]
MAKERS: Final[dict[str, Maker]] = {}


def torch() -> Any:
    return import_module("torch")


def nn() -> Any:
    return import_module("torch.nn.functional")


def add_maker(name: str) -> Callable[[Maker], Maker]:
    def register(maker: Maker) -> Maker:
        MAKERS[name] = maker
        return maker

    return register


def method(name: str, *args: Any, **kwargs: Any) -> Function:
    return lambda x, *others: getattr(x, name)(*others, *args, **kwargs)


# PyTorch rounds πx before it takes the sine; Weft does not.
_ULPS: Final = {"sinc": 2048.0}


def _unary(name: str, dtypes: tuple[str, ...], kind: str, ulps: float, gradient: bool) -> None:
    def make(draw: Draw) -> Call:
        dtype = draw.choice(dtypes)
        arrays = [draw.values(draw.shape(), dtype, kind)]
        wanted = method(name) if hasattr(torch().Tensor, name) else getattr(nn(), name, None)
        assert wanted is not None, name
        is_smooth = gradient and kind != "edges"
        return Call(name, method(name), wanted, arrays, dtype, _ULPS.get(name, ulps), is_smooth)

    MAKERS[f"{name} {kind}"] = make


for _name in (
    "neg",
    "abs",
    "square",
    "sign",
    "isnan",
    "isinf",
    "isfinite",
    "sgn",
    "negative",
    "absolute",
):
    _unary(_name, NUMBERS, "edges", 0, False)
for _name in (
    "floor",
    "ceil",
    "trunc",
    "round",
    "fix",
):
    _unary(_name, FLOATS, "edges", 0, False)
for _name in (
    "logical_not",
    "count_nonzero",
):
    _unary(_name, EVERY, "edges", 0, False)
for _name in ("bitwise_not",):
    _unary(_name, (*INTS, "bool"), "numbers", 0, False)
_SMOOTH = """
exp exp2 expm1 sin cos tanh atan sinh cosh asinh erf erfc sigmoid sinc deg2rad rad2deg frac
reciprocal
"""
_FUNCTIONS = f"{_SMOOTH} sqrt rsqrt log log2 log10 log1p tan asin acos acosh atanh erfinv"
for _name in _FUNCTIONS.split():
    _unary(_name, FLOATS, "edges", 8, False)
for _name in _SMOOTH.split():
    _unary(_name, FLOATS, "numbers", 8, True)
    if _name not in ("frac", "sinc"):  # sinc of an integer is 0 or an error of PyTorch
        _unary(_name, INTS, "positive", 8, False)
for _name in (
    "sqrt",
    "rsqrt",
    "log",
    "log2",
    "log10",
    "log1p",
    "lgamma",
    "digamma",
):
    _unary(_name, FLOATS, "positive", 16, True)
for _name in (
    "asin",
    "acos",
    "atanh",
    "erfinv",
):
    _unary(_name, FLOATS, "unit", 16, True)
_unary("acosh", FLOATS, "above", 8, True)
_ACTIVATIONS = """
relu relu6 logsigmoid hardsigmoid hardswish hardtanh silu elu celu mish softplus softsign
leaky_relu tanhshrink softshrink hardshrink
"""
for _name in _ACTIVATIONS.split():
    _unary(_name, FLOATS, "numbers", 16, True)


def _binary(
    name: str, dtypes: tuple[str, ...], kinds: tuple[str, str], ulps: float, gradient: bool
) -> None:
    def make(draw: Draw) -> Call:
        first, second = draw.choice(dtypes), draw.choice(dtypes)
        if draw.flag():
            second = first
        shape = draw.shape()
        arrays = [
            draw.values(shape, first, kinds[0]),
            draw.values(draw.broadcast(shape), second, kinds[1]),
        ]
        if draw.flag() and first == second:
            arrays = [draw.values(draw.broadcast(shape), first, kinds[0]), *arrays[1:]]
        # Two tensors promote alike; a tensor without axes gives way in PyTorch alone.
        if first != second and not (arrays[0].ndim and arrays[1].ndim):
            arrays[1] = arrays[1].astype(first)
        is_smooth = gradient and "edges" not in kinds
        text = f"{arrays[0].dtype} {arrays[1].dtype}"
        return Call(name, method(name), method(name), arrays, text, ulps, is_smooth)

    MAKERS[f"{name} {kinds[0]} {kinds[1]}"] = make


for _name in (
    "add",
    "mul",
    "eq",
    "ne",
    "lt",
    "gt",
    "le",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
):
    _binary(_name, EVERY, ("edges", "edges"), 0, False)
for _name in (
    "sub",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
):
    _binary(_name, NUMBERS, ("edges", "edges"), 0, False)
for _name in (
    "add",
    "mul",
    "sub",
    "div",
    "maximum",
    "minimum",
    "hypot",
    "atan2",
    "fmax",
    "fmin",
):
    _binary(_name, FLOATS, ("numbers", "numbers"), 8, True)
for _name in (
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
):
    _binary(_name, (*INTS, "bool"), ("numbers", "numbers"), 0, False)
for _name in (
    "fmod",
    "remainder",
    "floor_divide",
    "div",
):
    _binary(_name, NUMBERS, ("numbers", "positive"), 8, False)
for _name in (
    "atan2",
    "hypot",
    "copysign",
    "xlogy",
):
    _binary(_name, FLOATS, ("edges", "edges"), 16, False)
for _name in ("logaddexp", "logaddexp2"):  # a number and a logarithm may cancel
    _binary(_name, FLOATS, ("edges", "edges"), 4096, False)
_binary("pow", FLOATS, ("positive", "numbers"), 32, True)
_binary("xlogy", FLOATS, ("numbers", "positive"), 16, True)
_binary("heaviside", FLOATS[:1], ("edges", "numbers"), 0, False)


@add_maker("scalar operand")
def _scalar(draw: Draw) -> Call:
    name = draw.choice(("add", "sub", "mul", "div", "maximum_", "pow", "remainder", "lt", "eq"))
    dtype = draw.choice(NUMBERS)
    number = draw.choice((2, 3, 1.5, 0.25, 1))
    x = draw.values(draw.shape(), dtype, "positive")
    if name == "maximum_":
        function = method("clamp", number)
        return Call("clamp", function, function, [x], f"{dtype} {number}")
    ulps = 16 if name in ("div", "pow") else 2
    return Call(name, method(name, number), method(name, number), [x], f"{number}", ulps)


@add_maker("where")
def _where(draw: Draw) -> Call:
    dtype = draw.choice(EVERY)
    shape = draw.shape()
    arrays = [
        draw.values(draw.broadcast(shape), "bool"),
        draw.values(shape, dtype, "edges"),
        draw.values(draw.broadcast(shape), dtype, "edges"),
    ]
    theirs: Function = lambda c, x, y: x.where(c, y)  # noqa: E731
    return Call("where", lambda c, x, y: c.where(x, y), theirs, arrays, dtype)


@add_maker("cast")
def _cast(draw: Draw) -> Call:
    dtype, to = draw.choice(EVERY), draw.choice(EVERY)
    x = draw.values(draw.shape(), dtype)
    if to == "uint8":
        x = np.abs(x) if dtype != "bool" else x
    return Call("cast", method("cast", to), lambda y: y.to(getattr(torch(), to)), [x], to)


def _fold(name: str, dtypes: tuple[str, ...], kind: str, ulps: float, gradient: bool) -> None:
    def make(draw: Draw) -> Call:
        dtype = draw.choice(dtypes)
        x = draw.values(draw.shape(empty=name in ("sum", "prod", "all", "any")), dtype, kind)
        axis, keep = draw.axes(x.ndim), draw.flag()
        if name in ("argmax", "argmin", "prod") and isinstance(axis, tuple):
            axis = axis[0]
        theirs: Function
        if axis is None and name in ("sum", "mean", "amax", "amin", "var", "std", "logsumexp"):
            axis = tuple(range(x.ndim))
        if axis is None:
            keep = False
            theirs = method(name)
        else:
            theirs = method(name, dim=axis, keepdim=keep)
        if name in ("amax", "amin"):
            ours = method(name, axis, keepdim=keep)
        else:
            ours = method(name, axis=axis, keepdim=keep)
        text = f"{dtype} {x.shape} {show(axis=axis, keepdim=keep)}"
        return Call(name, ours, theirs, [x], text, ulps, gradient and kind != "edges")

    MAKERS[f"{name} {kind}"] = make


_fold("sum", EVERY, "numbers", 16, True)
_fold("prod", NUMBERS, "positive", 64, False)
_fold("mean", FLOATS, "numbers", 16, True)
_fold("amax", NUMBERS, "edges", 0, False)
_fold("amin", NUMBERS, "edges", 0, False)
_fold("amax", FLOATS, "distinct", 0, True)
# Of uint8 PyTorch gives uint8 here, as it did when it had no bool.
_fold("any", (*NUMBERS[:4], *FLOATS, "bool"), "edges", 0, False)
_fold("all", (*NUMBERS[:4], *FLOATS, "bool"), "edges", 0, False)
_fold("argmax", NUMBERS, "numbers", 0, False)
_fold("argmin", NUMBERS, "numbers", 0, False)
_fold("logsumexp", FLOATS, "numbers", 16, True)


@add_maker("softmax")
def _softmax(draw: Draw) -> Call:
    name = draw.choice(("softmax", "log_softmax"))
    x = draw.values(draw.shape(empty=False), draw.choice(FLOATS))
    axis = draw.axis(x.ndim)
    theirs = method(name, dim=axis)
    return Call(name, method(name, axis), theirs, [x], show(x.shape, axis), 16, True)


@add_maker("var")
def _variance(draw: Draw) -> Call:
    name = draw.choice(("var", "std"))
    x = draw.values(draw.shape(least=1, empty=False), draw.choice(FLOATS[:2]), "distinct")
    axis, keep, correction = draw.axis(x.ndim), draw.flag(), draw.choice((0, 1))
    # Of one element the deviation is 0 over 0, or has no slope.
    gradient = x.shape[axis] > 1
    kwargs = {"keepdim": keep, "correction": correction}
    theirs = method(name, dim=axis, **kwargs)
    text = show(x.shape, axis, **kwargs)
    return Call(name, method(name, axis, **kwargs), theirs, [x], text, 16, gradient)


@add_maker("matmul")
def _matmul(draw: Draw) -> Call:
    dtype = draw.choice(("float32", "float64", "int32"))
    m, k, n = (draw.integer(0 if draw.random.random() < 0.1 else 1, 5) for _ in range(3))
    lead = draw.shape(0, 2, empty=False)
    left = (k,) if draw.random.random() < 0.2 else (*draw.broadcast(lead), m, k)
    right = (k,) if draw.random.random() < 0.2 else (*lead, k, n)
    arrays = [draw.values(left, dtype), draw.values(right, dtype)]
    text = f"{left} @ {right} {dtype}"
    function: Function = lambda x, y: x @ y  # noqa: E731
    return Call("matmul", function, function, arrays, text, 32, dtype != "int32")

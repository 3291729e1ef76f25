"""Every op of a tensor, as data: how to call it, what to call it on, what it must equal.

`test_ops.py` runs the rows on every device. A row's name begins with the methods it covers; unless
it says otherwise PyTorch is called in the same way and gives the expected value. An input is named
by its kind of values (`values_of`) and has one shape for each variant of the row.
"""

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from weft.tensor import Tensor

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


# One operand: edges and more, no axes, no elements.
ONE = (((19,),), ((),), ((0, 3),))
# Two operands: each with each, no axes on one side, none at all, no elements.
TWO = (((13, 1), (13,)), ((5,), ()), ((), ()), ((0, 3), (1, 3)))
SMALL = (((3, 5),),)


def one(
    name: str, kind: str = "edges", ulps: float = 0.0, gradient: bool = True, **changes: Any
) -> Row:
    """A method of floats without arguments that NumPy may have under the same name."""
    found = {"ours": method(name), "numpy": getattr(np, name, None), "dtypes": FLOATS, **changes}
    return Row(name, kinds=(kind,), shapes=ONE, ulps=ulps, has_gradient=gradient, **found)


def activation(name: str, ulps: float = 8.0, gradient: bool = True, **kwargs: Any) -> Row:
    """A function of torch.nn.functional. Infinity times zero differs by formula, so no edges."""
    return Row(
        name,
        method(name, **kwargs),
        ("numbers",),
        ONE,
        nn(name, **kwargs),
        FLOATS,
        gradient,
        ulps,
        True,
    )


def two(name: str, dtypes: tuple[str, ...] = NUMBERS, **changes: Any) -> Row:
    """A method of two operands."""
    found = {"ours": method(name), "numpy": getattr(np, name, None), **changes}
    kinds = found.pop("kinds", ("edges", "edges"))
    return Row(name, kinds=kinds, shapes=TWO, dtypes=dtypes, **found)


UNARY = (
    one("neg", dtypes=NUMBERS, numpy=np.negative),
    one("abs", dtypes=EVERY[1:]),
    # Nothing of the output depends on the input, which Weft says where PyTorch gives zeros.
    one("sign", dtypes=NUMBERS, numpy=None, gradient=False),
    one("square", dtypes=NUMBERS),
    one("sqrt"),
    one("rsqrt", ulps=1),
    one("reciprocal", theirs=pt("reciprocal"), dtypes=FLOATS),
    one("exp", ulps=FUNCTION),
    one("exp2", ulps=FUNCTION),
    one("expm1", ulps=2 * FUNCTION + 2),
    one("log", ulps=FUNCTION),
    one("log2", ulps=FUNCTION),
    one("log10", ulps=FUNCTION + 1),
    one("log1p", "positive", ulps=FUNCTION + 3),
    one("sin", ulps=FUNCTION),
    one("cos", ulps=FUNCTION),
    one("tan", ulps=2 * FUNCTION + 1),
    one("asin", "unit", ulps=8, numpy=np.arcsin),
    one("acos", "unit", ulps=8, numpy=np.arccos),
    one("atan", ulps=6, numpy=np.arctan),
    one("sinh", ulps=6),
    one("cosh", ulps=6),
    one("tanh", ulps=FUNCTION),
    one("asinh", ulps=8, numpy=np.arcsinh),
    one("acosh", "above", ulps=8, numpy=np.arccosh),
    one("atanh", "unit", ulps=8, numpy=np.arctanh),
    one("erf", ulps=FUNCTION),
    one("floor"),
    one("ceil"),
    one("trunc"),
    one("round"),
    one("frac", "numbers"),
    one("isnan", gradient=False, dtypes=NUMBERS),
    one("isinf", gradient=False, dtypes=NUMBERS),
    one("isfinite", gradient=False, dtypes=NUMBERS),
    one("signbit", gradient=False, dtypes=(*INTS, "float32", "float64")),
    one("logical_not", gradient=False, dtypes=EVERY),
    one("bitwise_not", gradient=False, dtypes=("bool", *INTS)),
)

ACTIVATIONS = (
    Row("relu", method("relu"), ("edges",), ONE, dtypes=NUMBERS, has_gradient=True),
    Row("relu6", method("relu6"), ("edges",), ONE, nn("relu6"), FLOATS, True),
    activation("leaky_relu", ulps=0.5),
    Row("sigmoid", method("sigmoid"), ("edges",), ONE, None, FLOATS, True, FUNCTION + 2),
    activation("logsigmoid"),
    activation("hardsigmoid"),
    activation("hardswish"),
    Row("hardtanh", method("hardtanh"), ("edges",), ONE, nn("hardtanh"), FLOATS, True),
    activation("silu"),
    Row("swish", method("swish"), ("numbers",), SMALL, nn("silu"), FLOATS, True, 8, True),
    activation("elu"),
    activation("celu", alpha=0.5),
    activation("selu")._replace(theirs=lambda x: 1.0507 * nn("elu", alpha=1.67326)(x)),
    activation("gelu", approximate="tanh"),
    activation("gelu", approximate="none"),
    Row(
        "quick_gelu",
        method("quick_gelu"),
        ("numbers",),
        SMALL,
        lambda x: x * (x * 1.702).sigmoid(),
        PRECISE,
        True,
        8,
        True,
    ),
    activation("mish"),
    activation("softplus"),
    activation("softsign"),
    Row("clamp", lambda x: x.clamp(-2, 3), ("edges",), ONE, dtypes=NUMBERS, has_gradient=True),
    Row("clip below", lambda x: x.clip(1), ("edges",), ONE, dtypes=NUMBERS, has_gradient=True),
    Row("clamp by tensors", method("clamp"), ("numbers",) * 3, (((5,), (5,), (5,)),)),
)

BINARY = (
    two("add", EVERY, has_gradient=True),
    two("sub", has_gradient=True, numpy=np.subtract),
    two("mul", EVERY, has_gradient=True, numpy=np.multiply),
    two("div", has_gradient=True, numpy=None, dtypes=FLOATS),
    two("div of ints", INTS, ours=method("div"), kinds=("numbers", "positive")),
    two("maximum", has_gradient=True),
    two("minimum", has_gradient=True),
    two("mod", kinds=("numbers", "positive"), theirs=pt("remainder")),
    two("remainder", kinds=("numbers", "positive"), dtypes=(*INTS, *PRECISE)),
    two("fmod", kinds=("numbers", "positive"), dtypes=(*INTS, *PRECISE)),
    two("pow", PRECISE, kinds=("positive", "numbers"), ulps=4, has_gradient=True, numpy=np.power),
    two("pow of ints", INTS, ours=method("pow"), kinds=("numbers", "positive")),
    two("bitwise_and", ("bool", *INTS)),
    two("bitwise_or", ("bool", *INTS)),
    two("bitwise_xor", ("bool", *INTS)),
    two("lshift", kinds=("numbers", "below 7"), dtypes=("int64",), theirs=lambda x, y: x << y),
    two("rshift", kinds=("numbers", "below 7"), dtypes=("int64",), theirs=lambda x, y: x >> y),
    two("eq", EVERY, numpy=np.equal),
    two("ne", EVERY, numpy=np.not_equal),
    two("less", EVERY, ours=lambda x, y: x < y, numpy=np.less),
    two("less_equal", EVERY, ours=lambda x, y: x <= y),
    two("greater", EVERY, ours=lambda x, y: x > y, numpy=np.greater),
    two("greater_equal", EVERY, ours=lambda x, y: x >= y),
    two("floor division", ours=lambda x, y: x // y, kinds=("numbers", "positive")),
    two("copysign", FLOATS[:3]),
    two("logaddexp", PRECISE, ulps=FUNCTION * 2 + 2),
    two("isclose", ("float32", "float64", "int32"), kinds=("edges", "edges")),
    Row("operators with numbers", lambda x: (2 - x) * 3 + 1.5 / (x * x + 1), ("numbers",), SMALL,
        dtypes=(*INTS, *PRECISE), ulps=3, of_largest=True),
    Row("reflected", lambda x: (2 + x, 2 * x, 7 // x, 7 % x, 5 & x, 5 | x, 5 ^ x), ("positive",),
        SMALL, dtypes=INTS),
    Row("power of a number", lambda x: 2.0**x, ("numbers",), SMALL, None, PRECISE, True, 4),
    Row("square and cube", lambda x: (x**2, x**3, x**0), ("numbers",), SMALL, dtypes=NUMBERS,
        ulps=2),
    Row("in place", lambda x, y: [in_place(name)(x, y) for name in
        ("__iadd__", "__isub__", "__imul__")], ("numbers", "numbers"), (((3, 5), (5,)),),
        dtypes=NUMBERS),
    Row("in place division", in_place("__itruediv__"), ("numbers", "positive"),
        (((3, 5), (5,)),), dtypes=FLOATS),
    Row("in place bits", lambda x, y: [in_place(name)(x, y) for name in
        ("__iand__", "__ior__", "__ixor__")], ("numbers", "numbers"), (((3, 5), (5,)),),
        dtypes=("bool", *INTS)),
    Row("lerp", lambda x, y: x.lerp(y, 0.25), ("numbers",) * 2, (((3, 5), (3, 5)),), None,
        PRECISE, True, 3, True),
    Row("where", lambda c, x, y: c.where(x, y), ("bools", "edges", "numbers"),
        (((13,), (13,), (3, 13)), ((), (5,), ()), ((0,), (0,), (1,))),
        lambda c, x, y: x.where(c, y), EVERY, True),
    Row("masked_fill", lambda x, m: x.masked_fill(m, 2), ("edges", "bools"),
        (((4, 13), (13,)),), None, NUMBERS, True),
)


def casts() -> tuple[Row, ...]:
    """Every dtype to every other."""
    rows = []
    for to in EVERY:
        def theirs(x: Any, to: str = to) -> Any:
            return x.to(getattr(import_module("torch"), to))

        rows.append(Row(f"cast to {to}", method("cast", to), ("numbers",), (((19,),),), theirs,
                        EVERY))
    words = ("bool", "half", "bfloat16", "float", "double", "short", "int", "long")
    rows += [Row(word, method(word), ("numbers",), SMALL, dtypes=("float32", "int32"))
             for word in words]
    bits = lambda x: x.view(import_module("torch").int32)  # noqa: E731
    rows.append(Row("bitcast", method("bitcast", "int32"), ("edges",), (((19,),),), bits))
    return tuple(rows)


def moved(name: str, ours: Function, *shapes: Shape, theirs: Function | None = None) -> Row:
    """A movement of one tensor, whose gradient moves back."""
    variants = tuple((shape,) for shape in shapes)
    return Row(name, ours, ("edges",), variants, theirs, ("float32", "int64", "bool"), True)


MOVEMENT = (
    moved("reshape", lambda x: x.reshape(5, -1), (3, 5), (5, 0, 1)[:1] + (3,)),
    moved("view", lambda x: x.view(2, 1, 7), (14,)),
    moved("expand", lambda x: x.expand(2, 3, 4), (3, 1), (2, 3, 4)),
    moved("broadcast_to", lambda x: x.broadcast_to((2, 3)), (3,)),
    moved("permute", lambda x: x.permute(2, 0, 1), (2, 3, 5), (0, 3, 1)),
    moved("transpose", lambda x: x.transpose(0, -1), (2, 3, 5), (2,)),
    moved("T", lambda x: x.T, (3, 5)),
    moved("movedim", lambda x: x.movedim(0, 2), (2, 3, 5)),
    moved("flip", lambda x: x.flip((0, 2)), (2, 3, 5)),
    moved("shrink", lambda x: x.shrink(((1, 3), None)), (3, 5), theirs=lambda x: x[1:3]),
    moved("pad", lambda x: x.pad((1, 2, 0, 1)), (3, 5), theirs=nn("pad", pad=(1, 2, 0, 1))),
    moved("pad less", lambda x: x.pad((-1, 2), value=3.0), (3, 5),
          theirs=nn("pad", pad=(-1, 2), value=3.0)),
    *(
        Row(f"pad {mode}", method("pad", (2, 1), mode=mode), ("numbers",), (((2, 3, 5),),),
            nn("pad", pad=(2, 1), mode=mode), ("float32",), True, 1, True)
        for mode in ("reflect", "replicate", "circular")
    ),
    moved("squeeze", lambda x: x.squeeze(1), (3, 1, 5), (3, 2)),
    moved("squeeze all", lambda x: x.squeeze(), (3, 1, 5, 1), ()),
    moved("unsqueeze", lambda x: x.unsqueeze(-2), (3, 5), (1,)),
    moved("flatten", lambda x: x.flatten(1), (2, 3, 5), (2, 0, 3)),
    moved("unflatten", lambda x: x.unflatten(1, (3, -1)), (2, 6)),
    moved("repeat", lambda x: x.repeat(2, 1, 3), (3, 2)),
    moved("repeat_interleave", lambda x: x.repeat_interleave(3, 1), (2, 3)),
    moved("roll", lambda x: x.roll((2, -1), (0, 1)), (3, 5), (0, 5)),
    moved("unfold", lambda x: x.unfold(1, 3, 2), (2, 8)),
    moved("diagonal", lambda x: x.diagonal(1, 0, 2), (3, 2, 5)),
    moved("tril", lambda x: x.tril(1), (3, 5), (2, 3, 3)),
    moved("triu", lambda x: x.triu(-1), (3, 5)),
    moved("split", lambda x: x.split((1, 0, 3), 1), (3, 4)),
    moved("chunk", lambda x: x.chunk(3, 0), (7, 2)),
    moved("iteration", lambda x: list(x), (3, 2)),
    moved("contiguous clone", lambda x: x.T.contiguous() + x.T.clone(), (3, 5)),
    Row("cat", lambda x, y: Tensor.cat(x, y, x, dim=1), ("edges", "numbers"),
        (((3, 5), (3, 2)), ((3, 0), (3, 1))), lambda x, y: pt("cat")([x, y, x], 1), EVERY, True),
    Row("stack", lambda x, y: Tensor.stack(x, y, dim=-1), ("edges", "numbers"),
        (((3, 5), (3, 5)), ((), ())), lambda x, y: pt("stack")([x, y], -1), EVERY, True),
    Row("meshgrid", lambda x, y: Tensor.meshgrid(x, y), ("numbers",) * 2, (((3,), (2,)),),
        pt("meshgrid", indexing="ij")),
    Row("one_hot", lambda x: x.one_hot(6), ("below 6",), (((7,),), ((),)), nn("one_hot", num_classes=6)),
)

INDEXING = (
    moved("getitem steps", lambda x: x[1:, ::2], (5, 7)),
    Row("getitem backwards", lambda x: x[::-2, :, ::-1], ("edges",), (((5, 2, 3),),),
        lambda x: x.flip((0, 2))[::2], EVERY, True, numpy=lambda x: x[::-2, :, ::-1]),
    moved("getitem none and ints", lambda x: x[1, None, ..., -1], (3, 2, 4)),
    moved("getitem list", lambda x: x[[2, 0, -1, 2]], (3, 5)),
    moved("getitem lists", lambda x: x[[2, 0], :, [1, 1]], (3, 2, 4)),
    moved("getitem empty", lambda x: x[2:1], (3, 5)),
    Row("getitem tensor", lambda x, i: x[:, i], ("numbers", "below 5"), (((3, 5), (2, 2)),),
        None, ("float32", "int32", "bool"), True),
    Row("setitem slice", put((slice(1, None), slice(None, None, 2))), ("numbers",) * 2,
        (((3, 5), (3,)),), None, NUMBERS, True),
    Row("setitem number", lambda x: put(1)(x, 7), ("numbers",), SMALL, None, NUMBERS, True),
    Row("setitem list", put(([2, 0],)), ("numbers",) * 2, (((3, 5), (2, 5)),)),
    Row("setitem mask", lambda x, m: put(m)(x, 2), ("numbers", "bools"), (((3, 5), (3, 5)),),
        None, NUMBERS, True),
    Row("gather", lambda x, i: x.gather(1, i), ("numbers", "below 5"), (((3, 5), (3, 7)),),
        None, ("float32", "int32", "bool"), True),
    Row("scatter", lambda x, i, y: x.scatter(1, i, y), ("numbers", "below 1", "numbers"),
        (((3, 5), (3, 1), (3, 1)),), None, ("float32", "int32"), True),
    Row("scatter add", lambda x, i, y: x.scatter(0, i, y, reduce="add"),
        ("numbers", "below 5", "numbers"), (((5, 3), (4, 3), (4, 3)),), None, ("float32", "int32"),
        False, SUM, True),
    *(
        Row(f"scatter_reduce {reduce}", method("scatter_reduce"), (), ())._replace(
            ours=lambda x, i, y, r=reduce: x.scatter_reduce(0, i, y, r),
            kinds=("numbers", "below 5", "numbers"), shapes=(((5, 3), (4, 3), (4, 3)),),
            dtypes=("float32", "int32"), ulps=SUM, of_largest=True)
        for reduce in ("sum", "prod", "amax", "amin")
    ),
    Row("assign", lambda x, y: x.clone().assign(y), ("numbers", "edges"), (((3, 5), (5,)),),
        lambda x, y: x.clone().copy_(y), NUMBERS),
)

AXES: tuple[tuple[Shape, ...], ...] = (((3, 17),), ((2, 40),), ((1, 1),))


def folded(name: str, ours: Function, theirs: Function | None = None, **changes: Any) -> Row:
    """A reduction along axis 1."""
    found: dict[str, Any] = {"dtypes": ("float32",), "has_gradient": True, **changes}
    kind = found.pop("kind", "numbers")
    shapes = found.pop("shapes", AXES)
    return Row(name, ours, (kind,), shapes, theirs, **found)


REDUCTIONS = (
    folded("sum", lambda x: x.sum(1), dtypes=EVERY, ulps=SUM, of_largest=True,
           numpy=lambda x: x.sum(1)),
    folded("sum of edges", lambda x: x.sum(1), kind="edges", shapes=(((13, 1),), ((2, 13),)),
           has_gradient=False, dtypes=FLOATS),
    folded("sum all", lambda x: x.sum(), ulps=SUM, of_largest=True, shapes=(((3, 5),), ((),),
           ((0, 2),))),
    folded("sum axes kept", lambda x: x.sum((0, 2), keepdim=True), shapes=(((3, 2, 9),),),
           ulps=SUM, of_largest=True, dtypes=("float32", "int32")),
    folded("sum empty", lambda x: x.sum(0), shapes=(((0, 3),), ((2, 0),))),
    folded("sum dtype", lambda x: x.sum(1, dtype="int32"), lambda x: x.sum(1).to(
        import_module("torch").int32), dtypes=("bool", "uint8", "int32"), has_gradient=False),
    folded("prod", lambda x: x.prod(1), dtypes=("int32", "uint8", "bool", *PRECISE), kind="unit",
           shapes=(((3, 7),), ((2, 0),)), ulps=8),
    folded("mean", lambda x: x.mean(1), dtypes=FLOATS, ulps=SUM, of_largest=True),
    folded("max", lambda x: x.max(1), lambda x: x.amax(1), dtypes=EVERY, kind="edges"),
    folded("min", lambda x: x.min(1), lambda x: x.amin(1), dtypes=EVERY, kind="edges"),
    folded("max all", lambda x: x.max(), shapes=(((3, 5),), ((),))),
    folded("max of equals", lambda x: (x * 0).max(1), lambda x: (x * 0).amax(1)),
    folded("any", lambda x: x.any(1), dtypes=("bool", "int32", "float32"), has_gradient=False,
           kind="edges", shapes=(((3, 5),), ((2, 0),))),
    folded("all", lambda x: x.all(1), dtypes=("bool", "int32", "float32"), has_gradient=False,
           kind="edges", shapes=(((3, 5),), ((2, 0),))),
    folded("argmax", lambda x: x.argmax(1), dtypes=NUMBERS, has_gradient=False, kind="edges"),
    folded("argmin", lambda x: x.argmin(1), dtypes=NUMBERS, has_gradient=False, kind="edges"),
    folded("argmax all", lambda x: x.argmax(), has_gradient=False, shapes=SMALL),
    folded("var", lambda x: x.var(1), dtypes=PRECISE, ulps=SUM, shapes=AXES[:2]),
    folded("std", lambda x: x.std(1, correction=0), dtypes=PRECISE, ulps=SUM, shapes=AXES[:2]),
    folded("var_mean", lambda x: x.var_mean(1), pt("var_mean", dim=1), ulps=SUM, of_largest=True,
           shapes=AXES[:1], has_gradient=False),
    folded("std_mean", lambda x: x.std_mean(1), pt("std_mean", dim=1), ulps=SUM, of_largest=True,
           shapes=AXES[:1], has_gradient=False),
    folded("softmax", lambda x: x.softmax(1), dtypes=FLOATS, ulps=SUM),
    folded("softmin", lambda x: x.softmin(1), nn("softmin", dim=1), dtypes=PRECISE, ulps=SUM),
    folded("log_softmax", lambda x: x.log_softmax(1), dtypes=PRECISE, ulps=SUM, of_largest=True),
    folded("logsumexp", lambda x: x.logsumexp(1), dtypes=PRECISE, ulps=SUM, of_largest=True),
    folded("logsumexp of edges", lambda x: x.logsumexp(1), kind="edges", has_gradient=False,
           shapes=(((13, 1),), ((2, 13),)), ulps=8),
    folded("layernorm", lambda x: x.layernorm(), lambda x: nn("layer_norm")(x, x.shape[-1:]),
           dtypes=FLOATS, ulps=SUM, of_largest=True, shapes=AXES[:2]),
    folded("normalize", lambda x: x.normalize(), nn("normalize"), dtypes=PRECISE, ulps=SUM,
           shapes=AXES[:2]),
    folded("normalize by 3", lambda x: x.normalize(p=3.0), nn("normalize", p=3.0), ulps=SUM,
           shapes=AXES[:1]),
)

MATRICES = (((3, 17), (17, 5)), ((2, 1, 3, 4), (3, 4, 2)), ((5,), (5,)), ((3, 5), (5,)),
            ((0, 4), (4, 2)), ((2, 0), (0, 3)))


def product(name: str, ours: Function, kinds: int, *shapes: Any, **changes: Any) -> Row:
    """Products and sums of products."""
    found: dict[str, Any] = {"has_gradient": True, "ulps": SUM, "of_largest": True, **changes}
    return Row(name, ours, ("numbers",) * kinds, tuple(shapes), **found)


IMAGE = ((2, 4, 7, 6), (6, 4, 3, 2), (6,))

PRODUCTS = (
    product("matmul", lambda x, y: x.matmul(y), 2, *MATRICES, dtypes=(*INTS, *FLOATS),
            numpy=lambda x, y: x @ y),
    product("dot", lambda x, y: x.dot(y), 2, MATRICES[0], theirs=pt("matmul")),
    product("in place matmul", in_place("__imatmul__"), 2, ((3, 3), (3, 3)), theirs=pt("matmul")),
    product("linear", lambda x, w, b: x.linear(w, b), 3, ((2, 3, 4), (4, 5), (5,)),
            theirs=lambda x, w, b: nn("linear")(x, w.T, b)),
    product("einsum", lambda x, y: Tensor.einsum("bij,kj->bik", x, y), 2, ((2, 3, 4), (5, 4)),
            theirs=lambda x, y: pt("einsum")("bij,kj->bik", x, y)),
    product("einsum trace", lambda x: Tensor.einsum("ii->", x), 1, ((4, 4),),
            theirs=lambda x: pt("einsum")("ii->", x)),
    product("conv2d", lambda x, w, b: x.conv2d(w, b), 3, IMAGE, theirs=nn("conv2d"),
            dtypes=("float32", "float64")),
    product("conv2d sizes", lambda x, w: x.conv2d(w, stride=2, padding=(1, 2), dilation=2), 2,
            IMAGE[:2], theirs=nn("conv2d", stride=2, padding=(1, 2), dilation=2)),
    product("conv2d groups", lambda x, w: x.conv2d(w, groups=2), 2, ((1, 4, 5, 5), (6, 2, 3, 3)),
            theirs=nn("conv2d", groups=2)),
    product("conv2d of one axis", lambda x, w: x.conv2d(w, padding=1), 2, ((2, 3, 9), (4, 3, 3)),
            theirs=nn("conv1d", padding=1)),
    product("conv_transpose2d", lambda x, w: x.conv_transpose2d(w, stride=2, padding=1,
            output_padding=1), 2, ((1, 4, 3, 5), (4, 2, 3, 3)),
            theirs=nn("conv_transpose2d", stride=2, padding=1, output_padding=1)),
    product("max_pool2d", lambda x: x.max_pool2d((3, 2), stride=2, padding=1), 1,
            ((2, 3, 7, 6),), theirs=nn("max_pool2d", kernel_size=(3, 2), stride=2, padding=1)),
    product("max_pool2d ceil", lambda x: x.max_pool2d(2, ceil_mode=True), 1, ((1, 2, 5, 7),),
            theirs=nn("max_pool2d", kernel_size=2, ceil_mode=True)),
    product("avg_pool2d", lambda x: x.avg_pool2d(3, stride=2, padding=1), 1, ((2, 3, 7, 6),),
            theirs=nn("avg_pool2d", kernel_size=3, stride=2, padding=1)),
    product("avg_pool2d inside", lambda x: x.avg_pool2d(2, padding=1, count_include_pad=False), 1,
            ((1, 2, 5, 5),),
            theirs=nn("avg_pool2d", kernel_size=2, padding=1, count_include_pad=False)),
    product("scaled_dot_product_attention", lambda q, k, v: q.scaled_dot_product_attention(k, v),
            3, ((2, 2, 5, 4),) * 3, theirs=nn("scaled_dot_product_attention"), ulps=4 * SUM),
    product("scaled_dot_product_attention causal",
            lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), 3,
            ((1, 2, 5, 4),) * 3, theirs=nn("scaled_dot_product_attention", is_causal=True),
            ulps=4 * SUM),
    product("sequential", lambda x: x.sequential([Tensor.square, Tensor.sum]), 1, ((3, 5),),
            theirs=lambda x: x.square().sum()),
)


def loss(name: str, kinds: tuple[str, ...], shapes: tuple[Shape, ...], theirs: Function,
         **kwargs: Any) -> Row:
    """A loss, whose gradient is the one of the predictions."""
    return Row(name, method(name.split()[0], **kwargs), kinds, (shapes,), theirs, PRECISE, True,
               2 * SUM, True)


LOSSES = (
    loss("binary_crossentropy", ("positive", "bools"), ((3, 5), (3, 5)),
         lambda x, y: nn("binary_cross_entropy")(x / 5, y.to(x.dtype)))._replace(
        ours=lambda x, y: (x / 5).binary_crossentropy(y.cast(x.dtype))),
    loss("binary_crossentropy_logits", ("numbers", "bools"), ((3, 5), (3, 5)),
         lambda x, y: nn("binary_cross_entropy_with_logits")(x, y.to(x.dtype)))._replace(
        ours=lambda x, y: x.binary_crossentropy_logits(y.cast(x.dtype))),
    loss("cross_entropy", ("numbers", "below 5"), ((4, 5), (4,)), nn("cross_entropy")),
    loss("cross_entropy smooth", ("numbers", "below 3"), ((2, 3, 4), (2, 4)),
         nn("cross_entropy", label_smoothing=0.1), label_smoothing=0.1),
    loss("sparse_categorical_crossentropy", ("numbers", "below 5"), ((4, 5), (4,)),
         nn("cross_entropy")),
    loss("nll_loss", ("numbers", "below 5"), ((4, 5), (4,)), nn("nll_loss")),
    loss("nll_loss none", ("numbers", "below 3"), ((2, 3, 4), (2, 4)),
         nn("nll_loss", reduction="none"), reduction="none"),
)


def created(name: str, ours: Function, theirs: Function, ulps: float = 0.0) -> Row:
    return Row(name, ours, theirs=theirs, ulps=ulps)


CREATION = (
    created("full", lambda: Tensor.full((2, 3), 2.5), lambda: pt("full")((2, 3), 2.5)),
    created("zeros", lambda: Tensor.zeros(2, 0), lambda: pt("zeros")(2, 0)),
    created("ones", lambda: Tensor.ones(()), lambda: pt("ones")(())),
    created("arange", lambda: Tensor.arange(7, -4, -3, dtype="int64"),
            lambda: pt("arange")(7, -4, -3)),
    created("arange of floats", lambda: Tensor.arange(0.0, 2.0, 0.25),
            lambda: pt("arange")(0.0, 2.0, 0.25)),
    created("linspace", lambda: Tensor.linspace(-1, 2, 13), lambda: pt("linspace")(-1, 2, 13), 1),
    created("eye", lambda: Tensor.eye(3, 5), lambda: pt("eye")(3, 5)),
    Row("full_like zeros_like ones_like",
        lambda x: (x.full_like(3), x.zeros_like(), x.ones_like()), ("numbers",), SMALL,
        lambda x: (pt("full_like")(x, 3), pt("zeros_like")(x), pt("ones_like")(x)), EVERY),
)

FAMILIES: dict[str, tuple[Row, ...]] = {
    "unary": UNARY,
    "activations": ACTIVATIONS,
    "binary": BINARY,
    "casts": casts(),
    "movement": MOVEMENT,
    "indexing": INDEXING,
    "reductions": REDUCTIONS,
    "products": PRODUCTS,
    "losses": LOSSES,
    "creation": CREATION,
}

# Methods without a row, by the reason.
NOT_IN_THE_TABLE = {
    "no number comes out": (
        "data device dtype element_size grad is_floating_point item nbytes ndim numel numpy "
        "realize requires_grad requires_grad_ shape size to to_ tolist training uop"
    ),
    "called by every row with a gradient": "backward gradient detach",
    "random or unset memory, tested in tests/unit/tensor": (
        "dropout empty empty_like glorot_uniform kaiming_normal kaiming_uniform manual_seed "
        "normal rand rand_like randint randn randn_like scaled_uniform uniform"
    ),
    "a Python bool": "allclose",
}

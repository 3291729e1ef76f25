"""Rows of ops that work element by element: functions, activations, operators."""

from typing import Any

import numpy as np

from tests.end_to_end.op_row import (
    EVERY,
    FLOATS,
    FUNCTION,
    INTS,
    NUMBERS,
    PRECISE,
    SMALL,
    Row,
    in_place,
    method,
    nn,
    pt,
)

# One operand: edges and more, no axes, no elements.
ONE = (((19,),), ((),), ((0, 3),))
# Two operands: each with each, no axes on one side, none at all, no elements.
TWO = (((13, 1), (13,)), ((5,), ()), ((), ()), ((0, 3), (1, 3)))


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
    one("sign", dtypes=NUMBERS, numpy=None),
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
    Row(
        "relu",
        method("relu"),
        ("edges",),
        ONE,
        dtypes=NUMBERS,
        has_gradient=True,
        has_zero_sign=False,
    ),
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
    two("maximum", has_gradient=True, has_zero_sign=False),
    two("minimum", has_gradient=True, has_zero_sign=False),
    two("mod", has_zero_sign=False, kinds=("numbers", "positive"), theirs=pt("remainder")),
    two("remainder", has_zero_sign=False, kinds=("numbers", "positive"), dtypes=(*INTS, *PRECISE)),
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
    Row(
        "operators with numbers",
        lambda x: (2 - x) * 3 + 1.5 / (x * x + 1),
        ("numbers",),
        SMALL,
        dtypes=(*INTS, *PRECISE),
        ulps=3,
        of_largest=True,
    ),
    Row(
        "reflected",
        lambda x: (2 + x, 2 * x, 7 // x, 7 % x, 5 & x, 5 | x, 5 ^ x),
        ("positive",),
        SMALL,
        dtypes=INTS,
    ),
    Row("power of a number", lambda x: 2.0**x, ("numbers",), SMALL, None, PRECISE, True, 4),
    Row(
        "square and cube",
        lambda x: (x**2, x**3, x**0),
        ("numbers",),
        SMALL,
        dtypes=NUMBERS,
        ulps=2,
    ),
    Row(
        "in place",
        lambda x, y: [in_place(name)(x, y) for name in ("__iadd__", "__isub__", "__imul__")],
        ("numbers", "numbers"),
        (((3, 5), (5,)),),
        dtypes=NUMBERS,
    ),
    Row(
        "in place division",
        in_place("__itruediv__"),
        ("numbers", "positive"),
        (((3, 5), (5,)),),
        dtypes=FLOATS,
    ),
    Row(
        "in place bits",
        lambda x, y: [in_place(name)(x, y) for name in ("__iand__", "__ior__", "__ixor__")],
        ("numbers", "numbers"),
        (((3, 5), (5,)),),
        dtypes=("bool", *INTS),
    ),
    Row(
        "lerp",
        lambda x, y: x.lerp(y, 0.25),
        ("numbers",) * 2,
        (((3, 5), (3, 5)),),
        None,
        PRECISE,
        True,
        3,
        True,
    ),
    Row(
        "where",
        lambda c, x, y: c.where(x, y),
        ("bools", "edges", "numbers"),
        (((13,), (13,), (3, 13)), ((), (5,), ()), ((0,), (0,), (1,))),
        lambda c, x, y: x.where(c, y),
        EVERY,
        True,
    ),
    Row(
        "masked_fill",
        lambda x, m: x.masked_fill(m, 2),
        ("edges", "bools"),
        (((4, 13), (13,)),),
        None,
        NUMBERS,
        True,
    ),
)

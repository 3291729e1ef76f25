"""Rows of special functions, of functions of several operands, and of in-place forms."""

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
    Function,
    Row,
    method,
    nn,
    pt,
)
from tests.end_to_end.op_rows_elementwise import ONE, activation, one, two

SPECIAL = (
    one("erfc", ulps=3 * FUNCTION),
    one("erfinv", "unit", ulps=3 * FUNCTION),
    one("lgamma", "positive", ulps=4 * FUNCTION),
    one("lgamma of negatives", ours=method("lgamma"), ulps=64),
    # Between its terms digamma has a zero, near which relative accuracy is lost.
    one("digamma", "positive", ulps=4 * FUNCTION, of_largest=True),
    # Above 2.5 steps down are sums of reciprocals; below 0 a cotangent joins them.
    Row(
        "digamma of negatives",
        method("digamma"),
        ("numbers",),
        SMALL,
        dtypes=PRECISE,
        has_gradient=True,
        ulps=16,
        of_largest=True,
    ),
    # PyTorch rounds πx before the sine; Weft reduces x first, so the error is one of the largest.
    one("sinc", ulps=8, of_largest=True),
    one("logit", "unit", gradient=False, ulps=8, of_largest=True)._replace(
        ours=lambda x: (x * x).logit(0.125), theirs=lambda x: (x * x).logit(0.125)
    ),
    one("deg2rad", ulps=1),
    one("rad2deg", ulps=1),
    one("isposinf isneginf", gradient=False, dtypes=(*INTS, *PRECISE), numpy=None)._replace(
        ours=lambda x: (x.isposinf(), x.isneginf())
    ),
    one("nan_to_num", dtypes=NUMBERS, numpy=None)._replace(
        ours=lambda x: x.nan_to_num(1.0, 2.0, -3.0)
    ),
)

ALIASES = (
    Row(
        "negative absolute fix sgn arcsin arccos arctan arcsinh arccosh arctanh log_sigmoid",
        lambda x: (
            x.negative(),
            x.absolute(),
            x.fix(),
            x.sgn(),
            x.arcsin(),
            x.arccos(),
            x.arctan(),
            x.arcsinh(),
            (x + 2).arccosh(),
            x.arctanh(),
            _log_sigmoid(x),
        ),
        ("unit",),
        SMALL,
        ulps=8,
        of_largest=True,
    ),
    Row(
        "lt gt le ge less greater less_equal greater_equal not_equal",
        lambda x, y: (
            x.lt(y),
            x.gt(y),
            x.le(y),
            x.ge(y),
            x.less(y),
            x.greater(y),
            x.less_equal(y),
            x.greater_equal(y),
            x.not_equal(y),
        ),
        ("edges", "edges"),
        (((13, 1), (13,)),),
        dtypes=("float32", "int32"),
    ),
    Row(
        "subtract multiply divide true_divide floor_divide arctan2",
        lambda x, y: (
            x.subtract(y),
            x.multiply(y),
            x.divide(y),
            x.true_divide(y),
            x.floor_divide(y),
            x.arctan2(y),
        ),
        ("numbers", "positive"),
        (((13, 1), (13,)),),
        ulps=6,
    ),
)


def _log_sigmoid(x: Any) -> Any:
    return x.log_sigmoid() if hasattr(x, "log_sigmoid") else nn("logsigmoid")(x)


def three(name: str, ours: Function, dtypes: tuple[str, ...], **changes: Any) -> Row:
    shapes = (((3, 5), (5,), (3, 1)), ((), (2,), ()), ((0, 3), (3,), (1, 1)))
    kinds = ("numbers", "numbers", "positive")
    return Row(name, ours, kinds, shapes, dtypes=dtypes, has_gradient=True, **changes)


OPERANDS = (
    two("logical_and", EVERY),
    two("logical_or", EVERY),
    two("logical_xor", EVERY),
    two("atan2", FLOATS, ulps=6, numpy=np.arctan2),
    two("atan2 inside", PRECISE, kinds=("numbers", "numbers"), ulps=6, has_gradient=True)._replace(
        ours=method("atan2")
    ),
    two("hypot", FLOATS, ulps=3),
    two("hypot inside", PRECISE, kinds=("numbers", "numbers"), ulps=3, has_gradient=True)._replace(
        ours=method("hypot")
    ),
    two("heaviside", NUMBERS, numpy=None),
    two("fmax", NUMBERS, has_zero_sign=False, has_gradient=True),
    two("fmin", NUMBERS, has_zero_sign=False, has_gradient=True),
    two("xlogy", FLOATS, ulps=FUNCTION + 1),
    two(
        "xlogy inside", PRECISE, kinds=("numbers", "positive"), ulps=4, has_gradient=True
    )._replace(ours=method("xlogy")),
    two("logaddexp2", PRECISE, ulps=FUNCTION * 2 + 2, of_largest=True),
    two("gcd", INTS, kinds=("numbers", "numbers")),  # PyTorch divides the least integer by -1
    two("lcm", INTS, kinds=("numbers", "numbers")),
    two("ldexp", PRECISE, kinds=("numbers", "below 7"), numpy=None),
    two("float_power", ("float32", "int32"), kinds=("positive", "numbers"), ulps=4),
    two("rsub", NUMBERS, theirs=pt("rsub")),
    Row("clamp_min", lambda x: x.clamp_min(2), ("edges",), ONE, dtypes=NUMBERS, has_gradient=True),
    Row("clamp_max", lambda x: x.clamp_max(2), ("edges",), ONE, dtypes=NUMBERS, has_gradient=True),
    three("addcmul", lambda x, y, z: x.addcmul(y, z, value=2), NUMBERS, ulps=2, of_largest=True),
    three("addcdiv", lambda x, y, z: x.addcdiv(y, z, value=0.5), FLOATS, ulps=2, of_largest=True),
    Row("glu", method("glu", 0), ("numbers",), (((4, 3),),), nn("glu", dim=0), FLOATS, True, 8),
    # A difference, whose error is one of x; PyTorch subtracts too.
    activation("tanhshrink")._replace(shapes=(((19,),), ((0, 3),))),
    activation("softshrink", ulps=1, lambd=0.25),
    activation("hardshrink", ulps=0.5),
    Row(
        "threshold",
        method("threshold", 0.5, 7.0),
        ("edges",),
        ONE,
        nn("threshold", threshold=0.5, value=7.0),
        FLOATS,
        True,
    ),
    Row(
        "prelu",
        method("prelu"),
        ("numbers", "numbers"),
        (((2, 3, 2), (3,)), ((4,), (1,))),
        nn("prelu"),
        FLOATS,
        True,
        1,
    ),
)


def written(name: str, *kinds: str, dtypes: tuple[str, ...] = FLOATS, **kwargs: Any) -> Row:
    """An in-place form: what it returns and what the tensor holds then."""

    def function(x: Any, *others: Any) -> Any:
        x = x.clone()
        same = getattr(x, name)(*others, **kwargs)
        assert same is x
        return x

    shapes = (((3, 5),) * (len(kinds) or 1),)
    return Row(name, function, kinds or ("positive",), shapes, dtypes=dtypes, ulps=8)


_ONE_OPERAND = """
abs_ asinh_ atan_ bitwise_not_ ceil_ cos_ cosh_ deg2rad_ digamma_ erf_ erfc_ exp_ exp2_ expm1_
floor_ frac_ lgamma_ log_ log10_ log1p_ log2_ nan_to_num_ neg_ rad2deg_ reciprocal_ relu_ round_
rsqrt_ sigmoid_ sign_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ logical_not_ tril_ triu_
"""
_UNIT_OPERAND = "acos_ asin_ atanh_ erfinv_"
_TWO_OPERANDS = """
add_ sub_ mul_ div_ atan2_ copysign_ fmod_ hypot_ remainder_ pow_ xlogy_ logical_and_ logical_or_
logical_xor_ eq_ ne_ heaviside_ clamp_min_ clamp_max_
"""
_INTEGERS = "bitwise_and_ bitwise_or_ bitwise_xor_ gcd_ lcm_"
_ACTIVATIONS = "celu_ elu_ hardsigmoid_ hardswish_ hardtanh_ leaky_relu_ mish_ relu6_ selu_ silu_"

IN_PLACE = (
    *(
        written(name, dtypes=("int32",) if "bitwise" in name else ("float32",))
        for name in _ONE_OPERAND.split()
    ),
    *(written(name, "unit", dtypes=("float32",)) for name in _UNIT_OPERAND.split()),
    written("acosh_", "above", dtypes=("float32",)),
    *(
        written(name, "positive", "positive", dtypes=("float32",))
        for name in _TWO_OPERANDS.split()
    ),
    *(written(name, "numbers", "numbers", dtypes=("int32",)) for name in _INTEGERS.split()),
    *(
        Row(
            name,
            lambda x, name=name: getattr(x.clone(), name)(),
            ("numbers",),
            SMALL,
            nn(name[:-1]) if name != "selu_" else lambda x: 1.0507 * nn("elu", alpha=1.67326)(x),
            ulps=8,
            of_largest=True,
        )
        for name in _ACTIVATIONS.split()
    ),
    Row(
        "addcmul_ addcdiv_",
        lambda x, y, z: (x.clone().addcmul_(y, z), x.clone().addcdiv_(y, z)),
        ("numbers", "numbers", "positive"),
        (((3, 5), (5,), (3, 1)),),
        ulps=2,
        of_largest=True,
    ),
    Row(
        "clamp_ clip_ lerp_ masked_fill_ logit_ fill_ zero_ copy_ threshold_",
        lambda x, y, m: (
            x.clone().clamp_(-1, 2),
            x.clone().clip_(-1, 2),
            x.clone().lerp_(y, 0.5),
            x.clone().masked_fill_(m, 3),
            x.clone().sigmoid_().logit_(),
            x.clone().fill_(7),
            x.clone().zero_(),
            x.clone().copy_(y),
            _threshold_(x.clone()),
        ),
        ("unit", "numbers", "bools"),
        (((3, 5), (3, 5), (3, 5)),),
        ulps=16,
        of_largest=True,
    ),
    Row(
        "lshift_ rshift_",
        lambda x, y: (_shifted(x.clone(), "l", y), _shifted(x.clone(), "r", y)),
        ("numbers", "below 7"),
        (((3, 5), (5,)),),
        dtypes=("int64",),
    ),
    Row(
        "put_ index_add_ index_copy_ index_fill_ index_put_ scatter_ scatter_add_ scatter_reduce_",
        lambda x, i, y: (
            x.clone().put_(i, y),
            x.clone().index_add_(0, i, y),
            x.clone().index_copy_(0, i, y),
            x.clone().index_fill_(0, i, 3.0),
            x.clone().index_put_((i,), y),
            x.clone().scatter_(0, i, y),
            x.clone().scatter_add_(0, i, y),
            x.clone().scatter_reduce_(0, i, y, "amax"),
        ),
        ("numbers", "below 1", "numbers"),
        (((5,), (1,), (1,)),),
    ),
)


def _threshold_(x: Any) -> Any:
    if hasattr(x, "threshold_"):
        return x.threshold_(0.5, 2.0)
    return nn("threshold", threshold=0.5, value=2.0)(x)


def _shifted(x: Any, side: str, count: Any) -> Any:
    if hasattr(x, f"{side}shift_"):
        return getattr(x, f"{side}shift_")(count)
    return getattr(x, f"__i{side}shift__")(count)

"""Functions on each element. Binary ones promote as the standard says, and take one scalar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.array_api.promotion import named, promoted
from weft.ir.dtypes import dtypes
from weft.support.errors import DTypeError
from weft.tensor.complexes.parts import complex_of_parts
from weft.tensor.tensor import Tensor

Unary = Callable[[Tensor], Tensor]
Binary = Callable[[Any, Any], Tensor]


def _in_floats(name: str, method: str) -> Unary:
    """A function of floats; integers are converted to those."""
    compute = getattr(Tensor, method)

    def function(x: Tensor, /) -> Any:
        return compute(x if x.dtype.is_inexact else x.cast(dtypes.default_float))

    function.__doc__ = f"{name} of each element."
    return named(function, name)


def _kept(name: str, method: str, of_exact: Callable[[Tensor], Tensor] | None = None) -> Unary:
    """A function that keeps the dtype; `of_exact` says what it is for integers."""
    compute = getattr(Tensor, method)

    def function(x: Tensor, /) -> Any:
        return of_exact(x) if of_exact is not None and not x.dtype.is_inexact else compute(x)

    function.__doc__ = f"{name} of each element."
    return named(function, name)


def _of_two(name: str, compute: Callable[[Tensor, Tensor], Any]) -> Binary:
    def function(x1: Any, x2: Any, /) -> Any:
        return compute(*promoted(name, x1, x2))

    function.__doc__ = f"{name} of each pair of elements."
    return named(function, name)


def _of_two_floats(name: str, method: str) -> Binary:
    compute = getattr(Tensor, method)

    def function(x1: Any, x2: Any, /) -> Any:
        a, b = promoted(name, x1, x2)
        if not a.dtype.is_inexact:
            a, b = a.cast(dtypes.default_float), b.cast(dtypes.default_float)
        return compute(a, b)

    function.__doc__ = f"{name} of each pair of elements."
    return named(function, name)


def _of_bools(name: str, compute: Callable[[Tensor, Tensor], Any]) -> Binary:
    def function(x1: Any, x2: Any, /) -> Any:
        pair = promoted(name, x1, x2)
        if pair[0].dtype is not dtypes.bool:
            raise DTypeError(
                f"{name}: elements of {pair[0].dtype.name}", rule="operands are arrays of bool"
            )
        return compute(*pair)

    function.__doc__ = f"{name} of each pair of elements."
    return named(function, name)


def _itself(x: Tensor) -> Tensor:
    return x


def _never(x: Tensor) -> Tensor:
    return Tensor.zeros(*x.shape, dtype=dtypes.bool, device=x.device)


def _always(x: Tensor) -> Tensor:
    return Tensor.ones(*x.shape, dtype=dtypes.bool, device=x.device)


acos, acosh = _in_floats("acos", "acos"), _in_floats("acosh", "acosh")
asin, asinh = _in_floats("asin", "asin"), _in_floats("asinh", "asinh")
atan, atanh = _in_floats("atan", "atan"), _in_floats("atanh", "atanh")
cos, cosh = _in_floats("cos", "cos"), _in_floats("cosh", "cosh")
sin, sinh = _in_floats("sin", "sin"), _in_floats("sinh", "sinh")
tan, tanh = _in_floats("tan", "tan"), _in_floats("tanh", "tanh")
exp, expm1 = _in_floats("exp", "exp"), _in_floats("expm1", "expm1")
log, log1p = _in_floats("log", "log"), _in_floats("log1p", "log1p")
log2, log10 = _in_floats("log2", "log2"), _in_floats("log10", "log10")
reciprocal, sqrt = _in_floats("reciprocal", "reciprocal"), _in_floats("sqrt", "sqrt")
signbit = _kept("signbit", "signbit")

abs = _kept("abs", "abs")
ceil, floor = _kept("ceil", "ceil", _itself), _kept("floor", "floor", _itself)
trunc = _kept("trunc", "trunc", _itself)
negative, positive = _kept("negative", "neg"), _kept("positive", "positive")
square = _kept("square", "square")
isnan, isinf = _kept("isnan", "isnan", _never), _kept("isinf", "isinf", _never)
isfinite = _kept("isfinite", "isfinite", _always)
bitwise_invert = _kept("bitwise_invert", "bitwise_not")

add = _of_two("add", lambda a, b: a + b)
subtract = _of_two("subtract", lambda a, b: a - b)
multiply = _of_two("multiply", lambda a, b: a * b)
divide = _of_two_floats("divide", "div")
floor_divide = _of_two("floor_divide", lambda a, b: a.div(b, rounding_mode="floor"))
remainder = _of_two("remainder", lambda a, b: a.remainder(b))
pow = _of_two("pow", lambda a, b: a**b)
maximum = _of_two("maximum", lambda a, b: a.maximum(b))
minimum = _of_two("minimum", lambda a, b: a.minimum(b))
equal = _of_two("equal", lambda a, b: a == b)
not_equal = _of_two("not_equal", lambda a, b: a != b)
less, less_equal = _of_two("less", lambda a, b: a < b), _of_two("less_equal", lambda a, b: a <= b)
greater = _of_two("greater", lambda a, b: a > b)
greater_equal = _of_two("greater_equal", lambda a, b: a >= b)
bitwise_and = _of_two("bitwise_and", lambda a, b: a & b)
bitwise_or = _of_two("bitwise_or", lambda a, b: a | b)
bitwise_xor = _of_two("bitwise_xor", lambda a, b: a ^ b)
bitwise_left_shift = _of_two("bitwise_left_shift", lambda a, b: a << b)
bitwise_right_shift = _of_two("bitwise_right_shift", lambda a, b: a >> b)
atan2, copysign = _of_two_floats("atan2", "atan2"), _of_two_floats("copysign", "copysign")
hypot, logaddexp = _of_two_floats("hypot", "hypot"), _of_two_floats("logaddexp", "logaddexp")
nextafter = _of_two_floats("nextafter", "nextafter")
logical_and = _of_bools("logical_and", lambda a, b: a & b)
logical_or = _of_bools("logical_or", lambda a, b: a | b)
logical_xor = _of_bools("logical_xor", lambda a, b: a ^ b)


def logical_not(x: Tensor, /) -> Tensor:
    """Not, for each element."""
    return x.logical_not()


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1 for each element, and NaN for NaN; of complex ones x / |x|."""
    if x.dtype.is_complex:
        return x.sgn()
    return x.isnan().where(x, x.sign()) if x.dtype.is_float else x.sign()


def round(x: Tensor, /) -> Tensor:
    """The nearest integer of each element, the even one of two; of complex ones for each part."""
    if x.dtype.is_complex:
        return complex_of_parts(x.real.round(), x.imag.round())
    return x.round() if x.dtype.is_float else x


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Each element, or the limit that it is beyond; the dtype stays."""
    limits = [each.cast(x.dtype) if isinstance(each, Tensor) else each for each in (min, max)]
    shapes = [each.shape for each in limits if isinstance(each, Tensor)]
    if shapes:
        x = x.expand(Tensor.broadcast_shapes(x.shape, *shapes))
    return x if limits == [None, None] else x.clamp(*limits)


def conj(x: Tensor, /) -> Tensor:
    """Each element with its imaginary part negated; real ones as they are."""
    return x.conj() if x.dtype.is_complex else x


def real(x: Tensor, /) -> Tensor:
    """The real part of each element; an array of real ones is itself."""
    return x.real if x.dtype.is_complex else x


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part of each complex element."""
    if not x.dtype.is_complex:
        raise DTypeError(f"imag: elements of {x.dtype.name}", rule="the elements are complex")
    return x.imag  # type: ignore[no-any-return]

"""Functions of complex numbers, by functions of their parts.

The methods of `Tensor` come here with complex operands. Each formula is written over real tensors,
so its gradient needs no rule of its own. Branch cuts are those of C, NumPy and PyTorch: along the
negative real axis for `log`, `sqrt` and powers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft.ir.dtypes import DType, promote
from weft.ir.ops import Op
from weft.tensor.complexes.parts import complex_of_parts

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def exp(z: Tensor) -> Tensor:
    size = z.real.exp()
    is_real = (z.imag == 0) & size.isinf()  # no product of 0 and infinity
    imaginary = is_real.where(z.imag, z.imag.sin() * size)
    return complex_of_parts(size * z.imag.cos(), imaginary)


def log(z: Tensor) -> Tensor:
    return complex_of_parts(_log_magnitude(z), z.angle())


def _log_magnitude(z: Tensor) -> Tensor:
    """log |z|; near the unit circle by what |z|² differs from 1, which cancels nothing."""
    x, y = z.real.abs(), z.imag.abs()
    large, small = x.maximum(y), x.minimum(y)
    is_near = (large > 0.5) & (large < 1.5)
    kept = is_near.where(large, 1.0)
    excess = (kept - 1) * (kept + 1) + is_near.where(small * small, 0.0)
    result: Tensor = is_near.where(excess.log1p() * 0.5, z.abs().log())
    return result


def sqrt(z: Tensor) -> Tensor:
    """By half of |z| + |x|, which cancels nothing; the other part is y / 2 over its root.

    Signs are chosen, not made by `abs`, which has no slope at 0.
    """
    x, y = z.real, z.imag
    size = z.abs()
    is_zero, is_left, is_below = size == 0, x < 0, y.signbit()
    half = is_zero.where(1.0, (size + is_left.where(-x, x)) * 0.5).sqrt()
    other = y / (half * 2)
    real = is_left.where(is_below.where(-other, other), half)
    imag = is_left.where(is_below.where(-half, half), other)
    return complex_of_parts(is_zero.where(0.0, real), is_zero.where(y, imag))


def times_i(z: Tensor) -> Tensor:
    return complex_of_parts(-z.imag, z.real)


def over_i(z: Tensor) -> Tensor:
    return complex_of_parts(z.imag, -z.real)


def sinh(z: Tensor) -> Tensor:
    x, y = z.real, z.imag
    return complex_of_parts(x.sinh() * y.cos(), x.cosh() * y.sin())


def cosh(z: Tensor) -> Tensor:
    x, y = z.real, z.imag
    return complex_of_parts(x.cosh() * y.cos(), x.sinh() * y.sin())


def tanh(z: Tensor) -> Tensor:
    """tanh(x + y i) = (tanh x + i tan y) / (1 + i tanh x tan y), with tan as sin over cos."""
    t, c, s = z.real.tanh(), z.imag.cos(), z.imag.sin()
    below = c * c + (t * s).square()
    slope = (1 / z.real.clamp(-40.0, 40.0).cosh()).square()  # 1 - t², which would cancel
    return complex_of_parts(t / below, s * c * slope / below)


def sin(z: Tensor) -> Tensor:
    return over_i(sinh(times_i(z)))


def cos(z: Tensor) -> Tensor:
    return cosh(times_i(z))


def tan(z: Tensor) -> Tensor:
    return over_i(tanh(times_i(z)))


def asin(z: Tensor) -> Tensor:
    less, more = _roots_beside_one(z)
    real = z.real.atan2((less * more).real)
    return complex_of_parts(real, (less.conj() * more).imag.asinh())


def acos(z: Tensor) -> Tensor:
    less, more = _roots_beside_one(z)
    real = less.real.atan2(more.real) * 2
    return complex_of_parts(real, (more.conj() * less).imag.asinh())


def acosh(z: Tensor) -> Tensor:
    below = sqrt(complex_of_parts(z.real - 1, z.imag))
    above = sqrt(complex_of_parts(z.real + 1, z.imag))
    return complex_of_parts((below.conj() * above).real.asinh(), below.imag.atan2(above.real) * 2)


def _roots_beside_one(z: Tensor) -> tuple[Tensor, Tensor]:
    """√(1 - z) and √(1 + z), on the side of the cut where the sign of zero puts z."""
    less = complex_of_parts(1 - z.real, -z.imag)
    return sqrt(less), sqrt(complex_of_parts(1 + z.real, z.imag))


def asinh(z: Tensor) -> Tensor:
    return over_i(asin(times_i(z)))


def atanh(z: Tensor) -> Tensor:
    x, y = z.real, z.imag
    apart = (1 - x).square() + y.square()
    real = (x * 4 / apart).log1p() * 0.25
    return complex_of_parts(real, (y * 2).atan2((1 - x) * (1 + x) - y.square()) * 0.5)


def atan(z: Tensor) -> Tensor:
    return over_i(atanh(times_i(z)))


def sigmoid(z: Tensor) -> Tensor:
    return 1 / (exp(-z) + 1)


def silu(z: Tensor) -> Tensor:
    return z * sigmoid(z)


def exp2(z: Tensor) -> Tensor:
    return exp(_scaled(z, math.log(2)))


def log2(z: Tensor) -> Tensor:
    return _scaled(log(z), 1 / math.log(2))


def log10(z: Tensor) -> Tensor:
    return _scaled(log(z), 1 / math.log(10))


def _scaled(z: Tensor, factor: float) -> Tensor:
    """Each part times a real number, which leaves infinities alone."""
    return complex_of_parts(z.real * factor, z.imag * factor)


def log1p(z: Tensor) -> Tensor:
    """log(1 + z); |1 + z|² - 1 = x (2 + x) + y² is small where z is, and cancels nothing."""
    x, y = z.real, z.imag
    is_small = (x.abs() < 0.5) & (y.abs() < 0.5)
    near = is_small.where(x * (x + 2) + y * y, 0.0).log1p() * 0.5
    one_more = complex_of_parts(x + 1, y)
    return complex_of_parts(is_small.where(near, one_more.abs().log()), y.atan2(x + 1))


def expm1(z: Tensor) -> Tensor:
    """e ** x cos y - 1 = (e ** x - 1) cos y - 2 sin²(y / 2)"""
    x, y = z.real, z.imag
    real = x.expm1() * y.cos() - (y * 0.5).sin().square() * 2
    return complex_of_parts(real, x.exp() * y.sin())


def is_of_complex(self: Tensor, other: Any) -> bool:
    """Whether one of two operands is complex."""
    dtype = getattr(other, "dtype", None)
    is_complex = dtype.is_complex if isinstance(dtype, DType) else isinstance(other, complex)
    return self.dtype.is_complex or is_complex


def complex_power(self: Tensor, other: Any, reverse: bool) -> Tensor:
    """A power of operands of which one is complex: by products where that is a small int."""
    from weft.tensor.methods.elementwise import lift

    if other.__class__ is int and abs(other) <= 64 and not reverse:
        return whole_power(self, other)
    right = lift(self, other, "pow")
    dtype = promote(self.dtype, right.dtype)
    pair = (self.cast(dtype), right.cast(dtype))
    return power(*(pair[::-1] if reverse else pair))


def power(base: Tensor, exponent: Tensor) -> Tensor:
    """e ** (exponent log base), and of 0 0, or 1 where the exponent is 0 too."""
    is_zero = base == 0
    result = exp(log(is_zero.where(1.0, base)) * exponent)
    of_zero = (exponent == 0).where(1.0, 0.0).cast(result.dtype)
    chosen: Tensor = is_zero.where(of_zero, result)
    return chosen


def whole_power(base: Tensor, exponent: int) -> Tensor:
    """A power by products."""
    if exponent < 0:
        return 1 / whole_power(base, -exponent)
    result: Tensor | None = None
    square = base
    while exponent:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        square = square * square if exponent else square
    return base.ones_like() if result is None else result


def product(self: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The product along axes, which keep size 1: halves are multiplied until one is left."""
    for axis in axes:
        while (size := int(self.shape[axis])) != 1:
            if size == 0:
                shape = [1 if i == axis else n for i, n in enumerate(self.shape)]
                self = self.__class__.ones(*shape, dtype=self.dtype, device=self.device)
                break
            half = size // 2
            left, right = _cut(self, axis, 0, half), _cut(self, axis, half, 2 * half)
            merged = left * right
            rest = _cut(self, axis, 2 * half, size)
            self = merged.cat(rest, dim=axis) if size % 2 else merged
    return self


def products(self: Tensor, axis: int) -> Tensor:
    """The products of all prefixes along an axis, by doubling."""
    size, step = int(self.shape[axis]), 1
    while step < size:
        left, right = _cut(self, axis, 0, size - step), _cut(self, axis, step, size)
        self = _cut(self, axis, 0, step).cat(left * right, dim=axis)
        step *= 2
    return self


def _cut(self: Tensor, axis: int, start: int, stop: int) -> Tensor:
    return self.shrink([(start, stop) if i == axis else None for i in range(self.ndim)])


# Functions that the graph has ops for, by op.
FUNCTIONS: Final[dict[int, Callable[[Any], Any]]] = {
    Op.EXP: exp,
    Op.EXP2: exp2,
    Op.LOG: log,
    Op.LOG2: log2,
    Op.SQRT: sqrt,
    Op.SIN: sin,
    Op.COS: cos,
    Op.TANH: tanh,
}

# Other methods of Tensor, by name.
METHODS: Final[dict[str, Callable[[Any], Any]]] = {
    function.__name__: function
    for function in (
        *(sinh, cosh, tan, asin, acos, atan, asinh, acosh, atanh),
        *(sigmoid, silu, log10, log1p, expm1),
    )
}


def attach(cls: type[Tensor]) -> None:
    """Let the methods of a class, under all their names, answer for complex numbers too."""
    own = {getattr(cls, name): function for name, function in METHODS.items()}
    for name, method in list(vars(cls).items()):
        if callable(method) and method in own:
            setattr(cls, name, _by_dtype(method, own[method]))


def _by_dtype(method: Callable[..., Any], on_complex: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def chosen(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        is_complex = self.dtype.is_complex
        return on_complex(self) if is_complex else method(self, *args, **kwargs)

    return chosen

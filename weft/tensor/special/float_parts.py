"""Floats taken apart: mantissa and exponent, and the next float."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from weft.ir.dtypes import dtypes
from weft.tensor.methods.unary import as_float, float_pair

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

_INTS = {16: "int16", 32: "int32", 64: "int64"}


class Parts(NamedTuple):
    """x = mantissa · 2 ** exponent, with a mantissa from 0.5 to below 1."""

    mantissa: Tensor
    exponent: Tensor


def frexp(self: Tensor) -> Parts:
    """Return the mantissa from 0.5 to below 1, and the exponent as int32. PyTorch: frexp.

    >>> from weft.tensor import Tensor
    >>> mantissa, exponent = Tensor([6.0]).frexp()
    >>> mantissa.tolist(), exponent.tolist()
    ([0.75], [3])
    """
    x = as_float(self)
    wide = x.double() if x.dtype is dtypes.float64 else x.float()
    is_usual = wide.isfinite() & (wide != 0)
    safe = is_usual.where(wide.detach().abs(), 1.0)
    # Numbers below the normal ones are scaled up first.
    tiny = safe < 2.0**-100
    scaled = tiny.where(safe * 2.0**60, safe)
    exponent = scaled.log2().floor()
    # A logarithm may be off by one at a power of 2.
    size = scaled / exponent.exp2()
    exponent = exponent + (size >= 2).cast(wide.dtype) - (size < 1).cast(wide.dtype)
    exponent = exponent + 1 - tiny.where(60.0, 0.0)
    half = (exponent / 2).trunc()
    mantissa = wide * (-half).exp2() * (half - exponent).exp2()
    whole = is_usual.where(exponent, 0.0).cast(dtypes.int32)
    return Parts(is_usual.where(mantissa, wide).cast(x.dtype), whole)


def nextafter(self: Tensor, other: Any) -> Tensor:
    """Return the next float towards another. PyTorch and NumPy: nextafter.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0]).nextafter(Tensor([1.0])).item() > 0
    True
    """
    x, y = float_pair(self, other, "nextafter")
    shape = (x + y).shape
    x, y = x.expand(shape), y.expand(shape)
    integer = _INTS[x.dtype.bits]
    bits = x.contiguous().bitcast(integer)
    grows = (y > x) == (x > 0)
    moved = (bits + grows.where(1, -1).cast(integer)).bitcast(x.dtype)
    least = x.zeros_like().contiguous().bitcast(integer) + 1
    least = least.cast(integer).bitcast(x.dtype)
    moved = (x == 0).where((y > 0).where(least, -least), moved)
    found = (x == y).where(y, moved)
    value = (x.isnan() | y.isnan()).where(float("nan"), found).detach()
    # A step to the next float moves with x: its slope is that of x. Infinities have none.
    # That of the other is 0, not none at all.
    return value + x.isfinite().where(x - x.detach(), 0) + y.sign().abs() * -0.0

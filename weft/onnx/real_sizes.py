"""Symbolic sizes as the floats that files compute with before they round them.

Exports write the size of a resized image as `Cast(Floor(Cast(size, float) * 1.5), int64)`. A
`RealSize` is a size over a whole number, exactly; what is not such a fraction is an error, and the
work of tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np

from weft.ir.build import Size
from weft.ir.sizes import (
    at_least,
    ceil_quotient,
    floor_quotient,
    least,
    most,
    normal_size,
    plus,
    times,
    try_quotient,
)
from weft.ir.uop import UOp
from weft.tensor.tensor import Tensor

# Denominators of factors such as 0.5 and 0.75; others come of rounding, as that of 0.1.
_MOST_DENOMINATOR: Final = 1 << 10


class InexactSizeError(ArithmeticError):
    """A number that is not a symbolic size over a whole number."""


class RealSize:
    """A size divided by a whole number."""

    __slots__ = ("by", "size")

    def __init__(self, size: Size, by: int = 1) -> None:
        self.size, self.by = size, by

    @classmethod
    def of(cls, value: Any) -> RealSize:
        """A number or a size as one of these."""
        if isinstance(value, RealSize):
            return value
        if isinstance(value, UOp):
            return cls(normal_size(value))
        if not isinstance(value, (int, float, np.number)):
            raise InexactSizeError
        exact = Fraction(value.item() if isinstance(value, np.number) else value)
        if exact.denominator > _MOST_DENOMINATOR:
            raise InexactSizeError
        return cls(exact.numerator, exact.denominator)

    def __repr__(self) -> str:
        return f"{self.size} / {self.by}" if self.by > 1 else f"{self.size}"

    def __add__(self, other: Any) -> RealSize:
        right = RealSize.of(other)
        total = plus(times(self.size, right.by), times(right.size, self.by))
        return RealSize(total, self.by * right.by)

    def __neg__(self) -> RealSize:
        return RealSize(times(self.size, -1), self.by)

    def __sub__(self, other: Any) -> RealSize:
        return self + -RealSize.of(other)

    def __rsub__(self, other: Any) -> RealSize:
        return RealSize.of(other) + -self

    def __mul__(self, other: Any) -> RealSize:
        right = RealSize.of(other)
        return RealSize(times(self.size, right.size), self.by * right.by)

    def __truediv__(self, other: Any) -> Any:
        right = RealSize.of(other)
        top, bottom = times(self.size, right.by), times(right.size, self.by)
        if isinstance(bottom, int) and bottom > 0:
            return RealSize(top, bottom)
        if isinstance(bottom, int) and bottom < 0:
            return RealSize(times(top, -1), -bottom)
        for a, b in ((top, bottom), (bottom, top)):
            whole = try_quotient(a, b)
            if isinstance(whole, int) and whole > 0:
                return RealSize(whole) if a is top else RealSize(1, whole)
        raise InexactSizeError

    def __rtruediv__(self, other: Any) -> Any:
        return RealSize.of(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def floor(self) -> RealSize:
        return RealSize(floor_quotient(self.size, self.by))

    def ceil(self) -> RealSize:
        return RealSize(ceil_quotient(self.size, self.by))

    def truncated(self) -> Size:
        """What a cast to an integer gives."""
        if least(self.size) < 0:
            raise InexactSizeError
        return self.floor().size

    def tensor(self, device: str | None) -> Tensor:
        """The number as a tensor of float32, of no axes."""
        size = Tensor(self.size, device=device, dtype="float32")
        return size / self.by


def compare(a: Any, b: Any, is_so: Callable[[int], bool]) -> bool:
    """A comparison of sizes by the sign of their difference; raises where it is not known."""
    gap = (RealSize.of(a) - b).size
    low, high = least(gap), most(gap)
    signs = [-1] * (low < 0) + [0] * (low <= 0 <= high) + [1] * (high > 0)
    found = {is_so(sign) for sign in signs}
    if len(found) != 1:
        raise InexactSizeError
    return found.pop()


def lesser(a: Any, b: Any) -> Any:
    """The lesser of two sizes or numbers, where it is always the same one."""
    return a if compare(a, b, lambda sign: sign <= 0) else b


def greater(a: Any, b: Any) -> Any:
    """The greater of two sizes or numbers; of a size and an int it is another size."""
    if isinstance(a, UOp) and isinstance(b, int):
        return at_least(a, b)
    if isinstance(b, UOp) and isinstance(a, int):
        return at_least(b, a)
    return b if compare(a, b, lambda sign: sign <= 0) else a

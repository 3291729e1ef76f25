"""Values clamped to limits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import FLOAT, dtypes
from weft.tensor.complexes.parts import complex_of_parts
from weft.tensor.methods.elementwise import lift

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def clamp_min(self: Tensor, min: Any) -> Tensor:
    """Limit from below, `clamp(min_=min)`. PyTorch: clamp_min.

    >>> from weft.tensor import Tensor
    >>> Tensor([-3, 5]).clamp_min(0).tolist()
    [0, 5]
    """
    return self.clamp(min_=min)


def clamp_max(self: Tensor, max: Any) -> Tensor:
    """Limit from above, `clamp(max_=max)`. PyTorch: clamp_max.

    >>> from weft.tensor import Tensor
    >>> Tensor([-3, 5]).clamp_max(0).tolist()
    [-3, 0]
    """
    return self.clamp(max_=max)


def nan_to_num(
    self: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace NaN and infinities; these by the limits of the dtype unless told otherwise.

    PyTorch and NumPy: nan_to_num.

    >>> from weft.tensor import Tensor
    >>> Tensor([float("nan"), float("inf"), 1.0]).nan_to_num(posinf=9.0).tolist()
    [0.0, 9.0, 1.0]
    """
    if self.dtype.is_complex:
        parts = (part.nan_to_num(nan, posinf, neginf) for part in (self.real, self.imag))
        return complex_of_parts(*parts)
    if self.dtype.kind != FLOAT:
        return self._same()
    top = dtypes.finfo(self.dtype).max if posinf is None else posinf
    bottom = -dtypes.finfo(self.dtype).max if neginf is None else neginf
    found = self.isnan().where(nan, self)
    return (self == math.inf).where(top, (self == -math.inf).where(bottom, found))


def fmax(self: Tensor, other: Any) -> Tensor:
    """Return the greater of two values; a number rather than NaN. PyTorch and NumPy: fmax.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, float("nan")]).fmax(0.5).tolist()
    [1.0, 0.5]
    """
    y = lift(self, other, "fmax")
    return ((self >= y) | y.isnan()).where(self, y)


def fmin(self: Tensor, other: Any) -> Tensor:
    """Return the lesser of two values; a number rather than NaN. PyTorch and NumPy: fmin.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, float("nan")]).fmin(0.5).tolist()
    [0.5, 0.5]
    """
    y = lift(self, other, "fmin")
    return ((self <= y) | y.isnan()).where(self, y)

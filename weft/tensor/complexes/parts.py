"""A complex tensor and its parts: real, imag, conj, abs, angle, and the way there and back.

A complex number is two floats; `view_as_real` and `view_as_complex` go between a complex tensor
and a real one with a last axis of size 2. Gradients are PyTorch's: of a real loss with respect to
x + y i they are dL/dx + i dL/dy.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.ir import movement
from weft.ir.dtypes import COMPLEX, FLOAT, DType, dtypes, promote
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, complex_from
from weft.support.errors import DTypeError, ShapeError
from weft.support.source_line import user_line
from weft.tensor.linked import link
from weft.tensor.methods.joining import joined

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def require_complex(self: Tensor, name: str) -> None:
    if self.dtype.kind != COMPLEX:
        raise DTypeError(
            f"{name}: expected complex numbers, got {self.dtype.name}",
            rule=f"{name} takes complex64 and complex128",
            fix="make them complex: x.cast('complex64'), or complex(real, imag)",
        )


def require_real(self: Tensor, name: str) -> None:
    if self.dtype.kind == COMPLEX:
        raise DTypeError(
            f"{name}: not defined for {self.dtype.name}",
            rule=f"{name} takes real numbers",
            fix="take a part or the magnitude: x.real, x.imag, x.abs()",
        )


def warn_of_loss(self: Tensor, target: DType) -> None:
    """Say that a cast leaves imaginary parts behind."""
    if self.dtype.is_complex and not target.is_complex and target is not dtypes.bool:
        where = user_line()
        text = f"cast: {target.name} holds no imaginary parts; write x.real where that is meant"
        warnings.warn_explicit(text, UserWarning, where.file, where.line)


def _linked(self: Tensor, there: Callable[[UOp], UOp], back: Callable[[UOp, UOp], UOp]) -> Tensor:
    """What a function shows of a tensor, as a view: writes to either are seen by both."""
    made = self._new(there(self.uop))
    link(self, made, there, back)
    return made


def is_complex(self: Tensor) -> bool:
    """Tell whether the dtype is complex.

    >>> from weft.tensor import Tensor
    >>> Tensor([1j]).is_complex(), Tensor([1.0]).is_complex()
    (True, False)
    """
    return self.dtype.is_complex


def real(self: Tensor) -> Tensor:
    """Return the real part; of real numbers, themselves. It is an attribute: `x.real`.

    A write to either of the two is seen by the other, as in PyTorch and NumPy; the same holds for
    `imag`, `conj` and `view_as_real`.

    >>> from weft.tensor import Tensor
    >>> Tensor([1 + 2j]).real.tolist()
    [1.0]
    """
    if self.dtype.kind != COMPLEX:
        return self
    return _linked(self, lambda z: z.real, lambda x, z: complex_from(x, z.imag))


def imag(self: Tensor) -> Tensor:
    """Return the imaginary part of complex numbers. It is an attribute: `x.imag`.

    >>> from weft.tensor import Tensor
    >>> Tensor([1 + 2j]).imag.tolist()
    [2.0]
    """
    require_complex(self, "imag")
    return _linked(self, lambda z: z.imag, lambda y, z: complex_from(z.real, y))


def conj(self: Tensor) -> Tensor:
    """Return the complex conjugate; of real numbers, themselves.

    PyTorch and NumPy: conj.

    >>> from weft.tensor import Tensor
    >>> Tensor([1 + 2j]).conj().tolist()
    [(1-2j)]
    """
    if self.dtype.kind != COMPLEX:
        return self
    return _linked(self, lambda z: z.conjugate(), lambda w, _: w.conjugate())


def adjoint(self: Tensor) -> Tensor:
    """Return the conjugate with the last two axes exchanged. PyTorch: adjoint, mH.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1 + 1j, 2j]]).adjoint().tolist()
    [[(1-1j)], [-2j]]
    """
    return self.transpose(-1, -2).conj()


def magnitude(self: Tensor) -> Tensor:
    """√(x² + y²) without overflow; its gradient at 0 is 0, as PyTorch's."""
    x, y = real(self), imag(self)
    top = x.abs().maximum(y.abs()).detach()
    is_plain = (top > 0) & (top.isfinite())
    scale = is_plain.where(top, 1.0)
    a, b = x / scale, y / scale
    squares = a * a + b * b
    is_zero = squares == 0
    root = is_zero.where(0.0, is_zero.where(1.0, squares).sqrt()) * scale
    is_infinite = x.isinf() | y.isinf()
    return is_infinite.where(float("inf"), root)


def angle(self: Tensor) -> Tensor:
    """Return the angle of complex numbers in radians; of real ones, π below 0 and else 0.

    PyTorch and NumPy: angle.

    >>> from weft.tensor import Tensor
    >>> [round(a, 4) for a in Tensor([1j, -1, 2]).angle().tolist()]
    [1.5708, 3.1416, 0.0]
    """
    if self.dtype.kind == COMPLEX:
        return imag(self).atan2(real(self))
    x = self if self.dtype.kind == FLOAT else self.cast(dtypes.default_float)
    value = (x < 0).where(math.pi, 0.0).cast(x.dtype)
    return x.isnan().where(x.detach(), value)


def sgn(self: Tensor) -> Tensor:
    """Return x / |x|, and 0 where x is 0; of real numbers, `sign`. PyTorch: sgn.

    >>> from weft.tensor import Tensor
    >>> Tensor([3 + 4j, 0]).sgn().tolist()
    [(0.6000000238418579+0.800000011920929j), 0j]
    """
    if self.dtype.kind != COMPLEX:
        return self.sign()
    size = self.abs()
    is_zero = size == 0
    result: Tensor = is_zero.where(0.0, self / is_zero.where(1.0, size))
    return result


def view_as_real(self: Tensor) -> Tensor:
    """Return the parts of complex numbers in a last axis of size 2. PyTorch: view_as_real.

    >>> from weft.tensor import Tensor
    >>> Tensor([1 + 2j]).view_as_real().tolist()
    [[1.0, 2.0]]
    """
    require_complex(self, "view_as_real")
    return _linked(self, _pairs_of, lambda pairs, _: _of_pairs(pairs))


def view_as_complex(self: Tensor) -> Tensor:
    """Return pairs in a last axis of size 2 as complex numbers. PyTorch: view_as_complex.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 2.0]]).view_as_complex().tolist()
    [(1+2j)]
    """
    if not self.ndim or self.shape[-1] != 2:
        raise ShapeError(
            "view_as_complex: the last axis is not one of pairs",
            facts=[("shape", self.shape)],
            rule="a complex number is made of a real and an imaginary part, in an axis of size 2",
        )
    if self.dtype not in (dtypes.float32, dtypes.float64):
        return complex_of_parts(self[..., 0], self[..., 1])
    return _linked(self, _of_pairs, lambda z, _: _pairs_of(z))


def _pairs_of(z: UOp) -> UOp:
    """Complex numbers as pairs in a new last axis."""
    shape = shape_of(z)
    parts = [movement.reshape(part, (*shape, 1)) for part in (z.real, z.imag)]
    return joined(parts, len(shape))


def _of_pairs(pairs: UOp) -> UOp:
    """Pairs in a last axis as complex numbers."""
    *shape, _ = shape_of(pairs)
    edges = [(0, size) for size in shape]
    x, y = (
        movement.reshape(movement.shrink(pairs, (*edges, (part, part + 1))), shape)
        for part in range(2)
    )
    return complex_from(x, y)


def complex_of_parts(real: Any, imag: Any) -> Tensor:
    """Return complex numbers of their real and imaginary parts, as `torch.complex`.

    >>> from weft.tensor import Tensor
    >>> Tensor.complex(Tensor([1.0]), Tensor([2.0])).tolist()
    [(1+2j)]
    """
    require_real(real, "complex")
    require_real(imag, "complex")
    dtype = promote(real.dtype, imag.dtype)
    dtype = dtype if dtype in (dtypes.float32, dtypes.float64) else dtypes.float32
    x, y = real.broadcast_tensors(real.cast(dtype), imag.cast(dtype))
    made: Tensor = x._new(complex_from(x.uop, y.uop))
    return made


def polar(abs: Any, angle: Any) -> Tensor:
    """Return complex numbers of their magnitudes and angles. PyTorch: polar.

    >>> from weft.tensor import Tensor
    >>> Tensor.polar(Tensor([2.0]), Tensor([0.0])).tolist()
    [(2+0j)]
    """
    return complex_of_parts(abs * angle.cos(), abs * angle.sin())


def isreal(self: Tensor) -> Tensor:
    """Tell where the imaginary part is 0. PyTorch and NumPy: isreal.

    >>> from weft.tensor import Tensor
    >>> Tensor([1 + 0j, 1j]).isreal().tolist()
    [True, False]
    """
    if self.dtype.kind != COMPLEX:
        return self.ones_like(dtype=dtypes.bool)
    return imag(self) == 0

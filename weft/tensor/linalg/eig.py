"""Eigenvalues and eigenvectors of general matrices, by the Schur form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from weft.ir.dtypes import dtypes
from weft.tensor.autodiff.tangent import Tensors, with_tangent
from weft.tensor.checks import known
from weft.tensor.linalg.checks import EPSILON, batched, product, require_square, scale_of
from weft.tensor.linalg.repeat import State, repeated
from weft.tensor.linalg.schur import Schur, schur

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

_COMPLEX = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}
# A column whose elements have grown past it is made small again.
_LIMIT = 2.0**40


class Eig(NamedTuple):
    """Eigenvalues in no order, and eigenvectors of length 1 as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _substitute(
    real: Tensor, imag: Tensor, upper_real: Tensor, upper_imag: Tensor, row: Tensor
) -> State:
    """One row, from the last up, of the x with (T - λ) x = 0, for each λ of the diagonal."""
    cls = real.__class__
    n = known(real.shape[1])
    numbers = cls.arange(n, device=real.device)
    x, upper = cls.complex(real, imag), cls.complex(upper_real, upper_imag)
    is_row = (numbers == row).reshape(1, n, 1)
    values = upper.diagonal(0, 1, 2)  # (batch, n)
    line = is_row.where(upper, 0).sum(1)  # (batch, n)
    own = (numbers == row).where(values, 0).sum(1, keepdim=True)
    beyond = (numbers > row).where(line, 0)
    total = (beyond.unsqueeze(2) * x).sum(1)  # (batch, n), for each λ
    gap = own - values
    size = gap.abs()
    least = EPSILON[upper.dtype]
    # Equal eigenvalues: as if they differed by a rounding.
    safe = (size < least).where(least, gap)
    found = (numbers == row).where(1, (numbers > row).where(-total / safe, 0))
    made = is_row.where(found.unsqueeze(1), x)
    greatest = (made.real.abs() + made.imag.abs()).max(1, keepdim=True)
    factor = (greatest > _LIMIT).where(1 / (greatest > _LIMIT).where(greatest, 1), 1)
    return made.real * factor, made.imag * factor, upper_real, upper_imag, row - 1


def _vectors(form: Schur) -> Tensor:
    """Eigenvectors (batch, n, n) of length 1, the greatest element of each a positive number."""
    upper = form.T
    cls, n = upper.__class__, known(upper.shape[1])
    # The vector of eigenvalue j is 1 at j, and 0 beyond it.
    zero = upper.real * 0
    start = cls.full((1, 1), n - 1, dtype=dtypes.int32, device=upper.device)
    real, imag, *_ = repeated(_substitute, n, zero, zero, upper.real, upper.imag, start)
    x = product(form.Z, cls.complex(real, imag).triu())
    lengths = (x.real * x.real + x.imag * x.imag).sum(1, keepdim=True).sqrt()
    x = x / cls.complex(lengths, lengths.zeros_like())
    sizes = x.real * x.real + x.imag * x.imag
    first = x.gather(1, sizes.argmax(1, keepdim=True))
    return x * (first.conj() / cls.complex(first.abs(), first.real.zeros_like()))


def _of_real(values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues of a real matrix: numbers without an imaginary part, or conjugate pairs.

    What is nearer to its own conjugate than others are is a real number up to rounding. Of a pair
    the one above comes first, as in LAPACK.
    """
    cls, n = values.__class__, known(values.shape[1])
    numbers = cls.arange(n, device=values.device).reshape(1, n)
    apart = values.conj().unsqueeze(2) - values.unsqueeze(1)
    distance = apart.real * apart.real + apart.imag * apart.imag
    partner = distance.argmin(2)  # (batch, n)
    is_real = partner == numbers
    is_mutual = partner.gather(1, partner) == numbers
    other = values.gather(1, partner).conj()
    values = (is_real | is_mutual).where((values + other) * 0.5, values)
    tiny = vectors.imag.abs().max(1) < math.sqrt(EPSILON[values.dtype])
    flat = cls.complex(vectors.real, vectors.imag.zeros_like())
    vectors = (is_real & tiny).unsqueeze(1).where(flat, vectors)
    is_below = is_mutual & (values.imag < 0)
    down = (partner == numbers + 1) & is_below
    up = (partner == numbers - 1) & is_mutual & (values.imag > 0)
    order = down.where(numbers + 1, up.where(numbers - 1, numbers))
    index = order.unsqueeze(1).expand(vectors.shape)
    return values.gather(1, order), vectors.gather(2, index)


def _tangent(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    """P = V⁻¹ dA V: dw = diag P, dV = V (P / (wj - wi)) less what would change a length"""
    (values, vectors), (change,) = results, changes
    inner = vectors.solve(product(change, vectors))
    gaps = values.unsqueeze(1) - values.unsqueeze(2)
    is_same = gaps == 0
    moved = product(vectors, is_same.where(0, inner / is_same.where(1, gaps)))
    along = (vectors.conj() * moved).real.sum(1, keepdim=True)
    return inner.diagonal(0, 1, 2), moved - vectors * along.cast(vectors.dtype)


def eig(self: Tensor) -> Eig:
    """Return the eigenvalues and eigenvectors of a square matrix, or of each in a batch.

    Both are complex: (…, n) and (…, n, n), A @ V = V @ diag(w). Vectors are columns of length 1
    whose greatest element is a positive number; eigenvalues are in no order, but conjugate pairs
    of a real matrix stand together. A matrix whose iteration does not end within 3 n² + 20 n
    rotations gives NaN. The steps are scheduled one by one, so the first call for a large n takes
    long: 30 are some thousand of them. Gradients of eigenvectors need eigenvalues that differ, and
    are those of a length of 1. PyTorch: linalg.eig.

    >>> from weft.tensor import Tensor
    >>> values, vectors = eig(Tensor([[0.0, -1.0], [1.0, 0.0]]))
    >>> values.numpy().round(4).tolist()
    [1j, -1j]
    """
    n = require_square("eig", self)
    whole = batched(self, is_complex_too=True)
    dtype = _COMPLEX.get(whole.dtype, whole.dtype)
    x = whole.cast(dtype)
    if not x.numel():
        return Eig(x.sum(2).reshape(self.shape[:-1]), x.reshape(self.shape))
    scale = scale_of(whole).cast(dtype)
    form = schur(x.detach() / scale)
    values, vectors = form.T.diagonal(0, 1, 2), _vectors(form)
    if not whole.dtype.is_complex:
        values, vectors = _of_real(values, vectors)
    values = form.is_open.where(math.nan, values * scale.squeeze(2))
    vectors = form.is_open.unsqueeze(2).where(math.nan, vectors)
    values, vectors = with_tangent((values, vectors), (x,), _tangent)
    return Eig(values.reshape((*self.shape[:-1],)), vectors.reshape((*self.shape[:-1], n)))

"""Eigenvalues of matrices that are not symmetric, by QR steps with shifts.

A step is A ← Qᴴ A Q with Q R = A - s, of the leading part that has not converged; s is the
eigenvalue of its last two rows that is nearer to its last element. Where the last row has vanished
beside the diagonal, the part loses it. A fixed unitary matrix is put around A first, so that none
of the matrices for which shifts stand still, such as permutations, is met. The number of steps
follows from the size alone, since nothing is read on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from weft.ir.dtypes import dtypes
from weft.tensor.autodiff.tangent import Tensors, with_tangent
from weft.tensor.checks import known
from weft.tensor.complexes.parts import complex_of_parts
from weft.tensor.linalg.checks import (
    EPSILON,
    adjoint,
    batched,
    identity,
    product,
    require_square,
    scale_of,
)
from weft.tensor.linalg.qr import householder
from weft.tensor.linalg.repeat import State, repeated
from weft.tensor.methods.unary import as_float

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

_STEPS_OF_EACH: Final = 8  # three are usual
_SPARE_STEPS: Final = 24


class Eig(NamedTuple):
    """Eigenvalues in no order, and eigenvectors of length 1 as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eig(self: Tensor) -> Eig:
    """The complex eigenvalues and eigenvectors of a matrix, or of each in a batch.

    Eigenvalues (…, n) have no order, and the columns of (…, n, n) have length 1; their greatest
    element is real. Gradients need eigenvalues that differ. PyTorch and NumPy: linalg.eig.

    >>> from weft.tensor import Tensor
    >>> values, vectors = eig(Tensor([[0.0, -1.0], [1.0, 0.0]]))
    >>> sorted(round(value, 4) for value in values.imag.tolist())
    [-1.0, 1.0]
    """
    size = require_square("eig", self)
    wide = batched(self, is_complex_too=True)
    is_double = wide.dtype.part is dtypes.float64
    x = wide.cast(dtypes.complex128 if is_double else dtypes.complex64)
    found: Tensors = _decomposed(x) if size else (x.reshape(x.shape[0], 0), x)
    values, vectors = with_tangent(found, (x,), _tangent) if size else found
    keeps = as_float(self).dtype.part is dtypes.float64
    dtype = dtypes.complex128 if keeps else dtypes.complex64
    return Eig(
        values.reshape(self.shape[:-1]).cast(dtype), vectors.reshape(self.shape).cast(dtype)
    )


def _decomposed(x: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of complex (batch, n, n), as constants."""
    count, size, _ = map(known, x.shape)
    scale = scale_of(x)
    start = _unitary(x, size)
    fixed = product(adjoint(start), product(x.detach() / scale, start))
    left = (x.real[:, :1, 0].detach() * 0 + size).cast(dtypes.int32)  # (batch, 1): rows to go
    steps = _STEPS_OF_EACH * size + _SPARE_STEPS if size > 1 else 0
    upper, vectors, _ = repeated(_step, steps, fixed, start.expand(count, size, size) + 0, left)
    values = upper.diagonal(0, 1, 2)
    whole = product(vectors, _triangular_vectors(upper))
    length = (whole.real.square() + whole.imag.square()).sum(1, keepdim=True).sqrt()
    whole = whole / length
    return values * scale.squeeze(2), whole * _turn(whole)


def _unitary(like: Tensor, size: int) -> Tensor:
    """A unitary matrix (1, n, n) without a structure."""
    number = like.__class__.arange(size * size, dtype=like.dtype.part, device=like.device)
    mixed = (number * number * 0.7 + number * 1.3).sin().reshape((1, size, size))
    return householder((mixed + identity(mixed, size)).cast(like.dtype)).Q


def _step(matrix: Tensor, vectors: Tensor, left: Tensor) -> State:
    """One QR step of the leading rows, and a look at whether the last of them is done."""
    size = known(matrix.shape[1])
    number = left.__class__.arange(size, dtype=dtypes.int32, device=left.device)
    inside = number < left  # (batch, n)
    last, above = (number == left - 1), (number == left - 2)
    both = inside.unsqueeze(2) & inside.unsqueeze(1)
    one = identity(matrix, size)
    shift = _shift(matrix, last, above)  # (batch, 1, 1)
    q, _ = householder(both.where(matrix - one * shift, one))
    matrix = product(adjoint(q), product(matrix, q))
    vectors = product(vectors, q)
    sizes = matrix.real.abs() + matrix.imag.abs()
    row = (last.unsqueeze(2) & (inside & ~last).unsqueeze(1)).where(sizes, 0.0).sum((1, 2))
    corner = (last.unsqueeze(2) & last.unsqueeze(1)).where(sizes, 0.0).sum((1, 2))
    before = (above.unsqueeze(2) & above.unsqueeze(1)).where(sizes, 0.0).sum((1, 2))
    limit = EPSILON[matrix.dtype] * (corner + before + 2.0**-20)
    is_done = (row <= limit).unsqueeze(1) & (left > 1)
    return matrix, vectors, is_done.where(left - 1, left)


def _shift(matrix: Tensor, last: Tensor, above: Tensor) -> Tensor:
    """The eigenvalue of the last two active rows that is nearer to the last element."""

    def element(row: Tensor, column: Tensor) -> Tensor:
        mask = row.unsqueeze(2) & column.unsqueeze(1)
        return mask.where(matrix, 0.0).sum((1, 2), keepdim=True)

    a, b, c, d = (element(i, j) for i in (above, last) for j in (above, last))
    half = (a - d) * 0.5
    root = (half * half + b * c).sqrt()
    far = (half.real * root.real + half.imag * root.imag) < 0
    total = far.where(half - root, half + root)
    is_zero = (total.real == 0) & (total.imag == 0)
    nearest: Tensor = d - b * c / is_zero.where(1.0, total)
    return nearest


def _triangular_vectors(upper: Tensor) -> Tensor:
    """The eigenvectors of upper triangular (batch, n, n), with ones on the diagonal."""
    size = known(upper.shape[1])
    values = upper.diagonal(0, 1, 2).unsqueeze(1)  # (batch, 1, n)
    least = EPSILON[upper.dtype] * ((values.real.abs() + values.imag.abs()).max(2, keepdim=True))
    least = least + 2.0**-100
    found = upper * 0
    row = identity(upper, size)[-1:] + upper[:, :1] * 0  # (batch, 1, n): which row is next
    _, _, found, _ = repeated(_solve_row, size, upper.triu(), least.cast(upper.dtype), found, row)
    return found


def _solve_row(upper: Tensor, least: Tensor, found: Tensor, row: Tensor) -> State:
    """The row of the vectors that `row` says, from those below it."""
    line = product(row, upper)  # (batch, 1, n)
    own = (line * row).sum(2, keepdim=True)
    values = upper.diagonal(0, 1, 2).unsqueeze(1)
    gap = own - values
    is_near = gap.real.abs() + gap.imag.abs() < least.real
    new = -product(line, found) / is_near.where(least, gap)
    after = row.real.cumsum(2) - row.real  # 1 behind the diagonal
    found = found + product(row.transpose(1, 2), (after > 0).where(new, 0.0) + row)
    return upper, least, found, row.roll(-1, 2)


def _turn(vectors: Tensor) -> Tensor:
    """What makes the greatest element of each column real."""
    sizes = vectors.real.square() + vectors.imag.square()
    at = sizes.argmax(1, keepdim=True)
    real, imag = (each.gather(1, at) for each in (vectors.real, vectors.imag))
    length = (real * real + imag * imag).sqrt()
    return complex_of_parts(real / length, -imag / length)


def _tangent(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    """P = V⁻¹ dA V: dw = diag P, dV = V (P / (wj - wi)), less what changes lengths"""
    (values, vectors), (change,) = results, changes
    inner = vectors.inv().matmul(product(change, vectors))
    gaps = values.unsqueeze(1) - values.unsqueeze(2)
    is_zero = (gaps.real == 0) & (gaps.imag == 0)
    weights = is_zero.where(0.0, inner / is_zero.where(1.0, gaps))
    moved = product(vectors, weights)
    along = (vectors.conj() * moved).sum(1, keepdim=True).real
    return inner.diagonal(0, 1, 2), moved - vectors * along

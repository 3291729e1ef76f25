"""Eigenvalues and singular values by Jacobi rotations, and what is made of them.

Columns are paired as in a round-robin tournament, the first with the last, the second with the one
before it, and so on: a step rotates all n / 2 pairs at once, then the columns are permuted so that
the next step finds its pairs at the same indices. After n - 1 steps, a sweep, every pair has met
and every column is back. The number of sweeps follows from the dtype and the size alone, since
nothing is read on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from weft.ir.dtypes import dtypes, promote
from weft.tensor.autodiff.tangent import Tensors, with_tangent
from weft.tensor.checks import known
from weft.tensor.linalg.checks import (
    EPSILON,
    batched,
    identity,
    product,
    require_matrix,
    require_square,
    scale_of,
    transposed,
)
from weft.tensor.linalg.qr import householder
from weft.tensor.linalg.repeat import State, repeated
from weft.tensor.linalg.solve import system
from weft.tensor.linalg.triangular import from_lower
from weft.tensor.methods.unary import as_float

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


class Eigh(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVD(NamedTuple):
    """U, singular values in descending order, and the transpose of V."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class LeastSquares(NamedTuple):
    """A solution, the squared lengths of what is left, the rank and the singular values."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def _steps(size: int, sweeps: int) -> int:
    """The steps of some sweeps over columns, whose number is made even."""
    return sweeps * max(size + size % 2 - 1, 1) if size > 1 else 0


def _angles(
    first: Tensor, second: Tensor, product: Tensor, least: Tensor | float
) -> tuple[Tensor, Tensor]:
    """The cosine and sine that make a pair orthogonal, by the smaller of two angles.

    A product up to `least` is rounding. To rotate by it would mix columns of equal length at
    random, and undo what other pairs have reached.
    """
    is_done = product.abs() <= least
    slope = (second - first) / (is_done.where(1.0, product) * 2.0)
    root = (slope * slope + 1.0).sqrt()
    tangent = is_done.where(0.0, (slope < 0).where(-1.0, 1.0) / (slope.abs() + root))
    cosine = (tangent * tangent + 1.0).rsqrt()
    return cosine, tangent * cosine


def _of_columns(cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor]:
    """The angles of pairs (batch, n/2) for each column; the last of a pair rotates back."""
    return (
        cosine.cat(cosine.flip(1), dim=1).contiguous(),
        sine.cat(-sine.flip(1), dim=1).contiguous(),
    )


def _rotated(x: Tensor, axis: int, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate the pairs along an axis, and move each column on to its next partner.

    The first column stays and the others go round, to the right.
    """
    size = known(x.shape[axis])
    number = x.__class__.arange(size, device=x.device)
    source = (number > 1).where(number - 1, (number == 1).where(size - 1, 0))
    key: list[Any] = [slice(None)] * axis
    shape = [1 if each != axis else size for each in range(x.ndim)]
    shape[0] = -1
    of_own, of_other = (each[:, source].reshape(shape) for each in (cosine, sine))
    return x[*key, source] * of_own - x[*key, size - 1 - source] * of_other


def _eigen_step(matrix: Tensor, vectors: Tensor) -> State:
    """Rotate (batch, n, n) from both sides, and the vectors (batch, m, n)."""
    half = known(matrix.shape[1]) // 2
    diagonal = matrix.diagonal(0, 1, 2)  # (batch, n)
    product = matrix.flip(2).diagonal(0, 1, 2)[:, :half]
    first, second = diagonal[:, :half], diagonal.flip(1)[:, :half]
    angles = _of_columns(*_angles(first, second, product, EPSILON[matrix.dtype] / 4))
    return _rotated(_rotated(matrix, 2, *angles), 1, *angles), _rotated(vectors, 2, *angles)


def _ranks(values: Tensor) -> Tensor:
    """The rank of each value (batch, n) in ascending order; equal values keep their order."""
    size = known(values.shape[1])
    values = values.contiguous()  # each is compared with each
    mine, others = values.unsqueeze(2), values.unsqueeze(1)
    earlier = values.ones_like(dtype=dtypes.bool).unsqueeze(1).expand(-1, size, size).tril(-1)
    return ((others < mine) | ((others == mine) & earlier)).sum(2).contiguous()


def _order(ranks: Tensor) -> Tensor:
    """For each rank the position (batch, n) of the value that has it."""
    size = known(ranks.shape[1])
    if not size:
        return ranks
    numbers = ranks.__class__.arange(size, device=ranks.device).reshape(1, size, 1)
    return (ranks.unsqueeze(1) == numbers).argmax(2).contiguous()


def _orthonormal(vectors: Tensor) -> Tensor:
    """Columns that are nearly orthonormal, after many rotations, made so up to one rounding."""
    return vectors * 1.5 - product(vectors, product(vectors, vectors, transpose_a=True)) * 0.5


def _pick_rows(x: Tensor, order: Tensor) -> Tensor:
    return x.gather(1, order.unsqueeze(2).expand(-1, -1, x.shape[2]))


def _pick_columns(x: Tensor, order: Tensor) -> Tensor:
    return x.gather(2, order.unsqueeze(1).expand(-1, x.shape[1], -1))


def _jacobi(matrix: Tensor) -> Eigh:
    """Eigenvalues and eigenvectors of symmetric (batch, n, n), as constants."""
    count, _, size = map(known, matrix.shape)
    scale = scale_of(matrix)
    odd = size % 2  # one more row of zeros, which no rotation touches
    start = (matrix.detach() / scale).pad((0, odd, 0, odd))
    vectors = identity(matrix, size + odd)[:size].expand(count, size, size + odd)
    # Equal eigenvalues converge slowly, so there are sweeps to spare for them.
    more = max(size - 1, 1).bit_length()
    steps = _steps(size, 2 * more if matrix.dtype is dtypes.float32 else 4 * more - 2)
    _, vectors = repeated(_eigen_step, steps, start, vectors)
    vectors = _orthonormal(vectors[:, :, :size])
    values = (product(matrix.detach() / scale, vectors) * vectors).sum(1) * scale.squeeze(2)
    order = _order(_ranks(values))
    return Eigh(values.gather(1, order), _pick_columns(vectors, order))


def _inverse_gaps(values: Tensor) -> Tensor:
    """1 / (value j - value i), and 0 where they are equal, as (batch, n, n)."""
    gaps = values.unsqueeze(1) - values.unsqueeze(2)
    return (gaps == 0).where(0.0, 1.0 / (gaps == 0).where(1.0, gaps))


def _eigen_tangent(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    """P = Vᵀ dA V: dw = diag P, dV = V (P / (wj - wi))"""
    (values, vectors), (change,) = results, changes
    inner = product(vectors, product(change, vectors), transpose_a=True)
    change_of_vectors = product(vectors, inner * _inverse_gaps(values))
    return inner.diagonal(0, 1, 2), change_of_vectors


def eigh(self: Tensor, UPLO: str = "L") -> Eigh:
    """Return the eigenvalues and eigenvectors of a symmetric matrix, or of each in a batch.

    Eigenvalues (…, n) ascend, and the columns of (…, n, n) are orthonormal eigenvectors; their
    signs are arbitrary. The lower triangle is read, or the upper one for "U". Gradients of
    eigenvectors need eigenvalues that differ; between equal ones nothing flows, where those of
    `torch.linalg.eigh` are not finite.

    >>> from weft.tensor import Tensor
    >>> values, vectors = Tensor([[2.0, 1.0], [1.0, 2.0]]).eigh()
    >>> [round(value, 5) for value in values.tolist()]
    [1.0, 3.0]
    """
    size = require_square("eigh", self)
    x = batched(self)
    whole = from_lower(x if UPLO.upper() == "L" else transposed(x))
    found: Tensors = _jacobi(whole) if size else (x.reshape(x.shape[0], 0), x)
    values, vectors = with_tangent(found, (whole,), _eigen_tangent) if size else found
    dtype = as_float(self).dtype
    return Eigh(
        values.reshape(self.shape[:-1]).cast(dtype), vectors.reshape(self.shape).cast(dtype)
    )


def _singular_step(work: Tensor, vectors: Tensor) -> State:
    """Make pairs of columns of (batch, m, n) orthogonal, and rotate the vectors with them."""
    half = known(work.shape[2]) // 2
    top, bottom = work[:, :, :half], work.flip(2)[:, :, :half]  # (batch, m, n/2)
    first, second, product_ = (
        (a * b).sum(1) for a, b in ((top, top), (bottom, bottom), (top, bottom))
    )
    least = (first.sqrt() * second.sqrt()) * (EPSILON[work.dtype] / 4)
    angles = _of_columns(*_angles(first, second, product_, least))
    return _rotated(work, 2, *angles), _rotated(vectors, 2, *angles)


def _one_sided(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Left vectors, lengths and right vectors (as columns) of square (batch, n, n).

    The columns become orthogonal. Then QR divides them by their lengths, and finds directions
    where a length is 0.
    """
    count, _, size = map(known, x.shape)
    odd = size % 2
    one = identity(x, size + odd)[:size].expand(count, size, size + odd)
    last = 3 if x.dtype is dtypes.float32 else 4
    steps = _steps(size, last + max(size - 1, 1).bit_length())
    _, found = repeated(_singular_step, steps, x.pad((0, odd)), one)
    right = _orthonormal(found[:, :, :size])
    columns = product(x, right)
    order = _order(_ranks(-(columns * columns).sum(1)))
    q, r = householder(_pick_columns(columns, order))
    lengths = r.diagonal(0, 1, 2)
    sign = (lengths < 0).where(-1.0, 1.0).unsqueeze(1)
    return q * sign, lengths.abs(), _pick_columns(right, order)


def _sorted_qr(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Q, the transpose of the square R, and the ranks, of columns sorted from long to short."""
    ranks = _ranks(-(x * x).sum(1))
    q, r = householder(_pick_columns(x, _order(ranks)))
    return q, transposed(r[:, : known(x.shape[2])]), ranks


def jacobi_svd(x: Tensor, is_complete: bool) -> SVD:
    """The decomposition of (batch, m, n) with m >= n, as constants; U is m by m if complete.

    Two QR decompositions come first, with the transpose of R taken on: it is nearly diagonal, so
    that few sweeps are enough however the singular values lie (Drmač and Veselić, 2008).
    """
    size = known(x.shape[2])
    scale = scale_of(x)
    outer_q, outer, outer_ranks = _sorted_qr(x.detach() / scale)
    inner_q, inner, inner_ranks = _sorted_qr(outer)
    left, lengths, right = _one_sided(inner)
    # With P for the sorting: x P = Q R, Rᵀ P' = Q' R', and R'ᵀ = left lengths rightᵀ.
    u = product(outer_q[:, :, :size], _pick_rows(left, inner_ranks))
    v = _pick_rows(product(inner_q, right), outer_ranks)
    u = u.cat(outer_q[:, :, size:], dim=2) if is_complete else u
    return SVD(u, lengths * scale.squeeze(2), transposed(v))


def _singular_tangent(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    """P = Uᵀ dA V, F = 1 / (sj² - si²): dS = diag P,
    dU = U (F (P S + S Pᵀ)) + (1 - U Uᵀ) dA V / S,
    dV = V (F (S P + Pᵀ S)) + (1 - V Vᵀ) dAᵀ U / S
    """
    (u, s, vh), (change,) = results, changes
    on_right = product(change, vh, transpose_b=True)  # dA V
    on_left = product(change, u, transpose_a=True)  # dAᵀ U
    inner = product(u, on_right, transpose_a=True)
    of_columns, of_rows = s.unsqueeze(1), s.unsqueeze(2)
    total = of_columns + of_rows
    total = (total == 0).where(1.0, total)
    gaps = _inverse_gaps(s)
    of_columns, of_rows = of_columns / total, of_rows / total
    left = gaps * (inner * of_columns + of_rows * transposed(inner))
    right = gaps * (of_rows * inner + transposed(inner) * of_columns)
    inverse = (s == 0).where(0.0, 1.0 / (s == 0).where(1.0, s)).unsqueeze(1)
    # (1 - U Uᵀ) dA V / S is dA V / S less U times what is inside, and so for V.
    of_u = on_right * inverse + product(u, left - inner * inverse)
    of_v = on_left * inverse + product(vh, right - transposed(inner) * inverse, transpose_a=True)
    return of_u, inner.diagonal(0, 1, 2), transposed(of_v)


def svd(
    self: Tensor,
    full_matrices: bool = True,
    *,
    some: bool | None = None,
    compute_uv: bool = True,
) -> SVD:
    """Return U, S and Vh with U @ diag(S) @ Vh = self, for (…, m, n) and k = min(m, n).

    S (…, k) descends. U is (…, m, m) and Vh (…, n, n), or (…, m, k) and (…, k, n) without
    `full_matrices`; signs are arbitrary. Gradients of U and Vh need singular values that differ
    and are not 0, and there are none of the columns that `full_matrices` adds. The names are
    those of `torch.linalg.svd`; `numpy.linalg.svd` gives the same. With `some` it is `torch.svd`,
    whose third result is V and which computes the full matrices for some=False.

    >>> from weft.tensor import Tensor
    >>> u, s, vh = Tensor([[3.0, 0.0], [0.0, -2.0]]).svd()
    >>> s.tolist()
    [3.0, 2.0]
    """
    if some is not None:
        u, values, vh = self.svd(full_matrices=not some)
        if not compute_uv:
            zeros = (each.zeros_like() for each in (u, vh))
            u, vh = zeros
        return SVD(u, values, transposed(vh))
    rows, columns = require_matrix("svd", self)
    if rows < columns:
        u, s, vh = transposed(self).svd(full_matrices)
        return SVD(transposed(vh), s, transposed(u))
    x = batched(self)
    found = jacobi_svd(x, full_matrices)
    u, s, vh = found
    if columns:
        u, s, vh = with_tangent((u[:, :, :columns], s, vh), (x,), _singular_tangent)
        if full_matrices and rows > columns:
            u = u.cat(found.U[:, :, columns:].detach(), dim=2)
    batch, dtype = self.shape[:-2], as_float(self).dtype
    return SVD(*[each.reshape((*batch, *each.shape[1:])).cast(dtype) for each in (u, s, vh)])


def _pseudo_inverse(x: Tensor, rtol: float | None) -> tuple[Tensor, Tensor, Tensor]:
    """The pseudo-inverse of (batch, m, n), how many singular values count, and all of them."""
    rows, columns = known(x.shape[1]), known(x.shape[2])
    limit = max(rows, columns) * EPSILON[x.dtype] if rtol is None else rtol
    u, s, vh = (each.detach() for each in x.svd(full_matrices=False))
    if not min(rows, columns):
        return transposed(x), s.sum(1).cast(dtypes.int64), s
    counts = s > s[:, :1] * limit
    inverse = counts.where(1.0 / counts.where(s, 1.0), 0.0)
    found = product(vh * inverse.unsqueeze(2), u, transpose_a=True, transpose_b=True)
    return with_tangent((found,), (x,), pseudo_inverse_tangent)[0], counts.sum(1), s


def pseudo_inverse_tangent(results: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    """dP = -P dA P + P Pᵀ dAᵀ (1 - A P) + (1 - P A) dAᵀ Pᵀ P, where the rank stays"""
    (p,), (at,), (change,) = results, inputs, changes
    outside = transposed(change) - product(product(change, at, transpose_a=True), p)
    inside = product(product(change, p, transpose_a=True, transpose_b=True), p)
    grown = product(p, outside, transpose_a=True) - product(change, p) - product(at, inside)
    return (product(p, grown) + inside,)


def pinv(self: Tensor, rtol: float | None = None) -> Tensor:
    """Return the pseudo-inverse (…, n, m) of a matrix (…, m, n).

    Singular values below `rtol` times the greatest count as 0; by default max(m, n) times the
    distance from 1 to the next float, as in `torch.linalg.pinv`.

    >>> from weft.tensor import Tensor
    >>> Tensor([[2.0, 0.0], [0.0, 0.0]]).pinv().tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    rows, columns = require_matrix("pinv", self)
    found = _pseudo_inverse(batched(self), rtol)[0]
    return found.reshape((*self.shape[:-2], columns, rows)).cast(as_float(self).dtype)


def lstsq(self: Tensor, other: Tensor, rcond: float | None = None) -> LeastSquares:
    """Return the x of least length among those for which self @ x is nearest to other.

    For (…, m, n) and (…, m, k) the solution is (…, n, k). The residuals (…, k), squared lengths of
    other - self @ x, are always there. `torch.linalg.lstsq` and `numpy.linalg.lstsq` leave them
    out where the rank is below n, which is not known before the values are.

    >>> from weft.tensor import Tensor
    >>> a, b = Tensor([[1.0], [1.0]]), Tensor([[1.0], [3.0]])
    >>> [round(each, 5) for each in a.lstsq(b).solution.flatten().tolist()]
    [2.0]
    """
    rows, columns = require_matrix("lstsq", self)
    matrix, right, is_vector = system("lstsq", self, other)
    inverse, rank, values = _pseudo_inverse(batched(matrix), rcond)
    batch = matrix.shape[:-2]
    solution = product(inverse.reshape((*batch, columns, rows)), right)
    rest = right - product(matrix, solution)
    residuals = (rest * rest).sum(-2)
    dtype = promote(as_float(self).dtype, as_float(other).dtype)
    if is_vector:
        solution, residuals = solution.squeeze(-1), residuals.squeeze(-1)
    values = values.reshape((*batch, min(rows, columns)))
    parts = [each.cast(dtype) for each in (solution, residuals, values)]
    return LeastSquares(parts[0], parts[1], rank.reshape(batch), parts[2])


def nuclear_norm(self: Tensor) -> Tensor:
    """The sum of the singular values of (…, m, n)."""
    return self.svd(full_matrices=False).S.sum(-1)


def spectral_norm(self: Tensor, is_greatest: bool) -> Tensor:
    """The greatest or the least singular value of (…, m, n)."""
    return self.svd(full_matrices=False).S[..., 0 if is_greatest else -1]

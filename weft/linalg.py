"""Linear algebra with the names and the arguments of torch.linalg.

The methods of `Tensor` do the work. Singular matrices do not raise, because nothing is computed
before somebody reads it; the `_ex` forms give an `info` that says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.support.errors import ArgumentError, LinAlgError
from weft.support.module_names import missing_name
from weft.tensor.autodiff.tangent import with_tangent
from weft.tensor.linalg import ldl
from weft.tensor.linalg.combined import multi_dot
from weft.tensor.linalg.eig import Eig
from weft.tensor.linalg.eig import eig as eig_of
from weft.tensor.linalg.lu import LU, PLU, plu
from weft.tensor.linalg.lu import lu_solve as solve_packed
from weft.tensor.linalg.qr import QR
from weft.tensor.linalg.solve import SignLogDet
from weft.tensor.linalg.spectral import SVD, Eigh, LeastSquares, pseudo_inverse_tangent
from weft.tensor.tensor import Tensor

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]


class WithInfo(NamedTuple):
    """A result, and 0 for each matrix where it is one."""

    result: Tensor
    info: Tensor


class LUWithInfo(NamedTuple):
    """The packed factors, the pivots, and 0 for each matrix that is regular."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The vector product along an axis of size 3."""
    return input.cross(other, dim)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The products of vectors along an axis."""
    return x.vecdot(y, dim)


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of matrices."""
    return input.matmul(other)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices."""
    return A.diagonal(offset, dim1, dim2)


def det(A: Tensor) -> Tensor:
    """The determinant."""
    return A.det()


def slogdet(A: Tensor) -> SignLogDet:
    """The sign of the determinant and the logarithm of its size."""
    return A.slogdet()


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangle L with L Lᵀ = A."""
    return A.cholesky(upper)


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> WithInfo:
    """`cholesky`, and the first minor that is not positive, or 0."""
    found = A.cholesky(upper)
    diagonal = found.diagonal(0, -2, -1)
    bad = (diagonal.isfinite() & (diagonal > 0)).logical_not()
    size = int(A.shape[-1])
    numbers = Tensor.arange(1, size + 1, device=A.device)
    first = bad.where(numbers, size + 1).min(-1) if size else bad.sum(-1)
    info = (first > size).where(0, first) if size else first
    return _checked("cholesky_ex", WithInfo(found, info.cast("int32")), check_errors)  # type: ignore[no-any-return]


def _checked(name: str, found: Any, is_wanted: bool) -> Any:
    """What has an `info`; an error where it is wanted and a matrix is at fault."""
    if is_wanted and bool((found.info != 0).any().item()):
        raise LinAlgError(
            f"{name}: a matrix is singular, or not positive definite",
            facts=[("info", found.info.tolist())],
            rule="info is 0 for each matrix that has the factors",
            fix="leave out check_errors=True to go on, and look at info",
        )
    return found


def _info(bad: Tensor) -> Tensor:
    return bad.cast("int32")


def inv(A: Tensor) -> Tensor:
    """The inverse."""
    return A.inv()


def inv_ex(A: Tensor, *, check_errors: bool = False) -> WithInfo:
    """`inv`, and 1 for each matrix that has none."""
    found = A.inv()
    made = WithInfo(found, _info(found.isinf().any((-2, -1))))
    return _checked("inv_ex", made, check_errors)  # type: ignore[no-any-return]


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The X with A X = B, or X A = B."""
    if left:
        return A.solve(B)
    is_vector = B.ndim == 1 or (A.ndim > 2 and B.shape == A.shape[:-1])
    if is_vector:
        return A.mT.solve(B)  # type: ignore[no-any-return]
    return A.mT.solve(B.mT).mT  # type: ignore[no-any-return]


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> WithInfo:
    """`solve`, and 1 for each matrix that is singular."""
    made = WithInfo(solve(A, B, left=left), _info(A.detach().det() == 0))
    return _checked("solve_ex", made, check_errors)  # type: ignore[no-any-return]


def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """`solve` with a triangular matrix."""
    return A.solve_triangular(B, upper, left, unitriangular)


def lu_factor(A: Tensor, *, pivot: bool = True) -> LU:
    """The factors of the LU decomposition in one matrix, and its pivots."""
    return A.lu_factor(pivot=pivot)


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUWithInfo:
    """`lu_factor`, and the first pivot that is 0, or 0."""
    packed, pivots = A.lu_factor(pivot=pivot)
    diagonal = packed.detach().diagonal(0, -2, -1)
    size = int(diagonal.shape[-1])
    numbers = Tensor.arange(1, size + 1, device=A.device)
    first = (diagonal == 0).where(numbers, size + 1).min(-1) if size else diagonal.sum(-1)
    info = (first > size).where(0, first) if size else first
    made = LUWithInfo(packed, pivots, info.cast("int32"))
    return _checked("lu_factor_ex", made, check_errors)  # type: ignore[no-any-return]


def lu(A: Tensor, *, pivot: bool = True) -> PLU:
    """P, L and U with P L U = A."""
    return plu(A, pivot=pivot)


def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """`solve`, by what `lu_factor` gives."""
    return solve_packed(LU, pivots, B, left=left, adjoint=adjoint)


def qr(A: Tensor, mode: str = "reduced") -> QR:
    """Q with orthonormal columns and an upper triangle R."""
    return A.qr(mode)


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of a product of reflections."""
    return A.householder_product(tau)


def eigh(A: Tensor, UPLO: str = "L") -> Eigh:
    """The eigenvalues and eigenvectors of a symmetric matrix."""
    return A.eigh(UPLO)


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric matrix."""
    return A.eigh(UPLO).eigenvalues


def eig(A: Tensor) -> Eig:
    """The eigenvalues and eigenvectors of a square matrix, which are complex.

    >>> eig(Tensor([[2.0, 1.0], [0.0, 3.0]])).eigenvalues.tolist()
    [(2+0j), (3+0j)]
    """
    return eig_of(A)


def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of a square matrix, which are complex."""
    return eig_of(A).eigenvalues


def ldl_factor(A: Tensor, *, hermitian: bool = False) -> ldl.LDL:
    """The factors L D Lᵀ of a symmetric matrix in one matrix, and LAPACK's pivots."""
    found = ldl.ldl_factor(A, hermitian=hermitian)
    return ldl.LDL(found.LD, found.pivots)


def ldl_factor_ex(
    A: Tensor, *, hermitian: bool = False, check_errors: bool = False
) -> ldl.LDLWithInfo:
    """`ldl_factor`, and the first block of D that is 0, or 0."""
    found = ldl.ldl_factor(A, hermitian=hermitian)
    return _checked("ldl_factor_ex", found, check_errors)  # type: ignore[no-any-return]


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """`solve`, by what `ldl_factor` gives."""
    return ldl.ldl_solve(LD, pivots, B, hermitian=hermitian)


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """The singular value decomposition."""
    return A.svd(full_matrices)


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values."""
    return A.svd(full_matrices=False).S


def _limit(values: Tensor, A: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Below it a singular value counts as 0: (…, 1)."""
    epsilon = 2.0**-52 if A.dtype.bits == 64 else 2.0**-23
    greatest = values.max(-1, keepdim=True) if int(values.shape[-1]) else values.sum(-1, True)
    least: Any = 0.0 if atol is None else _column(atol)
    if rtol is None:
        share: Any = max(int(A.shape[-2]), int(A.shape[-1])) * epsilon
        # An absolute limit alone leaves no relative one.
        if atol is not None:
            share = (least > 0).where(0.0, share) if isinstance(least, Tensor) else share
            share = 0.0 if isinstance(least, float) and least > 0 else share
    else:
        share = _column(rtol)
    relative = greatest * share
    return relative.maximum(least)  # type: ignore[no-any-return]


def _column(limit: Any) -> Any:
    return limit.unsqueeze(-1) if isinstance(limit, Tensor) else float(limit)


def matrix_rank(
    A: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Tensor:
    """The number of singular values that are not 0."""
    values = eigvalsh(A).abs() if hermitian else svdvals(A)
    if tol is not None:
        limit = values.zeros_like()[..., :1] + _column(tol) if int(values.shape[-1]) else values
    else:
        limit = _limit(values, A, atol, rtol)
    return (values > limit).sum(-1).cast("int64")


def pinv(
    A: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Tensor:
    """The pseudo-inverse."""
    rtol = rcond if rtol is None else rtol
    if atol is None and not hermitian and (rtol is None or isinstance(rtol, (int, float))):
        return A.pinv(rtol)
    if hermitian:
        values, vectors = A.eigh()
        limit = _limit(values.detach().abs(), A, atol, rtol)
        kept = values.abs() > limit
        inverse = kept.where(1.0 / kept.where(values, 1.0), 0.0)
        found = vectors.matmul(inverse.unsqueeze(-1) * vectors.mT).detach()
        return with_tangent((found,), (A,), pseudo_inverse_tangent)[0]
    u, s, vh = A.svd(full_matrices=False)
    limit = _limit(s.detach(), A, atol, rtol)
    inverse = (s > limit).where(1.0 / (s > limit).where(s, 1.0), 0.0)
    return vh.mT.matmul(inverse.unsqueeze(-1) * u.mT)  # type: ignore[no-any-return]


def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> LeastSquares:
    """The X for which A X is nearest to B."""
    kind = driver or "gelsy"
    found = A.lstsq(B, None if rcond is None else float(rcond))
    rows, columns = int(A.shape[-2]), int(A.shape[-1])
    empty = A.zeros((0,), dtype=A.dtype, device=A.device)
    residuals = found.residuals if rows > columns and kind != "gelsy" else empty
    if kind == "gelsy" and rows > columns:
        residuals = found.residuals
    rank = empty.cast("int64") if kind == "gels" else found.rank
    values = found.singular_values if kind in ("gelsd", "gelss") else empty
    return LeastSquares(found.solution, residuals, rank, values)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """The n-th power of a square matrix."""
    return A.matrix_power(n)


def matrix_exp(A: Tensor) -> Tensor:
    """The exponential of a square matrix."""
    return A.matrix_exp()


def vector_norm(
    x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The p-norm of vectors along axes; of all elements where none is named."""
    dim = (dim,) if isinstance(dim, int) else dim
    if dim is not None and not tuple(dim):
        dim = None
    return x.norm(float(ord), dim, keepdim, dtype)


def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """A norm of the matrices of two axes."""
    x = A if dtype is None else A.cast(dtype)
    first, second = (axis % x.ndim for axis in dim)
    rest = [axis for axis in range(x.ndim) if axis not in (first, second)]
    moved = x.permute([*rest, first, second])
    found = moved.matrix_norm(ord)
    if not keepdim:
        return found
    shape = [1 if axis in (first, second) else size for axis, size in enumerate(x.shape)]
    return found.reshape(shape)


def norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """A norm of vectors, or of matrices where two axes and an order say so."""
    if dim is None and ord is None:
        return vector_norm(A, 2, None, keepdim, dtype=dtype)
    if dim is None and A.ndim not in (1, 2):
        raise ArgumentError(
            f"linalg.norm: ord {ord!r} of a tensor with {A.ndim} axes",
            rule="without dim, ord is one of a vector or of a matrix",
        )
    axes = tuple(range(A.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if ord is not None and len(axes) == 2:
        return matrix_norm(A, ord, axes, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, axes, keepdim, dtype=dtype)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """How much a system amplifies errors: |A| |A⁻¹|."""
    if p in (None, 2, -2):
        values = svdvals(A)
        if not int(values.shape[-1]):
            return values.sum(-1)
        greatest, least = values[..., 0], values[..., -1]
        return least / greatest if p == -2 else greatest / least
    found = matrix_norm(A, p) * matrix_norm(A.inv(), p)
    return found.isnan().where(math.inf, found) if not A._wants else found


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of a map between tensors."""
    return A.tensorinv(ind)


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The X that a map takes to B."""
    return A.tensorsolve(B, dims)


def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The powers of each element, from 0 on."""
    return x.vander(N, increasing=True)


__getattr__ = missing_name(__name__)

"""The greatest singular values of large matrices, by products with random ones.

The method is that of Halko, Martinsson and Tropp, "Finding structure with randomness" (2011):
a few products with the matrix and its transpose find a basis of its range, and the decomposition
is that of what is left in the basis.
"""

from __future__ import annotations

from weft.support.errors import ArgumentError
from weft.tensor.checks import known
from weft.tensor.linalg.spectral import SVD
from weft.tensor.tensor import Tensor


def _basis(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """Orthonormal columns (…, m, q) that nearly span the range of A - M."""

    def times(x: Tensor) -> Tensor:
        return A.matmul(x) if M is None else A.matmul(x) - M.matmul(x)

    def back(x: Tensor) -> Tensor:
        return A.mT.matmul(x) if M is None else A.mT.matmul(x) - M.mT.matmul(x)  # type: ignore[no-any-return]

    start = Tensor.randn(known(A.shape[-1]), q, dtype=A.dtype, device=A.device)
    found = times(start.expand(*A.shape[:-2], *start.shape)).qr().Q
    for _ in range(niter):
        found = times(back(found).qr().Q).qr().Q
    return found


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> SVD:
    """U, S and V of the q greatest singular values of A - M, nearly. PyTorch: svd_lowrank.

    >>> from weft import Tensor
    >>> u, s, v = svd_lowrank(Tensor([[3.0, 0.0], [0.0, 0.0]]), q=1)
    >>> round(s.item(), 4)
    3.0
    """
    count = 6 if q is None else q
    rows, columns = known(A.shape[-2]), known(A.shape[-1])
    if not 0 <= count <= min(rows, columns):
        raise ArgumentError(
            f"svd_lowrank: q is {count} for {rows} by {columns}", rule="it is from 0 to the least"
        )
    is_wide = rows < columns
    x = A.mT if is_wide else A
    mean = None if M is None else M.expand(A.shape)
    mean = mean.mT if is_wide and mean is not None else mean
    basis = _basis(x, count, 2 if niter is None else niter, mean)
    left = x if mean is None else x - mean
    u, s, vh = basis.mT.matmul(left).svd(full_matrices=False)
    u, v = basis.matmul(u), vh.mT
    return SVD(v, s, u) if is_wide else SVD(u, s, v)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> SVD:
    """U, S and V of a matrix of which the mean of each column is taken away. PyTorch: pca_lowrank.

    >>> from weft import Tensor
    >>> pca_lowrank(Tensor([[1.0, 2.0], [3.0, 4.0]]), q=1).S.shape
    (1,)
    """
    rows, columns = known(A.shape[-2]), known(A.shape[-1])
    count = min(6, rows, columns) if q is None else q
    if not 0 <= count <= min(rows, columns):
        raise ArgumentError(
            f"pca_lowrank: q is {count} for {rows} by {columns}", rule="it is from 0 to the least"
        )
    centered = A - A.mean(-2, keepdim=True) if center else A
    return svd_lowrank(centered, count, niter)

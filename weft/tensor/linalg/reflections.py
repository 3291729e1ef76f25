"""Householder reflections as LAPACK keeps them: vectors below a diagonal, and their scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from weft.tensor.checks import known
from weft.tensor.complexes.parts import require_real
from weft.tensor.linalg.checks import require_matrix, transposed

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


class Reflections(NamedTuple):
    """R on and above the diagonal with the vectors below it, and the scales."""

    a: Tensor
    tau: Tensor


def _vector(a: Tensor, column: int) -> Tensor:
    """The vector (…, m, 1) of a reflection: 1 on the diagonal, and what is below."""
    rows = known(a.shape[-2])
    numbers = a.__class__.arange(rows, device=a.device).unsqueeze(1)
    below = (numbers > column).where(a[..., column : column + 1], 0.0)
    return (numbers == column).where(1.0, below)


def _reflected(x: Tensor, vector: Tensor, scale: Tensor) -> Tensor:
    """(1 - τ v vᴴ) x"""
    return x - scale * vector.matmul(vector.adjoint().matmul(x))


def householder_product(self: Tensor, tau: Tensor) -> Tensor:
    """Return the first n columns of the product of reflections (…, m, n).

    PyTorch: linalg.householder_product; LAPACK: orgqr.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0], [0.0]]).householder_product(Tensor([2.0])).tolist()
    [[-1.0], [0.0]]
    """
    rows, columns = require_matrix("householder_product", self)
    result = self.eye(rows, columns, dtype=self.dtype, device=self.device).expand(self.shape)
    for column in reversed(range(known(tau.shape[-1]))):
        result = _reflected(result, _vector(self, column), tau[..., column, None, None])
    return result


def ormqr(
    self: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Return Q @ other for the product Q of reflections, or other @ Q, or with Qᵀ.

    PyTorch: ormqr.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0], [0.0]]).ormqr(Tensor([2.0]), Tensor([[3.0], [4.0]])).tolist()
    [[-3.0], [4.0]]
    """
    require_real(self, "ormqr")
    if not left:
        return transposed(ormqr(self, tau, transposed(other), True, not transpose))
    count = known(tau.shape[-1])
    result = other
    for column in range(count) if transpose else reversed(range(count)):
        result = _reflected(result, _vector(self, column), tau[..., column, None, None])
    return result


def geqrf(self: Tensor) -> Reflections:
    """Return the QR decomposition as reflections.

    PyTorch: geqrf.

    >>> from weft.tensor import Tensor
    >>> a, tau = Tensor([[3.0], [4.0]]).geqrf()
    >>> [round(each, 5) for each in (*a.flatten().tolist(), tau.item())]
    [-5.0, 0.5, 1.6]
    """
    require_real(self, "geqrf")
    rows, columns = require_matrix("geqrf", self)
    work, scales, kept = self, [], []
    numbers = self.__class__.arange(rows, device=self.device).unsqueeze(1)
    for column in range(min(rows, columns)):
        x = work[..., column : column + 1]  # (…, m, 1)
        head = x[..., column : column + 1, :]
        tail = (numbers > column).where(x, 0.0)
        rest = tail.square().sum(-2, keepdim=True)
        length = (head.square() + rest).sqrt()
        is_needed = rest != 0
        target = is_needed.where((head < 0).where(length, -length), head)
        scale = is_needed.where((target - head) / is_needed.where(target, 1.0), 0.0)
        vector = tail / is_needed.where(head - target, 1.0)
        full = (numbers == column).where(1.0, vector)
        work = _reflected(work, full, scale)
        kept.append(vector)
        scales.append(scale.squeeze(-1).squeeze(-1))
    if not kept:
        return Reflections(self, self.zeros((*self.shape[:-2], 0), dtype=self.dtype))
    vectors = kept[0].cat(*kept[1:], dim=-1) if len(kept) > 1 else kept[0]
    below = vectors.pad((0, columns - len(kept)))
    return Reflections(work.triu() + below, scales[0].stack(*scales[1:], dim=-1))

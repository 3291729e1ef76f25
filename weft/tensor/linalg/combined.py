"""Products with a sum: addmv, addbmm, addr; and further products, powers and exponentials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError
from weft.tensor.autocast import lowered
from weft.tensor.checks import known
from weft.tensor.linalg.checks import batched, identity, product, require_square
from weft.tensor.methods.unary import as_float
from weft.tensor.small_floats import rounded_once

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def _summed(self: Tensor, found: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta self + alpha found; what is multiplied by 0 counts nothing, not even NaN."""
    (self,) = lowered(self)
    found = found if alpha == 1 else found * alpha
    if beta == 0:
        return found.expand((self * 0 + found).shape) if self.ndim > found.ndim else found
    return (self if beta == 1 else self * beta) + found


@rounded_once
def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta self + alpha (mat @ vec). PyTorch: addmv.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).addmv(Tensor([[2.0]]), Tensor([3.0])).tolist()
    [7.0]
    """
    return _summed(self, mat.matmul(vec), beta, alpha)


@rounded_once
def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta self + alpha (vec1 ⊗ vec2). PyTorch: addr.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0]]).addr(Tensor([2.0]), Tensor([3.0])).tolist()
    [[7.0]]
    """
    return _summed(self, vec1.unsqueeze(1) * vec2.unsqueeze(0), beta, alpha)


@rounded_once
def addbmm(
    self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """Return beta self + alpha Σ batch1[i] @ batch2[i]. PyTorch: addbmm.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0]]).addbmm(Tensor([[[2.0]]]), Tensor([[[3.0]]])).tolist()
    [[7.0]]
    """
    return _summed(self, batch1.matmul(batch2).sum(0), beta, alpha)


def vdot(self: Tensor, other: Tensor) -> Tensor:
    """Return the product of the conjugate of a vector with another. PyTorch: vdot.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).vdot(Tensor([3.0, 4.0])).item()
    11.0
    """
    return self.conj().dot(other)


def inner(self: Tensor, other: Tensor) -> Tensor:
    """Return the products of all rows along the last axes. PyTorch and NumPy: inner.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).inner(Tensor([1, 1])).tolist()
    [3, 7]
    """
    if not self.ndim or not other.ndim:
        return self * other
    return self.tensordot(other, dims=([-1], [-1]))


def block_diag(self: Tensor, *others: Tensor) -> Tensor:
    """Return a matrix with these along its diagonal, and zeros. PyTorch: block_diag.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2]]).block_diag(Tensor([3])).tolist()
    [[1, 2, 0], [0, 0, 3]]
    """
    parts = [
        each.reshape((1, 1)) if not each.ndim else each.atleast_2d() for each in (self, *others)
    ]
    columns = [known(each.shape[1]) for each in parts]
    rows = [
        each.pad((sum(columns[:number]), sum(columns[number + 1 :])))
        for number, each in enumerate(parts)
    ]
    return rows[0].cat(*rows[1:], dim=0)


def matrix_exp(self: Tensor) -> Tensor:
    """Return Σ Aᵏ / k! of square matrices (…, n, n). PyTorch: linalg.matrix_exp.

    A is halved until its norm is below 1, the series is summed, and the result squared as often.

    >>> from weft.tensor import Tensor
    >>> Tensor([[0.0, 1.0], [0.0, 0.0]]).matrix_exp().tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    size = require_square("matrix_exp", self)
    x = batched(self, is_complex_too=True)
    if not size or not x.numel():
        return self
    length = x.detach().abs().sum(1).max(1)  # (batch,)
    halvings = (length > 1).where(length, 1.0).log2().ceil().clamp(0, _SQUARINGS)
    scaled = x / halvings.exp2().reshape((-1, 1, 1))
    terms = 13 if x.dtype is dtypes.float32 else 19
    one = identity(x, size).expand(x.shape)
    total = one
    for k in range(terms, 0, -1):  # Horner: 1 + A (1 + A / 2 (1 + A / 3 …))
        total = one + product(scaled, total) / k
    for number in range(_SQUARINGS):
        is_due = (halvings > number).reshape((-1, 1, 1))
        total = is_due.where(product(total, total), total)
    return total.reshape(self.shape).cast(as_float(self).dtype)


# exp of a greater norm than 2 ** 11 overflows a float64.
_SQUARINGS = 11


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of several matrices in the order that costs least.

    The first and the last may be vectors. PyTorch: linalg.multi_dot.

    >>> from weft.tensor import Tensor
    >>> multi_dot([Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]]), Tensor([[2.0]])]).tolist()
    [[22.0]]
    """
    parts = list(tensors)
    if len(parts) < 2:
        raise ArgumentError(f"multi_dot: {len(parts)} tensors", rule="there are two or more")
    is_row, is_column = parts[0].ndim == 1, parts[-1].ndim == 1
    parts[0] = parts[0].unsqueeze(0) if is_row else parts[0]
    parts[-1] = parts[-1].unsqueeze(1) if is_column else parts[-1]
    sizes = [known(each.shape[0]) for each in parts] + [known(parts[-1].shape[1])]
    count = len(parts)
    cost = {(i, i): 0 for i in range(count)}
    cut: dict[tuple[int, int], int] = {}
    for span in range(1, count):
        for i in range(count - span):
            j = i + span
            choices = {
                k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            }
            cut[i, j] = min(choices, key=choices.__getitem__)
            cost[i, j] = choices[cut[i, j]]

    def together(i: int, j: int) -> Tensor:
        if i == j:
            return parts[i]
        return together(i, cut[i, j]).matmul(together(cut[i, j] + 1, j))

    result = together(0, count - 1)
    result = result.squeeze(0) if is_row else result
    return result.squeeze(-1) if is_column else result


def tensorinv(self: Tensor, ind: int = 2) -> Tensor:
    """Return the inverse of what maps the last axes to the first `ind`. PyTorch: linalg.tensorinv.

    >>> from weft.tensor import Tensor
    >>> Tensor([[2.0]]).tensorinv(1).tolist()
    [[0.5]]
    """
    first, last = self.shape[:ind], self.shape[ind:]
    size = math.prod(map(known, last))
    return self.reshape((size, size)).inv().reshape((*last, *first))


def tensorsolve(self: Tensor, other: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Return x with tensordot(self, x) = other. PyTorch: linalg.tensorsolve.

    >>> from weft.tensor import Tensor
    >>> Tensor([[2.0]]).tensorsolve(Tensor([4.0])).tolist()
    [2.0]
    """
    a = self
    if dims is not None:
        moved = [axis % a.ndim for axis in dims]
        a = a.permute([*(axis for axis in range(a.ndim) if axis not in moved), *moved])
    shape = a.shape[other.ndim :]
    size = math.prod(map(known, shape))
    return a.reshape((-1, size)).solve(other.flatten()).reshape(shape)


@rounded_once
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of each element along a new last axis. PyTorch: vander.

    >>> from weft.tensor import Tensor
    >>> Tensor([2, 3]).vander(3).tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    x = x.atleast_1d()
    count = known(x.shape[-1]) if N is None else N
    columns = [x.ones_like()]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)
    if count == 0:
        return x.unsqueeze(-1)[..., :0]
    columns = columns if increasing else columns[::-1]
    return columns[0].stack(*columns[1:], dim=-1)


@rounded_once
def dist(self: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Return the p-norm of the difference. PyTorch: dist.

    >>> from weft.tensor import Tensor
    >>> Tensor([3.0, 4.0]).dist(Tensor([0.0, 0.0])).item()
    5.0
    """
    return (self - other).norm(p)


@rounded_once
def cov(
    self: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Return the covariances of the rows; observations are columns. PyTorch and NumPy: cov.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 3.0], [2.0, 6.0]]).cov().tolist()
    [[2.0, 4.0], [4.0, 8.0]]
    """
    x = as_float(self).atleast_2d()
    count = known(x.shape[1])
    weight: Any = None
    if fweights is not None:
        weight = fweights.cast(x.dtype.part)
    if aweights is not None:
        weight = aweights if weight is None else weight * aweights
    total: Any = float(count) if weight is None else weight.sum()
    mean = (x if weight is None else x * weight).sum(1, keepdim=True) / total
    if weight is None or aweights is None:
        divisor = total - correction
    else:
        divisor = total - correction * (weight * aweights).sum() / total
    divisor = max(divisor, 0.0) if isinstance(divisor, float) else divisor.clamp(min_=0)
    away = x - mean
    found = (away if weight is None else away * weight).matmul(away.adjoint()) / divisor
    return found.squeeze() if known(x.shape[0]) == 1 else found  # type: ignore[no-any-return]


@rounded_once
def corrcoef(self: Tensor) -> Tensor:
    """Return the correlations of the rows. PyTorch and NumPy: corrcoef.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 3.0], [2.0, 6.0]]).corrcoef().tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    found = cov(self)
    if not found.ndim:
        return found / found
    spread = found.diagonal().sqrt()
    return (found / spread.unsqueeze(1) / spread.unsqueeze(0)).clamp(-1, 1)

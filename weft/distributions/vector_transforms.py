"""Transforms of vectors and matrices: shapes, simplices, triangles, several at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.distributions.independent import sum_last
from weft.distributions.transform import Transform
from weft.support.errors import ShapeError
from weft.tensor.tensor import Tensor


class ReshapeTransform(Transform):
    """The last axes in another shape."""

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ShapeError(f"ReshapeTransform: {self.in_shape} to {self.out_shape}")
        self.domain_dim, self.codomain_dim = len(self.in_shape), len(self.out_shape)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape((*x.shape[: x.ndim - self.domain_dim], *self.out_shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape((*y.shape[: y.ndim - self.codomain_dim], *self.in_shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        lead = x.shape[: x.ndim - self.domain_dim]
        return Tensor.zeros(*lead, dtype=x.dtype, device=x.device)

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        return (*shape[: len(shape) - self.domain_dim], *self.out_shape)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        return (*shape[: len(shape) - self.codomain_dim], *self.in_shape)


class SoftmaxTransform(Transform):
    """The softmax of vectors; its inverse is the logarithm, up to a constant."""

    bijective = False
    domain_dim = codomain_dim = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


def _rests(x: Tensor) -> Tensor:
    """How many parts are left for each element of a vector."""
    count = int(x.shape[-1])
    return Tensor(np.arange(count, 0, -1), dtype=x.dtype, device=x.device)


class StickBreakingTransform(Transform):
    """Vectors to shares that add up to 1, one more: each takes a part of what is left."""

    domain_dim = codomain_dim = 1

    def _call(self, x: Tensor) -> Tensor:
        part = (x - _rests(x).log()).sigmoid()
        rest = (1 - part).cumprod(-1)
        return part.pad((0, 1), value=1.0) * rest.pad((1, 0), value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        shares = y[..., :-1]
        tiny = 2.0**-126 if y.dtype.bits <= 32 else 2.0**-1022
        rest = (1 - shares.cumsum(-1)).clamp(min_=tiny)
        return shares.log() - rest.log() + _rests(shares).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        moved = x - _rests(x).log()
        return (-moved - (-moved).softplus() + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """Matrices to lower triangles whose diagonal is e to the power of the given one."""

    domain_dim = codomain_dim = 2

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Matrices to positive definite ones: L Lᵀ of the triangle that `LowerCholesky` gives."""

    domain_dim = codomain_dim = 2

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform()._inverse(y.cholesky())


def _side(count: int) -> int:
    """The size of the triangle below whose diagonal there are so many elements."""
    size = round((1 + math.sqrt(1 + 8 * count)) / 2)
    if size * (size - 1) // 2 != count:
        raise ShapeError(
            f"CorrCholeskyTransform: a vector of {count} elements",
            rule="there are n (n - 1) / 2, those below a diagonal",
        )
    return size


class CorrCholeskyTransform(Transform):
    """Vectors of n (n - 1) / 2 numbers to Cholesky factors of correlation matrices.

    The tangents of the numbers are partial correlations: row by row, each takes its part of what
    the square of the row's length still lacks.
    """

    domain_dim, codomain_dim = 1, 2

    def _call(self, x: Tensor) -> Tensor:
        tiny = 2.0**-23 if x.dtype.bits <= 32 else 2.0**-52
        size = _side(int(x.shape[-1]))
        part = _triangle(x.tanh().clamp(tiny - 1, 1 - tiny), size)
        rest = (1 - part.square()).sqrt().cumprod(-1)
        one = Tensor.eye(size, dtype=x.dtype, device=x.device)
        return (part + one) * rest[..., :-1].pad((1, 0), value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        size = int(y.shape[-1])
        left = (1 - y.square().cumsum(-1)).clamp(min_=0)[..., :-1].pad((1, 0), value=1.0)
        rows, columns = np.tril_indices(size, -1)
        found = y[..., rows, columns] / left[..., rows, columns].sqrt()
        return (found.log1p() - (-found).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        size = int(y.shape[-1])
        left = 1 - y.square().cumsum(-1)
        rows, columns = np.tril_indices(size, -2)
        of_rows = 0.5 * left[..., rows, columns].log().sum(-1)
        return of_rows - 2 * (x + (-2 * x).softplus() - math.log(2)).sum(-1)

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        size = _side(shape[-1])
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


def _triangle(x: Tensor, size: int) -> Tensor:
    """Elements of vectors below the diagonal of matrices, row by row."""
    place = np.zeros((size, size), np.int64)
    place[np.tril_indices(size, -1)] = np.arange(int(x.shape[-1])) + 1
    return x.pad((1, 0))[..., place.reshape(-1)].reshape((*x.shape[:-1], size, size))


class _Several(Transform):
    """A transform for each part of an axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim

    def _parts(self, x: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def _joined(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._parts(x), strict=True)
        return self._joined([each(part) for each, part in pairs])

    def _inverse(self, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._parts(y), strict=True)
        return self._joined([each._inverse(part) for each, part in pairs])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        triples = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        found = [each.log_abs_det_jacobian(a, b) for each, a, b in triples]
        return self._joined(
            [
                sum_last(volume, self.domain_dim - each.domain_dim)
                for each, volume in zip(self.transforms, found, strict=True)
            ]
        )


class CatTransform(_Several):
    """Transforms of parts of an axis that stand one behind the other."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        self.domain_dim = self.codomain_dim = max(each.domain_dim for each in self.transforms)

    def _parts(self, x: Tensor) -> list[Tensor]:
        return list(x.split(self.lengths, self.dim))

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return parts[0].cat(*parts[1:], dim=self.dim)


class StackTransform(_Several):
    """Transforms of the elements of an axis, one for each."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.domain_dim = self.codomain_dim = max(each.domain_dim for each in self.transforms)

    def _parts(self, x: Tensor) -> list[Tensor]:
        return list(x.unbind(self.dim))

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return parts[0].stack(*parts[1:], dim=self.dim)

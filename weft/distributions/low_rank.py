"""Normal vectors whose covariance is a diagonal and a product of few columns."""

from __future__ import annotations

import math
from typing import Any

from weft.distributions.distribution import Distribution
from weft.support.errors import ShapeError
from weft.tensor.tensor import Tensor


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with covariance W Wᵀ + diag(D): W is `cov_factor`, D is `cov_diag`.

    >>> normal = LowRankMultivariateNormal(Tensor.zeros(2), Tensor([[1.0], [0.0]]), Tensor.ones(2))
    >>> normal.variance.tolist()
    [2.0, 1.0]
    """

    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1 or cov_factor.ndim < 2 or cov_diag.ndim < 1:
            raise ShapeError(
                "LowRankMultivariateNormal: too few axes",
                rule="loc is (…, n), cov_factor (…, n, rank) and cov_diag (…, n)",
            )
        size, rank = int(loc.shape[-1]), int(cov_factor.shape[-1])
        batch = (cov_factor[..., 0] + cov_diag + loc).shape[:-1]
        self.loc = loc.expand(*batch, size)
        self.cov_factor = cov_factor.expand(*batch, size, rank)
        self.cov_diag = cov_diag.expand(*batch, size)
        super().__init__(batch, (size,), validate_args)

    def _small(self) -> tuple[Tensor, Tensor]:
        """Wᵀ D⁻¹, and the Cholesky factor of 1 + Wᵀ D⁻¹ W."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        inner = scaled @ self.cov_factor
        one = Tensor.eye(int(inner.shape[-1]), dtype=inner.dtype, device=inner.device)
        return scaled, (inner + one).cholesky()

    def _log_det(self) -> Tensor:
        _, tril = self._small()
        return 2 * tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self.cov_diag.log().sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        shape = self._shape(sample_shape)
        few = Tensor.randn(*shape[:-1], int(self.cov_factor.shape[-1]), **options)
        each = Tensor.randn(*shape, **options)
        spread = (self.cov_factor @ few.unsqueeze(-1)).squeeze(-1)
        return self.loc + spread + self.cov_diag.sqrt() * each

    def log_prob(self, value: Any) -> Tensor:
        away = self._value(value) - self.loc
        scaled, tril = self._small()
        moved = scaled @ away.unsqueeze(-1)
        tril = tril.expand(*moved.shape[:-2], *tril.shape[-2:])
        inner = tril.solve_triangular(moved, upper=False).squeeze(-1)
        square = (away.square() / self.cov_diag).sum(-1) - inner.square().sum(-1)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + self._log_det() + square)

    def entropy(self) -> Tensor:
        return 0.5 * (self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_det())

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the elements."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()  # type: ignore[no-any-return]

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self.covariance_matrix.inverse()

    @property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self.covariance_matrix.cholesky()

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self.cov_factor.square().sum(-1) + self.cov_diag

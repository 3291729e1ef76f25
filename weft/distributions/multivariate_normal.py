"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

from weft.distributions.distribution import Distribution
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


class MultivariateNormal(Distribution):
    """Normal vectors with a mean and one of covariance_matrix, precision_matrix and scale_tril.

    >>> normal = MultivariateNormal(Tensor.zeros(2), Tensor.eye(2))
    >>> round(normal.log_prob(Tensor.zeros(2)).item(), 4)
    -1.8379
    """

    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = [covariance_matrix, precision_matrix, scale_tril]
        if sum(each is not None for each in given) != 1:
            raise ArgumentError(
                "MultivariateNormal: expected one matrix",
                rule="one of covariance_matrix, precision_matrix and scale_tril is given",
            )
        if scale_tril is None:
            matrix = covariance_matrix if precision_matrix is None else precision_matrix.inverse()
            assert matrix is not None
            scale_tril = matrix.cholesky()
        size = int(loc.shape[-1])
        batch = (scale_tril[..., 0] + loc).shape[:-1]
        self.loc = loc.expand(*batch, size)
        self.scale_tril = scale_tril.expand(*batch, size, size)
        super().__init__(batch, (size,), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        size = self.event_shape[0]
        tril = self.scale_tril.expand(*batch_shape, size, size)
        return MultivariateNormal(self.loc.expand(*batch_shape, size), scale_tril=tril)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        noise = Tensor.randn(*self._shape(sample_shape), **options)
        return self.loc + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Any) -> Tensor:
        away = (self._value(value) - self.loc).unsqueeze(-1)
        tril = self.scale_tril.expand(*away.shape[:-2], *self.scale_tril.shape[-2:])
        y = tril.solve_triangular(away, upper=False).squeeze(-1)
        half_log_det = self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        count = self.event_shape[0]
        return -0.5 * (count * math.log(2 * math.pi) + y.square().sum(-1)) - half_log_det

    def entropy(self) -> Tensor:
        half_log_det = self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + half_log_det

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the elements."""
        return self.scale_tril @ self.scale_tril.transpose(-2, -1)

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self.covariance_matrix.inverse()

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self.scale_tril.square().sum(-1)

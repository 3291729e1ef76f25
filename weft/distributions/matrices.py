"""Distributions of matrices: Wishart's, and Cholesky factors of correlations."""

from __future__ import annotations

import math
from typing import Any

from weft.distributions.distribution import Distribution, require_above_zero, together
from weft.distributions.gamma import Beta, draw_gamma
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


def _diagonal(x: Tensor) -> Tensor:
    return x.diagonal(dim1=-2, dim2=-1)


class Wishart(Distribution):
    """Sums of `df` outer products of normal vectors with one covariance.

    >>> Wishart(3.0, covariance_matrix=Tensor.eye(2)).mean.tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = [covariance_matrix, precision_matrix, scale_tril]
        if sum(each is not None for each in given) != 1:
            raise ArgumentError(
                "Wishart: expected one matrix",
                rule="one of covariance_matrix, precision_matrix and scale_tril is given",
            )
        if scale_tril is None:
            matrix = covariance_matrix if precision_matrix is None else precision_matrix.inverse()
            assert matrix is not None
            scale_tril = matrix.cholesky()
        size = int(scale_tril.shape[-1])
        if isinstance(df, (int, float)) and df <= size - 1:
            raise ArgumentError(f"Wishart: df is {df}", rule=f"df is above {size - 1}, n - 1")
        freedom = df if isinstance(df, Tensor) else Tensor(float(df), dtype=scale_tril.dtype)
        batch = (scale_tril[..., 0, 0] + freedom).shape
        self.df = freedom.expand(batch)
        self.scale_tril = scale_tril.expand(*batch, size, size)
        super().__init__(batch, (size, size), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape, size = self._shape(sample_shape), self.event_shape[0]
        options = {"dtype": self.df.dtype, "device": self.df.device}
        freedom = self.df.unsqueeze(-1) - Tensor.arange(size, **options)
        roots = (2 * draw_gamma(freedom / 2, shape[:-1])).sqrt()
        noise = Tensor.randn(*shape, **options).tril(-1) + roots.diag_embed()
        factor = self.scale_tril.detach() @ noise
        return factor @ factor.mT  # type: ignore[no-any-return]

    def _half_log_det(self) -> Tensor:
        return _diagonal(self.scale_tril).log().sum(-1)

    def log_prob(self, value: Any) -> Tensor:
        given, size = self._value(value), self.event_shape[0]
        tril = self.scale_tril.expand(*given.shape[:-2], size, size)
        inner = tril.solve_triangular(given, upper=False)
        trace = _diagonal(tril.solve_triangular(inner.mT, upper=False)).sum(-1)
        scale = self.df * (size * math.log(2) / 2 + self._half_log_det())
        of_value = (self.df - size - 1) / 2 * given.slogdet().logabsdet
        return of_value - trace / 2 - scale - (self.df / 2).mvlgamma(size)

    def entropy(self) -> Tensor:
        size, half = self.event_shape[0], self.df / 2
        numbers = Tensor.arange(size, dtype=half.dtype, device=half.device)
        digammas = (half.unsqueeze(-1) - numbers / 2).digamma().sum(-1)
        scale = (size + 1) * (size * math.log(2) / 2 + self._half_log_det())
        power = half.mvlgamma(size) - (self.df - size - 1) / 2 * digammas
        return scale + power + half * size

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the vectors."""
        return self.scale_tril @ self.scale_tril.mT  # type: ignore[no-any-return]

    @property
    def precision_matrix(self) -> Tensor:
        """Its inverse."""
        return self.covariance_matrix.inverse()

    @property
    def mean(self) -> Tensor:
        return self.df.unsqueeze(-1).unsqueeze(-1) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.event_shape[0] - 1
        factor = (factor > 0).where(factor, math.nan)
        return factor.unsqueeze(-1).unsqueeze(-1) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        own = _diagonal(v)
        squares = v.square() + own.unsqueeze(-1) * own.unsqueeze(-2)
        return self.df.unsqueeze(-1).unsqueeze(-1) * squares


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, nearer to 1 the greater the concentration is.

    Draws are by the onion method of Lewandowski, Kurowicka and Joe (2009).
    """

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ArgumentError(f"LKJCholesky: dim is {dim}", rule="dim is an int from 2 on")
        require_above_zero("LKJCholesky", validate_args, concentration=concentration)
        (self.concentration,) = together(concentration)
        self.dim = dim
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._shape(sample_shape)
        options = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        offset = (Tensor.arange(self.dim, **options) - 1).clamp(min_=0)
        first = (self.concentration + 0.5 * (self.dim - 2)).unsqueeze(-1)
        given = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        square = Beta(offset + 0.5, first - 0.5 * offset).sample(given).unsqueeze(-1)
        noise = Tensor.randn(*shape, **options).tril(-1)
        length = noise.square().sum(-1, keepdim=True).sqrt()
        rows = square.sqrt() * noise / (length > 0).where(length, 1.0)
        rest = (1 - rows.square().sum(-1)).clamp(min_=1e-30).sqrt()
        return rows + rest.diag_embed()

    def log_prob(self, value: Any) -> Tensor:
        own = _diagonal(self._value(value))[..., 1:]
        options = {"dtype": own.dtype, "device": own.device}
        order = Tensor.arange(2, self.dim + 1, **options)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        count = self.dim - 1
        alpha = self.concentration + 0.5 * count
        norm = 0.5 * count * math.log(math.pi) + (alpha - 0.5).mvlgamma(count)
        return (order * own.log()).sum(-1) - (norm - alpha.lgamma() * count)

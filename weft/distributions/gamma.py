"""Gamma, and what is made of it: beta, chi-squared, Dirichlet, Student's t.

Draws are by Marsaglia and Tsang, "A simple method for generating gamma variables" (2000): each
attempt is taken with a probability above 0.95, and the last of 16 is taken anyway, which happens
once in 10**20 draws. They have no gradient.
"""

from __future__ import annotations

import math
from typing import Any

from weft.distributions.distribution import Distribution, require_above_zero, together
from weft.tensor.tensor import Tensor

_ATTEMPTS = 16


def draw_gamma(concentration: Tensor, shape: Any) -> Tensor:
    """Numbers of the gamma distribution with rate 1."""
    alpha = concentration.detach().expand(shape)
    options = {"dtype": alpha.dtype, "device": alpha.device}
    least = 2.0**-25
    raised = (alpha < 1).where(alpha + 1, alpha)
    d = raised - 1 / 3
    c = (9 * d).sqrt().reciprocal()
    normal = Tensor.randn(_ATTEMPTS, *shape, **options)
    uniform = Tensor.rand(_ATTEMPTS, *shape, **options).clamp(min_=least)
    v = (1 + c * normal) ** 3
    safe = v.clamp(min_=least)
    is_taken = (v > 0) & (uniform.log() < 0.5 * normal * normal + d - d * safe + d * safe.log())
    first = is_taken.float().argmax(0).unsqueeze(0)
    drawn = (d * safe.gather(0, first).squeeze(0)).contiguous()
    boost = Tensor.rand(*shape, **options).clamp(min_=least) ** (1 / alpha)
    return (alpha < 1).where(drawn * boost, drawn)


class Gamma(Distribution):
    """The gamma distribution with a shape `concentration` and a `rate`.

    >>> Gamma(2.0, 4.0).mean.item(), Gamma(2.0, 4.0).variance.item()
    (0.5, 0.125)
    """

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        require_above_zero(
            type(self).__name__, validate_args, concentration=concentration, rate=rate
        )
        self.concentration, self.rate = together(concentration, rate)
        super().__init__(self.rate.shape, (), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return draw_gamma(self.concentration, self._shape(sample_shape)) / self.rate.detach()

    def log_prob(self, value: Any) -> Tensor:
        given, alpha = self._value(value), self.concentration
        power = alpha.xlogy(self.rate) + (alpha - 1).xlogy(given)
        return power - self.rate * given - alpha.lgamma()

    def cdf(self, value: Any) -> Tensor:
        return self.concentration.igamma(self.rate * self._value(value))

    def entropy(self) -> Tensor:
        alpha = self.concentration
        return alpha - self.rate.log() + alpha.lgamma() + (1 - alpha) * alpha.digamma()

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min_=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()


class Chi2(Gamma):
    """The sum of `df` squares of normal numbers."""

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (half,) = together(df)
        super().__init__(half * 0.5, 0.5, validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2


class Dirichlet(Distribution):
    """Shares that add up to 1 along the last axis."""

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        require_above_zero("Dirichlet", validate_args, concentration=concentration)
        (self.concentration,) = together(concentration)
        shape = self.concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = draw_gamma(self.concentration, self._shape(sample_shape))
        return drawn / drawn.sum(-1, keepdim=True)

    def log_prob(self, value: Any) -> Tensor:
        alpha = self.concentration
        power = (alpha - 1).xlogy(self._value(value)).sum(-1)
        return power + alpha.sum(-1).lgamma() - alpha.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        alpha, count = self.concentration, int(self.concentration.shape[-1])
        total = alpha.sum(-1)
        log_beta = alpha.lgamma().sum(-1) - total.lgamma()
        inner = ((alpha - 1) * alpha.digamma()).sum(-1)
        return log_beta - (count - total) * total.digamma() - inner

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        alpha = self.concentration
        return alpha * (total - alpha) / (total.square() * (total + 1))


class Beta(Distribution):
    """Numbers between 0 and 1 with two shapes."""

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        given = {"concentration1": concentration1, "concentration0": concentration0}
        require_above_zero("Beta", validate_args, **given)
        self.concentration1, self.concentration0 = together(concentration1, concentration0)
        super().__init__(self.concentration1.shape, (), validate_args)

    def _both(self) -> Dirichlet:
        return Dirichlet(self.concentration1.stack(self.concentration0, dim=-1))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._both().sample(sample_shape)[..., 0]

    def log_prob(self, value: Any) -> Tensor:
        given = self._value(value)
        return self._both().log_prob(given.stack(1 - given, dim=-1))

    def entropy(self) -> Tensor:
        return self._both().entropy()

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return (self.concentration1 - 1) / (self.concentration1 + self.concentration0 - 2)

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))


class StudentT(Distribution):
    """A normal number over the root of a chi-squared one with `df` degrees of freedom."""

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        require_above_zero("StudentT", validate_args, df=df, scale=scale)
        self.df, self.loc, self.scale = together(df, loc, scale)
        super().__init__(self.df.shape, (), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._shape(sample_shape)
        normal = Tensor.randn(*shape, dtype=self.df.dtype, device=self.df.device)
        square = 2 * draw_gamma(self.df / 2, shape)
        return self.loc.detach() + self.scale.detach() * normal * (self.df / square).sqrt()

    def log_prob(self, value: Any) -> Tensor:
        y = (self._value(value) - self.loc) / self.scale
        half = (self.df + 1) / 2
        constant = (self.df / 2).lgamma() - half.lgamma() + 0.5 * self.df.log()
        z = self.scale.log() + constant + 0.5 * math.log(math.pi)
        return -half * (y.square() / self.df).log1p() - z

    @property
    def mean(self) -> Tensor:
        return (self.df > 1).where(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale.square() * self.df / (self.df - 2)
        return (self.df > 2).where(finite, (self.df > 1).where(math.inf, math.nan))

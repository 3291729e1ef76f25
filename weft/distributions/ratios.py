"""Inverses and ratios of gamma numbers: inverse gamma, Fisher and Snedecor's F."""

from __future__ import annotations

import math
from typing import Any

from weft.distributions.distribution import Distribution, require_above_zero, together
from weft.distributions.gamma import Gamma, draw_gamma
from weft.tensor.tensor import Tensor


class InverseGamma(Distribution):
    """1 over a gamma number.

    >>> InverseGamma(3.0, 4.0).mean.item()
    2.0
    """

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.base_dist = Gamma(concentration, rate, validate_args)
        self.concentration, self.rate = self.base_dist.concentration, self.base_dist.rate
        super().__init__(self.rate.shape, (), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        shape = tuple(batch_shape)
        return InverseGamma(self.concentration.expand(shape), self.rate.expand(shape))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return 1 / self.base_dist.sample(sample_shape)

    def log_prob(self, value: Any) -> Tensor:
        given = self._value(value)
        return self.base_dist.log_prob(1 / given) - 2 * given.log()

    def cdf(self, value: Any) -> Tensor:
        return self.concentration.igammac(self.rate / self._value(value))

    def entropy(self) -> Tensor:
        alpha = self.concentration
        return alpha + self.rate.log() + alpha.lgamma() - (1 + alpha) * alpha.digamma()

    @property
    def mean(self) -> Tensor:
        alpha = self.concentration
        return (alpha > 1).where(self.rate / (alpha - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        alpha = self.concentration
        finite = self.rate.square() / ((alpha - 1).square() * (alpha - 2))
        return (alpha > 2).where(finite, math.inf)


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared numbers, each over its degrees of freedom."""

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        require_above_zero("FisherSnedecor", validate_args, df1=df1, df2=df2)
        self.df1, self.df2 = together(df1, df2)
        super().__init__(self.df1.shape, (), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._shape(sample_shape)
        top, bottom = (draw_gamma(df / 2, shape) / df.detach() for df in (self.df1, self.df2))
        return top / bottom

    def log_prob(self, value: Any) -> Tensor:
        given = self._value(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        constant = (a + b).lgamma() - a.lgamma() - b.lgamma() + a * ratio.log()
        return constant + (a - 1) * given.log() - (a + b) * (ratio * given).log1p()

    @property
    def mean(self) -> Tensor:
        return (self.df2 > 2).where(self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return (self.df1 > 2).where(found, math.nan)

    @property
    def variance(self) -> Tensor:
        top = 2 * self.df2.square() * (self.df1 + self.df2 - 2)
        bottom = self.df1 * (self.df2 - 2).square() * (self.df2 - 4)
        return (self.df2 > 4).where(top / bottom, math.nan)

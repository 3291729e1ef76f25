"""The normal distribution, and what is made of it."""

from __future__ import annotations

import math
from typing import Any

from weft.distributions.distribution import Distribution, require_above_zero, together
from weft.tensor.tensor import Tensor

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


class Normal(Distribution):
    """The normal distribution with a mean `loc` and a deviation `scale`.

    >>> round(Normal(0.0, 1.0).log_prob(Tensor(0.0)).item(), 4)
    -0.9189
    """

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        require_above_zero(type(self).__name__, validate_args, scale=scale)
        self.loc, self.scale = together(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        return self.loc + Tensor.randn(*self._shape(sample_shape), **options) * self.scale

    def log_prob(self, value: Any) -> Tensor:
        distance = (self._value(value) - self.loc) / self.scale
        return -0.5 * distance.square() - self.scale.log() - _HALF_LOG_TAU

    def entropy(self) -> Tensor:
        return self.scale.log() + (0.5 + _HALF_LOG_TAU)

    def cdf(self, value: Any) -> Tensor:
        distance = (self._value(value) - self.loc) / (self.scale * math.sqrt(2))
        return 0.5 * (1 + distance.erf())

    def icdf(self, value: Any) -> Tensor:
        return self.loc + self.scale * (2 * self._value(value) - 1).erfinv() * math.sqrt(2)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return self.scale


class LogNormal(Normal):
    """e to the power of a normal number."""

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return super().rsample(sample_shape).exp()

    def log_prob(self, value: Any) -> Tensor:
        log = self._value(value).log()
        return super().log_prob(log) - log

    def entropy(self) -> Tensor:
        return super().entropy() + self.loc

    def cdf(self, value: Any) -> Tensor:
        return super().cdf(self._value(value).log())

    def icdf(self, value: Any) -> Tensor:
        return super().icdf(value).exp()

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()


class HalfNormal(Normal):
    """The magnitude of a normal number around 0."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.0, scale, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return super().rsample(sample_shape).abs()

    def log_prob(self, value: Any) -> Tensor:
        given = self._value(value)
        return (given >= 0).where(super().log_prob(given) + math.log(2), -math.inf)

    def entropy(self) -> Tensor:
        return super().entropy() - math.log(2)

    def cdf(self, value: Any) -> Tensor:
        return 2 * super().cdf(value) - 1

    def icdf(self, value: Any) -> Tensor:
        return super().icdf((self._value(value) + 1) / 2)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return self.scale.zeros_like()

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

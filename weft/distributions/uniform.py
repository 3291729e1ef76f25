"""Distributions whose draws are a function of one uniform number."""

from __future__ import annotations

import math
from typing import Any

from weft.distributions.distribution import Distribution, require_above_zero, together
from weft.tensor.tensor import Tensor

_EULER = 0.57721566490153286


class _OfUniform(Distribution):
    """`icdf` of a uniform number between 0 and 1 is a draw."""

    has_rsample = True

    def _like(self) -> Tensor:
        return next(each for each in self.__dict__.values() if isinstance(each, Tensor))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        like = self._like()
        drawn = Tensor.rand(*self._shape(sample_shape), dtype=like.dtype, device=like.device)
        return self.icdf(drawn.clamp(2.0**-25, 1 - 2.0**-24))


class Uniform(_OfUniform):
    """Numbers from `low` to below `high`, all alike.

    >>> Uniform(0.0, 4.0).mean.item(), Uniform(0.0, 4.0).log_prob(Tensor(5.0)).item()
    (2.0, -inf)
    """

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = together(low, high)
        super().__init__(self.low.shape, (), validate_args)

    def log_prob(self, value: Any) -> Tensor:
        given = self._value(value)
        inside = (given >= self.low) & (given < self.high)
        return inside.where(-(self.high - self.low).log(), -math.inf)

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()

    def cdf(self, value: Any) -> Tensor:
        return ((self._value(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Any) -> Tensor:
        return self.low + self._value(value) * (self.high - self.low)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12


class Exponential(_OfUniform):
    """Times between events that come `rate` times in one unit of time."""

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        require_above_zero("Exponential", validate_args, rate=rate)
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape, (), validate_args)

    def log_prob(self, value: Any) -> Tensor:
        given = self._value(value)
        return (given >= 0).where(self.rate.log() - self.rate * given, -math.inf)

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()

    def cdf(self, value: Any) -> Tensor:
        return -(-self.rate * self._value(value)).expm1()

    def icdf(self, value: Any) -> Tensor:
        return -(-self._value(value)).log1p() / self.rate

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return self.rate.zeros_like()

    @property
    def variance(self) -> Tensor:
        return self.rate.square().reciprocal()


class Laplace(_OfUniform):
    """Numbers whose distance from `loc` is exponential."""

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        require_above_zero("Laplace", validate_args, scale=scale)
        self.loc, self.scale = together(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    def log_prob(self, value: Any) -> Tensor:
        return -(2 * self.scale).log() - (self._value(value) - self.loc).abs() / self.scale

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()

    def cdf(self, value: Any) -> Tensor:
        x = self._value(value) - self.loc
        return 0.5 - 0.5 * x.sign() * (-x.abs() / self.scale).expm1()

    def icdf(self, value: Any) -> Tensor:
        term = self._value(value) - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()


class Gumbel(_OfUniform):
    """The greatest of many numbers: minus the logarithm of an exponential number."""

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        require_above_zero("Gumbel", validate_args, scale=scale)
        self.loc, self.scale = together(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    def log_prob(self, value: Any) -> Tensor:
        z = (self._value(value) - self.loc) / self.scale
        return -(z + (-z).exp()) - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + _EULER)

    def cdf(self, value: Any) -> Tensor:
        return (-(-(self._value(value) - self.loc) / self.scale).exp()).exp()

    def icdf(self, value: Any) -> Tensor:
        return self.loc - self.scale * (-self._value(value).log()).log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * _EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (math.pi**2 / 6)


class Cauchy(_OfUniform):
    """The ratio of two normal numbers; there is no mean."""

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        require_above_zero("Cauchy", validate_args, scale=scale)
        self.loc, self.scale = together(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    def log_prob(self, value: Any) -> Tensor:
        z = (self._value(value) - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - z.square().log1p()

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()

    def cdf(self, value: Any) -> Tensor:
        return ((self._value(value) - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Any) -> Tensor:
        return (math.pi * (self._value(value) - 0.5)).tan() * self.scale + self.loc

    @property
    def mean(self) -> Tensor:
        return self.loc.full_like(math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.loc.full_like(math.inf)

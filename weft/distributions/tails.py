"""Distributions with long tails, and others whose draws are a formula of a uniform number."""

from __future__ import annotations

import math
from typing import Any

from weft.distributions.distribution import require_above_zero, together
from weft.distributions.uniform import Cauchy, _OfUniform
from weft.tensor.tensor import Tensor

_EULER = 0.57721566490153286


class Pareto(_OfUniform):
    """Numbers from `scale` on whose probability to be passed falls as the power `alpha`.

    >>> Pareto(1.0, 3.0).mean.item()
    1.5
    """

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        require_above_zero("Pareto", validate_args, scale=scale, alpha=alpha)
        self.scale, self.alpha = together(scale, alpha)
        super().__init__(self.scale.shape, (), validate_args)

    def log_prob(self, value: Any) -> Tensor:
        given = self._value(value)
        power = self.alpha.log() + self.alpha * self.scale.log()
        return (given >= self.scale).where(power - (self.alpha + 1) * given.log(), -math.inf)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + 1 / self.alpha

    def cdf(self, value: Any) -> Tensor:
        return (1 - (self.scale / self._value(value)) ** self.alpha).clamp(min_=0)

    def icdf(self, value: Any) -> Tensor:
        return self.scale * (-(-self._value(value)).log1p() / self.alpha).exp()

    @property
    def mean(self) -> Tensor:
        return (self.alpha > 1).where(self.alpha * self.scale / (self.alpha - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        alpha = self.alpha
        finite = self.scale.square() * alpha / ((alpha - 1).square() * (alpha - 2))
        return (alpha > 2).where(finite, math.inf)


class GeneralizedPareto(_OfUniform):
    """What is beyond a threshold `loc`; `concentration` 0 is exponential, and above 0 heavier."""

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        require_above_zero("GeneralizedPareto", validate_args, scale=scale)
        self.loc, self.scale, self.concentration = together(loc, scale, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    def _parts(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is 0, and the concentration with a 1 there."""
        is_zero = self.concentration.abs() < 1e-8
        return is_zero, is_zero.where(1.0, self.concentration)

    def _log_survival(self, value: Any) -> Tensor:
        z = (self._value(value) - self.loc) / self.scale
        is_zero, safe = self._parts()
        return is_zero.where(-z, -(safe * z).log1p() / safe)

    def log_prob(self, value: Any) -> Tensor:
        z = (self._value(value) - self.loc) / self.scale
        is_zero, safe = self._parts()
        power = is_zero.where(z, (1 / safe + 1) * (safe * z).log1p())
        inside = (z >= 0) & ((self.concentration >= 0) | (self.concentration * z > -1))
        return inside.where(-self.scale.log() - power, -math.inf)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1

    def cdf(self, value: Any) -> Tensor:
        return -self._log_survival(value).expm1()

    def icdf(self, value: Any) -> Tensor:
        log = (-self._value(value)).log1p()
        is_zero, safe = self._parts()
        return self.loc + self.scale * is_zero.where(-log, (-safe * log).expm1() / safe)

    @property
    def mean(self) -> Tensor:
        kept = self.concentration < 1
        return kept.where(self.loc + self.scale / (1 - self.concentration), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        finite = self.scale.square() / ((1 - c).square() * (1 - 2 * c))
        return (c < 0.5).where(finite, math.nan)


class HalfCauchy(Cauchy):
    """The magnitude of a Cauchy number around 0."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.0, scale, validate_args)

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
        return self.scale.full_like(math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale.zeros_like()


class Weibull(_OfUniform):
    """Times until a failure whose rate changes as a power of the time."""

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        require_above_zero("Weibull", validate_args, scale=scale, concentration=concentration)
        self.scale, self.concentration = together(scale, concentration)
        super().__init__(self.scale.shape, (), validate_args)

    def log_prob(self, value: Any) -> Tensor:
        ratio, k = self._value(value) / self.scale, self.concentration
        return k.log() - self.scale.log() + (k - 1) * ratio.log() - ratio**k

    def entropy(self) -> Tensor:
        k = self.concentration
        return _EULER * (1 - 1 / k) + (self.scale / k).log() + 1

    def cdf(self, value: Any) -> Tensor:
        return -(-((self._value(value) / self.scale) ** self.concentration)).expm1()

    def icdf(self, value: Any) -> Tensor:
        return self.scale * (-(-self._value(value)).log1p()) ** (1 / self.concentration)

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + 1 / self.concentration).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1).clamp(min_=0) / k) ** (1 / k)

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        second, first = (1 + 2 / k).lgamma().exp(), (2 * (1 + 1 / k).lgamma()).exp()
        return self.scale.square() * (second - first)


class Kumaraswamy(_OfUniform):
    """Numbers between 0 and 1, much as the beta distribution's, with a simple formula."""

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        given = {"concentration1": concentration1, "concentration0": concentration0}
        require_above_zero("Kumaraswamy", validate_args, **given)
        self.concentration1, self.concentration0 = together(concentration1, concentration0)
        super().__init__(self.concentration1.shape, (), validate_args)

    def log_prob(self, value: Any) -> Tensor:
        x, a, b = self._value(value), self.concentration1, self.concentration0
        return a.log() + b.log() + (a - 1) * x.log() + (b - 1) * (-(x**a)).log1p()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + _EULER
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()

    def cdf(self, value: Any) -> Tensor:
        x = self._value(value) ** self.concentration1
        return -(self.concentration0 * (-x).log1p()).expm1()

    def icdf(self, value: Any) -> Tensor:
        inner = -((-self._value(value)).log1p() / self.concentration0).expm1()
        return inner ** (1 / self.concentration1)

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        first = 1 + n / a
        return b * (first.lgamma() + b.lgamma() - (first + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & (a * b > 1)
        ratio = (a - 1) / inside.where(a * b - 1, 1.0)
        return inside.where(ratio.clamp(min_=0) ** (1 / a), math.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.square()

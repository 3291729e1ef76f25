"""Classes and coins that gradients go through: relaxed, straight through, continuous."""

from __future__ import annotations

import math
from typing import Any

from weft.distributions.bernoulli import _OfChance
from weft.distributions.categorical import Categorical, OneHotCategorical
from weft.distributions.distribution import Distribution
from weft.tensor.tensor import Tensor


def _inside(x: Tensor) -> Tensor:
    """Numbers between 0 and 1, without both."""
    tiny = 2.0**-24 if x.dtype.bits <= 32 else 2.0**-53
    return x.clamp(tiny, 1 - tiny)


def _temperature(value: Any, like: Tensor) -> Tensor:
    made = value if isinstance(value, Tensor) else Tensor(value, dtype=like.dtype)
    return made.to(like.device)


class RelaxedBernoulli(_OfChance):
    """A number between 0 and 1 that nears a coin's as the temperature falls.

    >>> RelaxedBernoulli(0.5, probs=0.5).rsample((3,)).shape
    (3,)
    """

    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_chance(probs, logits)
        self.temperature = _temperature(temperature, self.probs)
        super().__init__(self.probs.shape, (), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        return RelaxedBernoulli(self.temperature, logits=self.logits.expand(tuple(batch_shape)))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = _inside(self._uniform(self._shape(sample_shape)))
        noise = drawn.log() - (-drawn).log1p()
        return ((noise + self.logits) / self.temperature).sigmoid()

    def log_prob(self, value: Any) -> Tensor:
        given = _inside(self._value(value))
        logit = given.log() - (-given).log1p()
        apart = self.logits - logit * self.temperature
        of_logit = self.temperature.log() + apart - 2 * apart.softplus()
        return of_logit + (-logit).softplus() + logit.softplus()


class RelaxedOneHotCategorical(Categorical):
    """Shares of classes that near a single one as the temperature falls."""

    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self.temperature = _temperature(temperature, self.logits)
        self.event_shape = (self._num_events,)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        logits = self.logits.expand((*batch_shape, self._num_events))
        return RelaxedOneHotCategorical(self.temperature, logits=logits)

    def _scores(self, sample_shape: Any) -> Tensor:
        options = {"dtype": self.logits.dtype, "device": self.logits.device}
        drawn = _inside(Tensor.rand(*self._shape(sample_shape), **options))
        return (self.logits - (-drawn.log()).log()) / self.temperature

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._scores(sample_shape).softmax(-1)

    def log_prob(self, value: Any) -> Tensor:
        log, count = self._value(value).log(), self._num_events
        score = (self.logits - log * self.temperature).log_softmax(-1).sum(-1)
        scale = math.lgamma(count) + (count - 1) * self.temperature.log()
        return score + scale - log.sum(-1)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot draws whose gradient is that of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class ContinuousBernoulli(_OfChance):
    """Numbers from 0 to 1 with a density proportional to probs**x (1 - probs)**(1 - x)."""

    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._set_chance(probs, logits)
        tiny = 2.0**-23 if self.probs.dtype.bits <= 32 else 2.0**-52
        self.probs = self.probs.clamp(tiny, 1 - tiny)
        self._lims = lims
        super().__init__(self.probs.shape, (), validate_args)

    def _parts(self) -> tuple[Tensor, Tensor]:
        """Where a series is needed, as near 1/2 the formulas are 0 / 0; and safe probabilities."""
        near = (self.probs > self._lims[0]) & (self.probs < self._lims[1])
        return near, near.where(self._lims[0], self.probs)

    def _log_norm(self) -> Tensor:
        near, p = self._parts()
        far = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        x = (self.probs - 0.5).square()
        return near.where(math.log(2) + (4 / 3 + 104 / 45 * x) * x, far)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(_inside(self._uniform(self._shape(sample_shape))))

    def log_prob(self, value: Any) -> Tensor:
        return self._value(value) * self.logits - self.logits.softplus() + self._log_norm()

    def cdf(self, value: Any) -> Tensor:
        x = self._value(value)
        near, p = self._parts()
        found = (p**x * (1 - p) ** (1 - x) + p - 1) / (2 * p - 1)
        return near.where(x, found).clamp(0, 1)

    def icdf(self, value: Any) -> Tensor:
        x = self._value(value)
        near, p = self._parts()
        rest = (-p).log1p()
        return near.where(x, ((-p + x * (2 * p - 1)).log1p() - rest) / (p.log() - rest))

    def entropy(self) -> Tensor:
        rest = (-self.probs).log1p()
        return self.mean * (rest - self.probs.log()) - self._log_norm() - rest

    @property
    def mean(self) -> Tensor:
        near, p = self._parts()
        x = self.probs - 0.5
        series = 0.5 + (1 / 3 + 16 / 45 * x.square()) * x
        return near.where(series, p / (2 * p - 1) + 1 / ((-p).log1p() - p.log()))

    @property
    def variance(self) -> Tensor:
        near, p = self._parts()
        x = (self.probs - 0.5).square()
        far = p * (p - 1) / (1 - 2 * p).square() + ((-p).log1p() - p.log()).square().reciprocal()
        return near.where(1 / 12 - (1 / 15 - 128 / 945 * x) * x, far)

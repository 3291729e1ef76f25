"""Counts of failures before so many successes, and of the classes of several draws."""

from __future__ import annotations

import math
from typing import Any

from weft.distributions.bernoulli import Binomial, Poisson, _OfChance
from weft.distributions.categorical import Categorical
from weft.distributions.distribution import Distribution
from weft.distributions.gamma import draw_gamma
from weft.tensor.tensor import Tensor


class NegativeBinomial(_OfChance):
    """How many trials succeed before `total_count` of them fail.

    >>> NegativeBinomial(2.0, probs=0.5).mean.item()
    2.0
    """

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._set_chance(probs, logits, total_count)
        super().__init__(self.probs.shape, (), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = draw_gamma(self.total_count, self._shape(sample_shape))
        return Poisson(drawn * self.logits.detach().exp()).sample()

    def log_prob(self, value: Any) -> Tensor:
        given, total = self._value(value), self.total_count
        power = -total * self.logits.softplus() - given * (-self.logits).softplus()
        ways = (total + given).lgamma() - (1 + given).lgamma() - total.lgamma()
        return power + (total + given == 0).where(0.0, ways)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min_=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()


class Multinomial(Distribution):
    """How often each class comes in `total_count` draws."""

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.total_count = int(total_count)
        self._categorical = Categorical(probs, logits, validate_args)
        event = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event, validate_args)

    @property
    def probs(self) -> Tensor:
        """The probabilities of the classes."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self._categorical.logits

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        logits = self.logits.expand((*batch_shape, *self.event_shape))
        return Multinomial(self.total_count, logits=logits)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        given = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        drawn = self._categorical.sample((self.total_count, *given))
        return drawn.one_hot(self.event_shape[0]).sum(0).cast(self.probs.dtype)

    def log_prob(self, value: Any) -> Tensor:
        given = self._value(value)
        never = (given == 0) & (self.logits == -math.inf)
        power = (given * never.where(0.0, self.logits)).sum(-1)
        return (given.sum(-1) + 1).lgamma() - (given + 1).lgamma().sum(-1) + power

    def entropy(self) -> Tensor:
        count = self.total_count
        counts = Tensor.arange(1, count + 1, device=self.probs.device).cast(self.probs.dtype)
        counts = counts.reshape((count, *[1] * self.probs.ndim))
        chances = Binomial(float(count), self.probs).log_prob(counts).exp()
        inner = (chances * (counts + 1).lgamma()).sum(0).sum(-1)
        return count * self._categorical.entropy() - math.lgamma(count + 1) + inner

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

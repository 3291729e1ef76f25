"""Counts: of successes, of trials until one, and of events."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.distributions.categorical import one_of
from weft.distributions.distribution import Distribution, require_above_zero, together
from weft.support.errors import NotSupported
from weft.tensor.tensor import Tensor


class _OfChance(Distribution):
    """A distribution with a probability, given as such or by its logit."""

    def _set_chance(self, probs: Any, logits: Any, *others: Any) -> list[Tensor]:
        one_of(type(self).__name__, probs, logits)
        given, *rest = together(probs if logits is None else logits, *others)
        if logits is None:
            self.probs = given
            tiny = 2.0**-23 if given.dtype.bits <= 32 else 2.0**-52
            inside = given.clamp(tiny, 1 - tiny)
            self.logits = inside.log() - (-inside).log1p()
        else:
            self.logits = given
            self.probs = given.sigmoid()
        return rest

    def _uniform(self, shape: Any) -> Tensor:
        return Tensor.rand(*shape, dtype=self.probs.dtype, device=self.probs.device)


class Bernoulli(_OfChance):
    """1 with a probability, and 0 otherwise.

    >>> Bernoulli(0.25).mean.item(), round(Bernoulli(0.25).log_prob(Tensor(1.0)).exp().item(), 2)
    (0.25, 0.25)
    """

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_chance(probs, logits)
        super().__init__(self.probs.shape, (), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._uniform(self._shape(sample_shape))
        return (drawn < self.probs.detach()).cast(self.probs.dtype)

    def log_prob(self, value: Any) -> Tensor:
        given = self._value(value)
        return given * self.logits - self.logits.softplus()

    def entropy(self) -> Tensor:
        return self.logits.softplus() - self.probs * self.logits

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return (self.probs > 0.5).cast(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)


class Geometric(_OfChance):
    """How many trials fail before the first succeeds."""

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_chance(probs, logits)
        super().__init__(self.probs.shape, (), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._uniform(self._shape(sample_shape)).clamp(min_=2.0**-25)
        return (drawn.log() / (-self.probs.detach()).log1p()).floor()

    def log_prob(self, value: Any) -> Tensor:
        return self._value(value) * (-self.probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return (self.logits.softplus() - self.probs * self.logits) / self.probs

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return self.probs.zeros_like()

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs


class Binomial(_OfChance):
    """How many of `total_count` trials succeed."""

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._set_chance(probs, logits, total_count)
        super().__init__(self.probs.shape, (), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        most = int(self.total_count.max().item())
        if most > 1 << 16:
            raise NotSupported(f"Binomial: {most} trials", rule="a draw has at most 65,536 trials")
        trials = Tensor.arange(most, device=self.probs.device).reshape(
            most, *(1,) * len(self._shape(sample_shape))
        )
        drawn = self._uniform((most, *self._shape(sample_shape)))
        hits = (drawn < self.probs.detach()) & (trials < self.total_count)
        return hits.sum(0).cast(self.probs.dtype)

    def log_prob(self, value: Any) -> Tensor:
        given, total = self._value(value), self.total_count
        ways = (total + 1).lgamma() - (given + 1).lgamma() - (total - given + 1).lgamma()
        return ways + given * self.logits - total * self.logits.softplus()

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)


class Poisson(Distribution):
    """How many events come in one unit of time, with `rate` of them on average."""

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        if not isinstance(rate, Tensor) and rate != 0:
            require_above_zero("Poisson", validate_args, rate=rate)
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape, (), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        rates = np.broadcast_to(self.rate.numpy(), self._shape(sample_shape))
        seed = Tensor.randint(2, low=0, high=2**31 - 1).tolist()
        drawn = np.random.default_rng(seed).poisson(rates)
        return Tensor(drawn, dtype=self.rate.dtype, device=self.rate.device)

    def log_prob(self, value: Any) -> Tensor:
        given = self._value(value)
        return given.xlogy(self.rate) - self.rate - (given + 1).lgamma()

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

from weft.distributions.categorical import Categorical
from weft.distributions.distribution import Distribution
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.tensor import Tensor


class MixtureSameFamily(Distribution):
    """A class is drawn, and then from the component that has its index along the last batch axis.

    >>> from weft.distributions.normal import Normal
    >>> parts = Normal(Tensor([-1.0, 1.0]), 0.5)
    >>> MixtureSameFamily(Categorical(Tensor([0.5, 0.5])), parts).mean.item()
    0.0
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError(
                f"MixtureSameFamily: a mixture of {type(mixture_distribution).__name__}",
                rule="it is a Categorical",
            )
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        batch = component_distribution.batch_shape
        count = mixture_distribution.param_shape[-1]
        if not batch or batch[-1] != count:
            raise ShapeError(
                f"MixtureSameFamily: {count} classes for components of batch shape {batch}",
                rule="the last axis of the batch has a component for each class",
            )
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """No: which component is drawn has no gradient."""
        return False

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        shape = tuple(batch_shape)
        parts = self.component_distribution.expand((*shape, self._count))
        mixture: Any = self.mixture_distribution.expand(shape)
        return MixtureSameFamily(mixture, parts)

    @property
    def _count(self) -> int:
        return self.component_distribution.batch_shape[-1]

    def _weights(self) -> Tensor:
        """The probabilities, with an axis for each of an event's."""
        probs = self.mixture_distribution.probs
        return probs.reshape((*probs.shape, *[1] * len(self.event_shape)))

    def _of_all(self, value: Any) -> Tensor:
        given = self._value(value)
        return given.unsqueeze(given.ndim - len(self.event_shape))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self.component_distribution.sample(sample_shape)
        chosen = self.mixture_distribution.sample(sample_shape)
        axis = drawn.ndim - len(self.event_shape) - 1
        index = chosen.reshape((*chosen.shape, *[1] * (len(self.event_shape) + 1)))
        shape = [1 if at == axis else size for at, size in enumerate(drawn.shape)]
        return drawn.gather(axis, index.expand(shape)).squeeze(axis)

    def log_prob(self, value: Any) -> Tensor:
        of_parts = self.component_distribution.log_prob(self._of_all(value))
        return (of_parts + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def cdf(self, value: Any) -> Tensor:
        of_parts = self.component_distribution.cdf(self._of_all(value))
        return (of_parts * self.mixture_distribution.probs).sum(-1)

    @property
    def mean(self) -> Tensor:
        axis = -1 - len(self.event_shape)
        return (self._weights() * self.component_distribution.mean).sum(axis)

    @property
    def variance(self) -> Tensor:
        axis = -1 - len(self.event_shape)
        inner = (self._weights() * self.component_distribution.variance).sum(axis)
        away = self.component_distribution.mean - self.mean.unsqueeze(axis)
        return inner + (self._weights() * away.square()).sum(axis)

"""Some axes of a batch taken for one event, whose probability is a product."""

from __future__ import annotations

from typing import Any

from weft.distributions.distribution import Distribution
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


def sum_last(x: Tensor, count: int) -> Tensor:
    """The sum over the last axes."""
    return x.sum(tuple(range(-count, 0))) if count else x


class Independent(Distribution):
    """The last axes of a batch are one event.

    >>> from weft.distributions.normal import Normal
    >>> Independent(Normal(Tensor.zeros(3, 2), 1.0), 1).log_prob(Tensor.zeros(3, 2)).shape
    (3,)
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ArgumentError(
                f"Independent: {reinterpreted_batch_ndims} axes of a batch of shape {batch}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        cut = len(batch) - reinterpreted_batch_ndims
        event = (*batch[cut:], *base_distribution.event_shape)
        super().__init__(batch[:cut], event, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether draws have a gradient."""
        return self.base_dist.has_rsample

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        count = self.reinterpreted_batch_ndims
        inner = (*batch_shape, *self.event_shape[:count])
        return Independent(self.base_dist.expand(inner), count)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Tensor:
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"

"""Distributions of transformed draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.distributions.distribution import Distribution
from weft.distributions.independent import Independent, sum_last
from weft.distributions.normal import Normal
from weft.distributions.transform import ComposeTransform, Transform
from weft.distributions.vector_transforms import StickBreakingTransform
from weft.support.errors import ArgumentTypeError, ShapeError
from weft.tensor.tensor import Tensor


class TransformedDistribution(Distribution):
    """Draws of a distribution, each handed through transforms.

    >>> from weft.distributions.transform import ExpTransform
    >>> lognormal = TransformedDistribution(Normal(0.0, 1.0), [ExpTransform()])
    >>> round(lognormal.log_prob(Tensor(1.0)).item(), 4)
    -0.9189
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        listed = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for each in listed:
            if not isinstance(each, Transform):
                raise ArgumentTypeError(
                    f"TransformedDistribution: {type(each).__name__} is no transform",
                    rule="transforms are a Transform, or a list of them",
                )
        self.transforms = listed
        self._whole = ComposeTransform(listed)
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        if len(shape) < self._whole.domain_dim:
            raise ShapeError(
                f"TransformedDistribution: draws of shape {shape}",
                rule=f"the transforms take at least {self._whole.domain_dim} axes",
            )
        more = self._whole.domain_dim - len(base_distribution.event_shape)
        self.base_dist = Independent(base_distribution, more) if more > 0 else base_distribution
        made = self._whole.forward_shape(shape)
        axes = max(
            self._whole.codomain_dim,
            len(base_distribution.event_shape) + self._whole.codomain_dim - self._whole.domain_dim,
        )
        cut = len(made) - axes
        super().__init__(made[:cut], made[cut:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether draws have a gradient."""
        return self.base_dist.has_rsample

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        return TransformedDistribution(self.base_dist.expand(tuple(batch_shape)), self.transforms)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._whole(self.base_dist.sample(sample_shape)).detach()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._whole(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Tensor:
        y, axes = self._value(value), len(self.event_shape)
        total: Any = 0.0
        for each in reversed(self.transforms):
            x = each._inverse(y)
            axes += each.domain_dim - each.codomain_dim
            total = total - sum_last(each.log_abs_det_jacobian(x, y), axes - each.domain_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return total + sum_last(base, axes - len(self.base_dist.event_shape))  # type: ignore[no-any-return]

    def _increasing(self, probability: Tensor) -> Tensor:
        """The probability of less, where the order is turned around."""
        sign = self._whole.sign
        if isinstance(sign, (int, float)):
            return probability if sign > 0 else 1 - probability
        return sign * (probability - 0.5) + 0.5  # type: ignore[no-any-return]

    def cdf(self, value: Any) -> Tensor:
        return self._increasing(self.base_dist.cdf(self._whole._inverse(self._value(value))))

    def icdf(self, value: Any) -> Tensor:
        return self._whole(self.base_dist.icdf(self._increasing(self._value(value))))

    def __repr__(self) -> str:
        return f"TransformedDistribution({self.base_dist!r}, {self.transforms})"


class LogisticNormal(TransformedDistribution):
    """Shares that are the stick breaking of normal numbers, one more than those."""

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand((1,))  # type: ignore[assignment]
        super().__init__(base, StickBreakingTransform(), validate_args)
        self._normal = base

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        shape = (*batch_shape, self._normal.batch_shape[-1])
        return LogisticNormal(self._normal.loc.expand(shape), self._normal.scale.expand(shape))

    @property
    def loc(self) -> Tensor:
        """The means of the normal numbers."""
        return self._normal.loc

    @property
    def scale(self) -> Tensor:
        """Their deviations."""
        return self._normal.scale

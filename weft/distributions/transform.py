"""Functions with an inverse and a known change of volume, with the names of torch.distributions.

A class defines `_call`, `_inverse` and `log_abs_det_jacobian(x, y)`. `domain_dim` and
`codomain_dim` are the axes of one event before and after; those of numbers are 0.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any, ClassVar

from weft.distributions.independent import sum_last
from weft.support.errors import NotSupported
from weft.tensor.tensor import Tensor


class Transform:
    """The base of transforms: `y = transform(x)`, `x = transform.inv(y)`."""

    bijective: ClassVar[bool] = True
    domain_dim: int = 0
    codomain_dim: int = 0
    sign: Any = 1

    def __init__(self, cache_size: int = 0) -> None:
        self.cache_size = cache_size

    @property
    def event_dim(self) -> int:
        """The axes of an event, where they are as many before and after."""
        return self.domain_dim

    @property
    def inv(self) -> Transform:
        """The inverse."""
        return _Inverse(self)

    def __call__(self, x: Tensor) -> Tensor:
        """The value at x."""
        return self._call(x)

    def _call(self, x: Tensor) -> Tensor:
        raise NotSupported(f"{type(self).__name__}: there is no value")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotSupported(f"{type(self).__name__}: there is no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of how much volume grows, from x to y = transform(x)."""
        raise NotSupported(f"{type(self).__name__}: there is no density")

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of values, given that of x."""
        return tuple(shape)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of x, given that of values."""
        return tuple(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    """A transform the other way."""

    def __init__(self, base: Transform) -> None:
        super().__init__()
        self._base = base
        self.domain_dim, self.codomain_dim = base.codomain_dim, base.domain_dim

    @property
    def inv(self) -> Transform:
        return self._base

    @property
    def sign(self) -> Any:
        """Whether the order stays, as in the other direction."""
        return self._base.sign

    def _call(self, x: Tensor) -> Tensor:
        return self._base._inverse(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._base(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._base.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        return self._base.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        return self._base.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{self._base!r}.inv"


class ComposeTransform(Transform):
    """Transforms one after the other, the first of the list first.

    >>> ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()])(Tensor([0.0])).tolist()
    [1.0]
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        self.domain_dim = self.codomain_dim = 0
        for part in reversed(self.parts):
            self.domain_dim = max(part.domain_dim, self.domain_dim + part.domain_dim
                                  - part.codomain_dim)  # fmt: skip
        self.codomain_dim = self.domain_dim + sum(
            part.codomain_dim - part.domain_dim for part in self.parts
        )

    @property
    def sign(self) -> Any:
        """The product of the signs."""
        return reduce(operator.mul, [part.sign for part in self.parts], 1)

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inverse(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total: Any = x.zeros_like() if not self.parts else 0.0
        axes = self.domain_dim
        for part in self.parts:
            following = part(x)
            volume = part.log_abs_det_jacobian(x, following)
            total = total + sum_last(volume, axes - part.domain_dim)
            axes += part.codomain_dim - part.domain_dim
            x = following
        return total  # type: ignore[no-any-return]

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts})"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last axes are taken for one event."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.domain_dim = base_transform.domain_dim + reinterpreted_batch_ndims
        self.codomain_dim = base_transform.codomain_dim + reinterpreted_batch_ndims

    @property
    def sign(self) -> Any:
        """That of the transform."""
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform._inverse(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        volume = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_last(volume, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        return self.base_transform.inverse_shape(shape)


class AffineTransform(Transform):
    """loc + scale · x."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        self.domain_dim = self.codomain_dim = event_dim

    @property
    def sign(self) -> Any:
        """The sign of the scale."""
        return (
            self.scale.sign() if isinstance(self.scale, Tensor) else math.copysign(1, self.scale)
        )

    def _call(self, x: Tensor) -> Tensor:
        return x * self.scale + self.loc  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            volume = x.zeros_like() + self.scale.abs().log()
        else:
            volume = x.full_like(math.log(abs(self.scale)))
        return sum_last(volume, self.domain_dim)


class ExpTransform(Transform):
    """e to the power of x."""

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """x to a power, for x above 0."""

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else Tensor(float(exponent))

    @property
    def sign(self) -> Any:
        """The sign of the exponent."""
        return self.exponent.sign()

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    """1 / (1 + e to the power of -x)."""

    def _call(self, x: Tensor) -> Tensor:
        tiny = 2.0**-24 if x.dtype.bits <= 32 else 2.0**-53
        return x.sigmoid().clamp(2.0**-126, 1 - tiny)

    def _inverse(self, y: Tensor) -> Tensor:
        tiny = 2.0**-24 if y.dtype.bits <= 32 else 2.0**-53
        inside = y.clamp(2.0**-126, 1 - tiny)
        return inside.log() - (-inside).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -(-x).softplus() - x.softplus()


class SoftplusTransform(Transform):
    """log(1 + e to the power of x)."""

    def _call(self, x: Tensor) -> Tensor:
        return x.softplus()

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -(-x).softplus()


class TanhTransform(Transform):
    """The hyperbolic tangent."""

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (math.log(2) - x - (-2 * x).softplus())


class AbsTransform(Transform):
    """The magnitude, which has no single inverse: that of y is y."""

    bijective = False

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class CumulativeDistributionTransform(Transform):
    """The cdf of a distribution: its draws become uniform."""

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)  # type: ignore[no-any-return]

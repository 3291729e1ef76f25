"""Angles around a direction.

Draws are by Best and Fisher, "Efficient simulation of the von Mises distribution" (1979): an
attempt is taken with a probability above 0.65, and the last of 32 anyway, once in 10**14 draws.
"""

from __future__ import annotations

import math
from typing import Any

from weft.distributions.distribution import Distribution, require_above_zero, together
from weft.ir.dtypes import dtypes
from weft.tensor.tensor import Tensor

_ATTEMPTS = 32


class VonMises(Distribution):
    """Angles from -π to π around `loc`, nearer the greater the `concentration` is.

    >>> VonMises(0.5, 4.0).mean.item()
    0.5
    """

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        require_above_zero("VonMises", validate_args, concentration=concentration)
        self.loc, self.concentration = together(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    def log_prob(self, value: Any) -> Tensor:
        k = self.concentration
        near = (self._value(value) - self.loc).cos() - 1
        return k * near - math.log(2 * math.pi) - k.i0e().log()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._shape(sample_shape)
        options = {"dtype": dtypes.float32, "device": self.loc.device}
        # The proposal in float64: for small concentrations its parts nearly cancel.
        wide = self.concentration.detach().double().clamp(min_=1e-5)
        tau = 1 + (1 + 4 * wide.square()).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * wide)
        r = ((1 + rho.square()) / (2 * rho)).expand(shape)
        k = wide.expand(shape)
        first, second, third = (
            Tensor.rand(_ATTEMPTS, *shape, **options).clamp(min_=2.0**-25) for _ in range(3)
        )
        z = (math.pi * first).cos().double()
        cosine = ((1 + r * z) / (r + z)).clamp(-1, 1)
        c = k * (r - cosine)
        is_taken = (c * (2 - c) - second > 0) | ((c / second).log() + 1 - c >= 0)
        at = is_taken.float().argmax(0).unsqueeze(0)
        angle = ((third - 0.5).sign() * cosine.acos()).gather(0, at).squeeze(0)
        turned = angle + math.pi + self.loc.detach()
        return (turned % (2 * math.pi) - math.pi).cast(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - self.concentration.i1e() / self.concentration.i0e()

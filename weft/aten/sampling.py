"""Samples whose parameters are tensors: counts of events and of successes."""

from __future__ import annotations

from typing import Any

from weft.distributions import Binomial, Poisson
from weft.tensor.create.generator import takes_generator
from weft.tensor.tensor import Tensor


@takes_generator
def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Draw how many events come, for each rate. PyTorch: poisson.

    >>> poisson(Tensor([0.0, 0.0])).tolist()
    [0.0, 0.0]
    """
    return Poisson(input.detach()).sample()


@takes_generator
def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """Draw how many of so many trials succeed. PyTorch: binomial.

    >>> binomial(Tensor([3.0]), Tensor([1.0])).tolist()
    [3.0]
    """
    return Binomial(count.detach(), prob.detach()).sample()
